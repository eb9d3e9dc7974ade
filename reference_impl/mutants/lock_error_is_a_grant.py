"""A consumer takes an error for an answer: the lanes that it asked for count as granted.

Shows when a lease runs out, or a lane changes hands, while the broker answers the request for it with an error.
"""

from collections.abc import Callable, Sequence

from reference_impl.core.consumer.leases import Granted, Leases
from reference_impl.core.consumer.orderly import OrderlyConsumer
from reference_impl.protocol.codes import ResponseCode
from reference_impl.protocol.command import Command
from specs.vocabulary import Queue

NAME = "lock-error-is-a-grant"
BUG = "hand-made: the code of the answer to a lock request is not looked at, only whether there was one"
SOURCE = (
    "RebalanceImpl.lockAll and MQClientAPIImpl.lockBatchMQ, which throws for every code but SUCCESS"
)
KILLED_BY = "LSE-3"


class Trusting(Leases):
    def lease_answered(
        self,
        op: int,
        queues: Sequence[Queue],
        then: Callable[[int, Granted], None],
        now_ms: int,
        answer: Command | None,
        reason: str,
    ) -> None:
        if answer is not None and answer.code != ResponseCode.SUCCESS:
            take, all_of_them = then, frozenset(queues)

            def then(now_ms: int, granted: Granted) -> None:
                take(now_ms, all_of_them)

        super().lease_answered(op, queues, then, now_ms, answer, reason)


class Mutated(OrderlyConsumer):
    leases_class = Trusting


consumer = Mutated
