"""ORD-17: no first delivery lies beyond a message that was sent, is wanted, and that nobody of the group was given.

Decisions where the page leaves room:

- A message was sent before a delivery if its send began before that; its answer may come later, since what lies
  beyond it was stored later.
- A producer that sends halves to the queue is a client that sends one there at any time, in whatever process.
- Given is what a row names that began before the delivery: a call, a hand-out, an ACK or a dead letter, however it
  ended. It names it by its offset, or by the id that its send gave it. A row with neither names none.
- A look-up of the lane is anybody's, however it ended. In between is after what the incarnation was given of the
  highest offset began, or after its ADD.
- A pull was told to go on where its answer has the code 21, or refused it and names an offset, and it was begun before
  the delivery. It does not move the incarnation otherwise: what lies where it was told to go on is not excused.
- A commit tells that its incarnation was moved where it says `corrected` and began before the delivery; what lies at
  the offset that it names, or above, is not excused.
- A handover takes something given before; who is the group's first to be given anything takes over from nobody. Where
  its ADD names no offset it goes up to the first delivery. Where nobody saw an ADD, nobody knows what the first
  delivery takes over: then it passes nothing over.
- A commit or a look-up that named an offset above the message's excuses it; of commits, any that was not refused.
- After a reset of the lane nothing is said, whatever was sent since; and a crash, or a new epoch, is of any broker. An
  epoch is new where a row shows a higher one of its broker than all rows before it do.
- A key comes again with a later place of the queue that somebody is given, or with a send that may have got one: of
  what was not acknowledged nobody knows the place, whenever it began; what was refused counts if it began later.
- A fault is any, also one that had no effect, that began before the delivery; and so is a pause of a broker. What was
  sent before one of them ended may be lost.
- How old a message is counts from the begin of its send to the begin of the delivery.
- An answer may have handed out any message of its lane if it was lost and asked for before the delivery began.
- Commits and look-ups are recorded, from the begin on: a history that says otherwise is none of these small ones.
- A configuration that does not tell the mode, the message model or the subscription says nothing; and a member of the
  group that joined with another subscription than `*` shows that the group wants a part.
"""

from __future__ import annotations

from collections.abc import Iterator

from specs.history.row import Row
from specs.plan.config import ROCKETMQ, Config
from specs.vocabulary import Kind, Outcome
from tests.definitions.words import (
    OFFSET_MOVED,
    Rows,
    adds,
    before,
    began_before,
    calls,
    is_plain,
    of,
    offset,
    same_incarnation,
    same_lane,
    same_queue,
    took_effect,
    was_removed,
)

GIVEN = (Kind.DELIVER, Kind.RECEIVE, Kind.ACK, Kind.DEAD_LETTER)


def broken(rows: Rows, config: Config) -> bool:
    return _is_judged(config) and any(
        lies < offset(call) and _is_passed(rows, config, call, lies)
        for call in calls(rows)
        if call.incarnation is not None
        and not _was_reset_before(rows, call)
        and not _wants_a_part(rows, call)
        for lies in _sent(rows, config, call)
    )


def _is_judged(config: Config) -> bool:
    told = not config.untold & {"mode", "message_model", "subscription"}
    usual = (config.mode, config.message_model, config.subscription)
    return told and usual == ("orderly", "clustering", "*")


def _was_reset_before(rows: Rows, call: Row) -> bool:
    """Had an operator begun to move the lane's offset?"""
    return any(
        same_lane(reset, call) and began_before(reset, call)
        for reset in took_effect(rows, Kind.RESET)
    )


def _wants_a_part(rows: Rows, call: Row) -> bool:
    """Had a member joined the group with a subscription of its own?"""
    return any(
        join.group == call.group
        and join.view is not None
        and not join.view.endswith("*")
        and began_before(join, call)
        for join in took_effect(rows, Kind.JOIN)
    )


def _sent(rows: Rows, config: Config, call: Row) -> Iterator[int]:
    """Where the messages lie that are known to be there, in the queue of the call, when it began."""
    for send in of(rows, Kind.SEND):
        if (
            send.outcome is Outcome.OK
            and send.queue_offset is not None
            and is_plain(send)
            and same_queue(send, call)
            and began_before(send, call)
            and not _sends_halves(rows, send)
            and not _is_gone(rows, config, send, call)
            and not _is_given_by_id(rows, send, call)
        ):
            yield offset(send)


def _is_given_by_id(rows: Rows, send: Row, call: Row) -> bool:
    """Does a row of the lane that names no offset say so of the message's id?"""
    return any(
        row.queue_offset is None
        and row.message_id is not None
        and row.message_id == send.message_id
        and same_lane(row, call)
        and began_before(row, call)
        for row in of(rows, *GIVEN)
    )


def _sends_halves(rows: Rows, send: Row) -> bool:
    """Does the producer of that send send the queue half messages too?"""
    return any(
        (half.detail or "").startswith("half")
        and half.client_id == send.client_id
        and same_queue(half, send)
        for half in of(rows, Kind.SEND)
    )


def _is_gone(rows: Rows, config: Config, send: Row, call: Row) -> bool:
    """May the queue keep the message no longer: removed, lost with a broker, too old, or compacted?"""
    return (
        _died_since(rows, send, call)
        or was_removed(rows, call, offset(send))
        or _is_below_where_told_to_go_on(rows, call, offset(send))
        or _is_too_old(config, send, call)
        or (config.system != ROCKETMQ and _may_be_lost(rows, send, call))
        or (_may_be_compacted(config) and _key_comes_again(rows, send))
    )


