"""The lock table, seen from outside.

A state of one lane is free, or held by a client whose last grant was made somewhere in a span of time. Times are
µs of one clock; a request takes effect between its begin and its end. Rules: absent, own or expired is granted,
a living lease of another is refused and nothing changes, an unlock frees only the owner's lease, whatever its
age. Expired means strictly older than the limit. (docs/sources.md#lock-table)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from specs.vocabulary import Lane


class Held(NamedTuple):
    """The lane is held by `client`; the grant was made between `from_us` and `to_us`."""

    client: str
    from_us: int
    to_us: int


LaneState = Held | None
FREE: frozenset[LaneState] = frozenset({None})


class LockFault(StrEnum):
    """Which rule an answer broke."""

    REFUSED_THOUGH_FREE = "WIR-2"
    GRANTED_THOUGH_HELD = "WIR-3"


@dataclass(slots=True)
class LockTable:
    """All lanes of one broker epoch. limit_us: the broker's lease time.

    known: it is not a guess; else no lease certainly lives, and none has certainly run out.
    """

    limit_us: int
    known: bool = True
    lanes: dict[Lane, frozenset[LaneState]] = field(default_factory=dict)

    def states(self, lane: Lane) -> frozenset[LaneState]:
        return self.lanes.get(lane, FREE)

    def must_grant(self, lane: Lane, client: str, begun_us: int) -> bool:
        """Is the lane certainly free, own or expired for the whole request?"""
        return all(
            state is None or state.client == client or self._is_over(state, begun_us)
            for state in self.states(lane)
        )

    def must_refuse(self, lane: Lane, client: str, ended_us: int) -> bool:
        """Does another's lease certainly live for the whole request?"""
        return all(
            state is not None and state.client != client and self._lives(state, ended_us)
            for state in self.states(lane)
        )

    def _lives(self, state: Held, until_us: int) -> bool:
        """Certainly, up to that time."""
        return self.known and until_us - state.from_us <= self.limit_us

    def _is_over(self, state: Held, at_us: int) -> bool:
        """Certainly, at that time."""
        return self.known and at_us - state.to_us > self.limit_us

    def lock(
        self, lane: Lane, client: str, begun_us: int, ended_us: int, granted: bool | None
    ) -> LockFault | None:
        """Take in one lane of a lock request. granted: None when there was no answer.

        Returns the rule that the answer broke, if any; the table then follows the answer.
        """
        fault: LockFault | None = None
        if granted is False and self.must_grant(lane, client, begun_us):
            fault = LockFault.REFUSED_THOUGH_FREE
        if granted is True and self.must_refuse(lane, client, ended_us):
            fault = LockFault.GRANTED_THOUGH_HELD
        taken = Held(client, begun_us, ended_us)
        if granted is True:
            self.lanes[lane] = frozenset({taken})
        elif granted is False:
            kept = frozenset(self._refusing(lane, client, begun_us))
            self.lanes[lane] = kept or self.states(lane)
        else:
            self.lanes[lane] = self.states(lane) | {taken}
        return fault

    def _refusing(self, lane: Lane, client: str, begun_us: int) -> Iterator[LaneState]:
        """The states in which a refusal was possible."""
        for state in self.states(lane):
            if state is not None and state.client != client and not self._is_over(state, begun_us):
                yield state

    def unlock(self, lane: Lane, client: str, answered: bool) -> None:
        """Take in one lane of an unlock request; without an answer it may not have happened."""
        freed = frozenset(
            None if state and state.client == client else state for state in self.states(lane)
        )
        self.lanes[lane] = freed if answered else freed | self.states(lane)

    def certainly_locked(self, group: str, until_us: int) -> bool:
        """Does any lane of the group certainly hold a living lease up to `until_us`?"""
        return any(
            all(state is not None and self._lives(state, until_us) for state in states)
            for lane, states in self.lanes.items()
            if lane.group == group
        )

    def certainly_unlocked(self, group: str, begun_us: int) -> bool:
        """Is every lane of the group certainly free or expired from `begun_us` on?"""
        return all(
            state is None or self._is_over(state, begun_us)
            for lane, states in self.lanes.items()
            if lane.group == group
            for state in states
        )
