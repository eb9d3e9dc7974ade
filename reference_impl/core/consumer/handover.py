"""How a lane is left: offset first, lease last, and the lease only when the running call has ended.

    drop:     persist the offset · DROP · (wait until the lane's call, and what follows it, is over) · unlock
    dropped:  no further call starts, the result of the running one moves no offset, and none is reported again

Newer RocketMQ clients give up waiting when the lease was last renewed more than 20 s ago; ours waits for as
long as the call runs. Source: `RebalancePushImpl.removeUnnecessaryMessageQueue` of apache/rocketmq.
"""

from __future__ import annotations

from reference_impl.core.consumer.leases import Leases
from reference_impl.core.consumer.process_queue import ProcessQueue
from specs.vocabulary import Kind


class Handover(Leases):
    """Drops and releases lanes."""

    def drop(self, now_ms: int, pq: ProcessQueue, reason: str) -> None:
        """The incarnation ends here. reason: why, for people."""
        self.persist(pq)
        self.mark_dropped(pq, reason)
        if self.may_release(pq):
            self.release(pq)
        else:
            self.leaving[pq.queue] = pq

    def mark_dropped(self, pq: ProcessQueue, reason: str) -> None:
        pq.dropped = True
        self.forget_offset(pq)
        self.lanes.pop(pq.queue, None)
        self.serials.pop(pq.serial, None)
        self.note(Kind.DROP, {**pq.row, "detail": reason})

    def may_release(self, pq: ProcessQueue) -> bool:
        """Whether the lease may go: nobody else may start while our call runs."""
        return not pq.busy

    def release(self, pq: ProcessQueue) -> None:
        self.leaving[pq.queue] = pq  # so that the row of the unlock still names the incarnation
        self.unlock(pq.queue.broker, [pq.queue])
        pq.locked = False
        del self.leaving[pq.queue]

    def settle(self, now_ms: int, pq: ProcessQueue) -> None:
        """A call of the lane, and all that follows it, is over."""
        pq.busy -= 1
        if pq.dropped and not pq.busy and self.leaving.get(pq.queue) is pq:
            self.release(pq)
        self.came_to_rest(now_ms)
