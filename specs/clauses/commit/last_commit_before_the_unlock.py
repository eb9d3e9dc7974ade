"""Whoever gives a lane back has reported all that it finished there before, so that a successor finds it.

When an incarnation unlocks its lane in good order (after a drop, or in a shutdown), the highest offset that its
calls had finished before the drop has been committed: the request is on its way before the unlock is. Whether it
arrives is the network's affair.

Judged where the ADD was seen: whoever records adds records commits. A call that ended after the DROP finished nothing,
and what began before the ADD is of an earlier life; nobody knows what one finished of which the mode is not told,
unless it ended COMMIT. An acknowledged dead letter finishes its message in auto mode, where that was alone in the
incarnation's last call; of a batch the rest may have to come again. What the listener returns its client takes up a
moment later, and not once the lane is dropped: what ended less than `guard_slack_ms` before the DROP, or before the
unlock where no DROP is told, may be finished for nothing (in virtual time that moment is none). A commit that was
refused before the unlock reported nothing; one of which nobody says the value may have reported all that was finished
when it began. Once the incarnation commits a broker's correction (the value that a pull was told to go on at), which
replaces what was finished, or an operator resets the offset, nothing more is asked of it. An unlock that names no
incarnation is of the one that its client has dropped, or gives up in a shutdown, and has not given back, whether or not
its ADD was seen; of two, nobody knows. A commit that names none may be of any of its client's, and so may a drop.

RocketMQ's shutdown frees its leases first, in every version; profiles allow that. So what a client does while it shuts
down its work in the group, or where nobody records who does, is a finding of its own: `released-while-leaving`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.incarnations import Corrections, may_be_leaving
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import NO_RESET, ORDERLY
from specs.clauses.rows import (
    certainly_acknowledges,
    ended_before,
    is_manual,
    may_be_manual,
    over_us,
)
from specs.clauses.words import MS, at, who
from specs.history.row import Row
from specs.vocabulary import LISTENER_SUSPENDS, Key, Kind, Outcome, Party

ID = "CMT-13"
TITLE = "the last commit goes before the unlock"
STATEMENT = "In a clean release the last commit is sent before the unlock."
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (ORDERLY, NO_RESET)
SOURCES = ("docs/sources.md#offsets", "docs/sources.md#client-leases")
KINDS = frozenset(
    {
        Kind.ADD,
        Kind.DROP,
        Kind.DELIVER,
        Kind.DEAD_LETTER,
        Kind.COMMIT,
        Kind.PULL,
        Kind.UNLOCK,
        Kind.RESET,
    }
)
NAMED_BY = frozenset({Kind.DEAD_LETTER})
NEEDS = frozenset({Kind.COMMIT, Kind.DELIVER, Kind.UNLOCK})
TOLD_OF_REFUSED_COMMITS = True
LOOKS_BACK = True
EXCUSED_BY = frozenset({Kind.CRASH})
SETTINGS = ("guard_slack_ms",)


@dataclass(frozen=True, slots=True)
class ReleasedFirst(Finding):
    """finished: the highest message that the incarnation had certainly finished, and not reported."""

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
    the values that are on their way.

    recent: what it finished above that a moment ago, upwards, so that a drop may find it not taken up yet.
    maybe: the highest offset that a commit of which nobody says the value may have reported. call: the first message of
    its last call, and whether that had no other.
    """

    __slots__ = ("add", "call", "committed", "dropped", "finished", "maybe", "recent", "sent")

    def __init__(self, add: Row) -> None:
        self.add = add
        self.call: tuple[Row, bool] | None = None
        self.finished: Row | None = None
        self.recent: deque[Row] = deque()
        self.committed = self.maybe = -1
        self.sent: dict[int, int] = {}  # by the commit's begin
        self.dropped = False

    @property
    def highest(self) -> Row | None:
        return self.recent[-1] if self.recent else self.finished

    def calls(self, row: Row) -> None:
        """A message is given to the listener."""
        is_more = self.call is not None and self.call[0].op_id == row.op_id
        self.call = (self.call[0], False) if self.call is not None and is_more else (row, True)

    def gives_up(self, letter: Row) -> bool:
        """Does the acknowledged dead letter finish all of the last call, for certain?"""
        if self.call is None or letter.outcome is not Outcome.OK or is_manual(letter):
            return False
        row, is_alone = self.call
        suspended = row.outcome in LISTENER_SUSPENDS and not may_be_manual(row)
        is_of_it = row.queue_offset == letter.queue_offset and ended_before(row, letter)
        return is_alone and suspended and is_of_it

    def finishes(self, row: Row) -> None:
        highest = self.highest
        if highest is None or (row.queue_offset or 0) > (highest.queue_offset or 0):
            self.recent.append(row)

    def settles(self, until_us: int) -> None:
        """What had ended by then is taken up."""
        while self.recent and over_us(self.recent[0]) <= until_us:
            self.finished = self.recent.popleft()


