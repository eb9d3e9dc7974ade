"""Who of a group has which lanes, and how far the group has come: sans-io, the clock is handed in.

    heartbeat(now, member, epoch, owned)   the member lives, and has these lanes; without an epoch it joins. Its epoch
                                           and the lanes that are its own; None: it is no member any more
    commit(now, member, epoch, lane, offset)   refused of whoever is no member under that epoch, and nothing changes
    leave(member)

A lane goes to its new owner once the former one has said that it has it no more, or is expelled: who was not heard for
a session is no member any more, and joins under a new epoch. So nobody's word counts who had a lane before.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from specs.vocabulary import Lane


@dataclass(slots=True)
class Member:
    """lanes: that it may still have."""

    epoch: int
    heard_ms: int
    lanes: set[Lane] = field(default_factory=set)


class Coordinator:
    """session_ms: how long a member may be silent."""

    def __init__(self, session_ms: int, lanes: Sequence[Lane]) -> None:
        self.session_ms, self.lanes = session_ms, tuple(lanes)
        self.members: dict[str, Member] = {}
        self.offsets: dict[Lane, int] = {}
        self._epochs = itertools.count(1)

    def heartbeat(
        self, now_ms: int, member: str, epoch: int | None, owned: Collection[Lane]
    ) -> tuple[int, tuple[Lane, ...]] | None:
        self.expire(now_ms)
        if epoch is None:
            self.members[member] = Member(next(self._epochs), now_ms)
        elif not self.is_member(member, epoch):
            return None
        mine = self.members[member]
        mine.heard_ms = now_ms
        mine.lanes.intersection_update(owned)
        wanted = self._share_of(member)
        others = {lane for each in self.members.values() if each is not mine for lane in each.lanes}
        mine.lanes.update(lane for lane in wanted if lane not in others)
        return mine.epoch, tuple(lane for lane in wanted if lane in mine.lanes)

    def commit(self, now_ms: int, member: str, epoch: int, lane: Lane, offset: int) -> bool:
        self.expire(now_ms)
        if not self.may_commit(member, epoch):
            return False
        self.offsets[lane] = offset
        return True

    def leave(self, member: str) -> None:
        self.members.pop(member, None)

    def is_member(self, member: str, epoch: int) -> bool:
        known = self.members.get(member)
        return known is not None and known.epoch == epoch

    def may_commit(self, member: str, epoch: int) -> bool:
        """Does the word of this member count?"""
        return self.is_member(member, epoch)

    def expire(self, now_ms: int) -> None:
        """Whoever was not heard for a session is no member any more."""
        for name, member in list(self.members.items()):
            if member.heard_ms + self.session_ms <= now_ms:
                del self.members[name]

    def _share_of(self, member: str) -> list[Lane]:
        """Dealt out like cards."""
        names = sorted(self.members)
        return list(self.lanes[names.index(member) :: len(names)])
