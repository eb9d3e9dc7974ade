"""Where the topics live, and telling the brokers that we are here.

Routes are asked for at the start and each poll interval, from one name server after the other until one answers;
what a topic's last good answer said stays true until the next one. A topic of the subscription without a route
is asked for again sooner. Each known broker gets a heartbeat when it is first seen and each heartbeat interval;
the first rebalance waits for the first heartbeats, so that the group is known wherever we ask about it.
Source: `MQClientInstance` of apache/rocketmq.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from reference_impl.core.consumer.part import Part
from reference_impl.core.io import Address
from reference_impl.protocol.bodies import (
    CLUSTERING,
    FROM_FIRST,
    FROM_LAST,
    FROM_TIMESTAMP,
    ConsumerData,
    Heartbeat,
    Subscription,
    TopicRoute,
)
from reference_impl.protocol.codes import RequestCode, ResponseCode
from reference_impl.protocol.command import Command
from reference_impl.protocol.headers import PERM_READ, GetRouteHeader
from specs.vocabulary import Queue

if TYPE_CHECKING:
    from reference_impl.core.consumer.consumer import Consumer

ROUTES = ("routes",)
HEARTBEAT = ("heartbeat",)

CONSUME_FROM = {"first": FROM_FIRST, "last": FROM_LAST, "timestamp": FROM_TIMESTAMP}


def readable_queues(topic: str, route: TopicRoute) -> list[Queue]:
    """The queues that can be read, in the order in which every client must see them."""
    return sorted(
        Queue(topic, item.broker, number)
        for item in route.queues
        if item.perm & PERM_READ
        for number in range(item.read_queues)
    )


class Routes(Part):
    """Routes of the subscribed topics, addresses of their brokers, heartbeats."""

    def __init__(self, consumer: Consumer) -> None:
        super().__init__(consumer)
        self.known: dict[str, TopicRoute] = {}
        self.queues: dict[str, list[Queue]] = {}
        self._beaten: set[Address] = set()
        self._heartbeat_body = b""
        self._open_questions = 0
        self.is_ready = False
        self._name_server = 0  # the one that answered last
        consumer.timers["routes"] = self.ask_all
        consumer.timers["heartbeat"] = self._heartbeat_tick

    def subscribe(self, now_ms: int) -> None:
        """The subscription is the given topics and the group's own retry topic, stamped with this moment.

        Where every member consumes everything, nothing is retried, and there is no retry topic.
        """
        for topic, expression in self.config.topics.items():
            self.consumer.subscriptions[topic] = Subscription.of(topic, expression, now_ms)
        if self.consumer.has_retry_topic and self.config.message_model == CLUSTERING:
            self.consumer.subscriptions.setdefault(
                self.consumer.retry_topic, Subscription.of(self.consumer.retry_topic, "*", now_ms)
            )
        consumer = ConsumerData(
            self.config.group,
            self.consumer.consume_type,
            message_model=self.config.message_model,
            consume_from=CONSUME_FROM[self.config.consume_from],
            subscriptions=tuple(
                self.consumer.subscriptions[topic] for topic in sorted(self.consumer.subscriptions)
            ),
        )
        self._heartbeat_body = Heartbeat(self.config.client_id, consumers=(consumer,)).encode()

    def start(self, now_ms: int) -> None:
        self.subscribe(now_ms)
        self.consumer.set_timer(HEARTBEAT, self.config.heartbeat_ms)

    # ------------------------------------------------------------ routes

    def ask_all(self, now_ms: int) -> None:
        missing = any(topic not in self.known for topic in self.config.topics)
        self.consumer.set_timer(
            ROUTES, self.config.route_retry_ms if missing else self.config.route_poll_ms
        )
        for topic in sorted(self.consumer.subscriptions):
            self.ask_route(now_ms, topic)

    def ask_route(self, now_ms: int, topic: str, tried: int = 0) -> None:
        """Asks the name servers in turn, beginning with the one that answered last.

        The next one is asked also when a topic is unknown: who was just started knows nothing yet.
        """
        self._open_questions += 1
        command = Command(RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteHeader(topic, True).to_ext())
        at = (self._name_server + tried) % len(self.config.name_servers)

        def on_end(now_ms: int, answer: Command | None, reason: str) -> None:
            if answer is not None and answer.code == ResponseCode.SUCCESS:
                self._name_server = at
            self._route_answered(topic, tried, now_ms, answer, reason)

        self.consumer.request(
            now_ms, self.config.name_servers[at], command, self.config.request_timeout_ms, on_end
        )

    def _route_answered(
        self, topic: str, tried: int, now_ms: int, answer: Command | None, reason: str
    ) -> None:
        if answer is not None and answer.code == ResponseCode.SUCCESS:
            route = TopicRoute.decode(answer.body)
            self._open_questions -= 1
            if self.known.get(topic) != route:
                self.learn(now_ms, topic, route)
        else:
            self._open_questions -= 1
            unknown = answer is None or answer.code == ResponseCode.TOPIC_NOT_EXIST
            if unknown and tried + 1 < len(self.config.name_servers):
                self.ask_route(now_ms, topic, tried + 1)
        self._check_ready(now_ms)

    def learn(self, now_ms: int, topic: str, route: TopicRoute) -> None:
        self.known[topic] = route
        for broker in route.brokers:
            if broker.master is not None:
                self.consumer.addresses[broker.broker] = broker.master
        queues = readable_queues(topic, route)
        changed = self.queues.get(topic) != queues
        self.queues[topic] = queues
        self.beat(now_ms, sorted(set(self.consumer.addresses.values()) - self._beaten))
        if changed and self.is_ready:
            self.consumer.rebalance.soon()

    # ------------------------------------------------------------ heartbeats

    def _heartbeat_tick(self, now_ms: int) -> None:
        self.consumer.set_timer(HEARTBEAT, self.config.heartbeat_ms)
        self.beat(now_ms, sorted(set(self.consumer.addresses.values())))

    def beat(self, now_ms: int, addresses: list[Address]) -> None:
        """Tells these brokers that we are here, unless we have said goodbye."""
        for address in () if self.consumer.has_left else addresses:
            self._beaten.add(address)
            self._open_questions += 1
            command = Command(RequestCode.HEART_BEAT, body=self._heartbeat_body)
            self.consumer.request(
                now_ms,
                address,
                command,
                self.config.request_timeout_ms,
                partial(self._beat_ended, address),
            )

    def _beat_ended(
        self, address: Address, now_ms: int, answer: Command | None, reason: str
    ) -> None:
        self._open_questions -= 1
        if answer is None or answer.code != ResponseCode.SUCCESS:
            self._beaten.discard(address)  # the next route that is learnt tries again
        self._check_ready(now_ms)

    def _check_ready(self, now_ms: int) -> None:
        if not self.is_ready and not self._open_questions and self.consumer.addresses:
            self.is_ready = True
            if (
                self.consumer.retry_topic in self.consumer.subscriptions
                and self.consumer.retry_topic not in self.known
            ):
                self.ask_route(
                    now_ms, self.consumer.retry_topic
                )  # the brokers have made it at our first heartbeat
            self.consumer.rebalance.in_turn(now_ms)
