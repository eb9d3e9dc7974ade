"""UPDATE_AND_CREATE_TOPIC and UPDATE_AND_CREATE_SUBSCRIPTIONGROUP."""

from __future__ import annotations

from reference_impl.core.broker.parts import Parts, Refused
from reference_impl.core.broker.topics import SEND_FORBIDDEN, is_valid_name
from reference_impl.core.io import ConnId, Effect
from reference_impl.protocol.bodies import QUEUES_MAX, SubscriptionGroup, TopicConfig
from reference_impl.protocol.codes import ResponseCode
from reference_impl.protocol.command import Command
from reference_impl.protocol.headers import CreateTopicHeader


class Admin:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def put_topic(self, now_ms: int, conn: ConnId, request: Command, out: list[Effect]) -> Command | None:
        header = CreateTopicHeader.from_ext(request.ext)
        if not is_valid_name(header.topic):
            raise Refused(ResponseCode.SYSTEM_ERROR, f"{header.topic[:40]!r} is no valid topic name")
        if header.topic in SEND_FORBIDDEN:
            raise Refused(ResponseCode.SYSTEM_ERROR, f"topic {header.topic} belongs to the system")
        if not (0 <= header.read_queue_nums <= QUEUES_MAX and 0 <= header.write_queue_nums <= QUEUES_MAX):
            raise Refused(ResponseCode.SYSTEM_ERROR, f"a topic has 0 to {QUEUES_MAX} queues")
        self._parts.topics.put(
            TopicConfig(
                header.topic,
                header.read_queue_nums,
                header.write_queue_nums,
                header.perm,
                header.topic_sys_flag,
                header.order,
            )
        )
        return request.reply(ResponseCode.SUCCESS)

    def put_group(self, now_ms: int, conn: ConnId, request: Command, out: list[Effect]) -> Command | None:
        group = SubscriptionGroup.decode(request.body)
        if not is_valid_name(group.group):
            raise Refused(ResponseCode.SYSTEM_ERROR, f"{group.group[:40]!r} is no valid group name")
        self._parts.groups.put(group)
        return request.reply(ResponseCode.SUCCESS)
