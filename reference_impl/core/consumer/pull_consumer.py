"""The pull consumer: its caller asks for batches, one after the other, and says when each is finished.

The members of a group share the queues as push consumers do, and what comes is fetched ahead; but nothing is called
until the caller asks. A batch that is not finished is given again. There is no lease, no retry topic and no dead
letter: what to do with a message that can't be processed is for the caller to decide.
Within one queue batches come in order, one at a time, as long as no rebalance moves the queue.
Source: `DefaultLitePullConsumerImpl` of apache/rocketmq.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from reference_impl.core.consumer.consumer import Consumer
from reference_impl.core.consumer.side_by_side_loop import SideBySideLoop, Work
from reference_impl.core.consumer.unfinished_queue import UnfinishedQueue
from reference_impl.core.io import ListenerReturned
from reference_impl.protocol.bodies import CONSUME_ACTIVELY
from reference_impl.protocol.message import StoredMessage


class PullLoop(SideBySideLoop):
    """Batches as they came; one that is not finished is the next to be given."""

    def failed(
        self,
        now_ms: int,
        pq: UnfinishedQueue,
        batch: Sequence[StoredMessage],
        how: ListenerReturned,
    ) -> None:
        for message in batch:
            pq.count_retry(message)
        self.waiting.appendleft(Work(pq, batch))
        self.over(now_ms, pq)


class PullConsumer(Consumer):
    """One client of one group; its "listener" is the caller who asks. Made for `threads=1`."""

    consume_type: ClassVar[str] = CONSUME_ACTIVELY
    has_retry_topic: ClassVar[bool] = False

    loop_class: ClassVar[type[PullLoop]] = PullLoop
