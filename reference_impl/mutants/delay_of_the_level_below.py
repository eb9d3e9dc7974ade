"""A delayed message waits for the time of the level below its own; at the first level for none.

Shows at the first message with a delay level that is delivered.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.storing import Storing

NAME = "delay-of-the-level-below"
BUG = "hand-made: the delay table is read one place too low, levels count from 1"
SOURCE = "ScheduleMessageService: levels count from 1, the queues of the delay topic from 0"
KILLED_BY = "SND-7"


class HastyStoring(Storing):
    def wait_ms(self, level: int) -> int:
        return super().wait_ms(level - 1) if level > 1 else 0


class Mutated(Broker):
    storing_class = HastyStoring


broker = Mutated
