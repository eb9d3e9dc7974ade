"""Leaving in good order: no new call, wait for the running ones, persist, release, say goodbye.

    LEAVE begins · wait until every lane is at rest, or the waiting time is over (a call still running is cut) ·
    persist all offsets · drop all lanes · unlock them, one request per broker · unregister · LEAVE ends

Offsets go before leases, so that a successor finds them. RocketMQ itself releases first: a successor may then
start at the older offset. Leases are renewed while we wait. Source: `DefaultMQPushConsumerImpl.shutdown`.
"""

from __future__ import annotations

from reference_impl.core.consumer.config import ConsumerConfig
from reference_impl.core.consumer.leases import by_broker
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.core.consumer.reset import Resetting
from reference_impl.core.io import CancelTimer, Shutdown, Stopped
from reference_impl.protocol.codes import RequestCode
from reference_impl.protocol.command import Command
from reference_impl.protocol.headers import UnregisterClientHeader
from specs.vocabulary import Kind, Outcome

WAIT = ("shutdown",)


class ShuttingDown(Resetting):
    """The end of a consumer."""

    def __init__(self, config: ConsumerConfig) -> None:
        super().__init__(config)
        self._leave_op = 0
        self._unregistering = 0
        self._timers["shutdown"] = self._waited_enough

    def on_shutdown(self, now_ms: int, input: Shutdown) -> None:
        if self.stopping:
            return
        self.stopping = True
        self._leave_op = self.begin(Kind.LEAVE, self._who)
        if not self._all_at_rest():
            self.set_timer(WAIT, self.config.shutdown_wait_ms)
        self.came_to_rest(now_ms)

    def _all_at_rest(self) -> bool:
        return not self.leaving and not any(pq.busy for pq in self.lanes.values())

    def came_to_rest(self, now_ms: int) -> None:
        if self.stopping and not self.has_left and self._all_at_rest():
            self._leave(now_ms)

    def _waited_enough(self, now_ms: int) -> None:
        if not self.has_left:
            self._cut_calls()
            self._leave(now_ms)

    def _cut_calls(self) -> None:
        for call in self.calls.values():
            self.end(call.op, Outcome.CUT, {})
        self.calls.clear()

    def _leave(self, now_ms: int) -> None:
        self.has_left = True
        for name in ("shutdown", "lock", "persist", "heartbeat", "routes", "rebalance"):
            self._out.append(CancelTimer((name,)))
        lanes = [self.lanes[queue] for queue in sorted(self.lanes)]
        self.give_lanes_back(lanes)
        self._unregister(now_ms)

    def give_lanes_back(self, lanes: list[ProcessQueue]) -> None:
        """Offsets first, then the leases: of these lanes, of those still leaving, and of those on their way in."""
        for pq in lanes:
            self.persist(pq)
        self.release_all(lanes)

    def release_all(self, lanes: list[ProcessQueue]) -> None:
        for pq in lanes:
            self.mark_dropped(pq, "shutdown")
            self.leaving[pq.queue] = pq  # until the rows of the unlock are written
        mine = [*self.leaving, *(queue for queue in self.candidates if queue not in self.leaving)]
        for broker, queues in by_broker(mine).items():
            self.unlock(broker, queues)
        self.leaving.clear()
        self.candidates.clear()

    def _unregister(self, now_ms: int) -> None:
        header = UnregisterClientHeader(self.config.client_id, consumer_group=self.config.group)
        command = Command(RequestCode.UNREGISTER_CLIENT, header.to_ext())
        addresses = sorted(set(self.addresses.values()))
        self._unregistering = len(addresses)
        for address in addresses:
            self.request(
                now_ms, address, command, self.config.request_timeout_ms, self._unregistered
            )
        if not addresses:
            self._finish_leaving()

    def _unregistered(self, now_ms: int, answer: Command | None, reason: str) -> None:
        self._unregistering -= 1
        if not self._unregistering:
            self._finish_leaving()

    def _finish_leaving(self) -> None:
        self.end(self._leave_op, Outcome.OK, {})
        self._out.append(Stopped())
        self.stopped = True
