"""What becomes of a find: it is made small on the simulated twin, done again on the target, and kept.

First faults are left out and numbers made smaller for as long as the clause stays refuted in virtual time. A find on
real parts that no twin shows is made smaller there: first it is done again, for its rate, and then a scenario with less
in it is kept if a sequential test says that it breaks the clause about as often (`conformance.sequential`). On a
simulated target the plan that is left is then made smaller still, action by action. How often it comes again is tried
with other seeds.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
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
from conformance.sequential import SequentialTest, Tries
from conformance.shrink import shrink
from conformance.targets.base import Target
from conformance.waiting import now_s
from reference_impl.mutants import Mutant
from reference_impl.sim.simulate import simulate
from specs.clauses.catalogue import get
from specs.errors import InorderError, Unavailable, UsageError
from specs.history.store import write_history
from specs.plan.plan import Plan
from specs.profiles import Profile
from specs.verdicts.engine import of_one_run
from specs.verdicts.examine import examine
from specs.verdicts.verdict import ClauseVerdict, Verdict

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


def smaller(
    scenario: Scenario, breaks: Callable[[Scenario], bool], budget: int = STEPS_BUDGET
) -> Scenario:
    """The scenario with less in it. breaks: is one still broken, so that it may be kept? It is asked `budget` times.

    What was turned down is tried again only when nothing else is left: what was needed among more seldom is not among
    less.
    """
    left, best = budget, scenario
    turned_down: set[str] = set()
    became_smaller = False
    while True:
        for what, candidate in _simpler(best):
            if what in turned_down:
                continue
            if left <= 0:
                return best
            left -= 1
            if breaks(candidate):
                best, became_smaller = candidate, True
                break
            turned_down.add(what)
        else:
            if not became_smaller:
                return best
            turned_down, became_smaller = set(), False


def _simpler(scenario: Scenario) -> Iterator[tuple[str, Scenario]]:
    """Each with the words for what it lacks: some of its faults, messages, poison, settings, brokers, consumers."""
    work, faults = scenario.workload, scenario.faults
    size = len(faults) // 2
    while size:
        for start in range(0, len(faults), size):
            left = faults[:start] + faults[start + size :]
            yield f"faults {faults[start : start + size]}", replace(scenario, faults=left)
        size //= 2
    if len(faults) == 1:
        yield "the fault", replace(scenario, faults=())
    for messages in FEWER:
        if messages < work.messages:
            yield f"{messages} messages", _with(scenario, messages=messages)
    if work.poison_every <= work.messages:
        yield "poison", _with(scenario, poison_every=work.messages + 1)
    if scenario.config:
        yield "settings", replace(scenario, config={})
    if work.brokers > 1 and not any("broker" in fault.table for fault in faults):
        yield "brokers", _with(scenario, brokers=1)
    last = work.clients[-1]
    if work.consumers > 1 and not any(fault.table.get("client") == last for fault in faults):
        fewer = work.consumers - 1
        yield last, _with(scenario, consumers=fewer, at_first=min(work.at_first, fewer))


def _with(scenario: Scenario, **work: int) -> Scenario:
    return replace(scenario, workload=replace(scenario.workload, **work))


def simulated(
    example: Example, clause: str, twin: Twin, profile: Profile, out: Path, times: int, say: SAY
) -> Find:
    """The find of a simulated target: small, kept as a run that `inorder replay` repeats to the byte."""
    say(f"making {clause} smaller")
    scenario = smaller(
        example.scenario, lambda candidate: twin.breaks(candidate, example.seed, clause)
    )
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


@dataclass(frozen=True, slots=True)
class Again:
    """How a find on real parts is done again. targets: each makes a try at the same time as the others.

    times: so often, for its rate. small_s: so long it may be made smaller. is_over: whether somebody has ended it.
    """

    targets: Sequence[Target]
    profile: Profile
    times: int
    small_s: float
    is_over: Callable[[], bool]
    say: SAY


@dataclass(slots=True)
class _RealTries:
    """The tries of a find. red: by scenario the folder and the verdict of the first one that broke the clause."""

    example: Example
    clause: str
    out: Path
    how: Again
    until_s: float = math.inf
    red: dict[str, tuple[Path, Verdict]] = field(default_factory=dict)

    def once(self, target: Target, scenario: Scenario, number: int) -> bool:
        """A try; the folder of one that breaks nothing goes."""
        self.how.say(f"trying {self.clause} again, try {number}: {len(scenario.faults)} faults")
        folder = self.out / f"{number}"
        folder.parent.mkdir(parents=True, exist_ok=True)
        try:
            verdict, _history = run_scenario(
                scenario,
                target,
                self.how.profile,
                seed=self.example.seed + number - 1,
                out=folder,
                say=lambda words: self.how.say(f"try {number}: {words}"),
            )
        except (UsageError, Unavailable):
            raise
        except InorderError as error:
            self.how.say(f"try {number} failed: {error}")
            return False
        if self.clause not in {each.id for each in verdict.of(ClauseVerdict.REFUTED)}:
            shutil.rmtree(folder)
            return False
        shown = self.red.setdefault(_key(scenario), (folder, verdict))
        if shown[0] != folder:
            shutil.rmtree(folder)
        return True

    def is_over(self) -> bool:
        return self.how.is_over() or now_s() >= self.until_s


def real(example: Example, clause: str, twin: Twin | None, out: Path, how: Again) -> Find:
    """The find on real parts: small if the twin shows it, or if it comes again, and done again until it is seen."""
    assert example.kept is not None, "a run on real parts is kept"
    making = _RealTries(example, clause, out, how)
    tries = Tries(
        [partial(making.once, target) for target in how.targets], _key, is_over=making.is_over
    )
    small = example.scenario
    if twin is not None and twin.breaks(small, example.seed, clause):
        how.say(f"the simulated twin shows {clause} too: making it smaller there")
        small = smaller(small, lambda candidate: twin.breaks(candidate, example.seed, clause))
    elif how.times and how.small_s:
        found = tries.rate(small, clause, how.times)
        how.say(f"{clause} came again in {found}")
        if found.broken:
            making.until_s = now_s() + how.small_s
            test = SequentialTest.like(found)
            small = smaller(small, lambda candidate: tries.show(candidate, test))
            making.until_s = math.inf
    before = len(tries.of(small)) if small != example.scenario else 0
    tried = Rate((clause,), tries.rate(small, clause, before + how.times).tries[before:])
    shown = making.red.pop(_key(small), None)
    for folder, _verdict in making.red.values():
        shutil.rmtree(folder, ignore_errors=True)
    if shown is None:
        return _kept(Find(clause, example.scenario, *example.kept, tried, example.number))
    folder, verdict = shown
    return _kept(Find(clause, small, folder, save(verdict, folder), tried, example.number))


def _key(scenario: Scenario) -> str:
    return as_toml(scenario, "")


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
