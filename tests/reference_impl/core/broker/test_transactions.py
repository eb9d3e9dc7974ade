"""Half messages: out of sight until their commit, gone after their rollback, asked about no more often than allowed."""

from __future__ import annotations

from typing import Any

from reference_impl.protocol.bodies import Heartbeat
from reference_impl.protocol.codes import RequestCode

COMMIT, ROLLBACK, UNKNOWN = 8, 12, 0


def beat(wire: Any, conn: str = "c1", group: str = "shop") -> None:
    wire.call(RequestCode.HEART_BEAT, body=Heartbeat("p", (group,)).encode(), conn=conn)


def bodies(wire: Any) -> list[bytes]:
    return [message.body for message in wire.messages("orders")]


def test_commits_decide_the_order(wire: Any) -> None:
    """It lies behind what was sent in the meantime; its send's answer named its place among the half messages."""
    first, second = wire.send_half("m1"), wire.send_half("m2")
    assert (first.ext["queueOffset"], second.ext["queueOffset"]) == ("0", "1")
    wire.send(b"plain")
    assert bodies(wire) == [b"plain"]
    assert wire.end_half(second, COMMIT).code == 0
    assert wire.end_half(first, COMMIT).code == 0
    assert bodies(wire) == [b"plain", b"m2", b"m1"]
    (message,) = wire.messages("orders")[2:]
    assert not {"TRAN_MSG", "REAL_TOPIC", "REAL_QID"} & set(message.properties)


def test_a_rollback_drops_it_and_an_end_that_comes_twice_has_no_effect(wire: Any) -> None:
    dropped, kept = wire.send_half("m1"), wire.send_half("m2")
    for state in (ROLLBACK, COMMIT):
        assert wire.end_half(dropped, state).code == 0
    for state in (COMMIT, COMMIT, ROLLBACK):
        assert wire.end_half(kept, state).code == 0
    assert bodies(wire) == [b"m2"]


def test_unknown_changes_nothing_and_is_not_answered(wire: Any) -> None:
    assert wire.end_half(wire.send_half(), UNKNOWN) is None
    assert bodies(wire) == []


def test_who_ends_it_must_name_its_group_and_its_place(wire: Any) -> None:
    stored = wire.send_half()
    assert wire.end_half(stored, COMMIT, group="bakery").code == 1
    assert wire.end_half(stored, COMMIT, offset=7).code == 1
    plain = wire.send(b"plain")
    assert wire.end_half(plain, COMMIT).code == 1
    assert bodies(wire) == [b"plain"]


def test_a_producer_of_the_group_is_asked_after_the_timeout_and_at_most_so_often(wire: Any) -> None:
    beat(wire, "c1")
    beat(wire, "c2", "bakery")
    wire.pass_ms(25_000)
    wire.send_half()
    wire.pass_ms(5_000)
    assert wire.questions() == []  # open for five seconds only
    asked = []
    for _ in range(20):
        beat(wire)
        wire.pass_ms(30_000)
        asked += wire.questions()
    assert asked == [("c1", str(number)) for number in range(1, 16)]
    assert (wire.store.open_halves, bodies(wire)) == ({}, [])
    assert len(wire.store.queue("TRANS_CHECK_MAX_TIME_TOPIC", 0).messages) == 1


def test_a_crash_forgets_neither_a_half_message_nor_how_often_it_was_asked_about(wire: Any) -> None:
    beat(wire)
    stored = wire.send_half()
    wire.pass_ms(30_000)
    assert wire.questions() == [("c1", "1")]
    wire.boot()
    beat(wire, "c3")
    wire.pass_ms(30_000)
    assert wire.questions() == [("c3", "2")]
    wire.end_half(stored, COMMIT)
    wire.boot()
    assert bodies(wire) == [b"m1"]
    assert wire.store.open_halves == {}


def test_without_a_producer_nobody_is_asked(wire: Any) -> None:
    beat(wire)
    wire.send_half()
    wire.close("c1")
    wire.pass_ms(60_000)
    assert wire.questions() == []


def test_only_a_marked_message_may_say_that_it_is_transactional(wire: Any) -> None:
    assert wire.send(sys_flag=4).code == 16
    assert wire.send(topic="RMQ_SYS_TRANS_HALF_TOPIC").code == 16
