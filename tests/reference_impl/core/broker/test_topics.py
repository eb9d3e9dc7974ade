"""Topics that change, shrink, lose a permission and are deleted; groups that are deleted."""

from __future__ import annotations

from typing import Any

import pytest

from reference_impl.core.broker import BrokerConfig
from reference_impl.core.io import Received
from reference_impl.core.nameserver import NameServer
from reference_impl.protocol.bodies import BrokerRegistration, TopicConfig
from reference_impl.protocol.codes import RequestCode, ResponseCode
from reference_impl.protocol.command import Command
from reference_impl.protocol.headers import (
    CreateTopicHeader,
    DeleteGroupHeader,
    GetRouteHeader,
    RegisterBrokerHeader,
    TopicHeader,
)
from specs.vocabulary import Kind
from tests.reference_impl.core.broker.conftest import MakeWire, Wire

BOTH = pytest.mark.parametrize("line", ["4.9", "5.x"])


def change(wire: Wire, *, read: int = 4, write: int = 4, perm: int = 6) -> None:
    header = CreateTopicHeader("orders", read, write, perm)
    assert wire.call(RequestCode.UPDATE_AND_CREATE_TOPIC, header).code == 0


def delete_topic(wire: Wire, topic: str = "orders") -> int:
    return wire.call(RequestCode.DELETE_TOPIC_IN_BROKER, TopicHeader(topic)).code


def noted(wire: Wire, kind: Kind) -> list[tuple[Any, ...]]:
    return [
        (note.fields["queue_id"], note.fields["value"]) for note in wire.notes if note.kind is kind
    ]


# ---------------------------------------------------------------- shrinking


@BOTH
def test_a_queue_that_is_no_longer_written_is_read_to_its_end(
    make_wire: MakeWire, line: str
) -> None:
    """Who still sends there is taken at his word: the number is below that of the read queues."""
    wire = make_wire(line)
    wire.send(queue_id=3)
    change(wire, write=2)
    assert wire.pull(0, queue_id=3).code == 0
    assert wire.send(queue_id=3).code == 0


@BOTH
def test_a_queue_that_is_no_longer_read_is_none(make_wire: MakeWire, line: str) -> None:
    """Nor does anybody send there; and it is what it was when the number is raised again."""
    wire = make_wire(line)
    wire.send(b"left", queue_id=3)
    change(wire, write=2)
    change(wire, read=2, write=2)
    refused = 1 if line == "4.9" else 29
    assert wire.pull(0, queue_id=3).code == refused
    assert wire.send(queue_id=3).code == refused
    change(wire)
    assert [message.body for message in wire.messages("orders", 3)] == [b"left"]


# ---------------------------------------------------------------- permissions


@BOTH
@pytest.mark.parametrize(("perm", "pull"), [(6, 0), (4, 0), (2, 16), (0, 16)])
def test_who_may_not_read_is_told_so(make_wire: MakeWire, line: str, perm: int, pull: int) -> None:
    wire = make_wire(line)
    wire.send()
    change(wire, perm=perm)
    assert wire.pull(0).code == pull


@pytest.mark.parametrize("perm", [6, 4, 2, 0])
def test_whether_a_topic_may_be_written_is_for_the_route_to_say(wire: Wire, perm: int) -> None:
    """The broker takes what comes all the same: it is producers who leave such a queue alone."""
    change(wire, perm=perm)
    assert wire.send().code == 0


# ---------------------------------------------------------------- deleting


@BOTH
def test_a_deleted_topic_is_gone(make_wire: MakeWire, line: str) -> None:
    wire = make_wire(line, auto_create_topics=False)
    wire.send()
    assert delete_topic(wire) == 0
    assert wire.pull(0).code == ResponseCode.TOPIC_NOT_EXIST
    assert wire.send().code == ResponseCode.TOPIC_NOT_EXIST
    assert delete_topic(wire) == 0


@BOTH
def test_a_deleted_topic_takes_its_messages_along(make_wire: MakeWire, line: str) -> None:
    """One of that name that is made later goes on where it was: no offset is given twice."""
    wire = make_wire(line)
    for _ in range(3):
        wire.send()
    delete_topic(wire)
    wire.topic()
    answer = wire.pull(0)
    assert (answer.code, answer.ext["nextBeginOffset"]) == (ResponseCode.PULL_OFFSET_MOVED, "3")
    assert wire.send(b"new").ext["queueOffset"] == "3"
    assert [message.body for message in wire.store.queue("orders", 0).messages] == [b"new"]


def test_what_went_with_a_topic_is_told_to_the_recorder(wire: Wire) -> None:
    wire.send()
    wire.send(queue_id=2)
    wire.join("alice", "c1")
    wire.commit(1)
    delete_topic(wire)
    assert noted(wire, Kind.TRIM) == [(0, 1), (2, 1)]
    assert noted(wire, Kind.RESET) == [(0, -1)]


