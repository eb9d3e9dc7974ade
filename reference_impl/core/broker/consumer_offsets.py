"""QUERY_CONSUMER_OFFSET, UPDATE_CONSUMER_OFFSET and the operator's reset, and when offsets go to disk.

A missing offset of a queue that still holds its first message is answered 0, so a group that is new to a young
topic misses nothing, whatever it says about where to start. Where the queue is empty the dialects differ.

A reset (INVOKE_BROKER_TO_RESET_OFFSET) has one of two forms, by the dialect.

| | 5.x: by the broker | 4.9: by the clients |
|---|---|---|
| it is about | one queue, or all of the topic | all of the topic |
| it names | an offset, or a time: the first message stored then or later, -1 the end | a time; ahead only by force |
| it needs | the topic and the group | the topic, an offset stored for every queue, a member online |
| then | it is stored, and no commit moves it until the group's next pull of the queue | every member is told |

A member that is told (RESET_CONSUMER_CLIENT_OFFSET) moves the offsets of its own lanes, by commits like any other.

Source: docs/sources.md#offsets (ConsumerManageProcessor, ConsumerOffsetManager, Broker2Client).
"""

from __future__ import annotations

from collections.abc import Mapping

from reference_impl.core.broker.log import StoreFull
from reference_impl.core.broker.parts import Parts, Refused
from reference_impl.core.io import ConnId, Effect, Note, Send, SetTimer
from reference_impl.protocol.bodies import encode_reset_offsets
from reference_impl.protocol.codes import RequestCode, ResponseCode
from reference_impl.protocol.command import FLAG_ONEWAY, Command
from reference_impl.protocol.headers import (
    OffsetResponse,
    QueryConsumerOffsetHeader,
    ResetOffsetHeader,
    UpdateConsumerOffsetHeader,
)
from specs.vocabulary import Kind, Level, Outcome, Queue

PERSIST_TIMER = "offsets"


