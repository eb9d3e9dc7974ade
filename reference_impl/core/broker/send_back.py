"""CONSUMER_SEND_MSG_BACK: a concurrent consumer returns a message that it could not process.

The broker looks the message up by its place in the log and stores a copy with the counter one higher: in the
retry topic, after a delay that grows with the counter, or in the dead letters when the limit is reached or the
client asked for it (a delay level below 0).
Source: docs/sources.md#send-back (AbstractSendMessageProcessor.consumerSendMsgBack).
"""

from __future__ import annotations

from reference_impl.core.broker.diversion import DEAD_LETTER_QUEUES, LIMIT_IN_REQUEST_SINCE
from reference_impl.core.broker.log import Draft
from reference_impl.core.broker.parts import Parts, Refused
from reference_impl.core.broker.send import may_write
from reference_impl.core.broker.storing import Storing
from reference_impl.core.io import ConnId, Effect
from reference_impl.protocol.bodies import SubscriptionGroup
from reference_impl.protocol.codes import ResponseCode
from reference_impl.protocol.command import Command
from reference_impl.protocol.headers import SendBackHeader
from reference_impl.protocol.message import (
    PROPERTY_DELAY,
    PROPERTY_ORIGIN_MESSAGE_ID,
    PROPERTY_RETRY_TOPIC,
    PROPERTY_WAIT,
    StoredMessage,
)
from specs.vocabulary import dead_letter_topic, retry_topic

FIRST_RETRY_LEVEL = 3


class SendBack:
    def __init__(self, parts: Parts, storing: Storing) -> None:
        self._parts = parts
        self._storing = storing

    def send_back(
        self, now_ms: int, conn: ConnId, request: Command, out: list[Effect]
    ) -> Command | None:
        header = SendBackHeader.from_ext(request.ext)
        group = self._parts.groups.find(header.group)
        if group is None:
            raise Refused(
                ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"group {header.group} does not exist"
            )
        if group.retry_queues <= 0:
            return request.reply(ResponseCode.SUCCESS)  # RocketMQ drops the message without a word
        topic = self._parts.topics.make(retry_topic(header.group), group.retry_queues)
        if not may_write(topic):
            raise Refused(ResponseCode.NO_PERMISSION, f"topic {topic.topic} is not writable")
        message = self._parts.store.at(header.offset)
        if message is None:
            raise Refused(
                ResponseCode.SYSTEM_ERROR, f"look message by offset failed, {header.offset}"
            )
        why = self._parts.store.no_room_for_sends()
        if why is not None:
            raise Refused(ResponseCode.SYSTEM_ERROR, why)
        self._storing.store(now_ms, self.copy(message, header, group, request.version), out)
        return request.reply(ResponseCode.SUCCESS)

    def copy(
        self, message: StoredMessage, header: SendBackHeader, group: SubscriptionGroup, version: int
    ) -> Draft:
        """The copy to store, in the retry topic or among the dead letters."""
        limit = group.retry_max_times
        if header.max_reconsume_times is not None and version >= LIMIT_IN_REQUEST_SINCE:
            limit = header.max_reconsume_times
        properties = dict(message.properties)
        properties.setdefault(PROPERTY_RETRY_TOPIC, message.topic)
        properties.setdefault(PROPERTY_ORIGIN_MESSAGE_ID, message.offset_id)
        properties[PROPERTY_WAIT] = "false"
        if message.reconsume_times >= limit or header.delay_level < 0:
            target, queues = dead_letter_topic(group.group), DEAD_LETTER_QUEUES
            self._parts.topics.make(target, queues)
            properties[PROPERTY_DELAY] = "0"
        else:
            target, queues = retry_topic(group.group), group.retry_queues
            level = header.delay_level or FIRST_RETRY_LEVEL + message.reconsume_times
            properties[PROPERTY_DELAY] = str(level)
        return Draft(
            target,
            self._parts.choose_queue(queues),
            message.body,
            properties,
            message.flag,
            message.sys_flag,
            message.born_ms,
            message.born_host,
            message.reconsume_times + 1,
        )
