"""After a message was given up its lane waits for some seconds, as after a suspend.

Shows when more messages of the lane are waiting behind the one that is given up; needs a limit.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.orderly_loop import Ended, OrderlyLoop
from specs.vocabulary import CommitMode

NAME = "given-up-lane-stands-still"
BUG = "B-49, third part: what waits for the forwarding is not told of its end, and the queue stands still"
SOURCE = "rocketmq-clients 7f9bdf71; there for ever"
KILLED_BY = "DLQ-9"
CONFIG = {"max_reconsume_times": 1}
LONG_MS = 5_000


class MutatedLoop(OrderlyLoop):
    def finish(self, now_ms: int, ended: Ended) -> None:
        pq = ended.pq
        if not ended.given_up or ended.mode is CommitMode.MANUAL:
            super().finish(now_ms, ended)
            return
        self.commit_batch(pq)
        self.consumer.release.settle(now_ms, pq)
        if not self.consumer.stopped:
            self.leave_thread()
            self.resubmit_later(pq, LONG_MS)
            self.use_threads(now_ms)


class Mutated(OrderlyConsumer):
    loop_class = MutatedLoop


consumer = Mutated
