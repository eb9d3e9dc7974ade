"""How a lane is left: offset first, lease last, and the lease only when the running call has ended.

    drop:     persist the offset · DROP · (wait until the lane's call, and what follows it, is over) · unlock
    dropped:  no further call starts, the result of the running one moves no offset, and none is reported again

Without leases a dropped lane is let go at once, whatever still runs. Which of its steps comes when is in `lane_life`.
Newer RocketMQ clients give up waiting when the lease was last renewed more than 20 s ago; ours waits for as
long as the call runs. Source: `RebalancePushImpl.removeUnnecessaryMessageQueue` of apache/rocketmq.
"""

from __future__ import annotations

from reference_impl.core.consumer.lane_life import Event, Phase
from reference_impl.core.consumer.part import Part
from reference_impl.core.consumer.process_queue import ProcessQueue
from specs.vocabulary import Kind


class LaneDrop(Part):
    """Drops lanes that nobody has to be given back."""

    def drop(self, now_ms: int, pq: ProcessQueue, reason: str) -> None:
        """The incarnation ends here. reason: why, for people."""
        self.consumer.offsets.persist(pq)
        self.mark_dropped(pq, reason)
        self.leave(pq)

    def mark_dropped(self, pq: ProcessQueue, reason: str) -> None:
        self.consumer.move(pq, Event.DROP)
        self.consumer.offsets.forget_offset(pq)
        self.consumer.serials.pop(pq.serial, None)
        self.consumer.note(Kind.DROP, {**pq.row, "detail": reason})

    def leave(self, pq: ProcessQueue) -> None:
        """The lane was dropped: it is ours no more."""
        self.consumer.move(pq, Event.RELEASE)

    def settle(self, now_ms: int, pq: ProcessQueue) -> None:
        """A call of the lane, and all that follows it, is over."""
        self.consumer.shutdown.came_to_rest(now_ms)


class LaneRelease(LaneDrop):
    """Drops lanes, and gives their leases back."""

    def leave(self, pq: ProcessQueue) -> None:
        """The lane was dropped: its lease goes now, or when the call has ended."""
        if self.may_release(pq):
            self.release(pq)

    def may_release(self, pq: ProcessQueue) -> bool:
        """Whether the lease may go: nobody else may start while our call runs."""
        return pq.phase is Phase.DROPPED

    def release(self, pq: ProcessQueue) -> None:
        self.consumer.leases.unlock(pq.queue.broker, [pq.queue])
        pq.locked = False
        self.consumer.move(pq, Event.RELEASE)

    def settle(self, now_ms: int, pq: ProcessQueue) -> None:
        self.consumer.move(pq, Event.END)
        if pq.phase is Phase.DROPPED:
            self.release(pq)
        super().settle(now_ms, pq)
