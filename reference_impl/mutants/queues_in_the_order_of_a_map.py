"""Each producer has the queues of a topic in an order of its own, and counts in it.

Shows when two producers send messages of one key to a topic with several queues.
"""

import zlib

from reference_impl.core.producer import Producer
from reference_impl.protocol.bodies import TopicRoute
from specs.vocabulary import Queue

NAME = "queues-in-the-order-of-a-map"
BUG = "B-18: the order of the queues is that in which a map gives them, and differs from producer to producer"
SOURCE = "RocketMQ issue 1999; rocketmq-client-go #795 and #1076 (da20ee7, 2023)"
KILLED_BY = "ORD-6"


class Mutated(Producer):
    def queues_of(self, topic: str, route: TopicRoute) -> list[Queue]:
        return sorted(super().queues_of(topic, route), key=lambda queue: self._hash(str(queue)))

    def _hash(self, text: str) -> int:
        return zlib.crc32(f"{self.config.client_id} {text}".encode())


producer = Mutated
