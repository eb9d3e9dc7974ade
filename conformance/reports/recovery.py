"""How long lanes stood still after their client, or their broker, was gone: from a history.

Of each crash, pause and departure: the lanes whose latest message before it was begun by that client (or lay on that
broker), and the time until the next message of each is begun, by whomever. A lane in which nothing was left to do is
not counted; one in which acknowledged messages were left, and none was begun any more, never recovered.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from specs.history.row import Row
from specs.vocabulary import STOOD_STILL, Kind, Lane, Outcome, Queue


@dataclass(frozen=True, slots=True)
class Recovered:
    """What came after a fault. lanes: how many had something to do when it ended; ms: the slowest, None for never."""

    lanes: int
    ms: int | None


GONE = frozenset({Kind.CRASH, Kind.PAUSE, Kind.LEAVE})


@dataclass(frozen=True, slots=True)
class Recovery:
    """One lane after one event. what: `crash`, `pause` or `leave`; ms: None where the lane never went on."""

    what: str
    party: str
    lane: Lane
    ms: float | None


def recoveries(rows: Iterable[Row]) -> list[Recovery]:
    """All of a run, in the order of the events and of the lanes."""
    gone: list[Row] = []
    calls: dict[Lane, list[Row]] = {}
    sent: dict[Queue, int] = {}
    for row in rows:
        if row.kind in GONE:
            if row.detail == STOOD_STILL:  # nothing that was done to it
                continue
            gone.append(row)
        elif row.kind is Kind.DELIVER and row.queue_id is not None:
            calls.setdefault(row.lane, []).append(row)
        elif row.kind is Kind.SEND and row.outcome is Outcome.OK and row.queue_offset is not None:
            sent[row.queue] = max(sent.get(row.queue, -1), row.queue_offset)
    for those in calls.values():
        those.sort(key=lambda row: row.started_us)
    found = []
    for event in sorted(gone, key=lambda row: row.started_us):
        for lane in sorted(calls):
            each = _of(event, lane, calls[lane], sent)
            if each is not None:
                found.append(each)
    return found


def recovered(rows: Iterable[Row], ended_us: int) -> Recovered:
    """How long after a moment each lane that had something to do went on with its next message.

    Something to do has a lane with a message that was acknowledged before that moment and lies behind all that were
    begun before it. Whether the lane went on in order is the affair of the clauses.
    """
    lanes: dict[Lane, int] = {}
    after_us: dict[Lane, int] = {}
    sent: dict[Queue, int] = {}
    for row in rows:
        offset, queue = row.queue_offset, row.queue_id
        if queue is None or offset is None:
            continue
        if row.kind is Kind.SEND and row.outcome is Outcome.OK:
            if row.ended_us is not None and row.ended_us <= ended_us:
                sent[row.queue] = max(sent.get(row.queue, -1), offset)
        elif row.kind is Kind.DELIVER and row.started_us <= ended_us:
            lanes[row.lane] = max(lanes.get(row.lane, -1), offset)
        elif row.kind is Kind.DELIVER:
            after_us[row.lane] = min(after_us.get(row.lane, row.started_us), row.started_us)
    waits = [
        after_us.get(lane)
        for lane, reached in lanes.items()
        if sent.get(Queue(lane.topic, lane.broker, lane.queue_id), -1) > reached
    ]
    slowest = None if None in waits else max((at for at in waits if at is not None), default=None)
    return Recovered(len(waits), None if slowest is None else round((slowest - ended_us) / 1000))


def _of(event: Row, lane: Lane, calls: Sequence[Row], sent: dict[Queue, int]) -> Recovery | None:
    before = [row for row in calls if row.started_us < event.started_us]
    if not before or not _is_theirs(event, before[-1]):
        return None
    party = event.client_id or event.broker or event.process or ""
    after = next((row for row in calls if row.started_us >= event.started_us), None)
    if after is not None:
        ms = (after.started_us - event.started_us) / 1000
        return Recovery(event.kind.value, party, lane, ms)
    reached = max(row.queue_offset or 0 for row in before)
    left = sent.get(before[-1].queue, -1) > reached
    return Recovery(event.kind.value, party, lane, None) if left else None


def _is_theirs(event: Row, call: Row) -> bool:
    if event.client_id is not None:
        return call.party == event.client_id
    if event.broker is not None:
        return call.broker == event.broker
    return event.process is not None and call.process == event.process
