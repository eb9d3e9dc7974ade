"""A listener call starts although the last grant is older than the client's limit.

Shows when renewals stay unanswered for longer than the client's limit while messages are cached: a link on hold,
or a broker paused, with a slow listener.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.leases import Leases
from reference_impl.core.consumer.process_queue import ProcessQueue

NAME = "guard-ignores-expiry"
BUG = "B-02: the guard before a call looks at the flag and not at the age of the grant"
SOURCE = "ConsumeMessageOrderlyService before commit 45cb093e79 (2014)"
KILLED_BY = "LSE-3"


class MutatedLeases(Leases):
    def holds_lease(self, now_ms: int, pq: ProcessQueue) -> bool:
        return pq.locked


class Mutated(OrderlyConsumer):
    leases_class = MutatedLeases


consumer = Mutated
