"""The systems of a search, opened once: its runs work on them side by side.

Each run has topics, groups, clients and proxies of its own, so that what befalls its clients and its links befalls
nobody else. What befalls a broker befalls all who work on it: a run that does such a thing goes to a system which runs
have one after the other, and to one that was started for it where it has to be, as on a disk or with a wall clock of
its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field

from conformance.targets.systems import BEFORE_START, System, answers
from specs.plan.ability import Ability
from specs.plan.config import OF_BROKERS, Config
from specs.plan.fault import Subject
from specs.plan.plan import Plan

OpenSystem = Callable[[Config], AbstractContextManager[System]]
_Place = tuple[tuple[tuple[str, object], ...], bool, frozenset[Ability]]


def befalls_a_broker(plan: Plan) -> bool:
    """Does the plan do something to a broker or the name server, which everybody feels?"""
    faults = ((step.fault, step.of_broker) for step in plan.steps)
    return any(
        fault and (of_broker or fault.subject in (Subject.BROKER, Subject.NAME_SERVER))
        for fault, of_broker in faults
    )


@dataclass(slots=True)
class _Kept:
    """A system that stays open. turn: held by who opens it, and by who has it alone."""

    turn: threading.Lock = field(default_factory=threading.Lock)
    system: System | None = None


class KeptSystems:
    """opens: a system with that configuration. To be closed when nobody works on them any more."""

    def __init__(self, opens: OpenSystem) -> None:
        self._opens = opens
        self._kept: dict[_Place, _Kept] = {}
        self._stack = ExitStack()
        self._door = threading.Lock()
        self._opening = threading.Lock()

    @contextmanager
    def for_run(self, plan: Plan) -> Iterator[System]:
        """The system on which a run of the plan is to work, while it does. Waits until it is its turn."""
        alone, needs = befalls_a_broker(plan), plan.asks_of_brokers() & BEFORE_START
        told = plan.config.to_json()
        place = tuple((name, told[name]) for name in sorted(OF_BROKERS)), alone, needs
        with self._door:
            kept = self._kept.setdefault(place, _Kept())
        with ExitStack() as turn:
            turn.enter_context(kept.turn)
            if kept.system is None or not answers(kept.system):
                kept.system = self._opened(plan, needs)
            kept.system.take_back()
            if not alone:
                turn.close()
            yield kept.system

    def _opened(self, plan: Plan, needs: frozenset[Ability]) -> System:
        opening = self._opens(plan.config)
        assert isinstance(opening, System), "a target lends a system that is not open yet"
        opening.make_ready(needs)
        with self._opening:  # servers that start at once take longer, one like the other
            return self._stack.enter_context(opening)

    def close(self) -> None:
        """All of them. A second call does nothing."""
        self._kept.clear()
        self._stack.close()
