"""Leases: asked for before a lane is added, renewed each interval, and believed in for a limited time.

| answer for a lane that was asked for | its flag |
|---|---|
| granted | locked, as of now |
| not among the granted | not locked |
| no answer | as it was: the client's own limit ends it |

A listener call may start only while the lane is locked and the last grant is not *older* than the client's
limit (exactly as old is still valid). One request per broker carries all its lanes. An answer belongs to the
incarnation for which it was asked: a late one never touches the next.
Source: `RebalanceImpl.lockAll`, `ConsumeMessageOrderlyService` of apache/rocketmq.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from reference_impl.core.consumer.lane_life import Event
from reference_impl.core.consumer.part import UNREACHABLE, Part
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.protocol.bodies import LockBatch, decode_lock_answer
from reference_impl.protocol.codes import RequestCode, ResponseCode
from reference_impl.protocol.command import FLAG_ONEWAY, Command
from specs.vocabulary import Kind, Outcome, Queue

if TYPE_CHECKING:
    from reference_impl.core.consumer.consumer import Consumer

LOCK = ("lock",)
RELOCKED_MS = 10
REFUSED_MS = 3_000

Granted = frozenset[Queue] | None
"""The lanes that the broker granted; None when it did not answer."""


def by_broker(queues: Iterable[Queue]) -> dict[str, list[Queue]]:
    """The queues of each broker, brokers and queues in order."""
    groups: dict[str, list[Queue]] = {}
    for queue in sorted(queues):
        groups.setdefault(queue.broker, []).append(queue)
    return dict(sorted(groups.items()))


class Leases(Part):
    """Asks for leases, renews them, gives them back."""

    def __init__(self, consumer: Consumer) -> None:
        super().__init__(consumer)
        consumer.timers["lock"] = self._renew_tick
        consumer.timers["relock"] = self._relock

    def start(self, now_ms: int) -> None:
        self.consumer.set_timer(LOCK, self.config.lock_first_ms)

    # ------------------------------------------------------------ the guard

    def holds_lease(self, now_ms: int, pq: ProcessQueue) -> bool:
        """Whether a listener call may start now."""
        return pq.locked and now_ms - pq.last_lock_ms <= self.config.client_lease_ms

    # ------------------------------------------------------------ asking

    def acquire(
        self,
        now_ms: int,
        broker: str,
        queues: Sequence[Queue],
        then: Callable[[int, Granted], None],
    ) -> None:
        """Before lanes are added."""
        self.ask_lease(now_ms, broker, queues, then)

    def admit(self, pq: ProcessQueue, granted_ms: int) -> None:
        """A lane is added, with what was granted for it."""
        self.lease_granted(granted_ms, pq)

    def ask_lease(
        self,
        now_ms: int,
        broker: str,
        queues: Sequence[Queue],
        then: Callable[[int, Granted], None],
    ) -> None:
        """One request for some lanes of one broker; `then(now_ms, granted)`."""
        op = self.consumer.begin(
            Kind.LOCK, self.consumer.who, [self.consumer.row_of(queue) for queue in queues]
        )
        body = LockBatch(self.config.group, self.config.client_id, tuple(queues)).encode()
        command = Command(RequestCode.LOCK_BATCH_MQ, body=body)
        on_end = partial(self.lease_answered, op, queues, then)
        self.consumer.request(
            now_ms,
            self.consumer.addresses.get(broker),
            command,
            self.config.lock_timeout_ms,
            on_end,
        )

    def lease_answered(
        self,
        op: int,
        queues: Sequence[Queue],
        then: Callable[[int, Granted], None],
        now_ms: int,
        answer: Command | None,
        reason: str,
    ) -> None:
        # Refused means that the broker said no: no answer, or an error, says nothing about the lease.
        if answer is None:
            self.consumer.end(op, Outcome.UNKNOWN, {"detail": reason})
            then(now_ms, None)
        elif answer.code != ResponseCode.SUCCESS:
            self.consumer.end(op, Outcome.UNKNOWN, {"code": answer.code, "detail": answer.remark})
            then(now_ms, None)
        else:
            granted = decode_lock_answer(answer.body)
            rows = [
                {"outcome": Outcome.OK if queue in granted else Outcome.REFUSED} for queue in queues
            ]
            self.consumer.end(op, Outcome.OK, {"code": answer.code}, rows)
            then(now_ms, granted)

    # ------------------------------------------------------------ renewing

    def _renew_tick(self, now_ms: int) -> None:
        self.consumer.set_timer(LOCK, self.config.lock_interval_ms)
        self.renew_all(now_ms)

    def renew_all(self, now_ms: int) -> None:
        lanes = self.consumer.lanes
        for broker, queues in by_broker(lanes).items():
            pqs = [lanes[queue] for queue in queues]
            self.ask_lease(now_ms, broker, queues, partial(self._renewed, pqs))

    def _renewed(self, pqs: Sequence[ProcessQueue], now_ms: int, granted: Granted) -> None:
        if granted is None:
            return
        for pq in pqs:
            self.apply_answer(now_ms, pq, pq.queue in granted)

    def apply_answer(self, now_ms: int, pq: ProcessQueue, granted: bool) -> None:
        """The table of this file. A grant for a lane that we have released meanwhile is given back at once."""
        if pq.dropped:
            if granted and not self.consumer.is_wanted(pq.queue):
                self.unlock(pq.queue.broker, [pq.queue])
        elif granted:
            self.lease_granted(now_ms, pq)
        else:
            self.lease_refused(now_ms, pq)

    def lease_granted(self, now_ms: int, pq: ProcessQueue) -> None:
        pq.locked = True
        pq.last_lock_ms = now_ms

    def lease_refused(self, now_ms: int, pq: ProcessQueue) -> None:
        pq.locked = False

    # ------------------------------------------------------------ a lane that finds itself without a lease

    def relock_later(self, pq: ProcessQueue, delay_ms: int) -> None:
        """The consuming task of the lane asks for the lease itself, after the delay."""
        self.consumer.move(pq, Event.PAUSE)
        self.consumer.set_timer(("relock", pq.serial), delay_ms)

    def _relock(self, now_ms: int, serial: int) -> None:
        pq = self.consumer.serials.get(serial)
        if pq is not None:
            self.ask_lease(now_ms, pq.queue.broker, [pq.queue], partial(self._relocked, pq))

    def _relocked(self, pq: ProcessQueue, now_ms: int, granted: Granted) -> None:
        if granted is not None:
            self.apply_answer(now_ms, pq, pq.queue in granted)
        regained = granted is not None and pq.queue in granted
        self.consumer.set_timer(("resubmit", pq.serial), RELOCKED_MS if regained else REFUSED_MS)

    # ------------------------------------------------------------ giving back

    def unlock(self, broker: str, queues: Sequence[Queue]) -> None:
        """Gives leases of one broker back, one way. A broker without a known address is unreachable."""
        address = self.consumer.addresses.get(broker)
        op = self.consumer.begin(
            Kind.UNLOCK, self.consumer.who, [self.consumer.row_of(queue) for queue in queues]
        )
        if address is None:
            self.consumer.end(op, Outcome.REFUSED, {"detail": UNREACHABLE})
            return
        body = LockBatch(self.config.group, self.config.client_id, tuple(queues)).encode()
        self.consumer.oneway(
            address, Command(RequestCode.UNLOCK_BATCH_MQ, body=body, flag=FLAG_ONEWAY)
        )
        self.consumer.end(op, Outcome.SENT, {})


class NoLeases(Part):
    """Members share the queues by rebalance alone; while it goes on two of them may work on one queue."""

    def acquire(
        self,
        now_ms: int,
        broker: str,
        queues: Sequence[Queue],
        then: Callable[[int, Granted], None],
    ) -> None:
        """Nobody is asked, and so every lane may be added at once."""
        then(now_ms, frozenset(queues))

    def admit(self, pq: ProcessQueue, granted_ms: int) -> None:
        """A lane is added, and nothing was granted for it."""

    def unlock(self, broker: str, queues: Sequence[Queue]) -> None:
        """There is nothing to give back."""
