"""After a message was given up its lane waits for some seconds, as after a suspend.

Shows when more messages of the lane are waiting behind the one that is given up; needs a limit.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.protocol.message import StoredMessage
from specs.vocabulary import CommitMode, Outcome

NAME = "given-up-lane-stands-still"
BUG = "B-49, third part: what waits for the forwarding is not told of its end, and the queue stands still"
SOURCE = "rocketmq-clients 7f9bdf71; there for ever"
KILLED_BY = "DLQ-9"
CONFIG = {"max_reconsume_times": 1}
LONG_MS = 5_000


class Mutated(OrderlyConsumer):
    def _finish(
        self,
        now_ms: int,
        pq: ProcessQueue,
        batch: list[StoredMessage],
        outcome: Outcome,
        mode: CommitMode,
        pause_ms: int,
        given_up: bool,
    ) -> None:
        if not given_up or mode is CommitMode.MANUAL:
            super()._finish(now_ms, pq, batch, outcome, mode, pause_ms, given_up)
            return
        self.commit_batch(pq)
        self.settle(now_ms, pq)
        if not self.stopped:
            self._leave_thread()
            self.set_timer(("resubmit", pq.serial), LONG_MS)
            self.use_threads(now_ms)


consumer = Mutated
