"""Delay levels: when a message is released, where it goes, what a crash does to it."""

from __future__ import annotations

from typing import Any

import pytest

from reference_impl.core.broker.config import parse_delay_levels
from specs.errors import UsageError
from specs.vocabulary import Kind


@pytest.mark.parametrize(
    ("level", "delay_ms"),
    [("0", 0), ("-1", 0), ("1", 1_000), ("2", 5_000), ("18", 7_200_000), ("99", 7_200_000)],
)
def test_released_to_the_millisecond(wire: Any, level: str, delay_ms: int) -> None:
    """Not before its level's time; a level beyond the table is the last one."""
    wire.send(b"m", queue_id=3, properties={"DELAY": level, "UNIQ_KEY": "a"}, reconsume_times=2)
    if delay_ms:
        wire.pass_ms(delay_ms - 1)
        assert wire.messages("orders", 3) == []
        wire.pass_ms(1)
    (message,) = wire.messages("orders", 3)
    assert (message.body, message.message_id, message.reconsume_times) == (b"m", "a", 2)


def test_a_level_keeps_its_order_and_levels_do_not_wait_for_each_other(wire: Any) -> None:
    for body, level in ((b"slow", "2"), (b"quick 1", "1"), (b"quick 2", "1")):
        wire.send(body, properties={"DELAY": level})
        wire.pass_ms(10)
    wire.pass_ms(60_000)
    assert [message.body for message in wire.messages("orders")] == [
        b"quick 1",
        b"quick 2",
        b"slow",
    ]


def test_a_crash_neither_loses_nor_repeats(wire: Any) -> None:
    wire.send(b"first", properties={"DELAY": "1"})
    wire.pass_ms(2_000)
    wire.send(b"second", properties={"DELAY": "2"})
    wire.boot()
    wire.pass_ms(4_999)
    assert [message.body for message in wire.messages("orders")] == [b"first"]
    wire.pass_ms(1)
    assert [message.body for message in wire.messages("orders")] == [b"first", b"second"]


def test_what_fell_due_while_the_broker_was_down_is_released_at_its_start(wire: Any) -> None:
    wire.send(properties={"DELAY": "1"})
    wire.now_ms += 60_000
    wire.boot()
    assert len(wire.messages("orders")) == 1


def test_the_recorder_sees_both_appends(wire: Any) -> None:
    wire.send(properties={"DELAY": "1"})
    wire.pass_ms(1_000)
    appends = [note.fields for note in wire.notes if note.kind is Kind.APPEND]
    assert [(row["topic"], row["delay_level"]) for row in appends] == [
        ("SCHEDULE_TOPIC_XXXX", 1),
        ("orders", 1),
    ]


@pytest.mark.parametrize(("sent", "kept"), [("1", "1"), ("99", "18"), ("0", "0"), ("-1", "-1")])
def test_what_is_delivered_says_its_level(wire: Any, sent: str, kept: str) -> None:
    """As 4.9.7 and 5.4.0 do: a level beyond the table is the last one, one that delays nothing stays as it is."""
    wire.send(properties={"DELAY": sent})
    wire.pass_ms(2 * 3_600_000)
    (message,) = wire.messages("orders")
    assert message.properties["DELAY"] == kept


def test_the_table_of_delays() -> None:
    assert parse_delay_levels("1s 10m 2h 1d") == (1_000, 600_000, 7_200_000, 86_400_000)
    for wrong in ("1", "1x", "s", "-1s", "1.5s"):
        with pytest.raises(UsageError, match="is no duration"):
            parse_delay_levels(wrong)
