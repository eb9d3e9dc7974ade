"""What an operator asks: QUERY_MESSAGE, GET_CONSUME_STATS and GET_TOPIC_STATS_INFO.

A message is found by its unique key and by each word of its KEYS. What is looked through is remembered, topic by
topic, from the first question about it on; so the first one about a topic reads all of its queues, and later ones
only what has come since. The newest messages that match are answered, by their place in the log.
Source: docs/sources.md#inquiry (QueryMessageProcessor, AdminBrokerProcessor).
"""

from __future__ import annotations

from reference_impl.core.broker.parts import Parts, Refused
from reference_impl.core.io import ConnId, Effect
from reference_impl.protocol.bodies import ConsumeStats, OffsetLag, QueueSpan, encode_topic_stats
from reference_impl.protocol.codes import ResponseCode
from reference_impl.protocol.command import Command
from reference_impl.protocol.headers import ConsumeStatsHeader, QueryMessageHeader, TopicStatsHeader
from reference_impl.protocol.message import PROPERTY_KEYS, StoredMessage, encode
from specs.vocabulary import Queue

UNIQUE_KEY_QUERY = "_UNIQUE_KEY_QUERY"
"""A field of the request: `true` asks for the unique key, with the broker's own limit."""
UNIQUE_KEY_MAX = 32
ANSWERED_MAX = 64


def keys_of(message: StoredMessage) -> set[str]:
    """All keys by which the message can be asked for."""
    keys = set(message.properties.get(PROPERTY_KEYS, "").split())
    if message.message_id:
        keys.add(message.message_id)
    return keys


class Inquiry:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._seen: dict[tuple[str, int], int] = {}  # the next offset to be looked at, by topic and queue
        self._places: dict[tuple[str, str], list[int]] = {}  # in the log, by topic and key

    def query(self, now_ms: int, conn: ConnId, request: Command, out: list[Effect]) -> Command | None:
        header = QueryMessageHeader.from_ext(request.ext)
        by_unique_key = request.ext.get(UNIQUE_KEY_QUERY) == "true"
        limit = UNIQUE_KEY_MAX if by_unique_key else min(header.max_num, ANSWERED_MAX)
        self._look(header.topic)
        found: list[StoredMessage] = []
        for place in sorted(self._places.get((header.topic, header.key), ()), reverse=True):
            message = self._parts.store.at(place)
            # Retention, or a request of which a part did not fit, may have taken it since.
            if message is None or message.topic != header.topic or header.key not in keys_of(message):
                continue
            if len(found) < limit and header.begin_timestamp <= message.store_ms <= header.end_timestamp:
                found.append(message)
        if not found:
            raise Refused(ResponseCode.QUERY_NOT_FOUND, "can not find message, maybe time range not correct")
        body = b"".join(encode(message) for message in reversed(found))
        last = found[0]
        ext = {
            "indexLastUpdateTimestamp": str(last.store_ms),
            "indexLastUpdatePhyoffset": str(last.physical_offset),
        }
        return request.reply(ResponseCode.SUCCESS, ext, body)

    def _look(self, topic: str) -> None:
        """Take in what came to the topic since the last question about it."""
        for (name, queue_id), queue in self._parts.store.queues().items():
            if name == topic:
                start = max(self._seen.get((topic, queue_id), 0), queue.min_offset)
                for offset in range(start, queue.max_offset):
                    message = queue.get(offset)
                    if message is not None:
                        for key in keys_of(message):
                            self._places.setdefault((topic, key), []).append(message.physical_offset)
                self._seen[topic, queue_id] = queue.max_offset

    # ------------------------------------------------------------ figures

    def consume_stats(self, now_ms: int, conn: ConnId, request: Command, out: list[Effect]) -> Command | None:
        """How far the group is in each queue of a topic (or of all topics of which it stored an offset)."""
        header = ConsumeStatsHeader.from_ext(request.ext)
        group, stored = header.consumer_group, self._parts.offsets.snapshot()
        topics = [header.topic] if header.topic else sorted(key.topic for key in stored if key.group == group)
        lags: dict[Queue, OffsetLag] = {}
        for topic in topics:
            config = self._parts.topics.find(topic)
            for queue_id in range(config.read_queues if config is not None else 0):
                queue = self._parts.store.queue(topic, queue_id)
                consumed = self._parts.offsets.fetch(now_ms, group, topic, queue_id) or 0
                last = queue.get(consumed - 1)
                name = Queue(topic, self._parts.config.name, queue_id)
                lags[name] = OffsetLag(queue.max_offset, consumed, 0 if last is None else last.store_ms)
        return request.reply(ResponseCode.SUCCESS, body=ConsumeStats(lags).encode())

    def topic_stats(self, now_ms: int, conn: ConnId, request: Command, out: list[Effect]) -> Command | None:
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
