"""Leaving in good order: no new call, wait for the running ones, persist, release, say goodbye.

    LEAVE begins · wait until every lane is at rest, or the waiting time is over (a call still running is cut) ·
    persist all offsets · drop all lanes · unlock them, one request per broker · unregister · LEAVE ends

Offsets go before leases, so that a successor finds them. RocketMQ itself releases first: a successor may then
start at the older offset. Leases are renewed while we wait. Source: `DefaultMQPushConsumerImpl.shutdown`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reference_impl.core.consumer.lane_life import WITH_A_CALL, Event
from reference_impl.core.consumer.leases import by_broker
from reference_impl.core.consumer.part import Part
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.core.io import CancelTimer, Shutdown, Stopped
from reference_impl.protocol.codes import RequestCode
from reference_impl.protocol.command import Command
from reference_impl.protocol.headers import UnregisterClientHeader
from specs.vocabulary import Kind, Outcome

if TYPE_CHECKING:
    from reference_impl.core.consumer.consumer import Consumer

WAIT = ("shutdown",)


class ShutdownSequence(Part):
    """The end of a consumer."""

    def __init__(self, consumer: Consumer) -> None:
        super().__init__(consumer)
        self.leave_op = 0
        self._unregistering = 0
        consumer.timers["shutdown"] = self.waited_enough

    def begin(self, now_ms: int, input: Shutdown) -> None:
        if self.consumer.stopping:
            return
        self.consumer.stopping = True
        self.leave_op = self.consumer.begin(Kind.LEAVE, self.consumer.who)
        if not self.consumer.loop.is_at_rest():
            self.consumer.set_timer(WAIT, self.config.shutdown_wait_ms)
        self.came_to_rest(now_ms)

    def came_to_rest(self, now_ms: int) -> None:
        if (
            self.consumer.stopping
            and not self.consumer.has_left
            and self.consumer.loop.is_at_rest()
        ):
            self._leave(now_ms)

    def waited_enough(self, now_ms: int) -> None:
        if not self.consumer.has_left:
            self._cut_calls()
            self._leave(now_ms)

    def _cut_calls(self) -> None:
        calls = self.consumer.calls.open
        for call in calls.values():
            self.consumer.end(call.op, Outcome.CUT, {})
        calls.clear()
        for lane in list(self.consumer.tracked.values()):
            if lane.phase in WITH_A_CALL:
                self.consumer.move(lane, Event.CUT)

    def _leave(self, now_ms: int) -> None:
        self.consumer.has_left = True
        for name in ("shutdown", "lock", "persist", "heartbeat", "routes", "rebalance"):
            self.consumer.do(CancelTimer((name,)))
        self.give_lanes_back([pq for _, pq in sorted(self.consumer.lanes.items())])
        self.unregister(now_ms)

    def give_lanes_back(self, lanes: list[ProcessQueue]) -> None:
        """Offsets first, then the leases: of these lanes, of those still leaving, and of those on their way in."""
        for pq in lanes:
            self.consumer.offsets.persist(pq)
        self.release_all(lanes)

    def release_all(self, lanes: list[ProcessQueue]) -> None:
        consumer = self.consumer
        for pq in lanes:
            consumer.release.mark_dropped(pq, "shutdown")
        for broker, queues in by_broker(consumer.tracked).items():
            consumer.leases.unlock(broker, queues)
        for lane in list(consumer.tracked.values()):
            consumer.move(lane, Event.RELEASE)

    def unregister(self, now_ms: int) -> None:
        header = UnregisterClientHeader(self.config.client_id, consumer_group=self.config.group)
        command = Command(RequestCode.UNREGISTER_CLIENT, header.to_ext())
        addresses = sorted(set(self.consumer.addresses.values()))
        self._unregistering = len(addresses)
        for address in addresses:
            self.consumer.request(
                now_ms, address, command, self.config.request_timeout_ms, self._unregistered
            )
        if not addresses:
            self.finish_leaving()

    def _unregistered(self, now_ms: int, answer: Command | None, reason: str) -> None:
        self._unregistering -= 1
        if not self._unregistering:
            self.finish_leaving()

    def finish_leaving(self) -> None:
        self.consumer.end(self.leave_op, Outcome.OK, {})
        self.consumer.do(Stopped())
        self.consumer.stopped = True
