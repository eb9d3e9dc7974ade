"""A lane that is taken away is released at once, although its listener call still runs.

Shows when a client joins or leaves while a listener takes longer than the handover: the successor starts beside it.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.lane_life import Event, Phase, with_steps
from reference_impl.core.consumer.lane_release import LaneRelease
from reference_impl.core.consumer.process_queue import ProcessQueue

NAME = "unlock-while-listener-runs"
BUG = "B-01, B-04: the lock is released without waiting for the running listener"
SOURCE = "RebalancePushImpl before commits 45dae1fa82 (2014) and 15b758e80d (2015)"
KILLED_BY = "LSE-2"


class MutatedRelease(LaneRelease):
    def may_release(self, pq: ProcessQueue) -> bool:
        return True


class Mutated(OrderlyConsumer):
    release_class = MutatedRelease
    life = with_steps({(Phase.LEAVING, Event.RELEASE): Phase.ELSEWHERE})


consumer = Mutated
