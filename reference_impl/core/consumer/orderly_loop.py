"""The consuming task of a lane: guard, take a batch, call the listener, do what its result means.

At most `threads` lanes have a thread; the others wait in line. A lane has one task, and the lane's phase says where
that stands (`lane_life`): in line, on a thread, or waiting for its time.

| the task finds | then |
|---|---|
| the lane dropped, or the consumer stopping | it ends |
| no lease when it gets its thread | it asks for one after 100 ms |
| no lease between two calls | it asks for one after 10 ms |
| it has had the thread for longer than the cap | it gets in line again after 10 ms |
| no message | it ends; the next pulled message starts another |
| a batch | it calls the listener |

Source: `ConsumeMessageOrderlyService` of apache/rocketmq.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from reference_impl.core.consumer.calls import Call
from reference_impl.core.consumer.lane_life import WITH_A_CALL, Event, Phase
from reference_impl.core.consumer.part import Part
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.core.consumer.results import RESULTS, Back, clamp_suspend
from reference_impl.core.io import ListenerReturned
from reference_impl.protocol.message import StoredMessage
from specs.vocabulary import LISTENER_SUSPENDS, CommitMode, Outcome

if TYPE_CHECKING:
    from reference_impl.core.consumer.orderly import OrderlyConsumer

NO_LEASE_AT_ENTRY_MS = 100
NO_LEASE_IN_LOOP_MS = 10
IN_LINE_AGAIN_MS = 10


class Ended(NamedTuple):
    """How a call ended. given_up: all its messages were retried as often as they may be, and were sent away."""

    pq: ProcessQueue
    batch: list[StoredMessage]
    outcome: Outcome
    mode: CommitMode
    pause_ms: int
    given_up: bool = False


class OrderlyLoop(Part):
    """Runs the lanes' consuming tasks on a limited number of threads."""

    consumer: OrderlyConsumer
    queue_class: ClassVar[type[ProcessQueue]] = ProcessQueue

    def __init__(self, consumer: OrderlyConsumer) -> None:
        super().__init__(consumer)
        self.in_line: deque[ProcessQueue] = deque()
        consumer.timers["resubmit"] = self.resubmit_due

    def is_at_rest(self) -> bool:
        return not any(lane.phase in WITH_A_CALL for lane in self.consumer.tracked.values())

    # ------------------------------------------------------------ threads

    def keep(self, now_ms: int, pq: ProcessQueue, messages: list[StoredMessage]) -> None:
        """Adds them to the lane and starts its task, unless it has one."""
        if pq.put(messages):
            self.resubmit(now_ms, pq)

    def resubmit(self, now_ms: int, pq: ProcessQueue) -> None:
        """The lane gets in line for a thread."""
        self.consumer.move(pq, Event.LINE_UP)
        self.in_line.append(pq)
        self.use_threads(now_ms)

    def resubmit_later(self, pq: ProcessQueue, delay_ms: int) -> None:
        self.consumer.move(pq, Event.PAUSE)
        self.consumer.set_timer(("resubmit", pq.serial), delay_ms)

    def resubmit_due(self, now_ms: int, serial: int) -> None:
        pq = self.consumer.serials.get(serial)
        if pq is not None:
            self.resubmit(now_ms, pq)

    def use_threads(self, now_ms: int) -> None:
        calls, in_line = self.consumer.calls, self.in_line
        while calls.free_threads and in_line:
            calls.free_threads -= 1
            self.enter(now_ms, in_line.popleft())

    def leave_thread(self) -> None:
        self.consumer.calls.free_threads += 1

    # ------------------------------------------------------------ the task

    def enter(self, now_ms: int, pq: ProcessQueue) -> None:
        leases = self.consumer.leases
        self.consumer.move(pq, Event.THREAD)
        if pq.phase is Phase.CHOOSING and not leases.holds_lease(now_ms, pq):
            self.leave_thread()
            leases.relock_later(pq, NO_LEASE_AT_ENTRY_MS)
            return
        pq.loop_began_ms = now_ms
        self.turn(now_ms, pq)

    def turn(self, now_ms: int, pq: ProcessQueue) -> None:
        """One turn of the loop; when no listener call comes of it, the thread is given up."""
        if pq.phase is not Phase.CHOOSING or not self._chooses_a_batch(now_ms, pq):
            self.leave_thread()

    def _chooses_a_batch(self, now_ms: int, pq: ProcessQueue) -> bool:
        consumer = self.consumer
        if consumer.stopping:
            consumer.move(pq, Event.REST)
        elif not consumer.leases.holds_lease(now_ms, pq):
            consumer.leases.relock_later(pq, NO_LEASE_IN_LOOP_MS)
        elif now_ms - pq.loop_began_ms > self.config.continuous_ms:
            self.resubmit_later(pq, IN_LINE_AGAIN_MS)
        elif batch := pq.take(self.config.batch):
            self.call(pq, batch)
            return True
        else:
            consumer.move(pq, Event.REST)
        return False

    def call(self, pq: ProcessQueue, batch: list[StoredMessage]) -> None:
        self.consumer.move(pq, Event.CALL)
        self.consumer.calls.call_listener(pq, batch)

    # ------------------------------------------------------------ the result

    def on_listener_returned(self, now_ms: int, input: ListenerReturned) -> None:
        call = self.consumer.calls.returned(input.call_id)
        if call is None:
            return
        outcome = input.outcome
        mode = CommitMode.MANUAL if input.manual else CommitMode.AUTO
        suspends = outcome in LISTENER_SUSPENDS
        fields: dict[str, Any] = {"commit_mode": mode}
        if suspends or (outcome is Outcome.ROLLBACK and input.manual):
            fields["suspend_ms"] = clamp_suspend(input.suspend_ms, self.config.suspend_ms)
        self.consumer.end(call.op, outcome, fields)
        ended = Ended(call.pq, call.batch, outcome, mode, self.pause_ms(input.suspend_ms))
        if suspends:
            self._give_up_exhausted(now_ms, ended, call)
        else:
            self.finish(now_ms, ended)

    def _give_up_exhausted(self, now_ms: int, ended: Ended, call: Call) -> None:
        dead_letters, pq = self.consumer.dead_letters, call.pq
        exhausted = [
            message
            for message in call.batch
            if dead_letters.is_exhausted(pq.times(message)) and not self.is_handed_on(pq, message)
        ]
        if exhausted:
            dead_letters.give_up(now_ms, pq, exhausted, partial(self._gave_up, ended))
        else:
            self._gave_up(ended, now_ms, frozenset())

    def is_handed_on(self, pq: ProcessQueue, message: StoredMessage) -> bool:
        """Was it given up before, and came again only because of others of its batch?

        RocketMQ's client does not ask, and sends it to the dead letters once more each time (docs/sources.md).
        """
        return message.queue_offset in pq.handed_on

    def pause_ms(self, asked_ms: int) -> int:
        """How long the lane waits after a result that asks for it."""
        return clamp_suspend(asked_ms, self.config.suspend_ms)

    def _gave_up(self, ended: Ended, now_ms: int, done: frozenset[int]) -> None:
        """The exhausted messages of the batch were sent away; `done` are those that arrived.

        One message that is not exhausted, or did not arrive, keeps the whole batch; those that arrived are not sent
        again when it comes again.
        """
        pq = ended.pq
        pq.handed_on |= done
        kept = [
            message
            for message in ended.batch
            if not (message.queue_offset in done or self.is_handed_on(pq, message))
        ]
        for message in kept:
            self.count_retry(pq, message)
        self.finish(now_ms, ended._replace(given_up=not kept))

    def count_retry(self, pq: ProcessQueue, message: StoredMessage) -> None:
        pq.count_retry(message)

    def finish(self, now_ms: int, ended: Ended) -> None:
        """What `RESULTS` says."""
        pq = ended.pq
        rule = RESULTS[ended.outcome, ended.mode, ended.given_up]
        self.put_back(pq, ended.batch, rule.back)
        if rule.commit:
            self.commit_batch(pq)
        self.consumer.release.settle(now_ms, pq)
        if self.consumer.stopped:
            return
        if rule.go_on:
            self.turn(now_ms, pq)
        else:
            self.leave_thread()
            self.rest(now_ms, pq, ended.pause_ms)
        self.use_threads(now_ms)

    def rest(self, now_ms: int, pq: ProcessQueue, pause_ms: int) -> None:
        """The lane waits for its time, and no thread waits with it."""
        self.resubmit_later(pq, pause_ms)

    def put_back(self, pq: ProcessQueue, batch: list[StoredMessage], back: Back) -> None:
        if back is Back.BATCH:
            pq.make_again(batch)
        elif back is Back.TAKEN:
            pq.roll_back()

    def commit_batch(self, pq: ProcessQueue) -> None:
        self.consumer.offsets.store_offset(pq, pq.commit())
