"""Membership: connections are members, changes are told to everybody."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reference_impl.core.io import Close
from reference_impl.protocol.bodies import (
    BROADCASTING,
    ConsumerData,
    Heartbeat,
    Subscription,
    SubscriptionGroup,
)
from reference_impl.protocol.codes import RequestCode
from reference_impl.protocol.headers import ConsumerGroupHeader, UnregisterClientHeader


def ids(wire: Any, group: str = "billing") -> tuple[int, list[str] | None]:
    """(code, client ids)."""
    answer = wire.call(RequestCode.GET_CONSUMER_LIST_BY_GROUP, ConsumerGroupHeader(group))
    return answer.code, json.loads(answer.body)["consumerIdList"] if answer.body else None


def test_nobody_is_an_error_not_an_empty_list(wire: Any) -> None:
    assert ids(wire) == (1, None)


def test_the_first_member_is_told_about_itself_and_later_all_are(wire: Any) -> None:
    wire.join("a", "c1")
    assert wire.notices() == ["c1"]
    wire.join("b", "c2")
    assert wire.notices() == ["c1", "c2"]
    wire.join("b", "c2")
    assert wire.notices() == []  # nothing new
    assert ids(wire) == (0, ["a", "b"])


def test_one_client_with_two_connections_is_listed_twice(wire: Any) -> None:
    for client, conn in (("b", "c1"), ("a", "c2"), ("b", "c3")):
        wire.join(client, conn)
    assert ids(wire) == (0, ["b", "a", "b"])


def test_a_new_subscription_is_a_change(wire: Any) -> None:
    wire.join("a", "c1")
    wire.notices()
    wire.join("a", "c1", topics=("orders", "payments"))
    assert wire.notices() == ["c1"]


def test_a_heartbeat_without_subscriptions_keeps_them(wire: Any) -> None:
    wire.join("a", "c1")
    wire.notices()
    wire.call(RequestCode.HEART_BEAT, body=Heartbeat("a", (), (ConsumerData("billing"),)).encode())
    assert wire.notices() == []
    assert wire.pull(0, sys_flag=0).code == 19


def test_leaving_is_told_to_the_others_and_keeps_the_leases(wire: Any) -> None:
    wire.join("a", "c1")
    wire.join("b", "c2")
    assert wire.lock("a", 0) == [0]
    wire.notices()
    wire.call(RequestCode.UNREGISTER_CLIENT, UnregisterClientHeader("a", consumer_group="billing"))
    assert wire.notices() == ["c2"]
    assert ids(wire) == (0, ["b"])
    assert wire.lock("b", 0) == []


def test_a_closed_connection_is_a_leave_and_keeps_the_leases(wire: Any) -> None:
    wire.join("a", "c1")
    wire.join("b", "c2")
    assert wire.lock("a", 0) == [0]
    wire.notices()
    wire.close("c1")
    assert wire.notices() == ["c2"]
    assert wire.lock("b", 0) == []


def test_unregister_by_another_name_changes_nothing(wire: Any) -> None:
    wire.join("a", "c1")
    wire.notices()
    for client, group in (("x", "billing"), ("a", "other")):
        wire.call(
            RequestCode.UNREGISTER_CLIENT, UnregisterClientHeader(client, consumer_group=group)
        )
    assert wire.notices() == []
    assert ids(wire) == (0, ["a"])


def test_a_broadcasting_group_gets_no_notices(wire: Any) -> None:
    consumer = ConsumerData(
        "billing", message_model=BROADCASTING, subscriptions=(Subscription.of("orders"),)
    )
    wire.call(RequestCode.HEART_BEAT, body=Heartbeat("a", (), (consumer,)).encode())
    assert wire.notices() == []
    assert ids(wire) == (0, ["a"])


def test_a_group_may_forbid_notices(wire: Any) -> None:
    group = SubscriptionGroup("billing", notify_ids_changed=False)
    wire.call(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=group.encode())
    wire.join("a", "c1")
    assert wire.notices() == []


@pytest.mark.parametrize(("silence_ms", "dropped"), [(119_000, False), (131_000, True)])
def test_a_silent_connection_is_closed(wire: Any, silence_ms: int, dropped: bool) -> None:
    """After more than 120 s without a heartbeat, at the next scan (each 10 s)."""
    wire.join("a", "c1")
    closed: list[object] = []
    handle = wire.broker.handle

    def watching(now_ms: int, event: Any) -> list[Any]:
        effects = handle(now_ms, event)
        closed.extend(effect.conn for effect in effects if isinstance(effect, Close))
        return effects

    wire.broker.handle = watching
    wire.pass_ms(silence_ms)
    assert closed == (["c1"] if dropped else [])
    assert ids(wire)[0] == (1 if dropped else 0)


def test_a_heartbeat_creates_the_retry_topic(wire: Any) -> None:
    wire.join("a", "c1")
    assert wire.pull(0, topic="%RETRY%billing").code == 19


def test_an_unknown_group_is_skipped_where_groups_are_not_made(make_wire: Any) -> None:
    wire = make_wire(auto_create_groups=False)
    assert wire.join("a", "c1").code == 0
    assert ids(wire) == (1, None)
