"""How a lane is left: offset first, lease last, and the lease only when the running call has ended.

    drop:     persist the offset · DROP · (wait until the lane's call, and what follows it, is over) · unlock
    dropped:  no further call starts, the result of the running one moves no offset, and none is reported again

Without leases a dropped lane is let go at once, whatever still runs.
Newer RocketMQ clients give up waiting when the lease was last renewed more than 20 s ago; ours waits for as
long as the call runs. Source: `RebalancePushImpl.removeUnnecessaryMessageQueue` of apache/rocketmq.
"""

from __future__ import annotations

from reference_impl.core.consumer.part import Part
from reference_impl.core.consumer.process_queue import ProcessQueue
from specs.vocabulary import Kind


class LaneDrop(Part):
    """Drops lanes that nobody has to be given back."""

    def drop(self, now_ms: int, pq: ProcessQueue, reason: str) -> None:
        """The incarnation ends here. reason: why, for people."""
        self.consumer.offsets.persist(pq)
        self.mark_dropped(pq, reason)

    def mark_dropped(self, pq: ProcessQueue, reason: str) -> None:
        pq.dropped = True
        self.consumer.offsets.forget_offset(pq)
        self.consumer.lanes.pop(pq.queue, None)
        self.consumer.serials.pop(pq.serial, None)
        self.consumer.note(Kind.DROP, {**pq.row, "detail": reason})

    def settle(self, now_ms: int, pq: ProcessQueue) -> None:
        """A call of the lane, and all that follows it, is over."""
        pq.busy -= 1
        self.call_ended(pq)
        self.consumer.shutdown.came_to_rest(now_ms)

    def call_ended(self, pq: ProcessQueue) -> None:
        """What is still to be done for a lane that was dropped while the call ran."""


class LaneRelease(LaneDrop):
    """Drops lanes, and gives their leases back."""

    def drop(self, now_ms: int, pq: ProcessQueue, reason: str) -> None:
        super().drop(now_ms, pq, reason)
        self.leave(pq)

    def leave(self, pq: ProcessQueue) -> None:
        """The lane was dropped: its lease goes now, or when the call has ended."""
        if self.may_release(pq):
            self.release(pq)
        else:
            self.consumer.leaving[pq.queue] = pq

    def may_release(self, pq: ProcessQueue) -> bool:
        """Whether the lease may go: nobody else may start while our call runs."""
        return not pq.busy

    def release(self, pq: ProcessQueue) -> None:
        leaving = self.consumer.leaving
        leaving[pq.queue] = pq  # so that the row of the unlock still names the incarnation
        self.consumer.leases.unlock(pq.queue.broker, [pq.queue])
        pq.locked = False
        del leaving[pq.queue]

    def call_ended(self, pq: ProcessQueue) -> None:
        if pq.dropped and not pq.busy and self.consumer.leaving.get(pq.queue) is pq:
            self.release(pq)
