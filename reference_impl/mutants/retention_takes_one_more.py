"""With the messages that are too old the next one of each queue goes, which is not, and of which nobody is told.

Shows when a queue is read in which something was removed and something younger was left. Needs a time to keep that a
run outlasts.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.log import Trimmed
from reference_impl.core.broker.retention import Retention
from reference_impl.core.io import Effect

NAME = "retention-takes-one-more"
BUG = "hand-made: the minimum of a queue is taken for the last offset that goes, not for the first that stays"
SOURCE = "ConsumeQueue.correctMinOffset, which looks for the first entry that stays"
KILLED_BY = "SND-1"
CONFIG = {"keep_ms": 30_000}


class GreedyRetention(Retention):
    def remove(self, upto_ms: int | None, out: list[Effect]) -> None:
        store = self._parts.store
        gone: list[Trimmed] = store.clean(upto_ms, self._parts.config.clean_segments)
        for each in gone:
            store.trim(each.topic, each.queue_id, each.min_offset + 1)
        self.note(gone, out)


class Mutated(Broker):
    retention_class = GreedyRetention


broker = Mutated