class LaneJudge(Judge):
    """Remembers, for each incarnation from its ADD to its unlock, one finished message and one value.

    others: of each incarnation that is not judged, and that its client may still give back, what tells of it; by its
    name, or by the row where that has none.
    """

    __slots__ = ("corrections", "incarnations", "others", "slack_us")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.slack_us = self.config.guard_slack_ms * MS
        self.corrections = Corrections()
        self.incarnations: dict[str, _Incarnation] = {}
        self.others: dict[str | int, Row] = {}

    def begins(self, row: Row) -> Iterable[Finding]:
        name, kind = row.incarnation, row.kind
        self.corrections.begins(row)
        if kind is Kind.RESET:
            self._forget(list(self.incarnations))
            return NOTHING
        if kind is Kind.UNLOCK:
            return self._unlocked(row)
        if kind is Kind.COMMIT:
            self._commits(row)
        elif kind is Kind.DELIVER and name in self.incarnations:
            self.incarnations[name or ""].calls(row)
        elif kind is Kind.ADD and name is not None:
            self.incarnations[name] = _Incarnation(row)
            self.others.pop(name, None)
        elif kind is Kind.DROP and name in self.incarnations:
            self._dropped(self.incarnations[name or ""], row)
        elif kind in (Kind.ADD, Kind.DROP):
            self._unseen(row)
        return NOTHING

    def _dropped(self, mine: _Incarnation, row: Row) -> None:
        """From here on it takes nothing up."""
        if not mine.dropped:
            mine.settles(row.started_us - self.slack_us)
            mine.recent.clear()
            mine.dropped = True

    def _unseen(self, row: Row) -> None:
        """An ADD without a name, or the DROP of nobody knows which or of one whose ADD was not seen."""
        mine = self._meant(row) if row.kind is Kind.DROP else []
        self._forget(mine)
        if not mine:
            name = row.seq_begin if row.incarnation is None else row.incarnation
            self.others.setdefault(name, row)

    def _forget(self, names: Iterable[str]) -> None:
        """These are not judged any more; that they have not been given back still counts."""
        for each in names:
            self.others[each] = self.incarnations.pop(each).add

    def _commits(self, row: Row) -> None:
        for name in self._meant(row):
            mine = self.incarnations[name]
            if self.corrections.has(row):
                self._forget((name,))
            elif row.value is not None:
                mine.sent[row.seq_begin] = row.value
            elif mine.highest is not None:
                mine.maybe = mine.highest.queue_offset or 0

    def _meant(self, row: Row) -> list[str]:
        """The incarnations that a commit or a drop may be of."""
        name, client = row.incarnation, row.client_id
        if name is not None:
            return [name] if name in self.incarnations else []
        return [each for each, known in self.incarnations.items() if known.add.client_id == client]

    def _unlocked(self, row: Row) -> Iterable[Finding]:
        name = row.incarnation
        if name is None:
            mine = [
                each
                for each, known in self.incarnations.items()
                if self._may_be_meant(known.add, row)
            ]
            others = [each for each, told in self.others.items() if self._may_be_meant(told, row)]
            if others or len(mine) != 1:
                self._forget(mine)  # nobody knows which
                for one in [*others, *mine][:1]:
                    del self.others[one]
                return NOTHING
            name = mine[0]
            known = self.incarnations[name]
            if not known.dropped and not may_be_leaving(self.context, row.client_id, row.group):
                return NOTHING
        self.others.pop(name, None)
        released = self.incarnations.pop(name, None)
        return NOTHING if released is None else self._released(released, row)

    def _may_be_meant(self, told: Row, unlock: Row) -> bool:
        """May an unlock that names no incarnation be of the one that this row tells of?"""
        client, group = unlock.client_id, unlock.group
        return told.client_id == client and not self.context.is_of_an_old_life(client, group, told)

    def _released(self, mine: _Incarnation, row: Row) -> Iterable[Finding]:
        self._dropped(mine, row)
        finished = mine.finished
        if finished is None or (finished.queue_offset or 0) <= mine.maybe:
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
        mine = self.incarnations.get(row.incarnation or "")
        if mine is None or mine.dropped or offset is None or row.seq_begin < mine.add.seq_begin:
            return NOTHING
        if row.kind is Kind.DELIVER:
            is_finished = certainly_acknowledges(row)
        else:
            is_finished = row.kind is Kind.DEAD_LETTER and mine.gives_up(row)
        if not is_finished:
            return NOTHING
        mine.settles(over_us(row) - self.slack_us)
        mine.finishes(row)
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
