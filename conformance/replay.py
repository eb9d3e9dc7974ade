"""Repeat a simulated run from its plan, and say whether the same came of it, to the byte.

A run's folder holds its plan in `run.json` and its history; a plan file holds a plan alone, and then there is
nothing to compare with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from conformance import again
from conformance.targets.base import known_names
from conformance.targets.simulated import ON_DISK, PROFILE, mutant_names
from reference_impl.mutants import Mutant, load
from reference_impl.sim.simulate import simulate, with_config
from specs.errors import UsageError
from specs.history.columns import NAMES
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.history.store import open_history, write_history
from specs.plan.plan import Plan, read_plan
from specs.profiles import load as load_profile
from specs.verdicts.engine import of_one_run
from specs.verdicts.examine import examine
from specs.verdicts.verdict import Verdict, by_python

Say = Callable[[str], object]

REFERENCE = "reference"
_MUTANT = "mutant:"
_ON_DISK = {f"{REFERENCE}:{flush}": flush for flush in ON_DISK}


@dataclass(frozen=True, slots=True)
class Replay:
    """difference: None when the history is the recorded one to the byte, or when there was none to compare with.

    compared: whether there was a recorded history.
    """

    plan: Plan
    info: RunInfo
    rows: list[Row]
    compared: bool
    difference: str | None = None
    profile: str | None = None


def repeat(path: Path, target: str | None = None) -> Replay:
    """Run the plan of a run's folder, or of a plan file, again.

    target: `reference`, `reference:sync` and the like, or `mutant:NAME`; by default the one of the run, or the
    reference with the plan's own way of flushing. Raises UsageError for a run that was not simulated, and
    HistoryError for a folder that can't be read.
    """
    if path.is_dir():
        return _replay_run(path, target)
    if not path.exists():
        raise UsageError(f"{path} does not exist; give a run's folder or a plan file")
    plan = on_target(read_plan(path), target)
    info, rows = simulate(plan, mutant_of(target or REFERENCE))
    return Replay(plan, info, rows, compared=False)


def replay(
    run: Path,
    *,
    profile: str | None = None,
    out: Path | None = None,
    say: Say = lambda words: None,
    target: str | None = None,
) -> Verdict:
    """Repeat a run and judge it. profile: by default the run's own. out: where to keep the repeated run.

    Whether the history is the recorded one to the byte stands in the verdict's `tool` as `replay`.
    """
    repeated = repeat(run, target)
    same = repeated.difference or (
        "the same bytes" if repeated.compared else "nothing to compare with"
    )
    say(f"replayed {len(repeated.rows)} rows: {same}")
    chosen = load_profile(profile or repeated.profile or PROFILE)
    info = replace(
        repeated.info,
        profile=chosen.name,
        replay=again.command("replay", run if out is None else out),
    )
    if out is not None:
        write_history(out, info, repeated.rows)
    return of_one_run(examine(repeated.rows, info), info, chosen, tool=by_python(replay=same))


def _replay_run(folder: Path, target: str | None) -> Replay:
    history = open_history(folder)
    recorded = history.info
    if recorded.plan is None:
        raise UsageError(f"{folder} can't be replayed: its run.json has no plan")
    plan = on_target(Plan.from_json(recorded.plan, f"{folder}/run.json, plan"), target)
    mutant = mutant_of(target or recorded.target)
    info, rows = simulate(plan, mutant)
    if target is not None and target != recorded.target:
        return Replay(plan, info, rows, compared=False, profile=recorded.profile)
    found = difference(list(history.rows()), rows)
    return Replay(plan, info, rows, compared=True, difference=found, profile=recorded.profile)


def on_target(plan: Plan, target: str | None) -> Plan:
    """The plan as a target runs it that says what the brokers keep their messages on."""
    return with_config(plan, {"flush": _ON_DISK[target]}) if target in _ON_DISK else plan


def mutant_of(target: str) -> Mutant | None:
    """The mutant that a simulated target runs, None for the reference. Raises UsageError for any other target."""
    if target in (REFERENCE, *_ON_DISK):
        return None
    if target.startswith(_MUTANT):
        return load(target.removeprefix(_MUTANT))
    known = (REFERENCE, *_ON_DISK, *(f"{_MUTANT}{name}" for name in mutant_names()))
    raise UsageError(
        f"a run of {target!r} can't be replayed, only simulated ones; {known_names(target, known[:4])}"
    )


def difference(recorded: Sequence[Row], repeated: Sequence[Row]) -> str | None:
    """The first difference between two histories, in words; None when there is none."""
    for number, (was, now) in enumerate(zip(recorded, repeated, strict=False), start=1):
        for name in NAMES:
            if getattr(was, name) != getattr(now, name):
                return (
                    f"row {number} ({was.kind.value} at {was.started_us} µs): {name} was {getattr(was, name)!r} "
                    f"and is now {getattr(now, name)!r}"
                )
    if len(recorded) != len(repeated):
        return f"{len(recorded)} rows were recorded, the replay has {len(repeated)}"
    return None
