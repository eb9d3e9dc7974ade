"""Incarnations where messages are leased one by one, and no client owns a lane.

The members of a group pull from one consumer that the server keeps for the lane. It hands out one message at a time, to
whoever asks, and takes it back when nobody acknowledged it in time; so the order is the server's, over all members. The
lane's worker is then this consumer, and an incarnation (a *tenure*) is its work as long as every lease ended well: by
an acknowledgement, or because the member put the message back.

A new tenure begins where a message comes again that was neither acknowledged in time nor put back: its lease ran out,
because its member died, stood still or was not heard. And with the first delivery after a crash of the server.

In time is an acknowledgement whose answer came in the first third of a lease, counted from the delivery, where nothing
stood still or held up a link since a lease before that. The lease itself began when the server handed the message out;
and what was handed out again once it was over may have been under way when the server heard of the acknowledgement.

A delivery that comes after a later one of its message was held up for longer than its lease, or the server forgot how
often it had handed the message out: it belongs to no tenure, and neither does what its member says of it then.

Rows of the work are the consumer's: it is their client (`SERVER_CONSUMER`), and their process is the member. A call
whose member was killed was cut at that moment: no incarnation ends with him, from which one could tell.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from conformance.targets.base import Run
from specs.clauses.rows import asks_again
from specs.history.row import Row, make_row
from specs.vocabulary import SERVER_CONSUMER, Kind, Lane, Level, Outcome, Queue

IN_TIME = 3
"""An acknowledgement is in time for so many a part of its lease."""
HOLDS_UP = frozenset({Kind.FAULT, Kind.PAUSE})
"""Rows of what may keep a message, or an acknowledgement, under way."""
ROOM = 1024
"""Places in the order between two that were recorded: for an ADD, or for the calls that a crash has cut."""


def first_tenures(run: Run, queues: Iterable[Queue]) -> None:
    """Write down that the server's consumers of all groups begin at the first message of each queue."""
    journal = run.journal(SERVER_CONSUMER)
    for queue in queues:
        for group in run.plan.topology.groups:
            lane = Lane(group, *queue)
            columns = {
                **lane._asdict(),
                "client_id": SERVER_CONSUMER,
                "incarnation": _name(lane, 1),
                "value": 0,
            }
            journal.note(Kind.ADD, Outcome.OK, columns)


def with_tenures(rows: Sequence[Row], lease_ms: int, *, counted: bool = True) -> list[Row]:
    """The rows (by seq_begin) with the tenure of each delivery and acknowledgement, and an ADD for each further one.

    lease_ms: how long the server waits for an acknowledgement. counted: whether the server counts the deliveries that
    it tells. Where a client counts what it tries again by itself, whatever comes with a count of 0 and was there before
    was handed out anew, and another tenure begins with it: its acknowledgement may have been forgotten.
    """
    known = _Known(lease_ms * 1000, [row for row in rows if row.kind in HOLDS_UP], counted)
    return [new for row in _cut([_spaced(row) for row in rows]) for new in known.take(row)]


def with_letters(rows: Sequence[Row]) -> list[Row]:
    """With a DEAD_LETTER of the server's consumer for each message that was delivered, lies among its group's dead
    letters, and of which no member told that it gave it up.

    rows: as `with_tenures` made them. A member may die before it tells, and a server may give up by itself what it
    handed out too often, also to members that were gone. Nobody knows when that was: after the last delivery, and no
    later than the copy was read. The row is of no tenure, for which nothing follows. Of a message that lies at several
    places of its topic nobody knows at which it was given up (`unknown`). What was given up although nobody was ever
    called for it stays owed.
    """
    told = {
        (row.group, row.message_id)
        for row in rows
        if row.kind is Kind.DEAD_LETTER and row.outcome is Outcome.OK
    }
    places: dict[tuple[str | None, str | None], dict[Queue, Row]] = defaultdict(dict)
    last: dict[tuple[str | None, str | None], Row] = {}
    copies: dict[tuple[str | None, str | None], tuple[Row, Row | None]] = {}
    for row in rows:
        if row.kind is Kind.READ and row.origin_id is not None:
            copy = row.group, row.origin_id
            copies.setdefault(copy, (row, last.get(copy)))
        elif row.kind is Kind.READ and row.message_id is not None:
            places[row.topic, row.message_id].setdefault(row.queue, row)
        elif row.kind is Kind.DELIVER:
            last[row.group, row.message_id] = row
    letters = [
        letter
        for named, (found, before) in copies.items()
        if named not in told and before is not None
        for letter in _letters(places[found.view, found.origin_id].values(), found, before)
    ]
    return sorted([*rows, *letters], key=lambda row: row.seq_begin)


