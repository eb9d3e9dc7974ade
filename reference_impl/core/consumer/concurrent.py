"""The concurrent consumer: every message as soon as a thread is free, in no order.

| the listener's result | then |
|---|---|
| SUCCESS (COMMIT and ROLLBACK mean the same here) | the batch is finished |
| SUSPEND, null, a throw: consume later | each message is sent back; when that was acknowledged it is finished |
| the lane was dropped meanwhile | nothing: who has it now starts at the offset that was stored |

A message whose send-back failed, or was not answered, is delivered again here after 5 s, counted up by one; it may
come a second time from the retry topic, which the group subscribes to like any other.
What is stored as consumed is the smallest offset that is unfinished.
Source: `ConsumeMessageConcurrentlyService.processConsumeResult` of apache/rocketmq.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from reference_impl.core.consumer.config import ConsumerConfig
from reference_impl.core.consumer.consumer import Consumer
from reference_impl.core.consumer.send_backs import SendBacks
from reference_impl.core.consumer.side_by_side_loop import SideBySideLoop, Work
from reference_impl.core.consumer.unfinished_queue import UnfinishedQueue
from reference_impl.core.io import ListenerReturned
from reference_impl.protocol.message import StoredMessage


class ConcurrentLoop(SideBySideLoop):
    """Batches as they came; what failed is sent back."""

    consumer: ConcurrentConsumer

    def failed(
        self,
        now_ms: int,
        pq: UnfinishedQueue,
        batch: Sequence[StoredMessage],
        how: ListenerReturned,
    ) -> None:
        self._return_next(pq, list(batch), [], how.delay_level, now_ms)

    def _return_next(
        self,
        pq: UnfinishedQueue,
        left: list[StoredMessage],
        kept: list[StoredMessage],
        wished: int,
        now_ms: int,
    ) -> None:
        """One after the other; kept: those that could not be sent back."""
        if not left:
            self.try_here(pq, kept)
            self.over(now_ms, pq)
            return
        first, rest = left[0], left[1:]

        def ended(now_ms: int, acknowledged: bool) -> None:
            if acknowledged:
                self.finish(pq, [first])
            self._return_next(pq, rest, kept if acknowledged else [*kept, first], wished, now_ms)

        self.consumer.send_backs.return_message(now_ms, pq, first, wished, ended)

    def try_here(self, pq: UnfinishedQueue, messages: list[StoredMessage]) -> None:
        """They are delivered again by this client, after a while."""
        if messages and not pq.dropped:
            for message in messages:
                pq.count_retry(message)
            self.do_later(Work(pq, messages), self.config.send_back_retry_ms)


class ConcurrentConsumer(Consumer):
    """One client of one group in the concurrent mode. See `Consumer.handle` for the contract.

    What it promises: no offset passes an unfinished message, and a message that the listener could not process
    comes again. What it does not promise: any order, or that a message is delivered once.
    """

    loop_class: ClassVar[type[ConcurrentLoop]] = ConcurrentLoop
    send_backs_class: ClassVar[type[SendBacks]] = SendBacks

    def __init__(self, config: ConsumerConfig) -> None:
        super().__init__(config)
        self.send_backs = self.send_backs_class(self)
