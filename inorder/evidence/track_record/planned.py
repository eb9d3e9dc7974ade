"""Trials by a drawn plan: drivers at work on a released server, as in a round of `inorder conform`.

The plan is drawn from the seed alone, with names that no clock is part of: so both sides of an entry, and whoever does
it again, play the same plan, and its digest says so. The drivers are spoken to by the driver protocol, and what the
situation needs besides is an option of the target.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from conformance.drivers.plans import CHANGES
from conformance.rounds import plan_for
from conformance.run import OWN, run
from conformance.targets.base import Target, find
from inorder.evidence.track_record.on_the_wire import judged_by_one
from specs import profiles
from specs.history.runinfo import read_runinfo
from specs.plan.plan import Plan
from specs.verdicts.verdict import Judged

MESSAGES = 120
DIGITS = 12


class ByPlan(ABC):
    """A trial that does a plan for each seed, and the same one on both sides."""

    __slots__ = ()

    @abstractmethod
    def plan(self, target: Target, seed: int) -> Plan:
        """What is done."""

    def __call__(
        self,
        target: str,
        profile: str,
        judged_by: str,
        seeds: Sequence[int],
        folder: Path,
        say: Callable[[str], Any],
    ) -> list[Judged]:
        """One result per seed; what is started is started once. Raises UsageError where a part is missing."""
        driven = find(target)
        chosen = profiles.load(profile)
        found: list[Judged] = []
        try:
            for seed in seeds:
                say(f"{target}, seed {seed}")
                inside = folder / f"{seed}"
                inside.mkdir(parents=True)
                names, plan = names_of(seed), self.plan(driven, seed)
                told = {"profile": profile, "run": f"track-record-{seed}"}
                history = run(plan, driven, inside, info=told, prefix=names, say=say)
                found.append(judged_by_one(history, chosen, judged_by))
        finally:
            driven.release()
        return found


@dataclass(frozen=True, slots=True)
class Planned(ByPlan):
    """A drawn plan as a trial. changes: how many times a consumer comes or goes in it. messages: about so many."""

    changes: int = CHANGES
    messages: int = MESSAGES

    def plan(self, target: Target, seed: int) -> Plan:
        """What is done; of two targets that differ in a version alone it is the same."""
        draw = Random(seed)
        drawn = plan_for(
            target,
            names_of(seed),
            seed,
            draw,
            plain=True,
            changes=self.changes,
            messages=self.messages,
        )
        return target.suited(drawn)


def names_of(seed: int) -> str:
    """What everything begins with that a trial makes: on a server that was started for it no earlier one is met."""
    return f"{OWN}t{seed}-"


def digest(plan: Mapping[str, Any]) -> str:
    """Of a plan, as JSON; the same for the same plan."""
    text = json.dumps(plan, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def digests_of(folder: Path, seeds: Sequence[int]) -> tuple[str, ...]:
    """Of the plans that the runs of a side say they did, by seed."""
    plans = [read_runinfo(folder / f"{seed}").plan for seed in seeds]
    return tuple(digest(plan) for plan in plans if plan is not None)
