"""How often a run's failure comes again: its plan done anew, so many times, and the share that breaks the same clause.

A simulated run does the same to the byte, so each try has another seed of the world: other delays of frames, other
dice. A run on real parts is done as it was, under fresh names; what differs is what nobody has in hand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from conformance.replay import mutant_of
from conformance.reports import rate
from conformance.reports.rate import Rate
from conformance.reports.view import open_run
from conformance.run import judge, run_again
from conformance.stopping import Stop
from conformance.targets.base import Target, find
from reference_impl.sim.simulate import simulate
from specs.clauses.catalogue import get
from specs.errors import UsageError
from specs.history.runinfo import RunInfo, read_runinfo
from specs.plan.ability import Ability
from specs.plan.plan import Plan
from specs.profiles import load as load_profile
from specs.scratch import Scratch
from specs.verdicts.examine import examine
from specs.verdicts.verdict import ClauseVerdict

SAY = Callable[[str], Any]
"""Takes a line of progress."""


@dataclass(frozen=True, slots=True)
class Failure:
    """What is tried again: the run, what it says of itself, and the clauses of which one is to break."""

    folder: Path
    info: RunInfo
    plan: Plan
    clauses: tuple[str, ...]


def failure_of(folder: Path, clause: str | None) -> Failure:
    """The failure of a run's folder. clause: which; None for all that it refutes. Raises UsageError."""
    info = read_runinfo(folder)
    if info.plan is None:
        raise UsageError(f"{folder} can't be done again: its run.json has no plan")
    refuted = refuted_by(folder)
    wanted = refuted if clause is None else (get(clause.upper()).id,)
    if not set(wanted) & set(refuted) or not wanted:
        what = "nothing" if clause is None else f"not {clause.upper()}"
        raise UsageError(f"{folder} refutes {what}; refuted: {', '.join(refuted) or 'none'}")
    return Failure(folder, info, Plan.from_json(info.plan, f"{folder}/run.json, plan"), wanted)


def confirm(failure: Failure, times: int, stop: Stop, say: SAY, *, fresh: bool = False) -> Rate:
    """Try until there are `times` tries in all, each kept as it is made. fresh: forget those that were made before."""
    kept = None if fresh else rate.read(failure.folder)
    made = Rate(failure.clauses) if kept is None or kept.clauses != failure.clauses else kept
    go = _ways(failure, say)
    while len(made.tries) < times and stop.why is None:
        say(f"tries, {made.broken} broken {len(made.tries) + 1} of {times}")
        made = made.after(broken=go(len(made.tries) + 1))
        rate.write(failure.folder, made)
    return made


def refuted_by(folder: Path) -> tuple[str, ...]:
    """What the verdict in the run's folder refutes; of two by the same event the more specific one."""
    found = open_run(folder).of(ClauseVerdict.REFUTED)
    return tuple(each.id for each in found if not each.hidden)


def _ways(failure: Failure, say: SAY) -> Callable[[int], bool]:
    """How the try of that number is made: is one of the clauses broken in it?"""
    target = find(failure.info.target)
    if Ability.REPLAY in target.abilities:
        return lambda number: _in_virtual_time(failure, number)
    return lambda number: _in_real_time(failure, target, say)


def _in_virtual_time(failure: Failure, number: int) -> bool:
    plan = replace(failure.plan, seed=failure.plan.seed + number)
    info, rows = simulate(plan, mutant_of(failure.info.target))
    judged = tuple(get(clause) for clause in failure.clauses)
    return bool(examine(rows, info, judged).refuted())


def _in_real_time(failure: Failure, target: Target, say: SAY) -> bool:
    with Scratch("confirm") as scratch:
        folder = Path(scratch) / "run"
        folder.mkdir()
        try:
            history = run_again(failure.info, target, folder, say)
        finally:
            target.release()
        profile = load_profile(failure.info.profile or target.profile)
        verdict = judge(history, profile)
    broken = {each.id for each in verdict.of(ClauseVerdict.REFUTED)}
    return bool(broken & set(failure.clauses))
