"""What a target is, and how one is found by name.

A target is one file with a factory, registered in the entry-point group `inorder.targets` under its name. The
factory gets what follows the colon of `NAME:ARG` (None when there is no colon) and raises UsageError when it
can't make anything of it. A target owns its clock: time passes in a virtual one only when `act` says so.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from enum import StrEnum
from importlib.metadata import entry_points
from typing import Protocol

from specs.errors import UsageError
from specs.plan.ability import Ability
from specs.plan.plan import Action, Plan

ENTRY_POINTS = "inorder.targets"


class ClockKind(StrEnum):
    """virtual: the target's own, nothing waits. wall: real time."""

    VIRTUAL = "virtual"
    WALL = "wall"


class Target(Protocol):
    """One system under test.

    name: as given on the command line. parties: who implements broker, client and producer. profile: the one
    that fits it, used when the user names none.
    """

    name: str
    parties: Mapping[str, str]
    clock: ClockKind
    abilities: frozenset[Ability]
    profile: str

    async def prepare(self, plan: Plan) -> None:
        """Bring up what the plan's topology needs."""

    async def start(self, party: str) -> None:
        """Start a client or a broker of the plan, by its id."""

    async def act(self, action: Action) -> None:
        """Do one of the plan's actions, at its time."""

    async def stop(self, party: str) -> None:
        """Stop a client or a broker in good order."""

    async def close(self) -> None:
        """Leave nothing behind. May be called at any time, and again."""


Factory = Callable[[str | None], Target]


def names() -> tuple[str, ...]:
    """The names under which targets are registered."""
    return tuple(sorted(point.name for point in entry_points(group=ENTRY_POINTS)))


def find(text: str) -> Target:
    """The target that `NAME` or `NAME:ARG` names. Raises UsageError with the nearest known names."""
    name, colon, argument = text.partition(":")
    for point in entry_points(group=ENTRY_POINTS):
        if point.name == name:
            factory: Factory = point.load()
            return factory(argument if colon else None)
    raise UsageError(f"there is no target {name!r}; {known_names(name, names())}")


def known_names(asked: str, known: tuple[str, ...]) -> str:
    """For an error: what was probably meant, and what there is."""
    close = difflib.get_close_matches(asked, known, n=3)
    meant = f"did you mean {' or '.join(close)}? " if close else ""
    return f"{meant}known are {', '.join(known) or 'none'}"
