"""The final drain: every queue of a broker read to its end, as a pull of a client named `drain` would see it.

One marker row for each queue (kind READ, no offset, value = the offset up to which it was read) that begins before
the first read and ends after the last, and one row for each message found. `wall_us` of a message's row is when
the broker stored it. A queue whose oldest messages are no longer kept is read from its minimum on; whether they may
be missing is for the judges to say, who heard of the removal. Rows of a retry or dead-letter topic carry the group
that it belongs to, and as `view` the topic that the copy names as its origin's.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

from reference_impl.core.broker.broker import Broker
from reference_impl.core.io import Closed, Effect, Opened, Received, Send
from reference_impl.protocol.codes import RequestCode, ResponseCode
from reference_impl.protocol.command import Command
from reference_impl.protocol.headers import DEFAULT_TOPIC, PERM_READ, PULL_SUBSCRIPTION, PullHeader
from reference_impl.protocol.message import (
    PROPERTY_RETRY_TOPIC,
    StoredMessage,
    decode_all,
    own_properties,
)
from specs.history.hashes import props_hash
from specs.history.journal import MemoryRecorder
from specs.vocabulary import SCHEDULE_TOPIC, Kind, Level, Outcome, dead_letter_topic, group_of

DRAIN = "drain"
_CONNECTION = "drain"
_READ_MAX = 32
_AT_THE_END = frozenset(
    {ResponseCode.PULL_NOT_FOUND, ResponseCode.PULL_OFFSET_MOVED, ResponseCode.TOPIC_NOT_EXIST}
)


SETTLED = {"detail": "settled"}
"""Marks a reading before which nothing was left to happen: see docs/history.md."""


def drain_broker(
    broker: Broker, now_ms: int, recorder: MemoryRecorder, *, settled: bool = False
) -> None:
    """Read all queues of all readable topics, and every group's dead letters. now_ms: the broker's wall clock."""
    mark = SETTLED if settled else {}
    broker.handle(now_ms, Opened(_CONNECTION, "10.0.3.1:50000"))
    for group in sorted(broker.store.groups.keys() - {DRAIN}):
        # No such topic: nobody's message was ever given up there, and that is to be seen.
        if dead_letter_topic(group) not in broker.store.topics:
            _drain_queue(broker, now_ms, dead_letter_topic(group), 0, recorder, mark)
    for topic in sorted(broker.store.topics):
        config = broker.store.topics[topic]
        if (
            topic != SCHEDULE_TOPIC
            and config.perm & PERM_READ
            and not _is_bare_template(broker, topic)
        ):
            for queue_id in range(config.read_queues):
                _drain_queue(broker, now_ms, topic, queue_id, recorder, mark)
    broker.handle(now_ms, Closed(_CONNECTION))


def _is_bare_template(broker: Broker, topic: str) -> bool:
    """One of the topics that every broker has by itself, and to which nobody has sent anything."""
    if topic not in (DEFAULT_TOPIC, broker.config.cluster, broker.config.name):
        return False
    queues = range(broker.store.topics[topic].read_queues)
    return all(broker.store.queue(topic, queue_id).max_offset == 0 for queue_id in queues)


def _drain_queue(
    broker: Broker,
    now_ms: int,
    topic: str,
    queue_id: int,
    recorder: MemoryRecorder,
    mark: Mapping[str, Any],
) -> None:
    fields: dict[str, Any] = {
        "process": DRAIN,
        "client_id": DRAIN,
        "level": Level.WIRE,
        "group": group_of(topic),
        "topic": topic,
        "broker": broker.config.name,
        "broker_epoch": broker.store.epoch,
        "queue_id": queue_id,
    }
    op = (DRAIN, broker.config.name, topic, queue_id)
    recorder.begin(op, Kind.READ, fields)
    offset = 0
    while True:
        header = PullHeader(
            DRAIN, topic, queue_id, offset, _READ_MAX, PULL_SUBSCRIPTION, subscription="*"
        )
        answer = _ask(broker, now_ms, Command(RequestCode.PULL_MESSAGE, header.to_ext()))
        if answer is not None and answer.code == ResponseCode.PULL_OFFSET_MOVED:
            start = int(answer.ext["nextBeginOffset"])
            if start > offset:  # the oldest messages are no longer kept
                offset = start
                continue
        if answer is None or answer.code != ResponseCode.SUCCESS:
            break
        for message in decode_all(answer.body):
            recorder.note(Kind.READ, Outcome.OK, {**fields, **_found(message, broker)})
        offset = max(offset + 1, int(answer.ext["nextBeginOffset"]))
    ended = answer is not None and answer.code in _AT_THE_END
    recorder.end(op, Outcome.OK if ended else Outcome.REFUSED, {"value": offset, **mark})


def _ask(broker: Broker, now_ms: int, command: Command) -> Command | None:
    effects: list[Effect] = broker.handle(now_ms, Received(_CONNECTION, command))
    for effect in effects:
        if isinstance(effect, Send) and effect.conn == _CONNECTION:
            return effect.command
    return None


def _found(message: StoredMessage, broker: Broker) -> dict[str, Any]:
    return {
        "queue_offset": message.queue_offset,
        "message_id": message.message_id or message.offset_id,
        "origin_id": broker.storing.origin_of(message),
        "sharding_key": message.sharding_key,
        "reconsume_times": message.reconsume_times,
        "body_hash": zlib.crc32(message.body),
        "props_hash": props_hash(own_properties(message.properties)),
        "tags": message.tags,
        "delay_level": message.delay_level,
        "wall_us": message.store_ms * 1000,
        "view": message.properties.get(PROPERTY_RETRY_TOPIC)
        if group_of(message.topic) is not None
        else None,
    }