@pytest.mark.parametrize(("line", "left"), [("4.9", (0, 1)), ("5.x", (22, None))])
def test_offsets_of_a_deleted_topic(
    make_wire: MakeWire, line: str, left: tuple[int, int | None]
) -> None:
    """5.x forgets them, 4.9 keeps them."""
    wire = make_wire(line)
    wire.send()
    wire.send()
    wire.join("alice", "c1")
    assert wire.commit(1).code == 0
    delete_topic(wire)
    assert wire.fetch() == left


@pytest.mark.parametrize(("line", "code"), [("4.9", 1), ("5.x", 29)])
@pytest.mark.parametrize("topic", ["SCHEDULE_TOPIC_XXXX", "TBW102", "b0", "DefaultCluster"])
def test_a_topic_of_the_system_is_neither_created_nor_deleted(
    make_wire: MakeWire, line: str, code: int, topic: str
) -> None:
    wire = make_wire(line)
    before = wire.broker.parts.topics.find(topic)
    assert before is not None
    header = CreateTopicHeader(topic, 3, 3)
    assert wire.call(RequestCode.UPDATE_AND_CREATE_TOPIC, header).code == code
    assert delete_topic(wire, topic) == code
    assert wire.broker.parts.topics.find(topic) == before


@BOTH
@pytest.mark.parametrize(("topic", "queues"), [("DefaultCluster", 16), ("b0", 1)])
def test_the_topics_of_the_clusters_and_the_brokers_name_take_messages_and_give_them(
    make_wire: MakeWire, line: str, topic: str, queues: int
) -> None:
    wire = make_wire(line)
    assert wire.send(b"m", topic=topic, queue_id=queues - 1).code == 0
    assert [message.body for message in wire.messages(topic, queues - 1)] == [b"m"]
    assert (
        wire.send(topic=topic, queue_id=queues).code == wire.broker.parts.config.rules.bad_queue_id
    )


@BOTH
@pytest.mark.parametrize(("asked", "made"), [(12, 12), (40, 16)])
def test_a_topic_is_made_after_the_clusters_one(
    make_wire: MakeWire, line: str, asked: int, made: int
) -> None:
    wire = make_wire(line, auto_create_topics=False)
    sent = wire.send(topic="fresh", default_topic="DefaultCluster", default_topic_queue_nums=asked)
    assert sent.code == 0
    topic = wire.broker.parts.topics.find("fresh")
    assert (topic.write_queues, topic.perm) == (made, 6)


def test_a_broker_named_as_its_cluster_has_one_topic_of_that_name(make_wire: MakeWire) -> None:
    wire = make_wire(name="one", cluster="one")
    assert wire.broker.parts.topics.find("one").read_queues == 1


@BOTH
@pytest.mark.parametrize("clean", [False, True])
def test_a_deleted_group_keeps_its_offsets_unless_it_is_asked(
    make_wire: MakeWire, line: str, clean: bool
) -> None:
    wire = make_wire(line)
    wire.send()
    wire.send()
    wire.join("alice", "c1")
    wire.commit(1)
    assert (
        wire.call(RequestCode.DELETE_SUBSCRIPTIONGROUP, DeleteGroupHeader("billing", clean)).code
        == 0
    )
    assert "billing" not in wire.store.groups
    assert noted(wire, Kind.RESET) == ([(0, -1)] if clean else [])
    assert wire.fetch()[1] == (0 if clean else 1)


def test_without_groups_on_demand_a_deleted_group_may_not_pull(make_wire: MakeWire) -> None:
    wire = make_wire(auto_create_groups=False)
    assert (
        wire.call(
            RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=b'{"groupName":"billing"}'
        ).code
        == 0
    )
    wire.send()
    assert wire.pull(0).code == 0
    wire.call(RequestCode.DELETE_SUBSCRIPTIONGROUP, DeleteGroupHeader("billing"))
    assert wire.pull(0).code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST


# ---------------------------------------------------------------- routes


def test_a_topic_that_a_name_server_forgot_comes_back_with_the_next_registration() -> None:
    server = NameServer()

    def ask(code: int, ext: dict[str, str], body: bytes = b"") -> Command:
        (answer,) = server.handle(0, Received(1, Command(code, ext, body)))
        return answer.command  # type: ignore[union-attr]

    def register() -> None:
        header = RegisterBrokerHeader("b0", "127.0.0.1:1", BrokerConfig().cluster, 0)
        body = BrokerRegistration((TopicConfig("orders"),)).encode()
        assert ask(RequestCode.REGISTER_BROKER, header.to_ext(), body).code == 0

    def route() -> int:
        return ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteHeader("orders").to_ext()).code

    register()
    codes = [route()]
    assert ask(RequestCode.DELETE_TOPIC_IN_NAMESRV, TopicHeader("orders").to_ext()).code == 0
    codes.append(route())
    register()
    codes.append(route())
    assert codes == [0, ResponseCode.TOPIC_NOT_EXIST, 0]
