"""A consumer that is told of a reset (request 220): what it took counts no more, and it goes on where it was told."""

from __future__ import annotations

from typing import Any

import pytest

from reference_impl.core.consumer import (
    BroadcastConsumer,
    ConcurrentConsumer,
    KeyOrderedConsumer,
    OrderlyConsumer,
)
from reference_impl.core.io import Pushed
from reference_impl.protocol.bodies import encode_reset_offsets
from reference_impl.protocol.codes import RequestCode
from reference_impl.protocol.command import Command
from specs.vocabulary import Kind, Outcome, Queue

LANE = Queue("t", "b0", 0)
OTHER = Queue("t", "b0", 1)
WAIT_MS = 10_000
MODES = [
    (OrderlyConsumer, {"mode": "orderly"}),
    (ConcurrentConsumer, {"mode": "concurrent"}),
    (KeyOrderedConsumer, {"mode": "key_ordered"}),
    (BroadcastConsumer, {"mode": "concurrent", "message_model": "BROADCASTING"}),
]


def tell(
    b: Any,
    offsets: dict[Queue, int],
    *,
    topic: str = "t",
    group: str = "g",
    body: bytes | None = None,
) -> None:
    ext = {"topic": topic, "group": group, "timestamp": "0"}
    body = encode_reset_offsets(offsets) if body is None else body
    b.give(
        Pushed("b0:1", Command(RequestCode.RESET_CONSUMER_CLIENT_OFFSET, ext, body=body, flag=2))
    )


def adds(b: Any) -> list[tuple[int, int]]:
    return [(seen.fields["queue_id"], seen.fields["value"]) for seen in b.of(Kind.ADD)]


def drops(b: Any) -> list[int]:
    return [seen.fields["queue_id"] for seen in b.of(Kind.DROP)]


def finish(b: Any, count: int) -> None:
    for _ in range(count):
        b.returns()


@pytest.mark.parametrize(
    ("consumer", "config"), MODES, ids=lambda each: getattr(each, "__name__", "")
)
def test_everything_from_there_comes_again(
    bench: Any, consumer: Any, config: dict[str, Any]
) -> None:
    b = bench(consumer, threads=1, pull_batch=1, **config).start()
    b.append(3)
    finish(b, 3)
    tell(b, {LANE: 1})
    b.advance(WAIT_MS - 1)
    assert drops(b) == []
    b.advance(b.config.rebalance_min_ms + 1)
    assert drops(b) == [0]
    assert adds(b) == [(0, 0), (0, 1)]
    assert b.offsets == [1]


def test_the_offset_is_reported_at_once_and_when_the_lane_is_dropped(bench: Any) -> None:
    b = bench(persist_first_ms=60_000).start()
    b.append(2)
    finish(b, 2)
    tell(b, {LANE: 1})
    (reset,) = b.of(Kind.RESET)
    assert (reset.fields["value"], reset.fields["detail"]) == (1, "told by the broker")
    reported = b.of(Kind.COMMIT)[-1]
    assert (reported.fields["value"], reported.fields["detail"]) == (1, "corrected")
    assert b.stored[LANE] == 1
    b.stored[LANE] = 2  # a commit that was under way undoes it
    b.advance(WAIT_MS)
    assert b.stored[LANE] == 1


def test_what_runs_may_end_and_moves_nothing(bench: Any) -> None:
    """And no further call starts, though messages wait."""
    b = bench().start()
    b.append(3)
    assert b.offsets == [0]
    tell(b, {LANE: 3})
    b.returns()
    assert b.calls == []
    b.advance(WAIT_MS)
    assert b.commits()[-1] == 3
    assert b.calls == []


def test_a_lease_stays_while_the_call_runs_and_beyond_the_wait(bench: Any) -> None:
    b = bench().start()
    b.append(1)
    tell(b, {LANE: 0})
    b.advance(WAIT_MS + 5_000)
    assert drops(b) == [0]
    assert b.unlocked == []
    b.returns()
    assert b.unlocked == [LANE]
    b.advance(2_000)
    assert adds(b) == [(0, 0), (0, 0)]


def test_leases_are_renewed_during_the_wait(bench: Any) -> None:
    b = bench(lock_interval_ms=1_000).start()
    tell(b, {LANE: 0})
    before = len(b.requests(RequestCode.LOCK_BATCH_MQ))
    b.advance(WAIT_MS - 500)
    assert len(b.requests(RequestCode.LOCK_BATCH_MQ)) > before + 5
    assert b.unlocked == []


def test_other_lanes_go_on(bench: Any) -> None:
    b = bench(queues=2).start()
    tell(b, {LANE: 0})
    b.append(1, queue_id=1)
    assert b.offsets == [0]
    b.returns()
    b.advance(WAIT_MS)
    assert drops(b) == [0]


@pytest.mark.parametrize(
    "how",
    [
        {"group": "another"},
        {"topic": "another"},
        {"body": b'{"offsetTable":{"brokerName":3}:1}'},
        {"body": b"\xff"},
    ],
    ids=["group", "topic", "garbled", "no text"],
)
def test_what_is_not_for_it_changes_nothing(bench: Any, how: dict[str, Any]) -> None:
    b = bench().start()
    tell(b, {LANE: 0, Queue("another", "b0", 0): 5}, **how)
    tell(b, {Queue("t", "b9", 0): 5})
    b.advance(2 * WAIT_MS)
    assert b.of(Kind.RESET) == []
    assert drops(b) == []


def test_told_twice_it_goes_on_at_the_later_word(bench: Any) -> None:
    b = bench().start()
    b.append(3)
    finish(b, 3)
    tell(b, {LANE: 0})
    b.advance(WAIT_MS // 2)
    tell(b, {LANE: 2})
    b.advance(2 * WAIT_MS)
    assert adds(b) == [(0, 0), (0, 2)]
    assert drops(b) == [0]


def test_a_shutdown_in_the_wait_reports_the_new_offset_and_goes(bench: Any) -> None:
    b = bench().start()
    b.append(2)
    finish(b, 2)
    tell(b, {LANE: 1})
    b.stored.clear()
    b.shut_down()
    assert b.stored[LANE] == 1
    assert b.unlocked == [LANE]
    assert b.of(Kind.LEAVE)[0].outcome is Outcome.OK


def test_a_lane_that_goes_to_somebody_else_in_the_wait_takes_the_offset_along(bench: Any) -> None:
    b = bench(queues=2).start()
    b.append(2)
    finish(b, 2)
    tell(b, {LANE: 1, OTHER: 0})
    b.stored.clear()
    b.take_away()
    assert drops(b) == [0]
    assert b.stored[LANE] == 1
    b.advance(2 * WAIT_MS)
    assert drops(b) == [0, 1]
