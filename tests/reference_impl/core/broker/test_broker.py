"""The broker as a whole: what survives a crash, timers, name servers, queue information."""

from __future__ import annotations

from typing import Any

import pytest

from reference_impl.core.broker import Broker, BrokerConfig, BrokerStore
from reference_impl.core.io import (
    Answered,
    Effect,
    Failed,
    Oneway,
    Request,
    Send,
    SetTimer,
    Shutdown,
    Start,
    Stopped,
    TimerFired,
)
from reference_impl.protocol.bodies import BrokerRegistration
from reference_impl.protocol.codes import RequestCode
from reference_impl.protocol.command import Command
from reference_impl.protocol.headers import (
    GetMaxOffsetHeader,
    GetMinOffsetHeader,
    SearchOffsetHeader,
    ViewMessageHeader,
)
from reference_impl.protocol.message import decode_all
from specs.plan.config import Config
from specs.vocabulary import Kind


def test_messages_and_topics_survive_a_crash(wire: Any) -> None:
    wire.send(b"kept")
    wire.boot()
    assert [message.body for message in wire.messages("orders")] == [b"kept"]
    assert wire.store.epoch == 2


@pytest.mark.parametrize(
    ("committed_at_ms", "crash_at_ms", "kept"),
    [
        (0, 9_999, False),  # the first time after 10 s
        (0, 10_000, True),
        (10_001, 14_999, False),  # then every 5 s
        (10_001, 15_000, True),
    ],
)
def test_commits_survive_from_the_next_interval_on(
    wire: Any, committed_at_ms: int, crash_at_ms: int, kept: bool
) -> None:
    wire.join("a", "c1")
    wire.send()
    wire.pass_ms(committed_at_ms)
    wire.commit(1)
    wire.pass_ms(crash_at_ms - committed_at_ms)
    wire.boot()
    assert wire.fetch() == (0, 1 if kept else 0)


def test_commits_survive_a_shutdown(wire: Any) -> None:
    wire.join("a", "c1")
    wire.send()
    wire.commit(1)
    effects = wire.feed(Shutdown())
    assert effects[-1] == Stopped()
    wire.boot()
    assert wire.fetch() == (0, 1)
    assert [note.fields["value"] for note in wire.notes if note.kind is Kind.PERSIST] == [1]


def test_members_leases_and_parked_pulls_do_not_survive(wire: Any) -> None:
    wire.join("a", "c1")
    wire.lock("a", 0)
    opaque = wire.park(0)
    wire.boot()
    wire.send()
    assert opaque not in wire.answers
    assert wire.lock("b", 0) == [0]
    assert wire.call(RequestCode.GET_CONSUMER_LIST_BY_GROUP, {"consumerGroup": "billing"}).code == 1


def test_queue_information(wire: Any) -> None:
    for number in range(3):
        wire.send(b"%d" % number)
        wire.pass_ms(10)
    wire.store.trim("orders", 0, 1)
    asked = [
        (RequestCode.GET_MAX_OFFSET, GetMaxOffsetHeader("orders", 0), "3"),
        (RequestCode.GET_MIN_OFFSET, GetMinOffsetHeader("orders", 0), "1"),
        (RequestCode.GET_MAX_OFFSET, GetMaxOffsetHeader("nowhere", 0), "0"),
        (RequestCode.GET_MIN_OFFSET, GetMinOffsetHeader("nowhere", 0), "0"),
        (
            RequestCode.SEARCH_OFFSET_BY_TIMESTAMP,
            SearchOffsetHeader("orders", 0, wire.now_ms - 10),
            "2",
        ),
        (
            RequestCode.SEARCH_OFFSET_BY_TIMESTAMP,
            SearchOffsetHeader("orders", 0, wire.now_ms, "UPPER"),
            "2",
        ),
    ]
    assert [wire.call(code, header).ext["offset"] for code, header, _ in asked] == [
        answer for *_, answer in asked
    ]


def test_a_message_is_found_by_its_place(wire: Any) -> None:
    wire.send(b"one")
    place = wire.store.end
    wire.send(b"two")
    found = wire.call(RequestCode.VIEW_MESSAGE_BY_ID, ViewMessageHeader(place))
    assert [message.body for message in decode_all(found.body)] == [b"two"]
    assert wire.call(RequestCode.VIEW_MESSAGE_BY_ID, ViewMessageHeader(7)).code == 1