class ConsumerOffsets:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._told = 0

    def query(
        self, now_ms: int, conn: ConnId, request: Command, out: list[Effect]
    ) -> Command | None:
        header = QueryConsumerOffsetHeader.from_ext(request.ext)
        offset = self.fetch(now_ms, header)
        if offset is None:
            return self.not_found(request, header)
        return request.reply(ResponseCode.SUCCESS, OffsetResponse(offset).to_ext())

    def fetch(self, now_ms: int, header: QueryConsumerOffsetHeader) -> int | None:
        """What is stored, or the 0 that stands in for it; None when the answer is "not found"."""
        stored = self._parts.offsets.fetch(
            now_ms, header.consumer_group, header.topic, header.queue_id
        )
        return self.when_missing(header) if stored is None else stored

    def when_missing(self, header: QueryConsumerOffsetHeader) -> int | None:
        rules = self._parts.config.rules
        if rules.zero_flag_is_read and header.set_zero_if_not_found is False:
            return None
        queue = self._parts.store.queue(header.topic, header.queue_id)
        if queue.max_offset == 0:
            return 0 if rules.empty_queue_offset_is_zero else None
        return 0 if queue.min_offset == 0 else None

    def not_found(self, request: Command, header: QueryConsumerOffsetHeader) -> Command:
        remark = f"no offset of {header.consumer_group} for {header.topic} {header.queue_id}"
        return request.reply(ResponseCode.QUERY_NOT_FOUND, remark=remark)

    def update(
        self, now_ms: int, conn: ConnId, request: Command, out: list[Effect]
    ) -> Command | None:
        header = UpdateConsumerOffsetHeader.from_ext(request.ext)
        if self._parts.config.rules.commit_checks:
            self.check(header)
        if header.queue_id is None or header.commit_offset is None:
            raise Refused(
                self._parts.config.rules.missing_field, "queueId and commitOffset are both needed"
            )
        self._parts.offsets.commit(
            now_ms, header.consumer_group, header.topic, header.queue_id, header.commit_offset
        )
        return request.reply(ResponseCode.SUCCESS)

    def check(self, header: UpdateConsumerOffsetHeader) -> None:
        if not self._parts.groups.exists(header.consumer_group):
            raise Refused(
                ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
                f"group {header.consumer_group} does not exist",
            )
        if self._parts.topics.find(header.topic) is None:
            raise Refused(ResponseCode.TOPIC_NOT_EXIST, f"topic {header.topic} does not exist")

    # ------------------------------------------------------------ an operator's word

    def reset(
        self, now_ms: int, conn: ConnId, request: Command, out: list[Effect]
    ) -> Command | None:
        header = ResetOffsetHeader.from_ext(request.ext)
        if self._parts.config.rules.server_side_reset:
            moved = self.reset_here(header)
        else:
            moved = self.reset_by_clients(now_ms, header, out)
        return request.reply(ResponseCode.SUCCESS, body=self.reset_body(header.topic, moved))

    def reset_body(self, topic: str, moved: Mapping[int, int]) -> bytes:
        name = self._parts.config.name
        return encode_reset_offsets(
            {Queue(topic, name, number): value for number, value in moved.items()}
        )

    def reset_here(self, header: ResetOffsetHeader) -> dict[int, int]:
        """The broker's own reset. The new offset by queue id."""
        topic = self._parts.topics.find(header.topic)
        if topic is None:
            raise Refused(ResponseCode.TOPIC_NOT_EXIST, f"Topic {header.topic} does not exist")
        if not self._parts.groups.exists(header.group):
            raise Refused(
                ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"Group {header.group} does not exist"
            )
        asked = header.queue_id
        queue_ids = (
            range(topic.read_queues) if asked is None or asked < 0 else range(asked, asked + 1)
        )
        if not queue_ids:
            raise Refused(ResponseCode.SYSTEM_ERROR, "No queues to reset.")
        named = header.offset if asked is not None and asked >= 0 else None
        moved = {queue_id: self.reset_target(header, queue_id, named) for queue_id in queue_ids}
        for queue_id, offset in moved.items():
            self._parts.offsets.reset(header.group, header.topic, queue_id, offset)
        return moved

    def reset_by_clients(
        self, now_ms: int, header: ResetOffsetHeader, out: list[Effect]
    ) -> dict[int, int]:
        """Tells every member where to go on; what comes of it is theirs. The told offset by queue id."""
        topic = self._parts.topics.find(header.topic)
        if topic is None:
            raise Refused(
                ResponseCode.SYSTEM_ERROR, f"no topic in this broker. topic={header.topic}"
            )
        told: dict[int, int] = {}
        for queue_id in range(topic.write_queues):
            stored = self._parts.offsets.fetch(now_ms, header.group, header.topic, queue_id)
            if stored is None:
                raise Refused(
                    ResponseCode.SYSTEM_ERROR, f"the consumer group {header.group} does not exist"
                )
            target = self.reset_target(header, queue_id, None)
            told[queue_id] = target if header.is_force or target < stored else stored
        members = self._parts.members.all_connections(header.group)
        if not members:
            why = f"consumer not online, so its offset can't be reset: {header.group}"
            raise Refused(ResponseCode.CONSUMER_NOT_ONLINE, why)
        ext = ResetOffsetHeader(header.topic, header.group, header.timestamp).to_ext()
        body = self.reset_body(header.topic, told)
        for conn in members:
            self._told += 1
            code = RequestCode.RESET_CONSUMER_CLIENT_OFFSET
            out.append(
                Send(conn, Command(code, ext, body=body, opaque=self._told, flag=FLAG_ONEWAY))
            )
        return told

    def reset_target(self, header: ResetOffsetHeader, queue_id: int, named: int | None) -> int:
        """Where the group is to go on: at the named offset, else at the time (negative: at the end)."""
        queue = self._parts.store.queue(header.topic, queue_id)
        if named is not None and named != -1:
            if not queue.min_offset <= named <= queue.max_offset + 1:
                span = f"[{queue.min_offset}-{queue.max_offset}]"
                raise Refused(
                    ResponseCode.SYSTEM_ERROR,
                    f"Target offset {named} not in consume queue range {span}",
                )
            return named
        if header.timestamp < 0:
            return queue.max_offset
        return self._parts.store.search(header.topic, queue_id, header.timestamp)

    # ------------------------------------------------------------ to disk

    def start(self, out: list[Effect]) -> None:
        out.append(SetTimer(PERSIST_TIMER, self._parts.config.persist_first_ms))

    def persist_in_turn(self, out: list[Effect]) -> None:
        """The interval is over: write the offsets, and set the next."""
        self.persist(out)
        out.append(SetTimer(PERSIST_TIMER, self._parts.config.persist_ms))

    def persist(self, out: list[Effect]) -> None:
        snapshot = self._parts.offsets.snapshot()
        try:
            self._parts.store.save_offsets(snapshot)
        except StoreFull:  # those of an earlier turn stay
            return
        self._parts.store.settle()
        out.append(
            Note(
                Kind.PERSIST,
                Outcome.OK,
                {
                    "level": Level.STORE,
                    "broker": self._parts.config.name,
                    "broker_epoch": self._parts.store.epoch,
                    "value": sum(len(queues) for queues in snapshot.values()),
                },
            )
        )