def _letters(lying: Collection[Row], copy: Row, before: Row) -> Iterator[Row]:
    """lying: the message in its topic. before: its last delivery."""
    for number, found in enumerate(lying, 1):
        lane = Lane(copy.group or "", *found.queue)
        yield make_row(
            run=copy.run,
            seq_begin=before.seq_begin + number,
            seq_end=copy.seq_begin - number,
            op_id=found.op_id - 1,
            kind=Kind.DEAD_LETTER,
            level=Level.CLIENT,
            process=SERVER_CONSUMER,
            client_id=SERVER_CONSUMER,
            incarnation=f"{SERVER_CONSUMER}/{lane.topic}/{lane.queue_id}/{copy.origin_id}",
            **lane._asdict(),
            queue_offset=found.queue_offset,
            message_id=copy.origin_id,
            sharding_key=found.sharding_key,
            key_seq=found.key_seq,
            outcome=Outcome.OK if len(lying) == 1 else Outcome.UNKNOWN,
            started_us=before.started_us,
            ended_us=copy.started_us,
            clock=copy.clock,
            wall_us=before.wall_us,
        )


@dataclass(slots=True)
class _Lane:
    """tenure: counts from 1. last: the last delivery of each offset. acknowledged: the end of what was in time."""

    lane: Lane
    tenure: int = 1
    is_new: bool = False
    last: dict[int, Row] = field(default_factory=dict)
    acknowledged: dict[int, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return _name(self.lane, self.tenure)


class _Known:
    def __init__(self, lease_us: int, hold_ups: Sequence[Row], counted: bool) -> None:
        self.lease_us, self.hold_ups, self.counted = lease_us, hold_ups, counted
        self.lanes: dict[Lane, _Lane] = {}
        self.tenures: dict[tuple[str | None, Lane, int], str] = {}  # by member and offset

    def take(self, row: Row) -> Iterator[Row]:
        if row.kind is Kind.CRASH and row.broker is not None:
            for lane in self.lanes.values():
                lane.is_new = True
        if row.kind is Kind.DELIVER and row.queue_offset is not None:
            lane = self.lanes.setdefault(row.lane, _Lane(row.lane))
            before = lane.last.get(row.queue_offset)
            if self.counted and before is not None and _count(row) < _count(before):
                alone = f"{lane.name}/{row.process}/{row.queue_offset}/{row.reconsume_times}"
                self.tenures[row.client_id, row.lane, row.queue_offset] = alone
                yield row._replace(client_id=SERVER_CONSUMER, incarnation=alone)
                return
            if lane.is_new or self._ran_out(lane, row, row.queue_offset):
                lane.tenure += 1
                lane.is_new = False
                yield _added(lane, row)
            lane.last[row.queue_offset] = row
            self.tenures[row.client_id, row.lane, row.queue_offset] = lane.name
            row = row._replace(client_id=SERVER_CONSUMER, incarnation=lane.name)
        elif row.kind is Kind.COMMIT and row.value is not None:
            row = self._acknowledgement(row, row.value - 1)
        elif row.kind is Kind.DEAD_LETTER and row.queue_offset is not None:
            row = self._of_a_delivery(row, row.queue_offset)
        yield row

    def _ran_out(self, lane: _Lane, row: Row, offset: int) -> bool:
        """Does the message come again because of nothing that its member said?"""
        before = lane.last.get(offset)
        if before is None:
            return False
        if not self.counted:
            return _count(row) == 0
        acknowledged = lane.acknowledged.get(offset)
        if acknowledged is not None and acknowledged < row.seq_begin:
            return False
        ended = before.seq_end is not None and before.seq_end < row.seq_begin
        return not (ended and asks_again(before))

    def _in_time(self, lane: _Lane, row: Row, offset: int) -> bool:
        """One that came before any delivery was not late, whatever else it was."""
        given = lane.last.get(offset)
        if given is None:
            return True
        ended_us = row.started_us if row.ended_us is None else row.ended_us
        if ended_us - given.started_us > self.lease_us // IN_TIME:
            return False
        since_us = given.started_us - self.lease_us
        return not any(
            each.started_us <= ended_us and (each.ended_us is None or each.ended_us >= since_us)
            for each in self.hold_ups
        )

    def _acknowledgement(self, row: Row, offset: int) -> Row:
        """It belongs to the delivery that its member was given; before any, to whatever the lane's tenure then is."""
        lane = self.lanes.setdefault(row.lane, _Lane(row.lane))
        if (
            row.outcome is Outcome.OK
            and row.seq_end is not None
            and self._in_time(lane, row, offset)
        ):
            lane.acknowledged.setdefault(offset, row.seq_end)
        return self._of_a_delivery(row, offset)

    def _of_a_delivery(self, row: Row, offset: int) -> Row:
        lane = self.lanes.setdefault(row.lane, _Lane(row.lane))
        tenure = self.tenures.get((row.client_id, row.lane, offset), lane.name)
        return row._replace(client_id=SERVER_CONSUMER, incarnation=tenure)


def _cut(rows: Sequence[Row]) -> Iterator[Row]:
    """With an end for each call whose member was killed in it."""
    deaths = [row for row in rows if row.kind is Kind.CRASH and row.client_id is not None]
    cut = 0
    for row in rows:
        if row.kind is Kind.DELIVER and row.seq_end is None:
            death = next((d for d in deaths if _ends(d, row)), None)
            if death is not None:
                cut += 1
                row = row._replace(
                    seq_end=death.seq_begin - cut % ROOM,
                    ended_us=death.started_us,
                    outcome=Outcome.CUT,
                )
        yield row


def _count(row: Row) -> int:
    return row.reconsume_times or 0


def _ends(death: Row, call: Row) -> bool:
    return death.client_id == call.client_id and death.seq_begin > call.seq_begin


def _name(lane: Lane, tenure: int) -> str:
    return f"{SERVER_CONSUMER}/{lane.topic}/{lane.queue_id}#{tenure}"


def _spaced(row: Row) -> Row:
    return row._replace(
        seq_begin=row.seq_begin * ROOM,
        seq_end=None if row.seq_end is None else row.seq_end * ROOM,
        op_id=row.op_id * ROOM,
    )


def _added(lane: _Lane, row: Row) -> Row:
    """The ADD of a further tenure, just before the delivery that shows it."""
    return make_row(
        run=row.run,
        seq_begin=row.seq_begin - 1,
        seq_end=row.seq_begin - 1,
        op_id=row.op_id - 1,
        kind=Kind.ADD,
        level=Level.CLIENT,
        process=SERVER_CONSUMER,
        client_id=SERVER_CONSUMER,
        incarnation=lane.name,
        **row.lane._asdict(),
        outcome=Outcome.OK,
        started_us=row.started_us,
        ended_us=row.started_us,
        clock=row.clock,
        wall_us=row.wall_us,
        value=row.queue_offset,
    )
