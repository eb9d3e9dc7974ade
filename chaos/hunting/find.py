"""What becomes of a find: it is made small on the simulated twin, done again on the target, and kept.

First faults are left out and numbers made smaller for as long as the clause stays refuted in virtual time; a find on
real parts that the twin does not show is kept as it was found. On a simulated target the plan that is left is then made
smaller still, action by action. How often it comes again is tried with other seeds.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from chaos.hunting.draw import as_toml
from chaos.hunting.search import Example
from chaos.runner import run_scenario, twin_plan
from chaos.scenario import Scenario
from chaos.twin import Twin as Played
from chaos.twin import play
from conformance import again
from conformance.reports import rate
from conformance.reports.rate import Rate
from conformance.reports.saving import save
from conformance.reports.view import VerdictView
from conformance.shrink import shrink
from conformance.targets.base import Target
from reference_impl.mutants import Mutant
from reference_impl.sim.simulate import simulate
from specs.clauses.catalogue import get
from specs.history.store import write_history
from specs.plan.plan import Plan
from specs.profiles import Profile
from specs.verdicts.engine import of_one_run
from specs.verdicts.examine import examine
from specs.verdicts.verdict import ClauseVerdict

STEPS_BUDGET, ACTIONS_BUDGET = 40, 250
"""How many runs the making small may take, of the scenario and of its plan."""
FEWER = (16, 40, 80)
"""Messages."""
SCENARIO_FILE = "scenario.toml"
SAY = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Find:
    """clause: what is broken. scenario: as small as it became. folder: the run in which it is. faults: how many."""

    clause: str
    scenario: Scenario
    folder: Path
    verdict: VerdictView
    rate: Rate
    example: int

    @property
    def faults(self) -> int:
        return len(self.scenario.faults)


@dataclass(frozen=True, slots=True)
class Twin:
    """Where a scenario is done in virtual time: on the reference, or on a bug. suited: what every plan says besides."""

    mutant: Mutant | None
    suited: Callable[[Plan], Plan] = lambda plan: plan

    def run(self, scenario: Scenario, seed: int, *, look: bool = False) -> Played:
        """The scenario's run there."""
        return play(self.suited(twin_plan(scenario, seed)), self.mutant, look=look)

    def breaks(self, scenario: Scenario, seed: int, clause: str) -> bool:
        """Is the clause refuted there?"""
        made = self.run(scenario, seed)
        return bool(examine(made.rows, made.info, (get(clause),)).refuted())


def smaller(scenario: Scenario, seed: int, clause: str, twin: Twin) -> Scenario:
    """The scenario with less in it, which still breaks the clause on the twin."""
    left, best = STEPS_BUDGET, scenario
    again = True
    while again:
        again = False
        for candidate in _simpler(best):
            if left <= 0:
                return best
            left -= 1
            if twin.breaks(candidate, seed, clause):
                best, again = candidate, True
                break
    return best


def _simpler(scenario: Scenario) -> Iterator[Scenario]:
    """Without one of its faults, with fewer messages, without poison, with the usual settings."""
    work = scenario.workload
    for number in range(len(scenario.faults)):
        yield replace(scenario, faults=scenario.faults[:number] + scenario.faults[number + 1 :])
    for messages in FEWER:
        if messages < work.messages:
            yield replace(scenario, workload=replace(work, messages=messages))
    if work.poison_every <= work.messages:
        yield replace(scenario, workload=replace(work, poison_every=work.messages + 1))
    if scenario.config:
        yield replace(scenario, config={})
    if work.brokers > 1 and not any("broker" in fault.table for fault in scenario.faults):
        yield replace(scenario, workload=replace(work, brokers=1))


def simulated(
    example: Example, clause: str, twin: Twin, profile: Profile, out: Path, times: int, say: SAY
) -> Find:
    """The find of a simulated target: small, kept as a run that `inorder replay` repeats to the byte."""
    say(f"making {clause} smaller")
    scenario = smaller(example.scenario, example.seed, clause, twin)
    found = twin.run(scenario, example.seed)

    def still_broken(plan: Plan) -> bool:
        info, rows = simulate(plan, twin.mutant)
        return bool(examine(rows, info, (get(clause),)).refuted())

    plan = shrink(found.plan, still_broken, ACTIONS_BUDGET)
    info, rows = simulate(plan, twin.mutant)
    told = replace(
        info, seed=example.seed, profile=profile.name, replay=again.command("replay", out)
    )
    write_history(out, told, rows)
    verdict = of_one_run(examine(rows, told), told, profile)
    say(f"trying {clause} {times} times more")
    tried = Rate((clause,))
    for number in range(times):
        tried = tried.after(broken=twin.breaks(scenario, example.seed + 1 + number, clause))
    return _kept(Find(clause, scenario, out, save(verdict, out), tried, example.number))


def real(
    example: Example,
    clause: str,
    target: Target,
    twin: Twin | None,
    profile: Profile,
    out: Path,
    times: int,
    say: SAY,
) -> Find:
    """The find on real parts: small if the twin shows it, and done again on the target until it is seen there."""
    scenario = example.scenario
    if twin is not None and twin.breaks(scenario, example.seed, clause):
        say(f"the simulated twin shows {clause} too: making it smaller there")
        scenario = smaller(scenario, example.seed, clause, twin)
    assert example.kept is not None, "a run on real parts is kept"
    tried, shown = Rate((clause,)), None
    for number in range(times):
        say(f"trying {clause} again, {number + 1} of {times}")
        folder = out / f"{number + 1}"
        folder.parent.mkdir(parents=True, exist_ok=True)
        verdict, _history = run_scenario(
            scenario, target, profile, seed=example.seed + number, out=folder, say=say
        )
        broken = clause in {each.id for each in verdict.of(ClauseVerdict.REFUTED)}
        tried = tried.after(broken=broken)
        if broken and shown is None:
            shown = folder, save(verdict, folder)
    scenario = example.scenario if shown is None else scenario
    folder, seen = shown or example.kept
    return _kept(Find(clause, scenario, folder, seen, tried, example.number))


def as_found(example: Example, clause: str, twin: Twin | None, profile: Profile, out: Path) -> Find:
    """The find as its example was, tried no more. out: for the run of a simulated target, which keeps none."""
    if example.kept is None:
        assert twin is not None, "a run on real parts is kept"
        found = twin.run(example.scenario, example.seed)
        told = replace(
            found.info, seed=example.seed, profile=profile.name, replay=again.command("replay", out)
        )
        shutil.rmtree(out, ignore_errors=True)  # what the making small may have begun
        out.mkdir(parents=True)
        write_history(out, told, found.rows)
        folder, seen = out, save(of_one_run(examine(found.rows, told), told, profile), out)
    else:
        folder, seen = example.kept
    return _kept(Find(clause, example.scenario, folder, seen, Rate((clause,)), example.number))


def _kept(find: Find) -> Find:
    why = f"{find.clause} is broken: found by a search, in example {find.example}."
    if find.scenario.faults:  # what is broken without any is no scenario; the run's plan says it
        text = as_toml(find.scenario, why, [find.clause])
        (find.folder / SCENARIO_FILE).write_text(text, encoding="utf-8")
    rate.write(find.folder, find.rate)
    return find