def _died_since(rows: Rows, send: Row, call: Row) -> bool:
    """Had a broker died since the send began: a crash, or a row that shows a new epoch?"""
    return any(
        row.broker is not None
        and (row.kind is Kind.CRASH or _is_new_epoch(rows, row))
        and not before(row, send)
        and row.seq_begin <= call.seq_begin
        for row in rows
    )


def _is_new_epoch(rows: Rows, row: Row) -> bool:
    earlier = [
        other.broker_epoch
        for other in rows
        if other.broker == row.broker
        and other.broker_epoch is not None
        and began_before(other, row)
    ]
    return len(earlier) > 0 and max(earlier) < (row.broker_epoch or 0)


def _is_too_old(config: Config, send: Row, call: Row) -> bool:
    """Is it as old as the system says that it keeps a message, or older?"""
    keeps = [each for each in (config.keep_ms, config.counts("retention.ms")) if each > 0]
    return any(call.started_us - send.started_us >= each * 1_000 for each in keeps)


def _may_be_lost(rows: Rows, send: Row, call: Row) -> bool:
    """Did a fault end, or a broker stand still, after the send had begun?"""
    return any(
        (row.kind is Kind.FAULT or row.broker is not None)
        and not before(row, send)
        and began_before(row, call)
        for row in of(rows, Kind.FAULT, Kind.PAUSE)
    )


def _is_below_where_told_to_go_on(rows: Rows, call: Row, lies: int) -> bool:
    return any(
        (pull.code == OFFSET_MOVED or pull.outcome is Outcome.REFUSED)
        and lies < (pull.value or 0)
        and same_lane(pull, call)
        and pull.seq_end is not None
        and began_before(pull, call)
        for pull in of(rows, Kind.PULL)
    )


def _may_be_compacted(config: Config) -> bool:
    return config.system != ROCKETMQ and config.says("cleanup.policy") != "delete"


def _key_comes_again(rows: Rows, send: Row) -> bool:
    """Has another message of the key a later place in the queue, or may it have one?"""
    return send.sharding_key is not None and any(
        row.sharding_key == send.sharding_key
        and (same_queue(row, send) or _names_no_queue(row, send))
        and row is not send
        and (_may_come_later(send, row) if row.queue_offset is None else offset(row) > offset(send))
        for row in of(rows, Kind.SEND, Kind.DELIVER)
    )


def _names_no_queue(row: Row, send: Row) -> bool:
    nowhere = row.queue_id is None and row.broker in (None, send.broker)
    return nowhere and row.topic == send.topic and row.outcome is not Outcome.REFUSED


def _may_come_later(send: Row, other: Row) -> bool:
    """May the other send, whose place nobody knows, have got a later one?"""
    return other.outcome is not Outcome.REFUSED or began_before(send, other)


def _is_passed(rows: Rows, config: Config, call: Row, lies: int) -> bool:
    """Does the call lie beyond all that its incarnation was given, and the message in the gap, given to nobody?"""
    given = _given(rows, call)
    if any(offset(row) == lies for row in given) or _may_have_been_handed_out(rows, call):
        return False
    if _was_moved_beyond(rows, call, lies):
        return False
    own = [row for row in given if same_incarnation(rows, row, call)]
    if own:
        highest = max(own, key=offset)
        return offset(highest) < lies and not _was_looked_up(rows, highest, call)
    begins = adds(rows, call)[-1:]
    if not begins or _was_looked_up(rows, begins[0], call):
        return False
    start = begins[0].value
    return (start is not None and start <= lies) or (
        _begins_with_the_first(config)
        and len(given) > 0
        and all(offset(row) < lies for row in given)
        and not _was_named(rows, call, lies)
    )


def _was_moved_beyond(rows: Rows, call: Row, lies: int) -> bool:
    """Did a commit of its incarnation tell so?"""
    return any(
        commit.detail == "corrected"
        and (commit.value or 0) > lies
        and same_incarnation(rows, commit, call)
        and began_before(commit, call)
        for commit in of(rows, Kind.COMMIT)
    )


def _may_have_been_handed_out(rows: Rows, call: Row) -> bool:
    """Was an answer lost that may have held messages of the lane?"""
    return any(
        row.outcome is Outcome.UNKNOWN
        and row.queue_offset is None
        and same_lane(row, call)
        and began_before(row, call)
        for row in of(rows, Kind.RECEIVE)
    )


def _given(rows: Rows, call: Row) -> list[Row]:
    """What says that somebody of the group was given a message of the lane before the call began."""
    return [
        row
        for row in of(rows, *GIVEN)
        if row.queue_offset is not None and same_lane(row, call) and began_before(row, call)
    ]


def _was_looked_up(rows: Rows, since: Row, call: Row) -> bool:
    """Did anybody look up, since then, where the group is to go on?"""
    return any(
        same_lane(look, call) and began_before(since, look) and began_before(look, call)
        for look in of(rows, Kind.FETCH_OFFSET)
    )


def _begins_with_the_first(config: Config) -> bool:
    return "consume_from" not in config.untold and config.consume_from == "first"


def _was_named(rows: Rows, call: Row, lies: int) -> bool:
    """Had a commit or a look-up named an offset above the message before the call began?"""
    return any(
        same_lane(row, call) and began_before(row, call) and (row.value or 0) > lies
        for row in took_effect(rows, Kind.COMMIT, Kind.FETCH_OFFSET)
    )
