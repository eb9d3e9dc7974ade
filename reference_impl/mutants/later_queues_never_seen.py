"""A refreshed route takes queues away from a consumer, and never adds one that was not in the list before.

Shows when a broker comes, or comes back, after its topic's queues were looked up.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.routes import Routes
from reference_impl.protocol.bodies import TopicRoute

NAME = "later-queues-never-seen"
BUG = "hand-made: what is known of a topic is compared with its new route from one side only"
SOURCE = "MQClientInstance.updateTopicRouteInfoFromNameServer, which hands the whole new list to RebalanceImpl"
KILLED_BY = "LIV-2"


class MutatedRoutes(Routes):
    def learn(self, now_ms: int, topic: str, route: TopicRoute) -> None:
        known = self.queues.get(topic)
        super().learn(now_ms, topic, route)
        if known is not None:
            self.queues[topic] = [queue for queue in self.queues[topic] if queue in known]


class Mutated(OrderlyConsumer):
    routes_class = MutatedRoutes


consumer = Mutated
