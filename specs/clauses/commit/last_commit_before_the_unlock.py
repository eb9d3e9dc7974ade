"""Whoever gives a lane back has reported all that it finished there before, so that a successor finds it.

When an incarnation unlocks its lane in good order (after a drop, or in a shutdown), the highest offset that its
calls had finished before the drop has been committed: the request is on its way before the unlock is. Whether it
arrives is the network's affair.

Judged where the ADD was seen: whoever records adds records commits. A call that ended after the DROP finished
nothing, and nobody knows what one finished of which the mode is not told, unless it ended COMMIT. A commit that was
refused before the unlock reported nothing. A broker's correction (of the value that a pull
was told to go on at), which replaces what was finished, and a reset are excused. An unlock that names no incarnation is
of the one that its client has dropped, or gives up in a shutdown, and has not given back; of two, nobody knows. A
commit that names none may be of any of its client's.

RocketMQ's shutdown frees its leases first, in every version; profiles allow that. So what a client does while it shuts
down its work in the group, or where nobody records who does, is a finding of its own: `released-while-leaving`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.incarnations import Corrections, may_be_leaving
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import NO_RESET, ORDERLY
from specs.clauses.rows import certainly_acknowledges
from specs.clauses.words import at, who
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "CMT-13"
TITLE = "the last commit goes before the unlock"
STATEMENT = "In a clean release the last commit is sent before the unlock."
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (ORDERLY, NO_RESET)
SOURCES = ("docs/sources.md#offsets", "docs/sources.md#client-leases")
KINDS = frozenset(
    {Kind.ADD, Kind.DROP, Kind.DELIVER, Kind.COMMIT, Kind.PULL, Kind.UNLOCK, Kind.RESET}
)
NEEDS = frozenset({Kind.COMMIT, Kind.DELIVER, Kind.UNLOCK})


@dataclass(frozen=True, slots=True)
class ReleasedFirst(Finding):
    """finished: the highest message that the incarnation had finished, and not reported."""

    add: Row
    finished: Row
    unlock: Row


@dataclass(frozen=True, slots=True)
class ReleasedWhileLeaving(Finding):
    """Likewise, by a client that was, or may have been, shutting down."""

    add: Row
    finished: Row
    unlock: Row


class _Incarnation:
    """One incarnation: the highest message that it finished before its drop, the highest value that it reported, and
    the values that are on their way."""

    __slots__ = ("add", "committed", "dropped", "finished", "sent")

    def __init__(self, add: Row) -> None:
        self.add = add
        self.finished: Row | None = None
        self.committed = -1
        self.sent: dict[int, int] = {}  # by the commit's begin
        self.dropped = False


class LaneJudge(Judge):
    """Remembers, for each incarnation from its ADD to its unlock, one finished message and one value."""

    __slots__ = ("corrections", "incarnations")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.corrections = Corrections()
        self.incarnations: dict[str, _Incarnation] = {}

    def begins(self, row: Row) -> Iterable[Finding]:
        name, kind = row.incarnation, row.kind
        self.corrections.begins(row)
        if kind is Kind.RESET:
            self.incarnations.clear()
            return NOTHING
        if kind is Kind.UNLOCK:
            return self._unlocked(row)
        if kind is Kind.COMMIT:
            self._commits(row)
        elif kind is Kind.ADD and name is not None:
            self.incarnations[name] = _Incarnation(row)
        elif kind is Kind.DROP and name in self.incarnations:
            self.incarnations[name or ""].dropped = True
        return NOTHING

    def _commits(self, row: Row) -> None:
        for name in self._meant(row):
            if self.corrections.has(row):
                del self.incarnations[name]
            elif row.value is not None:
                self.incarnations[name].sent[row.seq_begin] = row.value

    def _meant(self, commit: Row) -> list[str]:
        """The incarnations that a commit may be of."""
        name, client = commit.incarnation, commit.client_id
        if name is not None:
            return [name] if name in self.incarnations else []
        return [each for each, known in self.incarnations.items() if known.add.client_id == client]

    def _unlocked(self, row: Row) -> Iterable[Finding]:
        name = row.incarnation
        if name is None:
            mine = [
                each for each, known in self.incarnations.items() if self._may_be_meant(known, row)
            ]
            if len(mine) != 1:
                for each in mine:  # nobody knows which
                    del self.incarnations[each]
                return NOTHING
            name = mine[0]
            known = self.incarnations[name]
            if not known.dropped and not may_be_leaving(self.context, row.client_id, row.group):
                return NOTHING
        released = self.incarnations.pop(name, None)
        return NOTHING if released is None else self._released(released, row)

    def _may_be_meant(self, known: _Incarnation, unlock: Row) -> bool:
        """May an unlock that names no incarnation be of this one?"""
        client, group = unlock.client_id, unlock.group
        return known.add.client_id == client and not self.context.is_of_an_old_life(
            client, group, known.add
        )

    def _released(self, mine: _Incarnation, row: Row) -> Iterable[Finding]:
        finished = mine.finished
        if finished is None:
            return NOTHING
        self.opportunities += 1
        if max((mine.committed, *mine.sent.values())) > (finished.queue_offset or 0):
            return NOTHING
        if may_be_leaving(self.context, row.client_id, row.group):
            return (ReleasedWhileLeaving(mine.add, finished, row),)
        return (ReleasedFirst(mine.add, finished, row),)

    def ends(self, row: Row) -> Iterable[Finding]:
        self.corrections.ends(row)
        offset = row.queue_offset
        if row.kind is Kind.COMMIT:
            self._reported(row)
        if row.kind is not Kind.DELIVER or offset is None or not certainly_acknowledges(row):
            return NOTHING
        mine = self.incarnations.get(row.incarnation or "")
        if mine is None or mine.dropped:
            return NOTHING
        if mine.finished is None or offset > (mine.finished.queue_offset or 0):
            mine.finished = row
        return NOTHING

    def _reported(self, row: Row) -> None:
        for name in self._meant(row):
            mine = self.incarnations[name]
            value = mine.sent.pop(row.seq_begin, None)
            if value is not None and row.outcome is not Outcome.REFUSED:
                mine.committed = max(mine.committed, value)


judge = LaneJudge


def explain(found: ReleasedFirst | ReleasedWhileLeaving) -> str:
    finished, unlock = found.finished, found.unlock
    return (
        f"{who(unlock)} gave {unlock.lane} back at {at(unlock)} without having committed "
        f"{(finished.queue_offset or 0) + 1}: offset {finished.queue_offset}, begun at {at(finished)}, was finished"
    )
