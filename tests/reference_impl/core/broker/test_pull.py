"""Pulls: each result's code, waiting and waking, filters."""

from __future__ import annotations

from typing import Any

import pytest

from reference_impl.core.broker.log import Read
from reference_impl.core.broker.pull import READ_TO_CODE
from reference_impl.core.io import Closed
from reference_impl.protocol.bodies import SubscriptionGroup
from reference_impl.protocol.codes import RequestCode
from reference_impl.protocol.headers import CreateTopicHeader, PullHeader
from reference_impl.protocol.message import decode_all


def test_every_result_has_a_code() -> None:
    assert set(READ_TO_CODE) == set(Read)


@pytest.mark.parametrize(
    ("sent", "trimmed", "offset", "code", "next_offset"),
    [
        (0, 0, 0, 19, 0),
        (0, 0, 1, 21, 0),
        (3, 0, 0, 0, 3),
        (3, 0, 3, 19, 3),
        (3, 0, 4, 21, 3),
        (3, 2, 1, 21, 2),
        (3, 3, 3, 19, 3),
    ],
)
def test_codes(
    wire: Any, sent: int, trimmed: int, offset: int, code: int, next_offset: int
) -> None:
    for _ in range(sent):
        wire.send()
    wire.store.trim("orders", 0, trimmed)
    answer = wire.pull(offset)
    assert (answer.code, int(answer.ext["nextBeginOffset"])) == (code, next_offset)
    assert (int(answer.ext["minOffset"]), int(answer.ext["maxOffset"])) == (trimmed, sent)


def test_a_topic_that_may_not_be_read(wire: Any) -> None:
    wire.call(RequestCode.UPDATE_AND_CREATE_TOPIC, CreateTopicHeader("closed", 1, 1, perm=2))
    assert wire.pull(0, topic="closed").code == 16


def test_a_group_that_may_not_consume(wire: Any) -> None:
    group = SubscriptionGroup("billing", consume_enable=False)
    wire.call(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=group.encode())
    assert wire.pull(0).code == 16


def test_a_group_that_is_not_there(make_wire: Any) -> None:
    assert make_wire(auto_create_groups=False).pull(0).code == 26


def test_the_registered_subscription_serves_a_pull_without_one(wire: Any) -> None:
    wire.send()
    wire.join("a", "c1")
    assert wire.pull(0, sys_flag=0).code == 0
    assert wire.pull(0, sys_flag=0, sub_version=1).code == 25  # newer than the registered one
    assert wire.pull(0, sys_flag=0, topic="%RETRY%billing").code == 24


def tagged_pull(wire: Any, expression: str, **fields: Any) -> Any:
    header = PullHeader("billing", "orders", 0, 0, sys_flag=4, subscription=expression, **fields)
    return wire.call(RequestCode.PULL_MESSAGE, header)


@pytest.mark.parametrize(
    ("expression", "found"), [("*", "xyx"), ("x", "xx"), ("x || y", "xyx"), ("y", "y"), ("z", None)]
)
def test_tags(wire: Any, expression: str, found: str | None) -> None:
    for tag in "xyx":
        wire.send(tag.encode(), properties={"TAGS": tag})
    answer = tagged_pull(wire, expression)
    assert answer.code == (20 if found is None else 0)
    assert answer.ext["nextBeginOffset"] == "3"
    assert [message.body.decode() for message in decode_all(answer.body)] == list(found or "")


@pytest.mark.parametrize(
    ("asked", "found"), [(-1, 1), (0, 1), (1, 1), (31, 31), (32, 32), (33, 32), (1000, 32)]
)
def test_a_pull_is_given_thirty_two_messages_at_most(wire: Any, asked: int, found: int) -> None:
    for _ in range(40):
        wire.send()
    answer = wire.pull(0, max_msg_nums=asked)
    assert len(decode_all(answer.body)) == found
    assert answer.ext["nextBeginOffset"] == str(found)


def test_how_many_a_pull_is_given_can_be_set(make_wire: Any) -> None:
    wire = make_wire(pull_messages_max=2)
    for _ in range(3):
        wire.send()
    assert len(decode_all(wire.pull(0, max_msg_nums=3).body)) == 2


def test_expressions_that_are_refused(wire: Any) -> None:
    assert tagged_pull(wire, " || ").code == 23
    assert tagged_pull(wire, "a > 1", expression_type="SQL92").code == 1


def test_a_parked_pull_is_answered_when_its_time_is_up(wire: Any) -> None:
    wire.send()
    opaque = wire.park(1, wait_ms=15_000)
    wire.pass_ms(14_999)
    assert opaque not in wire.answers
    wire.pass_ms(1)
    assert wire.answers[opaque].code == 19


def test_each_parked_pull_has_its_own_time(wire: Any) -> None:
    late, soon = wire.park(0, wait_ms=500), wire.park(0, wait_ms=100, conn="c2")
    wire.pass_ms(100)
    assert (soon in wire.answers, late in wire.answers) == (True, False)
    wire.pass_ms(400)
    assert late in wire.answers


def test_a_send_wakes_everybody_who_waits_for_that_queue(wire: Any) -> None:
    first, second = wire.park(0), wire.park(0, conn="c2")
    wire.send(queue_id=1)
    assert not {first, second} & set(wire.answers)
    wire.send(queue_id=0)
    assert {first, second} <= set(wire.answers)


def test_a_message_that_the_filter_leaves_out_wakes_nobody(wire: Any) -> None:
    opaque = wire.park(0, subscription="mine", wait_ms=1_000)
    wire.send(properties={"TAGS": "other"})
    assert opaque not in wire.answers
    wire.send(properties={"TAGS": "mine"})
    answer = wire.answers[opaque]
    assert (answer.code, answer.ext["nextBeginOffset"]) == (0, "2")


def test_nobody_waits_on_a_closed_connection(wire: Any) -> None:
    opaque = wire.park(0, conn="c2")
    wire.feed(Closed("c2"))
    wire.send()
    wire.pass_ms(20_000)
    assert opaque not in wire.answers


@pytest.mark.parametrize("sys_flag", [4, 6])
def test_without_a_time_or_the_flag_nobody_waits(wire: Any, sys_flag: int) -> None:
    assert wire.pull(0, sys_flag=sys_flag).code == 19


def test_long_polling_can_be_switched_off(make_wire: Any) -> None:
    wire = make_wire(long_polling=False)
    assert wire.answers[wire.park(0)].code == 19


def test_a_delayed_message_wakes_the_pull_when_it_is_released(wire: Any) -> None:
    opaque = wire.park(0)
    wire.send(properties={"DELAY": "2"})
    wire.pass_ms(4_999)
    assert opaque not in wire.answers
    wire.pass_ms(1)
    assert wire.answers[opaque].code == 0
