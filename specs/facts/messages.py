"""Messages: what is known to lie in a queue, since when it can't be lost, and who was given it.

Known is a message by its send: acknowledged, at an offset, plain: neither half a transaction nor delayed, and of a
producer that sends no halves to the queue.

What was sent before a broker died (a crash, or a new epoch) may be lost. Of another system than RocketMQ what was sent
before a fault ended or a broker stood still may be, for it may keep its messages on several nodes; and of each key the
last message only may be kept, where it tells neither `compaction` as false nor `cleanup.policy` as `delete`.
"""

import numpy as np

from specs.facts.columns import MS, NEVER, NO_TEXT, NONE, NOWHERE, Ints, Mask
from specs.facts.moments import Line
from specs.facts.rows import Rows
from specs.facts.segments import chosen, dense, distinct, first_above, positions
from specs.facts.stored import copies, delayed, halves
from specs.plan.config import ROCKETMQ, Config
from specs.vocabulary import Kind, Outcome

GIVEN = frozenset({Kind.DELIVER, Kind.RECEIVE, Kind.ACK, Kind.RELEASE, Kind.DEAD_LETTER})
"""The kinds of rows of a lane that say of a message that somebody was given it."""
MESSAGE_COLUMNS = ("delay_level", "detail", "message_id", "sharding_key")


class Messages:
    """What is known to lie in each queue, and when it was first given to a lane. at: the sends, by queue and offset."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        halved = halves(rows)
        producers = dense(rows.queue, rows.client)[0]
        plain = rows.are(Kind.SEND) & rows.ended_as(Outcome.OK) & (rows.offset >= 0)
        plain &= ~(delayed(rows) | copies(rows) | np.isin(producers, producers[halved]))
        at = positions(plain)
        self.at = at[np.lexsort((-rows.begin[at], rows.offset[at], rows.queue[at]))]
        given = positions(rows.are(*GIVEN) & (rows.offset >= 0))
        self._offsets = distinct(rows.offset[given])
        keys = self._key(rows.lane[given], rows.offset[given])
        order = np.lexsort((rows.begin[given], keys))
        self._given, self._keys = given[order], keys[order]
        by_id = rows.are(*GIVEN) & (rows.offset == NONE) & (rows.text("message_id") != NO_TEXT)
        by_name = self._name(rows.lane, rows.text("message_id"))
        self._by_id = Line(by_name, rows.begin, positions(by_id))

    def _key(self, lane: Ints, offset: Ints) -> Ints:
        return lane * (len(self._offsets) + 1) + np.searchsorted(self._offsets, offset)

    def _name(self, lane: Ints, message: Ints) -> Ints:
        return lane * (len(self.rows.words("message_id")) + 1) + message

    def given_before(self, lane: Ints, sent: Ints, moment: Ints) -> Mask:
        """Had anybody of the lane been given the message of each send, before the moment?"""
        offset = self.rows.offset[sent]
        name = self._name(lane, self.rows.text("message_id")[sent])
        place = np.searchsorted(self._keys, self._key(lane, offset))
        first = chosen(self._given, np.where(place < len(self._given), place, NOWHERE), NOWHERE)
        same = (first != NOWHERE) & (self.rows.lane[first] == lane)
        same &= self.rows.offset[first] == offset
        found: Mask = same & (self.rows.begin[first] < moment)
        return found | (self._by_id.count_before(name, moment) > 0)

    def between(self, queue: Ints, low: Ints, high: Ints) -> tuple[Ints, Ints]:
        """The places start..stop-1 of `at` of each queue's messages from one offset on and below another."""
        of, offset = self.rows.queue[self.at], self.rows.offset[self.at]
        start, stop = (first_above(of, offset, queue, each - 1) for each in (low, high))
        return start, np.maximum(start, stop)


def safe_since(rows: Rows, call: int) -> int:
    """Since when (a seq) nothing may have been lost that was sent to the call's queue, when it began."""
    context, now = rows.context_of(call), int(rows.begin[call])
    lost = [
        seq
        for broker in {*context.broker_died, *context.epochs}
        for seq in context.deaths_of(broker)
    ]
    return max((seq for seq in lost if seq <= now), default=NONE)


def may_be_compacted(rows: Rows, message: Ints) -> Mask:
    """May only the last message of its key be left, and this one is none?"""
    keeps = rows.of_runs(lambda context: _keeps_all(context.info.config), message) != 0
    key = dense(rows.queue, rows.text("sharding_key"))[0]
    count = int(key.max(initial=0)) + 1
    furthest, latest = np.full((2, count), NONE, np.int64)
    keyed = positions(rows.text("sharding_key") != NO_TEXT)
    np.maximum.at(furthest, key[keyed], rows.offset[keyed])
    sends = keyed[rows.are(Kind.SEND)[keyed] & (rows.offset[keyed] < 0)]  # nobody knows where
    refused = rows.ended_as(Outcome.REFUSED)[sends]
    np.maximum.at(latest, key[sends], np.where(refused, rows.begin[sends], NEVER))
    again = furthest[key[message]] > rows.offset[message]
    again |= latest[key[message]] > rows.begin[message]
    found: Mask = ~keeps & (rows.text("sharding_key")[message] != NO_TEXT)
    for index, row in enumerate(message.tolist()):
        its = rows.queue_of(row), rows.name_of("sharding_key", row)
        again[index] |= rows.context_of(row).may_hold_astray(*its)
    return found & again


def may_be_lost(rows: Rows, message: Ints, beyond: Ints) -> Mask:
    """May several nodes have lost it, or was it kept for its time?"""
    found = np.zeros(len(message), np.bool_)
    for index, (sent, call) in enumerate(zip(message.tolist(), beyond.tolist(), strict=True)):
        context, now = rows.context_of(call), int(rows.begin[call])
        config = context.info.config
        sent_us = int(rows.started[sent]) - context.info.clock_bound_us
        keep_ms = config.keep_ms or config.counts("retention.ms")
        old = bool(keep_ms) and int(rows.started[call]) - sent_us >= keep_ms * MS
        troubled = config.system != ROCKETMQ and (
            any(
                fault.seq_begin <= now and (fault.ended_us is None or fault.ended_us >= sent_us)
                for fault in context.faults
            )
            or any(
                context.broker_paused_since(broker, sent_us, now)
                for broker in context.broker_paused
            )
        )
        found[index] = old or troubled
    return found


def _keeps_all(config: Config) -> bool:
    told = config.says("compaction") is False or config.says("cleanup.policy") == "delete"
    return config.system == ROCKETMQ or told
