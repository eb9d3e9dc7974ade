"""Which lanes are ours, and the four steps of a new one."""

from __future__ import annotations

from typing import Any

import pytest

from reference_impl.core.consumer import ConsumerConfig
from reference_impl.core.io import Pushed
from reference_impl.protocol.codes import RequestCode
from reference_impl.protocol.command import Command
from specs.errors import UsageError
from specs.vocabulary import Kind, Outcome, Queue

LANE = Queue("t", "b0", 0)
MEMBERS = RequestCode.GET_CONSUMER_LIST_BY_GROUP
QUERY = RequestCode.QUERY_CONSUMER_OFFSET
MAX = RequestCode.GET_MAX_OFFSET
LOCK = RequestCode.LOCK_BATCH_MQ


def adds(b: Any) -> list[tuple[int, int]]:
    return [(seen.fields["queue_id"], seen.fields["value"]) for seen in b.of(Kind.ADD)]


def test_share_of_two_members(bench: Any) -> None:
    """Ids are sorted and a client that is listed twice counts once."""
    b = bench(queues=4)
    b.members = ["c9", "c1", "c9", "c1"]
    b.start()
    assert adds(b) == [(0, 0), (1, 0)]
    note = b.of(Kind.ASSIGN)[0].fields
    assert (note["value"], note["view"], note["detail"]) == (
        2,
        "c1 c9 | b0/0 b0/1 b0/2 b0/3",
        "b0/0 b0/1",
    )


def test_the_same_view_is_noted_once(bench: Any) -> None:
    b = bench().start()
    b.advance(60_000)
    assert len(b.of(Kind.ASSIGN)) == 1


def test_no_answer_about_the_members_changes_nothing(bench: Any) -> None:
    b = bench(queues=2).start()
    b.codes[MEMBERS] = [1]
    b.notify()
    assert len(b.consumer.lanes) == 2
    b.hold.add(MEMBERS)
    b.notify()
    b.fail_held(MEMBERS)
    assert len(b.consumer.lanes) == 2


def test_a_list_without_ourselves_leaves_nothing_and_is_answered_with_a_heartbeat(
    bench: Any,
) -> None:
    b = bench(queues=2).start()
    before = len(b.requests(RequestCode.HEART_BEAT))
    b.members = ["c2"]
    b.notify()
    assert b.consumer.lanes == {}
    assert len(b.requests(RequestCode.HEART_BEAT)) == before + 1


def test_a_notice_rebalances_at_once_but_not_twice_within_the_minimal_interval(bench: Any) -> None:
    b = bench().start()
    asked = len(b.requests(MEMBERS))
    notice = Pushed(
        "b0:1", Command(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, {"consumerGroup": "g"})
    )
    b.give(notice)
    assert len(b.requests(MEMBERS)) == asked
    b.advance(1_000)
    assert len(b.requests(MEMBERS)) == asked + 1
    b.advance(1_000)
    b.give(notice)
    assert len(b.requests(MEMBERS)) == asked + 2


@pytest.mark.parametrize("ext", [{"consumerGroup": "other"}, {}])
def test_a_notice_for_others_is_no_matter(bench: Any, ext: dict[str, str]) -> None:
    b = bench().start()
    b.advance(5_000)
    assert b.give(Pushed("b0:1", Command(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, ext))) == []
    assert b.give(Pushed("b0:1", Command(9999, {"consumerGroup": "g"}))) == []


def test_rebalances_each_interval(bench: Any) -> None:
    b = bench().start()
    asked = len(b.requests(MEMBERS))
    b.advance(60_000)
    assert len(b.requests(MEMBERS)) == asked + 3


def test_a_refused_lane_is_asked_for_again_soon(bench: Any) -> None:
    b = bench()
    b.refused = {LANE}
    b.start()
    assert b.of(Kind.ADD) == []
    b.refused = set()
    b.advance(999)
    assert b.of(Kind.ADD) == []
    b.advance(1)
    assert adds(b) == [(0, 0)]


def test_no_pull_and_no_add_without_a_grant(bench: Any) -> None:
    b = bench()
    b.refused = {LANE}
    b.start()
    b.append(1)
    b.advance(60_000)
    assert b.requests(RequestCode.PULL_MESSAGE) == []
    assert b.calls == []


START = [
    # consume from, stored, start
    ("first", None, 0),
    ("first", 3, 3),
    ("last", None, 5),
    ("last", 3, 3),
    ("last", 0, 0),
    ("timestamp", None, 2),
    ("timestamp", 3, 3),
]


