"""`conform` for the simulated targets: the cluster machine searches, the clauses judge, a refutation is shrunk.

For the correct reference all runs together are one examination, and every claimed clause has to be at stake often
enough. For a mutant the search ends at the first run that refutes the clause which the mutant names; that run's
plan is shrunk, and the verdict is that of the shrunk run alone, so that its history shows all that was found.
"""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from conformance import again
from conformance.further import FURTHER, go_on, seed_of
from conformance.machines.cluster import Collector, Enough, Refuted, Run
from conformance.machines.drawing import drive
from conformance.machines.side_by_side import machine_for
from conformance.machines.steering import MIXTURES, steered
from conformance.shrink import shrink
from conformance.wire.work import way_of
from reference_impl.mutants import Mutant, load
from reference_impl.sim.simulate import simulate, target_name
from specs.clauses.catalogue import by_id
from specs.errors import InorderError
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.history.store import write_history
from specs.plan.plan import Plan
from specs.profiles import Profile
from specs.verdicts.examine import examine
from specs.verdicts.tally import Examination
from specs.verdicts.verdict import ClauseVerdict, Verdict, conclude

EXAMPLES = 150
STEPS = 25
FLOOR = 100
EARLY = 6
"""One in so many of the runs is made before those from mixtures."""
ORDINARY_PER_MIXTURE = 7
"""A search of so many runs makes some from one mixture of ingredients, one of twice as many from two."""
MIXTURE_EXAMPLES = 2
"""The first example that Hypothesis makes is the simplest there is, and costs next to nothing."""

Progress = Callable[[int, int, str], None]
"""(runs so far, runs at most, a few words)."""


class NotRepeatable(InorderError):
    """The same plan gave another history: the suite itself is broken (exit 70)."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a search came to.

    info, plan, rows: the run that refutes, shrunk; without one the run in which most clauses were at stake.
    examination: of that run when refuted, else of all runs together.
    """

    verdict: Verdict
    plan: Plan
    rows: list[Row]
    info: RunInfo
    examination: Examination
    runs: int
    events: int
    found: tuple[str, ...] = ()

    def save(self, folder: Path) -> None:
        """The run's folder: run.json (with the plan) and the history. The verdict is the reports' to write."""
        info = replace(self.info, replay=again.command("replay", folder))
        write_history(folder, info, self.rows)


def conform_simulated(
    mutant: str | None,
    seed: int,
    profile: Profile,
    *,
    examples: int = EXAMPLES,
    floor: int = FLOOR,
    progress: Progress = lambda done, most, words: None,
    shrink_runs: int | None = None,
    config: Mapping[str, Any] | None = None,
) -> Result:
    """Search with the cluster machine, and judge. Raises UsageError for an unknown mutant.

    floor: opportunities below which a claimed clause counts as not exercised (for the reference only). config: what
    every plan's configuration has to say, beside what the profile says.
    """
    bug = None if mutant is None else load(mutant)
    wanted = _wanted(bug, profile)
    asked = {**profile.config, "dialect": way_of(profile).dialect, **(config or {})}
    collector = Collector(wanted, bug, config=asked)
    most = FURTHER * examples

    def on_run(run: Run) -> None:
        progress(min(collector.runs, examples), examples, f"{collector.events} events")

    def on_further_run(run: Run) -> None:
        done = min(examples + most, max(examples, collector.runs))
        progress(done, examples + most, f"going on, {collector.events} events")

    def short() -> tuple[str, ...]:
        assert collector.widest is not None, "a search makes at least one run"
        so_far = conclude(collector.total, collector.widest.info, profile, floor=floor)
        return tuple(judged.id for judged in so_far.of(ClauseVerdict.NOT_EXERCISED))

    collector.on_run = on_run
    search(collector, seed, examples)
    further, run = None, collector.broken or _refuting(collector.other, profile)
    if run is None:
        collector.on_run = on_further_run
        further = go_on(collector, seed, most, short, partial(run_machine, collector))
        run = collector.broken or _refuting(collector.other, profile)
    if run is not None:
        return _refuted(run, bug, seed, profile, collector, progress, examples, shrink_runs)
    assert collector.widest is not None, "a search makes at least one run"
    run = collector.widest
    # A machine draws faults blindly; what it did is shown by the opportunities, not by each fault's effect.
    facts = collector.total.facts
    facts.faults = [fault for fault in facts.faults if fault[1]]
    info = replace(run.info, seed=seed, profile=profile.name)
    verdict = conclude(collector.total, info, profile, floor=floor, tool=_tool())
    verdict = replace(verdict, coverage=replace(collector.coverage, further=further))
    return Result(
        verdict, run.plan, run.rows, info, collector.total, collector.runs, collector.events
    )


