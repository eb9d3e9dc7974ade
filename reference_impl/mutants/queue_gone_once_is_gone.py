"""A queue that a refreshed route takes away is noted as gone, and is not looked at again when it is back.

Shows when a broker was away for long enough that a consumer heard of it, and comes back.
"""

from reference_impl.core.consumer import Consumer, OrderlyConsumer
from reference_impl.core.consumer.routes import Routes
from reference_impl.protocol.bodies import TopicRoute
from specs.vocabulary import Queue

NAME = "queue-gone-once-is-gone"
BUG = "hand-made: queues that are gone are kept in a list, so that nothing is asked about them, and nothing clears it"
SOURCE = "MQClientInstance.updateTopicRouteInfoFromNameServer, which hands the whole new list to RebalanceImpl"
KILLED_BY = "LIV-2"


class MutatedRoutes(Routes):
    def __init__(self, consumer: Consumer) -> None:
        super().__init__(consumer)
        self.gone: set[Queue] = set()

    def learn(self, now_ms: int, topic: str, route: TopicRoute) -> None:
        known = self.queues.get(topic, ())
        super().learn(now_ms, topic, route)
        self.gone.update(set(known) - set(self.queues[topic]))
        self.queues[topic] = [queue for queue in self.queues[topic] if queue not in self.gone]


class Mutated(OrderlyConsumer):
    routes_class = MutatedRoutes


consumer = Mutated