@pytest.mark.parametrize(("consume_from", "stored", "start"), START)
def test_where_a_lane_begins(bench: Any, consume_from: str, stored: int | None, start: int) -> None:
    b = bench(consume_from=consume_from)
    b.append(5)
    if stored is not None:
        b.stored[LANE] = stored
    b.start()
    assert adds(b) == [(0, start)]
    assert b.of(Kind.PULL)[0].fields["queue_offset"] == start


@pytest.mark.parametrize(
    ("consume_from", "start", "asked"),
    [("first", 0, None), ("last", 0, None), ("timestamp", 0, MAX)],
)
def test_where_the_retry_topic_begins(
    bench: Any, consume_from: str, start: int, asked: int | None
) -> None:
    b = bench(consume_from=consume_from)
    b.queues = {"%RETRY%g": 1, "t": 0}
    b.start()
    assert adds(b) == [(0, start)]
    assert bool(b.requests(MAX)) is (asked is MAX)


def test_timestamp_defaults_to_half_an_hour_ago(bench: Any) -> None:
    b = bench(consume_from="timestamp").start()
    (search,) = b.requests(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP)
    assert int(search.command.ext["timestamp"]) == b.now - 30 * 60 * 1000
    b = bench(consume_from="timestamp", consume_from_timestamp_ms=77).start()
    assert b.requests(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP)[0].command.ext["timestamp"] == "77"


@pytest.mark.parametrize("code", [1, 26])
def test_an_error_is_never_taken_for_nothing_stored(bench: Any, code: int) -> None:
    """The lane is skipped, its lease goes back, and the next rebalance finds the offset."""
    b = bench(consume_from="last")
    b.append(5)
    b.stored[LANE] = 3
    b.codes[QUERY] = [code]
    b.start()
    assert b.of(Kind.FETCH_OFFSET)[0].outcome is Outcome.REFUSED
    assert (adds(b), b.unlocked) == ([], [LANE])
    b.advance(1_000)
    assert adds(b) == [(0, 3)]


def test_no_answer_about_the_offset_skips_the_lane(bench: Any) -> None:
    b = bench(consume_from="last")
    b.hold.add(QUERY)
    b.start()
    b.fail_held(QUERY)
    assert b.of(Kind.FETCH_OFFSET)[0].outcome is Outcome.UNKNOWN
    assert (adds(b), b.unlocked) == ([], [LANE])


def test_no_answer_about_the_end_skips_the_lane(bench: Any) -> None:
    b = bench(consume_from="last")
    b.codes[MAX] = [1]
    b.start()
    assert (adds(b), b.unlocked) == ([], [LANE])


@pytest.mark.parametrize("code", [LOCK, QUERY])
def test_a_lane_given_to_somebody_else_on_its_way_in_is_released(bench: Any, code: int) -> None:
    b = bench()
    b.hold.add(code)
    b.start()
    b.take_away()
    b.answer_held(code)
    assert (adds(b), b.unlocked) == ([], [LANE])


def test_a_lane_on_its_way_in_is_asked_for_once(bench: Any) -> None:
    b = bench()
    b.hold.add(LOCK)
    b.start()
    b.notify()
    b.notify()
    assert len(b.held) == 1


def test_a_topic_that_gets_queues_later_is_found(bench: Any) -> None:
    """The route is asked for again sooner while a topic of the subscription has none."""
    b = bench(topics={"t": "*", "u": "*"}).start()
    b.queues["u"] = 1
    b.advance(2_000)
    assert ("u", 0) in [(seen.fields["topic"], seen.fields["queue_id"]) for seen in b.of(Kind.ADD)]


def test_new_queues_of_a_topic_are_taken(bench: Any) -> None:
    b = bench().start()
    b.queues["t"] = 2
    b.advance(31_000)
    assert len(b.consumer.lanes) == 2


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("strategy", "ROUND", "unknown strategy 'ROUND'"),
        ("consume_from", "middle", "first, last or timestamp"),
        ("message_model", "BROADCASTING", "the mode concurrent only"),
        ("threads", 0, "at least one thread"),
    ],
)
def test_wrong_configuration_is_said(bench: Any, name: str, value: object, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        bench(**{name: value})


def test_all_name_servers_are_tried(bench: Any) -> None:
    b = bench()
    b.consumer = type(b.consumer)(ConsumerConfig("c1", "g", {"t": "*"}, ("ns1", "ns2")))
    b.hold.add(RequestCode.GET_ROUTEINFO_BY_TOPIC)
    b.start()
    b.fail_held(RequestCode.GET_ROUTEINFO_BY_TOPIC, "unreachable")
    routes = b.requests(RequestCode.GET_ROUTEINFO_BY_TOPIC)
    assert {r.address for r in routes} == {"ns1", "ns2"}
    assert len(b.consumer.lanes) == 1
