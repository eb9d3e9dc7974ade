"""Of a request for several lanes one was refused: none is added, and none is asked for again for three rebalances.

Shows when a member takes its share while somebody still has a part of it.
"""

from collections.abc import Sequence

from reference_impl.core.consumer import ConsumerConfig, OrderlyConsumer
from reference_impl.core.consumer.leases import Granted
from reference_impl.core.consumer.rebalance import Candidate
from specs.vocabulary import Queue

NAME = "granted-but-left-with-the-refused"
BUG = "hand-made: a request that was not granted as a whole counts as refused, and what it did get is not given back"
SOURCE = "RebalanceImpl.updateProcessQueueTableInRebalance, which asks for each queue and skips the refused ones only"
KILLED_BY = "LIV-5"


class Mutated(OrderlyConsumer):
    def __init__(self, config: ConsumerConfig) -> None:
        super().__init__(config)
        self.left_until: dict[Queue, int] = {}

    def _candidates_answered(
        self, candidates: Sequence[Candidate], now_ms: int, granted: Granted
    ) -> None:
        if not granted or all(candidate.queue in granted for candidate in candidates):
            super()._candidates_answered(candidates, now_ms, granted)
            return
        for candidate in candidates:
            self.candidates.pop(candidate.queue, None)
            self.left_until[candidate.queue] = now_ms + 3 * self.config.rebalance_interval_ms

    def _add_lanes(self, now_ms: int, share: Sequence[Queue]) -> None:
        super()._add_lanes(
            now_ms, [queue for queue in share if self.left_until.get(queue, 0) <= now_ms]
        )


consumer = Mutated
