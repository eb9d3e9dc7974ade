"""SEND_MESSAGE, SEND_MESSAGE_V2 and SEND_BATCH_MESSAGE.

Checks come first, in RocketMQ's order, then the diversion of exhausted messages to the dead letters, then the
log. Nothing asks who holds which lease, except the 5.x rule of the diversion.
Source: docs/sources.md#send (SendMessageProcessor, AbstractSendMessageProcessor).
"""

from __future__ import annotations

from collections.abc import Sequence

from reference_impl.core.broker.diversion import Diversion
from reference_impl.core.broker.log import Draft
from reference_impl.core.broker.parts import Parts, Refused
from reference_impl.core.broker.storing import Storing
from reference_impl.core.broker.topics import SEND_FORBIDDEN, is_valid_name
from reference_impl.core.broker.transactions import Transactions
from reference_impl.core.io import ConnId, Effect
from reference_impl.protocol.bodies import TopicConfig
from reference_impl.protocol.codes import ResponseCode
from reference_impl.protocol.command import Command
from reference_impl.protocol.headers import PERM_WRITE, SendHeader
from reference_impl.protocol.message import (
    MAX_PROPERTIES_BYTES,
    PROPERTY_TRANSACTION_PREPARED,
    PROPERTY_UNIQ_KEY,
    SYS_COMMIT,
    SYS_PREPARED,
    StoredMessage,
    decode_batch,
    ip_port,
    offset_message_id,
)
from specs.vocabulary import RETRY_PREFIX

_OK = {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}


