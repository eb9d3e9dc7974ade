"""What an operator asks: QUERY_MESSAGE, GET_CONSUME_STATS and GET_TOPIC_STATS_INFO.

A message is found by its unique key and by each word of its KEYS. The newest messages that match are answered, by
their place in the log; where many match by their hash and not by their times, only so many are looked at.
Source: docs/sources.md#inquiry (QueryMessageProcessor, AdminBrokerProcessor).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from reference_impl.core.broker.key_index import keys_of
from reference_impl.core.broker.parts import Parts, Refused
from reference_impl.core.io import ConnId, Effect
from reference_impl.protocol.bodies import ConsumeStats, OffsetLag, QueueSpan, encode_topic_stats
from reference_impl.protocol.codes import ResponseCode
from reference_impl.protocol.command import Command
from reference_impl.protocol.headers import ConsumeStatsHeader, QueryMessageHeader, TopicStatsHeader
from reference_impl.protocol.message import StoredMessage, encode
from specs.vocabulary import Queue

UNIQUE_KEY_QUERY = "_UNIQUE_KEY_QUERY"
"""A field of the request: `true` asks for the unique key, with the broker's own limit."""
UNIQUE_KEY_MAX = 32
ANSWERED_MAX = 64
LOOKED_AT_MAX = 4_096
"""So many messages are read for one question: the others of a broker wait meanwhile."""


class Inquiry:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def query(
        self, now_ms: int, conn: ConnId, request: Command, out: list[Effect]
    ) -> Command | None:
        header = QueryMessageHeader.from_ext(request.ext)
        by_unique_key = request.ext.get(UNIQUE_KEY_QUERY) == "true"
        limit = UNIQUE_KEY_MAX if by_unique_key else min(header.max_num, ANSWERED_MAX)
        found: list[StoredMessage] = []
        window = (header.begin_timestamp, header.end_timestamp)
        places = self._parts.store.keys.find(header.topic, header.key, *window)
        for place in _once(islice(places, LOOKED_AT_MAX)):
            if len(found) >= limit:
                break
            message = self._parts.store.at(place)
            # Two keys may share a hash, and retention, or a request of which a part did not fit, may have taken it.
            if (
                message is None
                or message.topic != header.topic
                or header.key not in keys_of(message)
            ):
                continue
            if window[0] <= message.store_ms <= window[1]:
                found.append(message)
        if not found:
            raise Refused(
                ResponseCode.QUERY_NOT_FOUND, "can not find message, maybe time range not correct"
            )
        body = b"".join(encode(message) for message in reversed(found))
        last = found[0]
        ext = {
            "indexLastUpdateTimestamp": str(last.store_ms),
            "indexLastUpdatePhyoffset": str(last.physical_offset),
        }
        return request.reply(ResponseCode.SUCCESS, ext, body)

    # ------------------------------------------------------------ figures

    def consume_stats(
        self, now_ms: int, conn: ConnId, request: Command, out: list[Effect]
    ) -> Command | None:
        """How far the group is in each queue of a topic (or of all topics of which it stored an offset)."""
        header = ConsumeStatsHeader.from_ext(request.ext)
        group, stored = header.consumer_group, self._parts.offsets.snapshot()
        topics = (
            [header.topic]
            if header.topic
            else sorted(key.topic for key in stored if key.group == group)
        )
        lags: dict[Queue, OffsetLag] = {}
        for topic in topics:
            config = self._parts.topics.find(topic)
            for queue_id in range(config.read_queues if config is not None else 0):
                queue = self._parts.store.queue(topic, queue_id)
                consumed = self._parts.offsets.fetch(now_ms, group, topic, queue_id) or 0
                last = queue.get(consumed - 1)
                name = Queue(topic, self._parts.config.name, queue_id)
                asked = self._parts.pulled.get((group, topic, queue_id), 0)
                pulled = max(consumed, min(asked, queue.max_offset))
                lags[name] = OffsetLag(
                    queue.max_offset, consumed, 0 if last is None else last.store_ms, pulled
                )
        return request.reply(ResponseCode.SUCCESS, body=ConsumeStats(lags).encode())

    def topic_stats(
        self, now_ms: int, conn: ConnId, request: Command, out: list[Effect]
    ) -> Command | None:
        """From where to where each queue of the topic goes, and when it got its last message."""
        topic = TopicStatsHeader.from_ext(request.ext).topic
        config = self._parts.topics.find(topic)
        if config is None:
            raise Refused(ResponseCode.TOPIC_NOT_EXIST, f"topic[{topic}] not exist")
        spans: dict[Queue, QueueSpan] = {}
        for queue_id in range(max(config.write_queues, config.read_queues)):
            queue = self._parts.store.queue(topic, queue_id)
            last = queue.get(queue.max_offset - 1)
            updated_ms = 0 if last is None else last.store_ms
            name = Queue(topic, self._parts.config.name, queue_id)
            spans[name] = QueueSpan(queue.min_offset, queue.max_offset, updated_ms)
        return request.reply(ResponseCode.SUCCESS, body=encode_topic_stats(spans))


def _once(places: Iterable[int]) -> Iterator[int]:
    """What was taken back may have left its place in the index to another message."""
    seen: set[int] = set()
    for place in places:
        if place not in seen:
            seen.add(place)
            yield place