def test_answers_of_clients_and_strange_timers_are_ignored(wire: Any) -> None:
    assert wire.feed(TimerFired("whose?")) == []
    assert wire.feed(TimerFired(("delay", 99))) == []
    wire.ask(RequestCode.GET_MAX_OFFSET, {"topic": "orders", "queueId": "0"}, flag=1)
    assert wire.effects == []


@pytest.mark.parametrize(
    "ext",
    [
        {"topic": "no way", "readQueueNums": "1", "writeQueueNums": "1"},
        {"topic": "t", "readQueueNums": "-1", "writeQueueNums": "1"},
    ],
)
def test_topics_that_are_not_made(wire: Any, ext: dict[str, str]) -> None:
    assert wire.call(RequestCode.UPDATE_AND_CREATE_TOPIC, ext).code == 1


def test_a_group_needs_a_name(wire: Any) -> None:
    assert (
        wire.call(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=b'{"groupName":"a b"}').code
        == 1
    )


# ------------------------------------------------------------------ name servers


def registrations(effects: list[Effect]) -> list[Request]:
    return [effect for effect in effects if isinstance(effect, Request)]


@pytest.fixture
def registered() -> Broker:
    return Broker(BrokerConfig(name_servers=("ns1", "ns2"), address="127.0.0.1:7"), BrokerStore())


def test_it_registers_with_every_name_server_at_its_start(registered: Broker) -> None:
    effects = registered.handle(0, Start())
    asked = registrations(effects)
    assert [request.address for request in asked] == ["ns1", "ns2"]
    assert asked[0].command.code == RequestCode.REGISTER_BROKER
    assert asked[0].command.ext["brokerAddr"] == "127.0.0.1:7"
    topics = BrokerRegistration.decode(asked[0].command.body).topics
    assert {
        topic.topic: (topic.read_queues, topic.write_queues, topic.perm) for topic in topics
    } == {
        "DefaultCluster": (16, 16, 7),
        "b0": (1, 1, 7),
        "TBW102": (8, 8, 7),
        "SCHEDULE_TOPIC_XXXX": (18, 18, 6),
    }
    assert SetTimer("register", 30_000) in effects


def test_a_new_topic_is_told_at_once_and_only_once(registered: Broker, make_wire: Any) -> None:
    registered.handle(0, Start())
    wire = make_wire(name_servers=("ns1",))
    assert len(registrations(wire.effects)) == 1
    wire.topic()
    assert registrations(wire.effects) == []
    wire.send(topic="new")
    (request,) = registrations(wire.effects)
    assert "new" in {
        topic.topic for topic in BrokerRegistration.decode(request.command.body).topics
    }


def test_it_registers_again_in_every_interval(registered: Broker) -> None:
    registered.handle(0, Start())
    assert len(registrations(registered.handle(30_000, TimerFired("register")))) == 2


def test_a_failed_registration_is_tried_again_soon(registered: Broker) -> None:
    (first, _) = registrations(registered.handle(0, Start()))
    assert registered.handle(1, Answered(first.token, Command(0))) == []
    assert registered.handle(1, Failed(first.token, "timeout")) == [SetTimer("register", 1_000)]
    assert registered.handle(1, Answered(first.token, Command(1))) == [SetTimer("register", 1_000)]


def test_it_takes_its_leave(registered: Broker) -> None:
    registered.handle(0, Start())
    left = [effect for effect in registered.handle(1, Shutdown()) if isinstance(effect, Oneway)]
    assert [(each.address, each.command.code) for each in left] == [("ns1", 104), ("ns2", 104)]


def test_a_broker_without_name_servers_asks_nobody(wire: Any) -> None:
    wire.send(topic="new")
    assert {type(effect) for effect in wire.effects} & {Request, Oneway} == set()
    assert isinstance(wire.effects[-1], Send)


def test_a_planned_broker_has_the_plans_numbers() -> None:
    plan = Config(
        broker_lease_ms=3_000, dialect="4.9", channel_expiry_ms=4_000, delay_levels="1s 2s"
    )
    config = BrokerConfig.from_plan(plan, name="b7")
    assert (config.name, config.lease_ms, config.rules.name) == ("b7", 3_000, "4.9")
    assert (config.channel_expiry_ms, config.channel_scan_ms, config.delay_ms) == (
        4_000,
        1_000,
        (1_000, 2_000),
    )