class Sending:
    """diversion: what becomes of a message for a retry topic."""

    def __init__(self, parts: Parts, storing: Storing, diversion: Diversion) -> None:
        self._parts = parts
        self._storing = storing
        self._diversion = diversion
        self.transactions = Transactions(parts, storing)

    def send(
        self, now_ms: int, conn: ConnId, request: Command, out: list[Effect]
    ) -> Command | None:
        return self._send(now_ms, conn, request, SendHeader.from_ext(request.ext), out)

    def send_v2(
        self, now_ms: int, conn: ConnId, request: Command, out: list[Effect]
    ) -> Command | None:
        return self._send(now_ms, conn, request, SendHeader.from_ext_v2(request.ext), out)

    def _send(
        self, now_ms: int, conn: ConnId, request: Command, header: SendHeader, out: list[Effect]
    ) -> Command | None:
        topic = self.check(header, request.body)
        queue_id = (
            header.queue_id
            if header.queue_id >= 0
            else self._parts.choose_queue(topic.write_queues)
        )
        if header.batch:
            return self._send_batch(now_ms, conn, request, header, queue_id, out)
        draft = Draft(
            header.topic,
            queue_id,
            request.body,
            header.property_map,
            header.flag,
            header.sys_flag,
            header.born_timestamp,
            ip_port(self._parts.peers.get(conn, "")),
            header.reconsume_times or 0,
        )
        if header.topic.startswith(RETRY_PREFIX):
            self._diversion.divert(now_ms, draft, header.max_reconsume_times, request.version)
        transaction = self._add_unique_key(draft)
        queue_id = (
            draft.queue_id
        )  # of a delayed message: the one it is meant for, though it waits in another
        if self.transactions.is_half(draft):
            stored = self.transactions.prepare(now_ms, draft, out)
        else:
            stored = self.accept(now_ms, draft, out)
        return request.reply(
            ResponseCode.SUCCESS,
            {
                **_OK,
                "msgId": stored.offset_id,
                "queueId": str(queue_id),
                "queueOffset": str(stored.queue_offset),
                **transaction,
            },
        )

    def accept(self, now_ms: int, draft: Draft, out: list[Effect]) -> StoredMessage:
        """Store a message that passed every check; what is answered is what this returns."""
        return self._storing.store(now_ms, draft, out)

    def _send_batch(
        self,
        now_ms: int,
        conn: ConnId,
        request: Command,
        header: SendHeader,
        queue_id: int,
        out: list[Effect],
    ) -> Command:
        """All parts or none: every part is read before the first is stored, and nothing comes between them."""
        if header.topic.startswith(RETRY_PREFIX):
            raise Refused(ResponseCode.MESSAGE_ILLEGAL, "a batch can't go to a retry topic")
        drafts = [
            Draft(
                header.topic,
                queue_id,
                part.body,
                dict(part.properties),
                part.flag,
                header.sys_flag,
                header.born_timestamp,
                ip_port(self._parts.peers.get(conn, "")),
            )
            for part in decode_batch(request.body)
        ]
        if not drafts:
            raise Refused(ResponseCode.MESSAGE_ILLEGAL, "an empty batch")
        if any(self._storing.delay_level(draft) > 0 for draft in drafts):
            raise Refused(ResponseCode.MESSAGE_ILLEGAL, "a batch can't be delayed")
        for number, draft in enumerate(drafts, 1):
            self._add_unique_key(draft)
            draft.prepared_transaction_offset = number - len(drafts)
        stored = self.accept_batch(now_ms, drafts, out)
        return request.reply(
            ResponseCode.SUCCESS,
            {
                **_OK,
                "msgId": ",".join(message.offset_id for message in stored),
                "queueId": str(queue_id),
                "queueOffset": str(stored[0].queue_offset),
            },
        )

    def accept_batch(
        self, now_ms: int, drafts: Sequence[Draft], out: list[Effect]
    ) -> list[StoredMessage]:
        """Store a batch that passed every check, one behind the other."""
        return [self._storing.store(now_ms, draft, out) for draft in drafts]

    def check(self, header: SendHeader, body: bytes) -> TopicConfig:
        """The topic, made if need be. Raises Refused with the code that RocketMQ answers."""
        config = self._parts.config
        if not is_valid_name(header.topic):
            raise Refused(
                ResponseCode.SYSTEM_ERROR, f"{header.topic[:40]!r} is no valid topic name"
            )
        if header.topic in SEND_FORBIDDEN:
            raise Refused(ResponseCode.NO_PERMISSION, f"nobody may send to {header.topic}")
        topic = self._parts.topics.make_for_send(
            header.topic, header.default_topic, header.default_topic_queue_nums
        )
        if topic is None:
            raise Refused(ResponseCode.TOPIC_NOT_EXIST, f"topic {header.topic} does not exist")
        if header.queue_id >= max(topic.write_queues, topic.read_queues):
            raise Refused(
                config.rules.bad_queue_id, f"topic {header.topic} has no queue {header.queue_id}"
            )
        if header.queue_id < 0 and topic.write_queues < 1:
            raise Refused(
                ResponseCode.SYSTEM_ERROR, f"topic {header.topic} has no queue to write to"
            )
        if header.sys_flag & (SYS_PREPARED | SYS_COMMIT) and not is_half(header):
            raise Refused(
                ResponseCode.NO_PERMISSION, "only a transaction's end makes a message transactional"
            )
        if len(body) > config.body_bytes_max:
            raise Refused(
                ResponseCode.MESSAGE_ILLEGAL,
                f"the body is larger than {config.body_bytes_max} bytes",
            )
        if header.properties and len(header.properties.encode()) > MAX_PROPERTIES_BYTES:
            raise Refused(
                ResponseCode.MESSAGE_ILLEGAL, f"the properties exceed {MAX_PROPERTIES_BYTES} bytes"
            )
        self.check_room()
        return topic

    def check_room(self) -> None:
        """A full disk takes no messages; what lies there can be read all the same."""
        why = self._parts.store.no_room_for_sends()
        if why is not None:
            self._parts.store.turned_away += 1
            raise Refused(ResponseCode.SERVICE_NOT_AVAILABLE, why)

    def _add_unique_key(self, draft: Draft) -> dict[str, str]:
        """5.x: every message has a unique key, and the answer tells it."""
        if not self._parts.config.rules.unique_key_is_added:
            return {}
        key = draft.properties.get(PROPERTY_UNIQ_KEY)
        if key is None:
            key = offset_message_id(self._storing.host, self._parts.store.end)
            draft.properties[PROPERTY_UNIQ_KEY] = key
        return {"transactionId": key}


def is_half(header: SendHeader) -> bool:
    return header.property_map.get(PROPERTY_TRANSACTION_PREPARED, "").lower() == "true"


def may_write(topic: TopicConfig) -> bool:
    return bool(topic.perm & PERM_WRITE)
