"""Where the command line meets the parts that do the work: one function per job, nothing of a terminal in them.

A target's factory (entry-point group `inorder.targets`) gives a simulated target, run by `conformance.runner`, a
`WireRun`, run by `conformance.wire.runner`, or a `DrivenRun`, run by `conformance.drivers.runner`; this file is the
only one that tells them apart.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from conformance.reports.saving import save
from conformance.reports.view import VerdictView, rows_in, view
from conformance.targets.base import find, known_names
from specs import profiles
from specs.errors import InorderError, UsageError
from specs.history.runinfo import read_runinfo
from specs.history.store import History, open_history
from specs.profiles import Profile
from specs.verdicts.verdict import Verdict

if TYPE_CHECKING:
    from conformance.runner import Result

Engine = Callable[[History, Profile, Mapping[str, Any]], Verdict]

SPARK_FROM_EVENTS = 1_000_000
ENGINES_GROUP = "inorder.engines"
DEFAULT_PROFILE = "rocketmq-5-orderly"


class Watch(Protocol):
    """Who is told how far the work is."""

    def say(self, line: str) -> None:
        """A step of the work, in words."""

    def progress(self, done: int, total: int, what: str) -> None:
        """done of total."""


class PartUnavailable(InorderError):
    """Something is registered, but the part that brings it can't be imported."""


@dataclass(frozen=True, slots=True)
class Conformance:
    """A run that is ready to begin: what the user can get wrong has been looked at."""

    target: str
    profile: Profile
    system: Any

    @property
    def on_the_wire(self) -> bool:
        """Is the target spoken to by our own raw client? Then the wire rules are judged as well."""
        return hasattr(self.system, "lease_known")

    @property
    def is_driven(self) -> bool:
        """Are clients at work in processes of their own, which speak the driver protocol?"""
        return hasattr(self.system, "watched")

    def run(self, *, seed: int, examples: int | None, floor: int | None, out: Path, watch: Watch) -> VerdictView:
        """Judge the target, keep the run in `out`, and return its verdict.

        None stands for the target's own default. A run that is in `out` already is replaced; anything else there
        is a UsageError.
        """
        make_room(out)
        if self.on_the_wire:
            verdict = self._on_the_wire(seed, examples, floor, out, watch)
            return save(verdict, out)
        if self.is_driven:
            return save(self._driven(seed, examples, floor, out, watch), out)
        result = self._simulated(seed, examples, floor, watch)
        result.save(out)
        info = replace(result.verdict.info, replay=f"inorder replay {out}")
        return save(replace(result.verdict, info=info), out, events=result.events if not result.found else None)

    def _on_the_wire(self, seed: int, examples: int | None, floor: int | None, out: Path, watch: Watch) -> Verdict:
        from conformance.wire.runner import EXAMPLES, FLOOR, conform_wire

        verdict, _history = conform_wire(
            self.system,
            self.profile,
            seed=seed,
            examples=EXAMPLES if examples is None else examples,
            out=out,
            floor=FLOOR if floor is None else floor,
            say=watch.say,
        )
        return verdict

    def _driven(self, seed: int, examples: int | None, floor: int | None, out: Path, watch: Watch) -> Verdict:
        from conformance.drivers.runner import FLOOR, ROUNDS, conform_driven

        verdict, _rounds = conform_driven(
            self.system,
            self.profile,
            seed=seed,
            rounds=ROUNDS if examples is None else examples,
            out=out,
            floor=FLOOR if floor is None else floor,
            say=watch.say,
        )
        return verdict

    def _simulated(self, seed: int, examples: int | None, floor: int | None, watch: Watch) -> Result:
        from conformance.runner import EXAMPLES, FLOOR, conform_simulated

        mutant = self.system.mutant
        return conform_simulated(
            None if mutant is None else mutant.name,
            seed,
            self.profile,
            examples=EXAMPLES if examples is None else examples,
            floor=FLOOR if floor is None else floor,
            progress=watch.progress,
            config=self.system.config,
        )


def make_room(out: Path, *marks: str) -> None:
    """Take away an earlier run in `out`. Raises UsageError for a folder that holds anything else.

    marks: by what is known as ours (one of them is enough); a run's `run.json` if none is named.
    """
    if out.is_dir() and any(out.iterdir()):
        if not any((out / mark).exists() for mark in marks or ("run.json",)):
            raise UsageError(f"{out} exists and is no run of ours; give another --out")
        shutil.rmtree(out)
    elif out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file; give a folder with --out")


def prepare(target: str, profile: str | None) -> Conformance:
    """Find the target and its profile. Raises UsageError (exit 64) for what does not exist."""
    try:
        system: Any = find(target)
    except ImportError as error:
        raise PartUnavailable(f"the target {target} can't be loaded: {error}") from error
    return Conformance(target, profiles.load(profile or system.profile), system)


def engine_names() -> tuple[str, ...]:
    """The engines that are registered."""
    return tuple(sorted(entry.name for entry in entry_points(group=ENGINES_GROUP)))


def engine_for(folder: Path) -> str:
    """The engine that is quicker for a history: Spark needs some seconds to start, and is then twice as fast and
    more. Raises HistoryError for what can't be opened."""
    return "spark" if rows_in(open_history(folder)) >= SPARK_FROM_EVENTS else "python"


def engine(name: str) -> Engine:
    """The engine of that name. Raises UsageError for an unknown one."""
    for entry in entry_points(group=ENGINES_GROUP):
        if entry.name == name:
            try:
                found: Engine = entry.load()
            except ImportError as error:
                raise PartUnavailable(f"the engine {name} can't be loaded: {error}") from error
            return found
    raise UsageError(f"there is no engine {name!r}; {known_names(name, engine_names())}")


def judge(
    folder: Path, *, engine_name: str, profile: str | None, master: str | None, floor: int, out: Path | None
) -> VerdictView:
    """Judge a history with an engine. out: where the verdict and its reports are kept; None: nowhere."""
    from conformance.reports.view import view

    judging = engine(engine_name)
    history = open_history(folder)
    chosen = profiles.load(profile or history.info.profile or DEFAULT_PROFILE)
    options: dict[str, Any] = {"floor": floor}
    if master is not None:
        options["master"] = master
    verdict = judging(history, chosen, options)
    again = f"inorder check {folder} --engine {engine_name} --profile {chosen.name}"
    verdict = replace(verdict, info=replace(verdict.info, replay=verdict.info.replay or again))
    if out is None:
        return view(verdict, folder=folder, events=rows_in(history))
    return save(verdict, out, history=folder, events=rows_in(history))


def replay(path: Path, *, profile: str | None, out: Path | None, watch: Watch, target: str | None) -> VerdictView:
    """Do again what a run or a plan says, and judge it. Raises UsageError for a run on real sockets.

    target: the simulated one to do it on; None for the run's own.
    """
    from conformance.replay import replay as again

    refuse_real_runs(path)
    if out is not None:
        make_room(out)
    verdict = again(path, profile=profile, out=out, say=watch.say, target=target)
    return view(verdict) if out is None else save(verdict, out)


def refuse_real_runs(path: Path) -> None:
    """A run on real sockets is done again by its own command: nothing repeats it to the byte."""
    if not path.is_dir():
        return
    info = read_runinfo(path)
    if info.replay and not info.replay.startswith("inorder replay"):
        raise UsageError(f"{path} is a run of {info.target}, which can't be repeated to the byte; try `{info.replay}`")
