"""What breaks SND-1, planted in a history."""

from __future__ import annotations

from functools import partial
from typing import Any

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Planted, Trace
from specs.history.row import Row
from specs.vocabulary import Kind, Level, Outcome, Queue

CLAUSE = "SND-1"


def lost_message(trace: Trace) -> Changes:
    for send, read in planting.reads(trace):
        yield partial(lambda s, r: trace.without([r.seq_begin], [s.seq_begin]), send, read)


def removed_above_the_minimum(trace: Trace) -> Changes:
    """The broker says that it removed what lies below a message, and the message is missing as well."""
    for send, read in planting.reads(trace):
        yield partial(lambda s, r: _removed(trace, s, r, s.queue_offset), send, read)


def removed_on_purpose(trace: Trace) -> Changes:
    """It says that the message is among what it removed; only that of a queue's first message leaves no hole."""
    lowest: dict[Queue, int] = {}
    for send, _ in planting.reads(trace):
        lowest[send.queue] = min(
            send.queue_offset or 0, lowest.get(send.queue, send.queue_offset or 0)
        )
    for send, read in planting.reads(trace):
        if send.queue_offset == lowest[send.queue]:
            yield partial(lambda s, r: _removed(trace, s, r, (s.queue_offset or 0) + 1), send, read)


def _removed(trace: Trace, send: Row, read: Row, kept_from: int | None) -> Planted:
    planted = trace.without([read.seq_begin], [send.seq_begin])
    bare: dict[str, Any] = dict.fromkeys(send._fields)
    said = {
        name: getattr(send, name) for name in ("run", "topic", "broker", "queue_id", "broker_epoch")
    }
    said |= {
        "kind": Kind.TRIM,
        "level": Level.STORE,
        "process": send.broker,
        "outcome": Outcome.OK,
        "value": kept_from,
    }
    trim = trace.another(send._replace(**{**bare, **said}), send, 1)
    return Trace(planted.rows, trace.info).with_more([trim], planted.about)


def replaced_message(trace: Trace) -> Changes:
    for send, read in planting.reads(trace):
        change = {read.seq_begin: {"message_id": f"{read.message_id}-other"}}
        about = (send.seq_begin, read.seq_begin)
        yield partial(trace.changed, change, about)


def unacknowledged_is_lost(trace: Trace) -> Changes:
    for send, _read in planting.reads(trace):
        unknown = {
            "outcome": Outcome.UNKNOWN,
            "queue_offset": None,
            "message_id": f"{send.message_id}-unknown",
            "code": None,
        }
        yield partial(
            lambda s, u: trace.with_more([trace.another(s, s, 1, **u)], [s.seq_begin]),
            send,
            unknown,
        )


def stored_weakly_is_lost(trace: Trace) -> Changes:
    """Only the last message of a queue: a hole between others would be no loss by a flush that came too late."""
    last = {
        row.queue: row.queue_offset or 0
        for row in trace.of(Kind.READ)
        if row.queue_offset is not None
    }
    markers = {row.queue: row for row in trace.of(Kind.READ) if row.queue_offset is None}
    for send, read in planting.reads(trace):
        marker = markers[read.queue]
        if read.queue_offset == last[read.queue] and marker.value == last[read.queue] + 1:
            change = {send.seq_begin: {"code": 10}, marker.seq_begin: {"value": read.queue_offset}}
            yield partial(
                lambda s, r, c: Trace(trace.changed(c).rows, trace.info).without(
                    [r.seq_begin], [s.seq_begin]
                ),
                send,
                read,
                change,
            )


DEFECTS = (
    Mutant("lost-message", "SND-1", "an acknowledged message is missing", lost_message),
    Mutant(
        "removed-above-the-minimum",
        "SND-1",
        "more went than was announced",
        removed_above_the_minimum,
    ),
    Mutant(
        "replaced-message",
        "SND-1",
        "another message lies in an acknowledged one's place",
        replaced_message,
    ),
)

LOOKALIKES = (
    Mutant("removed-on-purpose", None, "what is missing was announced to go", removed_on_purpose),
    Mutant(
        "unacknowledged-lost",
        None,
        "a send without an answer is never read",
        unacknowledged_is_lost,
    ),
    Mutant(
        "stored-weakly-lost",
        None,
        "a message that was not flushed in time is lost",
        stored_weakly_is_lost,
    ),
)
