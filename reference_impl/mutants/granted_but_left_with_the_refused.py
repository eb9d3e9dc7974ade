"""Of a request for several lanes one was refused: none is added, and none is asked for again for three rebalances.

Shows when a member takes its share while somebody still has a part of it.
"""

from collections.abc import Sequence

from reference_impl.core.consumer import Consumer, OrderlyConsumer
from reference_impl.core.consumer.candidate import Candidate
from reference_impl.core.consumer.lane_life import Event, Phase
from reference_impl.core.consumer.leases import Granted
from reference_impl.core.consumer.rebalance import Rebalance
from specs.vocabulary import Queue

NAME = "granted-but-left-with-the-refused"
BUG = "hand-made: a request that was not granted as a whole counts as refused, and what it did get is not given back"
SOURCE = "RebalanceImpl.updateProcessQueueTableInRebalance, which asks for each queue and skips the refused ones only"
KILLED_BY = "LIV-5"


class MutatedRebalance(Rebalance):
    def __init__(self, consumer: Consumer) -> None:
        super().__init__(consumer)
        self.left_until: dict[Queue, int] = {}

    def candidates_answered(
        self, candidates: Sequence[Candidate], now_ms: int, granted: Granted
    ) -> None:
        if not granted or all(candidate.queue in granted for candidate in candidates):
            super().candidates_answered(candidates, now_ms, granted)
            return
        for candidate in candidates:
            if candidate.phase is Phase.ASKING:
                self.consumer.move(candidate, Event.SKIP)
            self.left_until[candidate.queue] = now_ms + 3 * self.config.rebalance_interval_ms

    def add_lanes(self, now_ms: int, share: Sequence[Queue]) -> None:
        super().add_lanes(
            now_ms, [queue for queue in share if self.left_until.get(queue, 0) <= now_ms]
        )


class Mutated(OrderlyConsumer):
    rebalance_class = MutatedRebalance


consumer = Mutated
