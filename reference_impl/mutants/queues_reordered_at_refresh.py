"""After each answer about a topic's route the producer has its queues in another order.

Shows when messages of one key are sent before and after a route was asked for again.
"""

from reference_impl.core.producer import Producer
from reference_impl.protocol.command import Command

NAME = "queues-reordered-at-refresh"
BUG = "B-18: the order of the queues is that in which a map gives them, and differs from refresh to refresh"
SOURCE = "RocketMQ issue 1999; rocketmq-client-go #1076 (da20ee7, 2023)"
KILLED_BY = "ORD-1"
CONFIG = {"heartbeat_ms": 500}


class Mutated(Producer):
    def _route_answered(
        self, topic: str, tried: int, now_ms: int, answer: Command | None, reason: str
    ) -> None:
        super()._route_answered(topic, tried, now_ms, answer, reason)
        queues = self.queues.get(topic)
        if queues:
            queues.append(queues.pop(0))


producer = Mutated
