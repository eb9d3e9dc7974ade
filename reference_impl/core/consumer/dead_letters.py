"""A message whose retries are exhausted is given up: a copy is sent towards the group's dead letters.

The copy is an ordinary SEND to `%RETRY%` + group, carrying one retry more than the message has had; the *broker*
sees that this is beyond the limit and puts it into `%DLQ%` + group. It is sent to the lane's own broker first,
which certainly has the group's retry topic, and after a failure that allows it to the other brokers in turn. A
send without an answer may have happened, so it counts as failed: the message is delivered again, never skipped.
Source: `ConsumeMessageOrderlyService.sendMessageBack`, `DefaultMQProducerImpl` of apache/rocketmq.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from reference_impl.core.consumer.part import Part, failure_outcome
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.protocol.codes import STORED, RequestCode, ResponseCode
from reference_impl.protocol.command import Command
from reference_impl.protocol.headers import PERM_WRITE, SendHeader
from reference_impl.protocol.message import (
    PROPERTY_DELAY,
    PROPERTY_MAX_RECONSUME_TIMES,
    PROPERTY_ORIGIN_MESSAGE_ID,
    PROPERTY_RECONSUME_TIME,
    PROPERTY_RETRY_TOPIC,
    PROPERTY_TRANSACTION_PREPARED,
    StoredMessage,
    pack_properties,
)
from specs.vocabulary import Kind, Outcome

if TYPE_CHECKING:
    from reference_impl.core.consumer.consumer import Consumer

INNER_PRODUCER = "CLIENT_INNER_PRODUCER"
FIRST_DELAY_LEVEL = 3

RETRIED_CODES = frozenset(
    {
        ResponseCode.SYSTEM_ERROR,
        ResponseCode.SYSTEM_BUSY,
        ResponseCode.SERVICE_NOT_AVAILABLE,
        ResponseCode.NO_PERMISSION,
        ResponseCode.TOPIC_NOT_EXIST,
    }
)
"""After these refusals a send is tried again elsewhere. Source: `DefaultMQProducer.retryResponseCodes`."""

RETRIED_FAILURES = frozenset({"closed", "unreachable"})
"""After a timeout nothing is tried again: the time for the whole send is used up."""


def id_of(message: StoredMessage) -> str:
    """The id under which the message is known: its producer's, else its broker's."""
    return message.message_id or message.offset_id


class DeadLetters(Part):
    """Gives up messages."""

    def __init__(self, consumer: Consumer) -> None:
        super().__init__(consumer)
        self._sent_back = 0

    def is_exhausted(self, times: int) -> bool:
        """N retries are allowed, so that N + 1 deliveries are made."""
        return times >= self.config.limit

    def give_up(
        self,
        now_ms: int,
        pq: ProcessQueue,
        messages: Sequence[StoredMessage],
        then: Callable[[int, frozenset[int]], None],
    ) -> None:
        """Sends the messages one after the other; `then(now_ms, offsets whose copy was acknowledged)`."""
        self._give_up_next(pq, messages, frozenset(), then, now_ms)

    def _give_up_next(
        self,
        pq: ProcessQueue,
        messages: Sequence[StoredMessage],
        done: frozenset[int],
        then: Callable[[int, frozenset[int]], None],
        now_ms: int,
    ) -> None:
        if not messages:
            then(now_ms, done)
            return
        first, rest = messages[0], messages[1:]

        def ended(now_ms: int, acknowledged: bool) -> None:
            self._give_up_next(
                pq, rest, done | {first.queue_offset} if acknowledged else done, then, now_ms
            )

        self.send_back(now_ms, pq, first, ended)

    def send_back(
        self,
        now_ms: int,
        pq: ProcessQueue,
        message: StoredMessage,
        then: Callable[[int, bool], None],
        attempt: int = 1,
    ) -> None:
        """One copy of one message, with all its tries."""
        times = pq.times(message)
        fields: dict[str, Any] = {
            **pq.row,
            "queue_offset": message.queue_offset,
            "message_id": id_of(message),
            "sharding_key": message.sharding_key,
            "reconsume_times": times,
            "attempt": attempt,
        }
        op = self.consumer.begin(Kind.DEAD_LETTER, fields)
        broker = self._broker_for(pq, attempt)
        command = self.make_copy(now_ms, message, times, broker)

        def ended(now_ms: int, answer: Command | None, reason: str) -> None:
            if answer is None:
                self.consumer.end(op, failure_outcome(reason), {"detail": reason})
                again = reason in RETRIED_FAILURES
            elif answer.code in STORED:
                self.consumer.end(op, Outcome.OK, {"code": answer.code})
                then(now_ms, True)
                return
            else:
                self.consumer.end(
                    op, Outcome.REFUSED, {"code": answer.code, "detail": answer.remark}
                )
                again = answer.code in RETRIED_CODES
            if again and attempt <= self.config.dead_letter_retries and not self.consumer.stopped:
                self.send_back(now_ms, pq, message, then, attempt + 1)
            else:
                then(now_ms, False)

        self.consumer.request(
            now_ms, self.consumer.addresses.get(broker), command, self.config.send_timeout_ms, ended
        )

    def make_copy(self, now_ms: int, message: StoredMessage, times: int, broker: str) -> Command:
        properties = {
            name: value
            for name, value in message.properties.items()
            if name
            not in (
                PROPERTY_TRANSACTION_PREPARED,
                PROPERTY_RECONSUME_TIME,
                PROPERTY_MAX_RECONSUME_TIMES,
            )
        }
        properties[PROPERTY_ORIGIN_MESSAGE_ID] = message.origin_id or id_of(message)
        properties[PROPERTY_RETRY_TOPIC] = message.topic
        properties[PROPERTY_DELAY] = str(FIRST_DELAY_LEVEL + times)
        header = SendHeader(
            producer_group=INNER_PRODUCER,
            topic=self.consumer.retry_topic,
            queue_id=self._queue_for(broker),
            born_timestamp=now_ms,
            flag=message.flag,
            properties=pack_properties(properties),
            reconsume_times=times + 1,
            max_reconsume_times=self.config.limit,
        )
        return Command(RequestCode.SEND_MESSAGE_V2, header.to_ext_v2(), message.body)

    def _broker_for(self, pq: ProcessQueue, attempt: int) -> str:
        route = self.consumer.routes.known.get(self.consumer.retry_topic)
        others = (
            {item.broker for item in route.queues if item.perm & PERM_WRITE} if route else set()
        )
        brokers = [pq.queue.broker, *sorted(others - {pq.queue.broker})]
        return brokers[(attempt - 1) % len(brokers)]

    def _queue_for(self, broker: str) -> int:
        route = self.consumer.routes.known.get(self.consumer.retry_topic)
        self._sent_back += 1
        for item in route.queues if route else ():
            if item.broker == broker and item.write_queues > 0:
                return self._sent_back % item.write_queues
        return 0
