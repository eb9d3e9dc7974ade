"""Send-back of a concurrent consumer: where the copy goes, and what it is refused for."""

from __future__ import annotations

from typing import Any

import pytest

from reference_impl.protocol.bodies import SubscriptionGroup
from reference_impl.protocol.codes import RequestCode
from reference_impl.protocol.headers import CreateTopicHeader, SendBackHeader

LEVEL_MS = (0, 1_000, 5_000, 10_000, 30_000)


def send_back(wire: Any, offset: int = 0, level: int = 0, limit: int | None = None) -> int:
    header = SendBackHeader(offset, "billing", level, max_reconsume_times=limit)
    code: int = wire.call(RequestCode.CONSUMER_SEND_MSG_BACK, header).code
    return code


@pytest.mark.parametrize("level", [1, 2, 4])
def test_the_client_may_choose_the_level(wire: Any, level: int) -> None:
    wire.send()
    assert send_back(wire, level=level) == 0
    wire.pass_ms(LEVEL_MS[level] - 1)
    assert wire.messages("%RETRY%billing") == []
    wire.pass_ms(1)
    assert len(wire.messages("%RETRY%billing")) == 1


def test_each_return_waits_longer_and_counts_one_up(wire: Any) -> None:
    """Level 3 at first, 4 for a message that has been back once; topic and origin stay those of the first."""
    first = wire.send()
    send_back(wire)
    wire.pass_ms(LEVEL_MS[3])
    (returned,) = wire.messages("%RETRY%billing")
    send_back(wire, returned.physical_offset)
    wire.pass_ms(LEVEL_MS[4] - 1)
    assert len(wire.messages("%RETRY%billing")) == 1
    wire.pass_ms(1)
    again = wire.messages("%RETRY%billing")[1]
    assert again.reconsume_times == 2
    assert again.origin_id == first.ext["msgId"]
    assert again.properties["RETRY_TOPIC"] == "orders"


@pytest.mark.parametrize(("limit", "dead"), [(0, True), (1, False), (None, False)])
def test_at_the_limit_it_is_a_dead_letter_at_once(wire: Any, limit: int | None, dead: bool) -> None:
    wire.send()
    assert send_back(wire, limit=limit) == 0
    wire.topic("%DLQ%billing", 1)
    assert len(wire.messages("%DLQ%billing")) == dead


@pytest.mark.parametrize(("times", "dead"), [(15, False), (16, True)])
def test_the_group_s_limit_is_sixteen(wire: Any, times: int, dead: bool) -> None:
    wire.send(reconsume_times=times)
    send_back(wire)
    wire.topic("%DLQ%billing", 1)
    assert len(wire.messages("%DLQ%billing")) == dead


def test_a_group_without_retry_queues_loses_the_message(wire: Any) -> None:
    """RocketMQ answers success and stores nothing."""
    group = SubscriptionGroup("billing", retry_queues=0)
    wire.call(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=group.encode())
    wire.send()
    end = wire.store.end
    assert send_back(wire) == 0
    assert wire.store.end == end


def test_a_retry_topic_that_may_not_be_written(wire: Any) -> None:
    wire.call(
        RequestCode.UPDATE_AND_CREATE_TOPIC, CreateTopicHeader("%RETRY%billing", 1, 1, perm=4)
    )
    wire.send()
    assert send_back(wire) == 16


def test_a_group_that_is_not_there(make_wire: Any) -> None:
    wire = make_wire(auto_create_groups=False)
    wire.send()
    assert send_back(wire) == 26
