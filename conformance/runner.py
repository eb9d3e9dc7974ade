"""`conform` for the simulated targets: the cluster machine searches, the clauses judge, a refutation is shrunk.

For the correct reference all runs together are one examination, and every claimed clause has to be at stake often
enough. For a mutant the search ends at the first run that refutes the clause which the mutant names; that run's
plan is shrunk, and the verdict is that of the shrunk run alone, so that its history shows all that was found. Where a
refutation is not to end the search, each refuted clause gets such a run, and the verdict is that of all runs.

Runs come from Hypothesis, which calls the collector after each; the loop of `conformance.rounds` asks for each round.
Two loops are less than one that would turn these calls inside out by a thread; when they end is one matter for both
(`conformance.stopping`).
"""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from conformance import again
from conformance.further import FURTHER, go_on, seed_of
from conformance.keeping import FOLDER, keep
from conformance.machines.cluster import Collector, Enough, Refuted, Run
from conformance.machines.drawing import drive
from conformance.machines.side_by_side import machine_for
from conformance.machines.steering import MIXTURES, steered
from conformance.shrink import shrink
from conformance.stopping import Stop
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
from specs.verdicts.engine import of_a_search, of_one_run
from specs.verdicts.examine import examine
from specs.verdicts.tally import Examination
from specs.verdicts.verdict import (
    ClauseVerdict,
    Further,
    Search,
    Verdict,
    by_python,
)

