"""The name server: routes of the brokers that live, as real ones answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reference_impl.core.io import (
    Closed,
    Opened,
    Received,
    Send,
    SetTimer,
    Shutdown,
    Start,
    Stopped,
    TimerFired,
)
from reference_impl.core.nameserver import SCAN_TIMER, NameServer, NameServerConfig
from reference_impl.protocol.bodies import BrokerRegistration, ClusterInfo, TopicConfig, TopicRoute
from reference_impl.protocol.codes import RequestCode
from reference_impl.protocol.command import FLAG_ONEWAY, FLAG_RESPONSE, Command
from reference_impl.protocol.headers import RegisterBrokerHeader, UnregisterBrokerHeader


class Asker:
    """A client of one name server."""

    def __init__(self, config: NameServerConfig | None = None) -> None:
        self.server = NameServer(config)
        self.now_ms = 0

    def call(
        self, code: int, ext: dict[str, str] | None = None, body: bytes = b"", **command: Any
    ) -> Command:
        conn = command.pop("conn", "c")
        effects = self.server.handle(
            self.now_ms, Received(conn, Command(code, ext or {}, body, opaque=7, **command))
        )
        (effect,) = effects
        assert isinstance(effect, Send)
        assert (effect.conn, effect.command.opaque) == (conn, 7)
        return effect.command

    def register(
        self, broker: str = "b0", *topics: TopicConfig, broker_id: int = 0, conn: str | None = None
    ) -> Command:
        header = RegisterBrokerHeader(
            broker, f"{broker}-{broker_id}:10911", "DefaultCluster", broker_id
        )
        body = BrokerRegistration(topics or (TopicConfig("orders"),)).encode()
        return self.call(
            RequestCode.REGISTER_BROKER, header.to_ext(), body, conn=conn or f"{broker}-{broker_id}"
        )

    def route(self, topic: str = "orders") -> TopicRoute | None:
        answer = self.call(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic})
        assert answer.code in (0, 17)
        return TopicRoute.decode(answer.body) if answer.code == 0 else None


@pytest.fixture
def asker() -> Asker:
    return Asker()


def test_an_unknown_topic(asker: Asker) -> None:
    assert asker.route() is None


def test_the_route_of_a_topic(asker: Asker) -> None:
    asker.register("b1", TopicConfig("orders", 8, 4))
    asker.register("b0")
    route = asker.route()
    assert route is not None
    assert [(queue.broker, queue.read_queues, queue.write_queues) for queue in route.queues] == [
        ("b0", 4, 4),
        ("b1", 8, 4),
    ]
    assert [(broker.broker, broker.addresses) for broker in route.brokers] == [
        ("b0", {0: "b0-0:10911"}),
        ("b1", {0: "b1-0:10911"}),
    ]


def test_replicas_share_a_name_and_the_master_decides(asker: Asker) -> None:
    asker.register("b0", TopicConfig("orders", 8, 8), broker_id=1)
    answer = asker.register("b0")
    assert "masterAddr" not in answer.ext
    assert (
        asker.register("b0", TopicConfig("orders", 8, 8), broker_id=1).ext["masterAddr"]
        == "b0-0:10911"
    )
    route = asker.route()
    assert route is not None
    assert [queue.read_queues for queue in route.queues] == [4]
    assert route.brokers[0].addresses == {0: "b0-0:10911", 1: "b0-1:10911"}


@pytest.mark.parametrize(
    ("command", "quoted"),
    [({"version": 399}, False), ({"version": 401}, True), ({"standard": True}, True)],
)
def test_integer_keys_are_quoted_for_those_who_need_it(
    asker: Asker, command: dict[str, Any], quoted: bool
) -> None:
    """From 4.9.4 (401) on, or when asked for."""
    asker.register()
    ext = {"topic": "orders"} | (
        {"acceptStandardJsonOnly": "true"} if command.pop("standard", False) else {}
    )
    body = asker.call(RequestCode.GET_ROUTEINFO_BY_TOPIC, ext, **command).body
    assert (b'{"0":"b0-0:10911"}' in body) is quoted
    assert (b'{0:"b0-0:10911"}' in body) is not quoted


def test_a_later_registration_replaces_the_topics(asker: Asker) -> None:
    asker.register()
    asker.register("b0", TopicConfig("payments"))
    assert asker.route("orders") is None
    assert asker.route("payments") is not None


def test_a_broker_whose_connection_closes_is_forgotten_at_once(asker: Asker) -> None:
    asker.register()
    asker.server.handle(0, Closed("somebody else"))
    assert asker.route() is not None
    asker.server.handle(0, Closed("b0-0"))
    assert asker.route() is None


def test_an_old_connection_of_a_broker_that_came_back_does_not_matter(asker: Asker) -> None:
    asker.register(conn="old")
    asker.register(conn="new")
    asker.server.handle(0, Closed("old"))
    assert asker.route() is not None


@pytest.mark.parametrize(("silence_ms", "lives"), [(120_000, True), (120_001, False)])
def test_a_silent_broker_is_forgotten(asker: Asker, silence_ms: int, lives: bool) -> None:
    asker.register()
    assert asker.server.handle(silence_ms, TimerFired(SCAN_TIMER)) == [SetTimer(SCAN_TIMER, 5_000)]
    assert (asker.route() is not None) is lives


def test_a_broker_that_takes_its_leave_is_forgotten(asker: Asker) -> None:
    asker.register()
    asker.register("b1")
    ext = UnregisterBrokerHeader("b0", "b0-0:10911", "DefaultCluster", 0).to_ext()
    oneway = Received("b0-0", Command(RequestCode.UNREGISTER_BROKER, ext, flag=FLAG_ONEWAY))
    assert asker.server.handle(0, oneway) == []
    route = asker.route()
    assert route is not None
    assert [queue.broker for queue in route.queues] == ["b1"]


def test_the_cluster(asker: Asker) -> None:
    asker.register("b1")
    asker.register("b0")
    info = ClusterInfo.decode(asker.call(RequestCode.GET_BROKER_CLUSTER_INFO).body)
    assert info.clusters == {"DefaultCluster": ("b0", "b1")}
    assert [broker.broker for broker in info.brokers] == ["b0", "b1"]


def test_all_topics(asker: Asker) -> None:
    asker.register("b0", TopicConfig("orders"), TopicConfig("payments"))
    answer = asker.call(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
    assert json.loads(answer.body) == {"topicList": ["orders", "payments"]}


def test_key_and_value(asker: Asker) -> None:
    key = {"namespace": "n", "key": "k"}
    assert asker.call(RequestCode.GET_KV_CONFIG, key).code == 22
    assert asker.call(RequestCode.PUT_KV_CONFIG, key).code == 1
    assert asker.call(RequestCode.PUT_KV_CONFIG, {**key, "value": "v"}).code == 0
    assert asker.call(RequestCode.GET_KV_CONFIG, key).ext["value"] == "v"
    assert asker.call(RequestCode.DELETE_KV_CONFIG, key).code == 0
    assert asker.call(RequestCode.GET_KV_CONFIG, key).code == 22


@pytest.mark.parametrize(("switched_on", "told"), [(True, "b0:4"), (False, None)])
def test_a_fixed_queue_list_is_told_when_switched_on(switched_on: bool, told: str | None) -> None:
    asker = Asker(NameServerConfig(order_topics=switched_on))
    asker.register()
    asker.call(
        RequestCode.PUT_KV_CONFIG,
        {"namespace": "ORDER_TOPIC_CONFIG", "key": "orders", "value": "b0:4"},
    )
    route = asker.route()
    assert route is not None
    assert route.order_conf == told


def test_what_it_does_not_know_or_can_not_read(asker: Asker) -> None:
    assert asker.call(9999).code == 3
    assert asker.call(RequestCode.GET_ROUTEINFO_BY_TOPIC).code == 1
    assert asker.call(RequestCode.REGISTER_BROKER, {"brokerName": "b0"}).code == 1
    header = RegisterBrokerHeader("b0", "b0:1", "DefaultCluster", 0)
    assert asker.call(RequestCode.REGISTER_BROKER, header.to_ext(), b"{").code == 1
    compressed = {**header.to_ext(), "compressed": "true"}
    answer = asker.call(RequestCode.REGISTER_BROKER, compressed, b"x")
    assert answer.code == 1
    assert "compressedRegister=false" in (answer.remark or "")


def test_its_life() -> None:
    server = NameServer()
    assert server.handle(0, Start()) == [SetTimer(SCAN_TIMER, 5_000)]
    assert server.handle(0, Opened("c", "peer")) == []
    assert server.handle(0, TimerFired("other")) == []
    assert server.handle(0, Received("c", Command(0, flag=FLAG_RESPONSE))) == []
    assert server.handle(0, Shutdown()) == [Stopped()]
