"""What an operator's tools show of a broker: GET_BROKER_RUNTIME_INFO, GET_TOPIC_CONFIG and QUERY_TOPIC_CONSUME_BY_WHO.

The figures of the first are those that this broker has; of what it does not count (rates, waiting times of pools that
it has none of) it says nothing, or 0 where the tools can't do without.
Source: docs/sources.md#inquiry (AdminBrokerProcessor).
"""

from __future__ import annotations

from reference_impl.core.broker.config import version_name
from reference_impl.core.broker.parts import Parts, Refused
from reference_impl.core.io import ConnId, Effect
from reference_impl.protocol.bodies import encode_group_list, encode_table
from reference_impl.protocol.codes import ResponseCode
from reference_impl.protocol.command import Command
from reference_impl.protocol.headers import TopicStatsHeader

NO_POOL = {
    f"{pool}ThreadPoolQueue{what}": "0"
    for pool in ("send", "pull", "ack")
    for what in ("Size", "HeadWaitTimeMills")
}
"""Requests do not wait in pools here."""
NO_RATES = dict.fromkeys(("putTps", "getTransferredTps", "getTransferedTps"), "0.0 0.0 0.0")
"""Of the last 10, 60 and 600 s; 4.9 spells the last of them so, and its tool ends without it."""


class Overview:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._booted_ms: int | None = None

    def start(self, now_ms: int) -> None:
        self._booted_ms = now_ms

    def runtime(
        self, now_ms: int, conn: ConnId, request: Command, out: list[Effect]
    ) -> Command | None:
        """All values are text. Times in ms since the epoch, places of the log in bytes."""
        store, config = self._parts.store, self._parts.config
        firsts = (queue.get(queue.min_offset) for queue in store.queues().values())
        stored_ms = [message.store_ms for message in firsts if message is not None]
        table = {
            "brokerVersionDesc": version_name(config.dialect, config.release),
            "brokerVersion": str(request.reply(ResponseCode.SUCCESS).version),
            "brokerActive": "true",
            "bootTimestamp": str(now_ms if self._booted_ms is None else self._booted_ms),
            "commitLogMaxOffset": str(store.end),
            "earliestMessageTimeStamp": str(min(stored_ms, default=now_ms)),
            "msgPutTotalTodayNow": str(sum(queue.max_offset for queue in store.queues().values())),
            "pageCacheLockTimeMills": "0",
            **NO_POOL,
            **NO_RATES,
        }
        return request.reply(ResponseCode.SUCCESS, body=encode_table(table))

    def topic_config(
        self, now_ms: int, conn: ConnId, request: Command, out: list[Effect]
    ) -> Command | None:
        name = TopicStatsHeader.from_ext(request.ext).topic
        topic = self._parts.topics.find(name)
        if topic is None:
            raise Refused(ResponseCode.TOPIC_NOT_EXIST, f"No topic in this broker. topic: {name}")
        return request.reply(ResponseCode.SUCCESS, body=topic.encode())

    def consumed_by(
        self, now_ms: int, conn: ConnId, request: Command, out: list[Effect]
    ) -> Command | None:
        """The groups that have subscribed to the topic, or stored an offset of it."""
        topic = TopicStatsHeader.from_ext(request.ext).topic
        groups = {key.group for key in self._parts.offsets.snapshot() if key.topic == topic}
        groups |= {
            group
            for group in self._parts.members.names()
            if self._parts.members.subscription(group, topic)
        }
        return request.reply(ResponseCode.SUCCESS, body=encode_group_list(sorted(groups)))
