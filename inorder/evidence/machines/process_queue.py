"""The process queue against two plain lists: put, take, commit, put back, roll back, count.

After every step the order of what waits, the set of what is taken, the counters and the number held are compared.
The phase of the lane is the consumer's to move: here it follows from what the queue answers, a task or none.
"""

from __future__ import annotations

from collections.abc import Hashable

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from inorder.evidence.machines.programs import Bench, Disagreement, ProgramMachine
from reference_impl.core.consumer.lane_life import Phase
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.mutants import Mutant
from reference_impl.protocol.message import StoredMessage
from specs.model.process_queue import HeldMessages
from specs.vocabulary import Lane

LANE = Lane("billing", "orders", "b0", 0)


class ProcessQueueBench(Bench):
    """queue_class: what is tested; a test of the machine puts a broken one here."""

    queue_class: type[ProcessQueue] = ProcessQueue

    def __init__(self, mutant: Mutant | None) -> None:
        super().__init__(mutant)
        self.queue = self.queue_class(lane=LANE, serial=1, incarnation="c#1", start=0, row={})
        self.model = HeldMessages()
        self.batch: list[StoredMessage] = []  # that was taken last

    def begin(self) -> None:
        """Empty at first."""

    def put(self, first: int, count: int, carried: int) -> None:
        messages = [_message(offset, carried) for offset in range(first, first + count)]
        begins = self.queue.put(messages)
        if begins:
            self.queue.phase = Phase.IN_LINE
        self._same("put", begins, self.model.put(range(first, first + count)))

    def take(self, most: int) -> None:
        self.batch = self.queue.take(most)
        if not self.batch:
            self.queue.phase = Phase.IDLE
        self._same("take", [message.queue_offset for message in self.batch], self.model.take(most))

    def commit(self) -> None:
        self._same("commit", self.queue.commit(), self.model.commit())

    def again(self, of_last: bool) -> None:
        """The batch taken last comes again; or one that is not taken any more, which changes nothing."""
        batch = (
            self.batch if of_last else [_message(offset, 0) for offset in self.model.waiting[:2]]
        )
        self.queue.make_again(batch)
        self.model.again([message.queue_offset for message in batch])
        self._same("make again", None, None)

    def roll_back(self) -> None:
        self.queue.roll_back()
        self.model.roll_back()
        self._same("roll back", None, None)

    def count(self, place: int) -> None:
        """One more retry of a message that is held."""
        if self.model.held:
            offset = self.model.held[place % len(self.model.held)]
            carried = self.queue.times(_message(offset, 0)) - self.model.counted.get(offset, 0)
            self.queue.count_retry(_message(offset, 0))
            self.model.count(offset)
            times = self.queue.times(_message(offset, 2))
            self._same("count", (carried, times), (0, 2 + self.model.counted[offset]))

    def _same(self, what: str, found: object, expected: object) -> None:
        queue, model = self.queue, self.model
        seen = (
            found,
            [message.queue_offset for message in queue.pending],
            sorted(queue.taken),
            dict(sorted(queue.extra_times.items())),
            queue.count,
            queue.phase is not Phase.IDLE,
        )
        right = (
            expected,
            model.waiting,
            model.taken,
            dict(sorted(model.counted.items())),
            len(model.held),
            model.consuming,
        )
        if seen != right:
            raise Disagreement(
                f"{what}: (result, waiting, taken, counted, held, consuming) is {seen}, not {right}"
            )

    def abstract(self) -> Hashable:
        model = self.model
        gaps = any(b != a + 1 for a, b in zip(model.held, model.held[1:], strict=False))
        return (
            min(len(model.waiting), 4),
            min(len(model.taken), 4),
            bool(model.counted),
            model.consuming,
            gaps,
        )


class ProcessQueueMachine(ProgramMachine):
    """See the module."""

    NAME = "process_queue"
    bench_class = ProcessQueueBench

    @initialize()
    def begin(self) -> None:
        self.do("begin")

    @rule(first=st.integers(0, 20), count=st.integers(0, 5), carried=st.integers(0, 2))
    def put(self, first: int, count: int, carried: int) -> None:
        """Also what is held already, and below what was taken."""
        self.do("put", first=first, count=count, carried=carried)

    @rule(most=st.integers(1, 4))
    def take(self, most: int) -> None:
        self.do("take", most=most)

    @rule()
    def commit(self) -> None:
        self.do("commit")

    @rule(of_last=st.sampled_from((True, True, False)))
    def again(self, of_last: bool) -> None:
        self.do("again", of_last=of_last)

    @rule()
    def roll_back(self) -> None:
        self.do("roll_back")

    @rule(place=st.integers(0, 9))
    def count(self, place: int) -> None:
        self.do("count", place=place)


def _message(offset: int, carried: int) -> StoredMessage:
    return StoredMessage("orders", 0, offset, 100 * offset, b"", reconsume_times=carried)
