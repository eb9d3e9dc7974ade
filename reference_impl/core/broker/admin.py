"""Topics and groups: made, changed and deleted.

Fewer write queues, and later fewer read queues: producers leave the queues that are no longer in the route, consumers
read them until they are no longer to be read. Who lowers both at once loses sight of what still lies in the others; it
is there again when the number is raised.

A deleted topic takes its messages along, on 5.x the offsets that groups have stored for it as well; a deleted group
takes its offsets along where it is asked to. Consumers that go on are refused with TOPIC_NOT_EXIST; a group whose
members go on comes back with the broker's defaults, where groups are made on demand. Both are told to the recorder: the
end of each queue as a removal, each offset as an operator's reset to nothing (-1).
Source: docs/sources.md#topics (AdminBrokerProcessor).
"""

from __future__ import annotations

from reference_impl.core.broker.parts import Parts, Refused
from reference_impl.core.broker.retention import Retention
from reference_impl.core.broker.topics import is_valid_name
from reference_impl.core.io import ConnId, Effect, Note
from reference_impl.protocol.bodies import QUEUES_MAX, SubscriptionGroup, TopicConfig
from reference_impl.protocol.codes import ResponseCode
from reference_impl.protocol.command import Command
from reference_impl.protocol.headers import CreateTopicHeader, DeleteGroupHeader, TopicHeader
from specs.vocabulary import Kind, Level, Outcome


class Admin:
    def __init__(self, parts: Parts, retention: Retention) -> None:
        self._parts = parts
        self._retention = retention

    def put_topic(
        self, now_ms: int, conn: ConnId, request: Command, out: list[Effect]
    ) -> Command | None:
        header = CreateTopicHeader.from_ext(request.ext)
        if not is_valid_name(header.topic):
            raise Refused(
                ResponseCode.SYSTEM_ERROR, f"{header.topic[:40]!r} is no valid topic name"
            )
        self._check_not_reserved(header.topic)
        if not (
            0 <= header.read_queue_nums <= QUEUES_MAX and 0 <= header.write_queue_nums <= QUEUES_MAX
        ):
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

    def delete_topic(
        self, now_ms: int, conn: ConnId, request: Command, out: list[Effect]
    ) -> Command | None:
        """One that does not exist is answered as if it had: the operator has what was wanted."""
        name = TopicHeader.from_ext(request.ext).topic
        if not is_valid_name(name):
            raise Refused(ResponseCode.SYSTEM_ERROR, f"{name[:40]!r} is no valid topic name")
        self._check_not_reserved(name)
        self._retention.note(self._parts.topics.drop(name), out)
        if self._parts.config.rules.topic_takes_offsets:
            self._forget(out, topic=name)
        return request.reply(ResponseCode.SUCCESS)

    def _check_not_reserved(self, topic: str) -> None:
        if topic in self._parts.topics.reserved:
            raise Refused(
                self._parts.config.rules.missing_field,
                f"The topic[{topic}] is conflict with system topic.",
            )

    def delete_group(
        self, now_ms: int, conn: ConnId, request: Command, out: list[Effect]
    ) -> Command | None:
        header = DeleteGroupHeader.from_ext(request.ext)
        self._parts.groups.drop(header.group_name)
        if header.clean_offset:
            self._forget(out, group=header.group_name)
        return request.reply(ResponseCode.SUCCESS)

    def _forget(
        self, out: list[Effect], *, topic: str | None = None, group: str | None = None
    ) -> None:
        broker = self._parts.config.name
        for key, queue_id in self._parts.offsets.forget(topic=topic, group=group):
            lane = {"group": key.group, "topic": key.topic, "broker": broker, "queue_id": queue_id}
            out.append(Note(Kind.RESET, Outcome.OK, {"level": Level.WIRE, **lane, "value": -1}))

    def put_group(
        self, now_ms: int, conn: ConnId, request: Command, out: list[Effect]
    ) -> Command | None:
        group = SubscriptionGroup.decode(request.body)
        if not is_valid_name(group.group):
            raise Refused(ResponseCode.SYSTEM_ERROR, f"{group.group[:40]!r} is no valid group name")
        self._parts.groups.put(group)
        return request.reply(ResponseCode.SUCCESS)