def search(collector: Collector, seed: int, examples: int) -> None:
    """Make the runs that are asked for, until the collector found what it wants.

    Nearly all are ordinary ones. But where there are many of them, some are made from each mixture of ingredients in
    turn, and early: what needs manual mode or a filter would otherwise wait for its luck until the search is over.
    """
    mixtures = MIXTURES[: examples // ORDINARY_PER_MIXTURE]
    early = examples // EARLY if mixtures else examples
    run_machine(collector, seed, early)
    for number, mixture in enumerate(mixtures, start=1):
        if collector.broken is None:
            run_machine(collector, seed_of(seed, -number), MIXTURE_EXAMPLES, mixture)
    if mixtures and collector.broken is None:
        run_machine(collector, seed_of(seed, 0), examples - early - len(mixtures))


def run_machine(
    collector: Collector,
    seed: int,
    examples: int,
    ingredients: tuple[str, ...] = (),
    *,
    steps: int = STEPS,
) -> None:
    """Let the machine make up to `examples` runs; it ends early when the collector found what it wants.

    ingredients: what their runs should have, by the names in `conformance.machines.steering`.
    """
    with contextlib.suppress(Refuted, Enough):
        drive(steered(machine_for(collector), ingredients), seed, examples, steps)


def _wanted(bug: Mutant | None, profile: Profile) -> Callable[[tuple[str, ...]], tuple[str, ...]]:
    """Which refuted clauses end the search: the one that a mutant names, else every claimed one."""

    def claimed(refuted: tuple[str, ...]) -> tuple[str, ...]:
        found = tuple(name for name in refuted if profile.claim(name).status == "claimed")
        return found if bug is None or bug.killed_by in found else ()

    return claimed


def _refuting(run: Run | None, profile: Profile) -> Run | None:
    """A run that breaks a claimed clause, though not the one that was looked for."""
    if run is None or not any(
        profile.claim(n).status == "claimed" for n in run.examination.refuted()
    ):
        return None
    return run


def _refuted(
    run: Run,
    bug: Mutant | None,
    seed: int,
    profile: Profile,
    collector: Collector,
    progress: Progress,
    examples: int,
    shrink_runs: int | None,
) -> Result:
    found = tuple(n for n in run.examination.refuted() if profile.claim(n).status == "claimed")
    target = bug.killed_by if bug is not None and bug.killed_by in found else found[0]
    clause = by_id()[target]

    def still_broken(plan: Plan) -> bool:
        progress(collector.runs, examples, f"shrinking a run of {len(plan.actions)} actions")
        info, rows = simulate(plan, bug)
        return bool(examine(rows, info, (clause,)).refuted())

    if not still_broken(run.plan):
        raise NotRepeatable(
            f"seed {seed}: the plan of a run of {target_name(bug)} that refutes {target} does not refute it again"
        )
    plan = shrink(
        run.plan, still_broken, **({} if shrink_runs is None else {"budget": shrink_runs})
    )
    info, rows = simulate(plan, bug)
    info = replace(info, seed=seed, profile=profile.name)
    examination = examine(rows, info)
    verdict = conclude(examination, info, profile, floor=1, require_exercised=False, tool=_tool())
    still = tuple(n for n in examination.refuted() if profile.claim(n).status == "claimed")
    return Result(verdict, plan, rows, info, examination, collector.runs, collector.events, still)


def _tool() -> Mapping[str, str]:
    return {"inorder": version("inorder"), "engine": "python", "python": platform.python_version()}
