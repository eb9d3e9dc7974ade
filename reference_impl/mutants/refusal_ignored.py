"""A client that is refused its lane keeps the flag, and works on until the old grant is too old.

Shows when the broker has forgotten the client's lease (a restart) and somebody else is faster.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.leases import Leases
from reference_impl.core.consumer.process_queue import ProcessQueue

NAME = "refusal-ignored"
BUG = "B-08: the flag still says locked when the lock is gone"
SOURCE = "rocketmq-client-cpp #145 and #175 (2c213cf, 2019), there at the unlock"
KILLED_BY = "LSE-3"


class MutatedLeases(Leases):
    def lease_refused(self, now_ms: int, pq: ProcessQueue) -> None:
        pass


class Mutated(OrderlyConsumer):
    leases_class = MutatedLeases


consumer = Mutated
