"""What loops have in common that call the listener for several messages of one lane at a time.

There is no lease: members share the queues by rebalance alone, and while it goes on two of them may work on one
queue. A lane that is dropped is let go at once, whatever still runs; the result of such a call moves no offset.
A lane is not pulled while too much of it is unfinished (a number of messages, or a span of offsets), so that one
message that can't be finished does not fill the memory with those behind it.

Work waits in one line for `threads` threads; who has a thread keeps it until all that follows from its call is over.
Source: `ConsumeMessageConcurrentlyService` of apache/rocketmq.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from reference_impl.core.consumer.part import Part
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.core.consumer.unfinished_queue import UnfinishedQueue
from reference_impl.core.io import ListenerReturned
from reference_impl.protocol.message import StoredMessage
from specs.vocabulary import LISTENER_SUSPENDS, CommitMode

if TYPE_CHECKING:
    from reference_impl.core.consumer.consumer import Consumer


@dataclass(slots=True)
class Work:
    """A call to be made. batch: empty when it is chosen at the moment of the call. key: whose line it is from."""

    pq: UnfinishedQueue
    batch: Sequence[StoredMessage] = ()
    key: str | None = None


class SideBySideLoop(Part, ABC):
    """Runs work from one line on a limited number of threads."""

    queue_class: ClassVar[type[ProcessQueue]] = UnfinishedQueue

    def __init__(self, consumer: Consumer) -> None:
        super().__init__(consumer)
        self.waiting: deque[Work] = deque()
        self._later: dict[int, Work] = {}  # waits for its time, by the number in its timer's token
        self._at_work = 0  # calls, with what follows them, of whatever lane
        consumer.timers["later"] = self._time_has_come

    def is_at_rest(self) -> bool:
        return not self._at_work

    # ------------------------------------------------------------ work

    def keep(self, now_ms: int, pq: ProcessQueue, messages: list[StoredMessage]) -> None:
        assert isinstance(pq, UnfinishedQueue), "every lane is made by `queue_class`"
        self.take_in(pq, pq.admit(messages))
        self.use_threads(now_ms)

    def take_in(self, pq: UnfinishedQueue, messages: Sequence[StoredMessage]) -> None:
        """New messages, in the order of the queue: put what can be done now into the line."""
        size = self.config.batch
        self.waiting.extend(
            Work(pq, messages[at : at + size]) for at in range(0, len(messages), size)
        )

    def choose(self, work: Work) -> list[StoredMessage]:
        """The messages of the call that is about to be made."""
        return list(work.batch)

    def use_threads(self, now_ms: int) -> None:
        calls = self.consumer.calls
        while calls.free_threads and self.waiting and not self.consumer.stopping:
            work = self.waiting.popleft()
            if not work.pq.dropped:
                calls.free_threads -= 1
                self._at_work += 1
                calls.call_listener(work.pq, self.choose(work))

    def do_later(self, work: Work, delay_ms: int) -> None:
        """Put the work into the line after the delay."""
        number = self.consumer.next_number()
        self._later[number] = work
        self.consumer.set_timer(("later", number), delay_ms)

    def _time_has_come(self, now_ms: int, number: int) -> None:
        work = self._later.pop(number, None)
        if work is not None and not work.pq.dropped:
            self.waiting.append(work)
            self.use_threads(now_ms)

    # ------------------------------------------------------------ the result

    def on_listener_returned(self, now_ms: int, input: ListenerReturned) -> None:
        call = self.consumer.calls.returned(input.call_id)
        if call is None:
            return
        pq = call.pq
        assert isinstance(pq, UnfinishedQueue), "every lane is made by `queue_class`"
        fields = {"commit_mode": CommitMode.AUTO, **self.result_fields(input)}
        self.consumer.end(call.op, input.outcome, fields)
        if pq.dropped:
            self.over(now_ms, pq)
        elif input.outcome in LISTENER_SUSPENDS:
            self.failed(now_ms, pq, call.batch, input)
        else:
            self.succeeded(now_ms, pq, call.batch)

    def result_fields(self, how: ListenerReturned) -> dict[str, int]:
        """What the recorder is told about a result besides its name."""
        return {}

    def succeeded(self, now_ms: int, pq: UnfinishedQueue, batch: Sequence[StoredMessage]) -> None:
        self.finish(pq, batch)
        self.over(now_ms, pq)

    @abstractmethod
    def failed(
        self,
        now_ms: int,
        pq: UnfinishedQueue,
        batch: Sequence[StoredMessage],
        how: ListenerReturned,
    ) -> None:
        """The listener wants the batch again. Ends, sooner or later, in `over`."""

    def finish(self, pq: UnfinishedQueue, batch: Sequence[StoredMessage]) -> None:
        self.consumer.offsets.store_offset(pq, pq.finish(batch))

    def over(self, now_ms: int, pq: ProcessQueue) -> None:
        """A call, and all that follows it, is over: its thread is free."""
        self.consumer.calls.free_threads += 1
        self._at_work -= 1
        self.consumer.release.settle(now_ms, pq)
        if not self.consumer.stopped:
            self.use_threads(now_ms)
