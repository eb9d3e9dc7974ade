"""What consumers have in common that call the listener for several messages of one lane at a time.

They take no lease: members share the queues by rebalance alone, and while it goes on two of them may work on one
queue. A lane that is dropped is let go at once, whatever still runs; the result of such a call moves no offset.
A lane is not pulled while too much of it is unfinished (a number of messages, or a span of offsets), so that one
message that can't be finished does not fill the memory with those behind it.

Work waits in one line for `threads` threads; who has a thread keeps it until all that follows from its call is over.
Source: `ConsumeMessageConcurrentlyService` of apache/rocketmq.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from reference_impl.core.consumer.config import ConsumerConfig
from reference_impl.core.consumer.offsets import PERSIST
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.core.consumer.rebalance import REBALANCE, Candidate
from reference_impl.core.consumer.routes import HEARTBEAT
from reference_impl.core.consumer.shutdown import ShuttingDown
from reference_impl.core.consumer.unfinished_queue import UnfinishedQueue
from reference_impl.core.io import ListenerReturned, Start
from reference_impl.protocol.message import StoredMessage
from specs.vocabulary import LISTENER_SUSPENDS, CommitMode, Kind, Queue


@dataclass(slots=True)
class Work:
    """A call to be made. batch: empty when it is chosen at the moment of the call. key: whose line it is from."""

    pq: UnfinishedQueue
    batch: Sequence[StoredMessage] = ()
    key: str | None = None


class SideBySide(ShuttingDown):
    """Runs work from one line on a limited number of threads, without leases."""

    queue_class: ClassVar[type[ProcessQueue]] = UnfinishedQueue

    def __init__(self, config: ConsumerConfig) -> None:
        super().__init__(config)
        self.waiting: deque[Work] = deque()
        self.later: dict[
            int, Work
        ] = {}  # what waits for its time, by the number in its timer's token
        self.at_work = 0  # calls, with what follows them, of whatever lane
        self._timers["later"] = self._time_has_come

    def on_start(self, now_ms: int, input: Start) -> None:
        self.note(Kind.JOIN, self._who)
        self.subscribe(now_ms)
        config = self.config
        self.set_timer(HEARTBEAT, config.heartbeat_ms)
        self.set_timer(REBALANCE, config.rebalance_interval_ms)
        self.set_timer(PERSIST, config.persist_first_ms)
        self._routes_tick(now_ms)

    # ------------------------------------------------------------ no lease

    def holds_lease(self, now_ms: int, pq: ProcessQueue) -> bool:
        return True

    def lock_before_add(self, now_ms: int, broker: str, candidates: Sequence[Candidate]) -> None:
        for candidate in candidates:
            self.find_start(now_ms, candidate)

    def unlock(self, broker: str, queues: Sequence[Queue]) -> None:
        """There is nothing to give back."""

    def may_release(self, pq: ProcessQueue) -> bool:
        return True

    # ------------------------------------------------------------ back-pressure

    def pull(self, now_ms: int, pq: ProcessQueue) -> None:
        if isinstance(pq, UnfinishedQueue) and pq.span > self.config.span_max:
            self.pull_later(pq, self.config.pull_flow_control_ms)
        else:
            super().pull(now_ms, pq)

    # ------------------------------------------------------------ work

    @abstractmethod
    def take_in(self, pq: UnfinishedQueue, messages: Sequence[StoredMessage]) -> None:
        """New messages, in the order of the queue: put what can be done now into the line."""

    @abstractmethod
    def failed(
        self,
        now_ms: int,
        pq: UnfinishedQueue,
        batch: Sequence[StoredMessage],
        how: ListenerReturned,
    ) -> None:
        """The listener wants the batch again. Ends, sooner or later, in `over`."""

    def succeeded(self, now_ms: int, pq: UnfinishedQueue, batch: Sequence[StoredMessage]) -> None:
        self.finish(pq, batch)
        self.over(now_ms, pq)

    def choose(self, work: Work) -> list[StoredMessage]:
        """The messages of the call that is about to be made."""
        return list(work.batch)

    def keep(self, now_ms: int, pq: ProcessQueue, messages: list[StoredMessage]) -> None:
        assert isinstance(pq, UnfinishedQueue), "every lane is made by `queue_class`"
        self.take_in(pq, pq.admit(messages))
        self.use_threads(now_ms)

    def use_threads(self, now_ms: int) -> None:
        while self.free_threads and self.waiting and not self.stopping:
            work = self.waiting.popleft()
            if not work.pq.dropped:
                self.free_threads -= 1
                self.at_work += 1
                self.call_listener(work.pq, self.choose(work))

    def do_later(self, work: Work, delay_ms: int) -> None:
        """Put the work into the line after the delay."""
        self._number += 1
        self.later[self._number] = work
        self.set_timer(("later", self._number), delay_ms)

    def _time_has_come(self, now_ms: int, number: int) -> None:
        work = self.later.pop(number, None)
        if work is not None and not work.pq.dropped:
            self.waiting.append(work)
            self.use_threads(now_ms)

    def on_listener_returned(self, now_ms: int, input: ListenerReturned) -> None:
        call = self.calls.pop(input.call_id, None)
        if call is None:
            return
        pq = call.pq
        assert isinstance(pq, UnfinishedQueue), "every lane is made by `queue_class`"
        fields = {"commit_mode": CommitMode.AUTO, **self.result_fields(input)}
        self.end(call.op, input.outcome, fields)
        if pq.dropped:
            self.over(now_ms, pq)
        elif input.outcome in LISTENER_SUSPENDS:
            self.failed(now_ms, pq, call.batch, input)
        else:
            self.succeeded(now_ms, pq, call.batch)

    def result_fields(self, how: ListenerReturned) -> dict[str, int]:
        """What the recorder is told about a result besides its name."""
        return {}

    def finish(self, pq: UnfinishedQueue, batch: Sequence[StoredMessage]) -> None:
        self.store_offset(pq, pq.finish(batch))

    def over(self, now_ms: int, pq: ProcessQueue) -> None:
        """A call, and all that follows it, is over: its thread is free."""
        self.free_threads += 1
        self.at_work -= 1
        self.settle(now_ms, pq)
        if not self.stopped:
            self.use_threads(now_ms)

    def _all_at_rest(self) -> bool:
        return not self.at_work
