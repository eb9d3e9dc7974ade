"""Where the command line meets the parts that do the work: one function per job, nothing of a terminal in them.

A target's factory (entry-point group `inorder.targets`) gives either a simulated target, run by
`conformance.runner`, or a `WireRun`, run by `conformance.wire.runner`; this file is the only one that tells them
apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from conformance.reports.saving import save
from conformance.reports.view import VerdictView
from conformance.targets.base import find, known_names
from specs import profiles
from specs.errors import InorderError, UsageError
from specs.history.store import History, open_history
from specs.profiles import Profile
from specs.verdicts.verdict import Verdict

Say = Callable[[str], None]
Engine = Callable[[History, Profile, Mapping[str, Any]], Verdict]

ENGINES_GROUP = "inorder.engines"
DEFAULT_PROFILE = "rocketmq-5-orderly"
WIRE_FLOOR, SIMULATED_FLOOR = 10, 100
WIRE_EXAMPLES = 20


class PartUnavailable(InorderError):
    """Something is registered, but the part that brings it can't be imported."""


@dataclass(frozen=True, slots=True)
class Conformance:
    """A run that is ready to begin: what the user can get wrong has been looked at."""

    target: str
    profile: Profile
    system: Any

    def run(self, *, seed: int, examples: int | None, floor: int | None, out: Path, say: Say) -> VerdictView:
        """Judge the target, keep the run in `out`, and return its verdict."""
        if hasattr(self.system, "open_system"):
            verdict = self._on_the_wire(seed, examples, floor, out, say)
        else:
            verdict = self._simulated(seed, examples, floor, out, say)
        return save(verdict, out)

    def _on_the_wire(self, seed: int, examples: int | None, floor: int | None, out: Path, say: Say) -> Verdict:
        from conformance.wire.runner import conform_wire

        verdict, _history = conform_wire(
            self.system,
            self.profile,
            seed=seed,
            examples=WIRE_EXAMPLES if examples is None else examples,
            out=out,
            floor=WIRE_FLOOR if floor is None else floor,
            say=say,
        )
        return verdict

    def _simulated(self, seed: int, examples: int | None, floor: int | None, out: Path, say: Say) -> Verdict:
        raise PartUnavailable("simulated targets are not here yet")


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
    from conformance.reports.view import count_events, view

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
        return view(verdict, folder=folder, events=count_events(folder))
    return save(verdict, out, history=folder)


def replay(run: Path, *, profile: str | None, out: Path | None, say: Say) -> VerdictView:
    """Do again what a run, a plan or a case says."""
    try:
        module = import_module("conformance.replay")
    except ImportError as error:
        raise PartUnavailable(f"nothing can be replayed: {error}") from error
    verdict: Verdict = module.replay(run, profile=profile, out=out, say=say)
    return save(verdict, out) if out is not None else _seen(verdict)


def _seen(verdict: Verdict) -> VerdictView:
    from conformance.reports.view import view

    return view(verdict)