EXAMPLES = 150
STEPS = 25
FLOOR = 100
EARLY = 6
"""One in so many of the runs is made before those from mixtures."""
ORDINARY_PER_MIXTURE = 7
"""A search of so many runs makes some from one mixture of ingredients, one of twice as many from two."""
LATER = 1_000_000
"""The searches that a budget leaves time for have seeds of their own: no round of further runs has such a number."""
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
    examination: of that run when refuted, else of all runs together. found: the refuted clauses. others: where a
    refutation did not end the search, for each refuted clause a shrunk run that breaks it, judged by itself.
    """

    verdict: Verdict
    plan: Plan
    rows: list[Row]
    info: RunInfo
    examination: Examination
    runs: int
    events: int
    found: tuple[str, ...] = ()
    others: Mapping[str, Result] = field(default_factory=dict)
    reached: tuple[frozenset[Any], ...] = ()

    def save(self, folder: Path) -> None:
        """The run's folder: run.json (with the plan) and the history. The verdict is the reports' to write."""
        info = replace(self.info, replay=again.command("replay", folder))
        write_history(folder, info, self.rows)
        for clause, other in self.others.items():
            keep(folder, clause, other.verdict, other.rows)


@dataclass(frozen=True, slots=True)
class Effort:
    """How much a search does.

    examples: runs, None for as many as the budget allows. floor: opportunities below which a claimed clause counts as
    not exercised (for the reference only). shrink_runs: how many runs shrinking may take, None for the usual number.
    """

    examples: int | None = EXAMPLES
    floor: int = FLOOR
    shrink_runs: int | None = None


def conform_simulated(
    mutant: str | None,
    seed: int,
    profile: Profile,
    *,
    examples: int | None = EXAMPLES,
    floor: int = FLOOR,
    progress: Progress = lambda done, most, words: None,
    shrink_runs: int | None = None,
    config: Mapping[str, Any] | None = None,
    stop: Stop | None = None,
) -> Result:
    """Search with the cluster machine, and judge. Raises UsageError for an unknown mutant.

    examples, floor, shrink_runs: as in `Effort`. config: what every plan's configuration has to say, beside what the
    profile says. stop: when it ends, and whether a refutation ends it.
    """
    bug = None if mutant is None else load(mutant)
    asked = {**profile.config, "dialect": way_of(profile).dialect, **(config or {})}
    effort = Effort(examples, floor, shrink_runs)
    return _Searching(bug, seed, profile, effort, progress, Stop() if stop is None else stop).go(
        asked
    )


@dataclass(slots=True)
class _Searching:
    """A search at work. firsts: for each refuted clause that is claimed the first run that breaks it."""

    bug: Mutant | None
    seed: int
    profile: Profile
    effort: Effort
    progress: Progress
    stop: Stop
    firsts: dict[str, Run] = field(default_factory=dict)
    _collector: Collector = field(init=False)

    def go(self, config: Mapping[str, Any]) -> Result:
        keeps_going = self.stop.bounds.keep_going
        wanted = (lambda refuted: ()) if keeps_going else self._wanted
        collector = Collector(wanted, self.bug, self._on_run, config=config)
        self._collector = collector
        collector.is_over = lambda: collector.runs > 0 and self.stop.why is not None
        examples = EXAMPLES if self.effort.examples is None else self.effort.examples
        search(collector, self.seed, examples)
        further = None
        if self._broken() is None:
            most = FURTHER * examples
            draw = partial(run_machine, collector)
            further = go_on(collector, self.seed, most, self._short, draw)
            collector.enough = lambda: False
        turn = 0
        while self.effort.examples is None and self._broken() is None and not collector.is_over():
            turn += 1  # a budget alone says how long: the same again, from another seed
            search(collector, seed_of(self.seed, LATER + turn), EXAMPLES)
        run = self._broken()
        return self._upheld(further) if run is None else self._refuted(run)

    def _on_run(self, run: Run) -> None:
        for clause in self._claimed(run.examination.refuted()):
            self.firsts.setdefault(clause, run)
        runs, events = self._collector.runs, self._collector.events
        budget_s = self.stop.bounds.budget_s
        if self.effort.examples is None and budget_s is not None:
            passed_s = min(self.stop.passed_s, budget_s)
            self.progress(round(passed_s), round(budget_s), f"s, {runs} runs, {events} events")
            return
        asked = self.effort.examples or EXAMPLES
        if runs <= asked:
            self.progress(runs, asked, f"{events} events")
        else:
            most = (1 + FURTHER) * asked
            self.progress(min(most, runs), most, f"going on, {events} events")

    def _claimed(self, clauses: Iterable[str]) -> tuple[str, ...]:
        return tuple(name for name in clauses if self.profile.claim(name).status == "claimed")

    def _wanted(self, refuted: tuple[str, ...]) -> tuple[str, ...]:
        """Which refuted clauses end the search: the one that a mutant names, else every claimed one."""
        found = self._claimed(refuted)
        return found if self.bug is None or self.bug.killed_by in found else ()

    def _broken(self) -> Run | None:
        """The run that the search ends with; at its end also one that breaks a clause that was not looked for."""
        if self.stop.bounds.keep_going:
            return None
        other = self._collector.other
        if other is not None and not self._claimed(other.examination.refuted()):
            other = None
        return self._collector.broken or other

    def _short(self) -> tuple[str, ...]:
        """The claimed clauses that are below their floor by now."""
        widest = self._collector.widest
        assert widest is not None, "a search makes at least one run"
        total, floor = self._collector.total, self.effort.floor
        so_far = of_a_search(total, widest.info, self.profile, floor=floor)
        return tuple(judged.id for judged in so_far.of(ClauseVerdict.NOT_EXERCISED))

    def _upheld(self, further: Further | None) -> Result:
        """All runs are one examination; where some refute and the search went on, each clause's run is kept too."""
        collector, run = self._collector, self._collector.widest
        assert run is not None, "a search makes at least one run"
        # A machine draws faults blindly; what it did is shown by the opportunities, not by each fault's effect.
        facts = collector.total.facts
        facts.faults = [fault for fault in facts.faults if fault[1]]
        info = replace(run.info, seed=self.seed, profile=self.profile.name)
        verdict = of_a_search(
            collector.total,
            info,
            self.profile,
            floor=self.effort.floor,
            more=self.stop.checks(collector.runs),
            tool=_tool(),
        )
        others = {
            judged.id: self._shrunk(self.firsts[judged.id], judged.id)
            for judged in verdict.of(ClauseVerdict.REFUTED)
        }
        kept = {clause: f"{FOLDER}/{clause}" for clause in others}
        verdict = replace(
            verdict,
            coverage=replace(collector.coverage, further=further),
            search=self._record(refuted=False, kept=kept),
        )
        shown = next(iter(others.values()), None)
        return Result(
            verdict if shown is None else replace(verdict, info=shown.info),
            run.plan if shown is None else shown.plan,
            run.rows if shown is None else shown.rows,
            info if shown is None else shown.info,
            collector.total,
            collector.runs,
            collector.events,
            tuple(others),
            others,
            tuple(collector.reached),
        )

    def _refuted(self, run: Run) -> Result:
        """The verdict of the shrunk run alone, so that its history shows all that was found."""
        found = self._claimed(run.examination.refuted())
        killer = None if self.bug is None else self.bug.killed_by
        one = self._shrunk(run, killer if killer in found else found[0])
        search = self._record(refuted=True, kept={})
        return replace(one, verdict=replace(one.verdict, search=search))

    def _record(self, *, refuted: bool, kept: dict[str, str]) -> Search | None:
        return self.stop.record(
            self._collector.runs, self.effort.examples, refuted=refuted, kept=kept
        )

    def _shrunk(self, run: Run, broken: str) -> Result:
        """A short run that still breaks the clause, judged by itself. Raises NotRepeatable where none does."""
        clause = by_id()[broken]
        collector = self._collector

        def still_broken(plan: Plan) -> bool:
            if self.stop.interrupted:
                return False  # a longer run says the same
            words = f"shrinking a run of {len(plan.actions)} actions"
            self.progress(collector.runs, max(collector.runs, self.effort.examples or 0), words)
            info, rows = simulate(plan, self.bug)
            return bool(examine(rows, info, (clause,)).refuted())

        if not (self.stop.interrupted or still_broken(run.plan)):
            raise NotRepeatable(
                f"seed {self.seed}: the plan of a run of {target_name(self.bug)} that refutes {broken} does not "
                "refute it again"
            )
        runs = self.effort.shrink_runs
        plan = shrink(run.plan, still_broken, **({} if runs is None else {"budget": runs}))
        info, rows = simulate(plan, self.bug)
        info = replace(info, seed=self.seed, profile=self.profile.name)
        examination = examine(rows, info)
        more = self.stop.checks(collector.runs)
        verdict = of_one_run(examination, info, self.profile, more=more, tool=_tool())
        still = self._claimed(examination.refuted())
        return Result(
            verdict, plan, rows, info, examination, collector.runs, collector.events, still
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
    """Let the machine make up to `examples` runs; it ends early when the collector found what it wants, or is over.

    ingredients: what their runs should have, by the names in `conformance.machines.steering`.
    """
    if collector.is_over():
        return
    with contextlib.suppress(Refuted, Enough):
        drive(steered(machine_for(collector), ingredients), seed, examples, steps)


def _tool() -> Mapping[str, str]:
    return by_python(python=platform.python_version())
