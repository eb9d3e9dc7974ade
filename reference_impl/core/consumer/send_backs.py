"""A message that a concurrent listener could not process goes back to the broker, which delivers a copy of it later.

The request names the message by its place in the log. The listener may ask for a delay level; 0 leaves it to the
broker, which takes 3 and one more for each retry so far, and a level below 0 means the dead letters. The limit is
the consumer's own; whether it is reached is decided by the broker.

The counter is the one that the message carries, not what this client has counted for itself: the broker makes the
copy from what it has stored. Source: `DefaultMQPushConsumerImpl.sendMessageBack` of apache/rocketmq. (RocketMQ's
client then tries an ordinary send to the retry topic; ours does not.)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from reference_impl.core.consumer.dead_letters import FIRST_DELAY_LEVEL, id_of
from reference_impl.core.consumer.part import Part, failure_outcome
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.protocol.codes import RequestCode, ResponseCode
from reference_impl.protocol.command import Command
from reference_impl.protocol.headers import SendBackHeader
from reference_impl.protocol.message import StoredMessage
from specs.vocabulary import Kind, Outcome


class SendBacks(Part):
    """Returns messages to the broker."""

    def delay_level(self, message: StoredMessage, wished: int) -> int:
        """The level that the broker will take, for the recorder; below 0: the dead letters."""
        return wished or FIRST_DELAY_LEVEL + message.reconsume_times

    def return_message(
        self,
        now_ms: int,
        pq: ProcessQueue,
        message: StoredMessage,
        wished: int,
        then: Callable[[int, bool], None],
    ) -> None:
        """One request; `then(now_ms, acknowledged)`. wished: the listener's delay level, 0 for none."""
        fields: dict[str, Any] = {
            **pq.row,
            "queue_offset": message.queue_offset,
            "message_id": id_of(message),
            "origin_id": message.source_id,
            "sharding_key": message.sharding_key,
            "reconsume_times": message.reconsume_times,
            "delay_level": self.delay_level(message, wished),
        }
        op = self.consumer.begin(Kind.SEND_BACK, fields)
        address = self.consumer.addresses.get(pq.queue.broker)
        command = self.make_return(message, wished)
        self.consumer.request(
            now_ms, address, command, self.config.send_timeout_ms, partial(self._returned, op, then)
        )

    def make_return(self, message: StoredMessage, wished: int) -> Command:
        header = SendBackHeader(
            offset=message.physical_offset,
            group=self.config.group,
            delay_level=wished,
            origin_msg_id=id_of(message),
            origin_topic=message.topic,
            max_reconsume_times=self.config.limit,
        )
        return Command(RequestCode.CONSUMER_SEND_MSG_BACK, header.to_ext())

    def _returned(
        self,
        op: int,
        then: Callable[[int, bool], None],
        now_ms: int,
        answer: Command | None,
        reason: str,
    ) -> None:
        if answer is None:
            self.consumer.end(op, failure_outcome(reason), {"detail": reason})
        elif answer.code == ResponseCode.SUCCESS:
            self.consumer.end(op, Outcome.OK, {"code": answer.code})
        else:
            self.consumer.end(op, Outcome.REFUSED, {"code": answer.code, "detail": answer.remark})
        then(now_ms, answer is not None and answer.code == ResponseCode.SUCCESS)
