"""A driver's events as rows of a history."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from conformance.drivers.recording import DriverRecorder
from specs.history.runinfo import RunInfo, write_runinfo
from specs.history.store import compact_journal
from specs.vocabulary import Kind, Outcome


def delivered(call: int, at_us: int, times: int = 0) -> dict[str, Any]:
    message = {
        "topic": "orders",
        "broker": "b0",
        "queue_id": 3,
        "queue_offset": 7,
        "message_id": "m1",
        "reconsume_times": times,
        "body": "m1",
        "key": "k",
        "key_seq": "5",
    }
    return {"event": "delivered", "call": call, "at_us": at_us, "messages": [message]}


def finished(call: int, at_us: int, outcome: str, suspend_ms: int = -1) -> dict[str, Any]:
    return {
        "event": "finished",
        "call": call,
        "at_us": at_us,
        "outcome": outcome,
        "manual": False,
        "suspend_ms": suspend_ms,
    }


def test_calls_and_sends_become_rows_with_the_drivers_times(tmp_path: Path) -> None:
    write_runinfo(tmp_path, RunInfo(run="r"))
    recorder = DriverRecorder(tmp_path, "c1", "billing", suspend_ms=200)
    recorder.on_event(delivered(1, 1_000_000))
    recorder.on_event(finished(1, 1_500_000, "suspend", 5))
    recorder.on_event(delivered(2, 2_000_000, 1))
    recorder.on_event(finished(2, 2_100_000, "null"))
    recorder.on_event(delivered(3, 3_000_000, 2))  # and never finished
    recorder.sending(9, {"topic": "orders", "message_id": "m2"})
    recorder.on_event(
        {"event": "sent", "id": 9, "outcome": "refused", "code": 16, "at_us": 4_000_000}
    )
    recorder.sending(10, {"topic": "orders", "message_id": "m3"})  # and never answered
    recorder.close()
    rows = list(compact_journal(tmp_path).rows())
    calls = [row for row in rows if row.kind is Kind.DELIVER]
    assert [
        (row.started_us, row.ended_us, row.outcome, row.suspend_ms, row.attempt) for row in calls
    ] == [
        (1_000_000, 1_500_000, Outcome.SUSPEND, 10, 1),
        (2_000_000, 2_100_000, Outcome.NULL, 200, 2),
        (3_000_000, None, Outcome.UNKNOWN, None, 3),
    ]
    assert {
        (row.incarnation, row.client_id, row.group, row.sharding_key, row.key_seq) for row in calls
    } == {("c1.1/orders/b0/3", "c1", "billing", "k", 5)}
    sends = [row for row in rows if row.kind is Kind.SEND]
    assert [(row.message_id, row.outcome, row.code) for row in sends] == [
        ("m2", Outcome.REFUSED, 16),
        ("m3", Outcome.UNKNOWN, None),
    ]


def test_the_work_on_a_lane_has_the_drivers_number(tmp_path: Path) -> None:
    write_runinfo(tmp_path, RunInfo(run="r"))
    names = {"127.0.0.1@c1": "c1", "127.0.0.1@c2": "c2"}
    recorder = DriverRecorder(
        tmp_path, "c1", "billing", suspend_ms=200, life=2, names=names, lanes=True
    )
    lane = {"topic": "orders", "broker": "b0", "queue_id": 3, "incarnation": 7}
    share = {
        "members": ["127.0.0.1@c1", "127.0.0.1@c2"],
        "queues": ["b0/3", "b0/4"],
        "share": ["b0/3"],
    }
    recorder.on_event({"event": "assigned", "topic": "orders", **share, "at_us": 500_000})
    recorder.on_event({"event": "added", **lane, "at_us": 900_000})
    call = delivered(1, 1_000_000)
    call["messages"][0]["incarnation"] = 7
    recorder.on_event(call)
    recorder.on_event(finished(1, 1_500_000, "success"))
    recorder.on_event({"event": "dropped", **lane, "at_us": 2_000_000})
    recorder.close()
    rows = list(compact_journal(tmp_path).rows())
    assert [(row.kind, row.incarnation, row.started_us) for row in rows] == [
        (Kind.ASSIGN, None, 500_000),
        (Kind.ADD, "c1.2#7", 900_000),
        (Kind.DELIVER, "c1.2#7", 1_000_000),
        (Kind.DROP, "c1.2#7", 2_000_000),
    ]
    assert (rows[0].view, rows[0].detail, rows[0].value) == ("c1 c2 | b0/3 b0/4", "b0/3", 1)


def test_who_can_not_see_the_commits_records_no_adds(tmp_path: Path) -> None:
    write_runinfo(tmp_path, RunInfo(run="r"))
    recorder = DriverRecorder(tmp_path, "c1", "billing", suspend_ms=200)
    lane = {"topic": "orders", "broker": "b0", "queue_id": 3, "incarnation": 7}
    recorder.on_event({"event": "added", **lane, "at_us": 900_000})
    recorder.on_event({"event": "dropped", **lane, "at_us": 2_000_000})
    recorder.on_event(delivered(1, 3_000_000))
    recorder.close()
    assert [row.kind for row in compact_journal(tmp_path).rows()] == [Kind.DELIVER]


def test_what_was_given_up_belongs_to_the_work_that_it_was_delivered_to(tmp_path: Path) -> None:
    write_runinfo(tmp_path, RunInfo(run="r"))
    recorder = DriverRecorder(tmp_path, "c1", "billing", suspend_ms=200, lanes=True)
    call = delivered(1, 1_000_000, times=2)
    call["messages"][0]["incarnation"] = 7
    recorder.on_event(call)
    recorder.on_event(finished(1, 1_500_000, "suspend"))
    place = {"topic": "orders", "broker": "b0", "queue_id": 3}
    gone = {"event": "gave_up", **place, "at_us": 2_000_000}
    recorder.on_event({**gone, "queue_offset": 7, "message_id": "m1"})
    recorder.on_event({**gone, "queue_offset": 8, "message_id": "m2", "incarnation": 9})
    recorder.close()
    rows = list(compact_journal(tmp_path).rows())[1:]
    assert [
        (row.kind, row.outcome, row.queue_offset, row.message_id, row.incarnation) for row in rows
    ] == [
        (Kind.DEAD_LETTER, Outcome.OK, 7, "m1", "c1.1#7"),
        (Kind.DEAD_LETTER, Outcome.OK, 8, "m2", "c1.1#9"),
    ]
    assert (rows[0].sharding_key, rows[0].reconsume_times, rows[0].group) == ("k", 2, "billing")


def test_what_a_coordinator_hands_out_is_granted_and_an_accepted_commit_proves_it(
    tmp_path: Path,
) -> None:
    """A commit of which nobody knows whether it was accepted proves nothing."""
    write_runinfo(tmp_path, RunInfo(run="r"))
    recorder = DriverRecorder(
        tmp_path, "c1", "billing", suspend_ms=200, lanes=True, handed_out=True
    )
    lane = {"topic": "orders", "broker": "b0", "queue_id": 3}
    recorder.on_event({"event": "added", **lane, "incarnation": 1, "at_us": 10})
    for number, outcome in ((1, "ok"), (2, "refused")):
        begun = {"event": "committing", "commit": number, "value": 7, **lane, "at_us": 10 * number}
        recorder.on_event(begun)
        ended = {"event": "committed", "commit": number, "outcome": outcome}
        recorder.on_event({**ended, "at_us": 10 * number + 5})
    recorder.on_event({"event": "dropped", **lane, "incarnation": 1, "at_us": 40})
    recorder.close()
    rows = list(compact_journal(tmp_path).rows())
    leases = [(row.kind, row.outcome, row.started_us, row.ended_us) for row in rows]
    assert [lease for lease in leases if lease[0] in (Kind.LOCK, Kind.UNLOCK)] == [
        (Kind.LOCK, Outcome.OK, 10, 10),
        (Kind.LOCK, Outcome.OK, 10, 15),
        (Kind.LOCK, Outcome.UNKNOWN, 20, 25),
        (Kind.UNLOCK, Outcome.OK, 40, 40),
    ]


def test_the_end_of_a_transaction_has_a_row_for_each_message_where_it_lies(tmp_path: Path) -> None:
    """Its queue is the one that the answer to its send has named; of one without an answer nobody knows."""
    write_runinfo(tmp_path, RunInfo(run="r"))
    recorder = DriverRecorder(tmp_path, "shop", "shops", suspend_ms=200)
    for number in (1, 2):
        half = {"topic": "orders", "message_id": f"m{number}", "detail": "half"}
        recorder.sending(number, half)
    recorder.ends(3, {"topic": "orders", "value": 8}, {1: "m1", 2: "m2"})
    answer = {"outcome": "ok", "broker": "b0", "queue_id": 3}
    recorder.on_event({"event": "sent", "id": 1, "at_us": 1_000, **answer})
    recorder.on_event({"event": "ending", "id": 3, "at_us": 2_000})
    recorder.on_event({"event": "ended", "id": 3, "at_us": 3_000, "outcome": "ok"})
    recorder.close()
    rows = [row for row in compact_journal(tmp_path).rows() if row.kind is Kind.END_TRANSACTION]
    assert [(row.message_id, row.broker, row.queue_id, row.value) for row in rows] == [
        ("m1", "b0", 3, 8),
        ("m2", None, None, 8),
    ]
    assert {(row.started_us, row.ended_us, row.outcome) for row in rows} == {
        (2_000, 3_000, Outcome.OK)
    }


def test_messages_that_are_leased_one_by_one(tmp_path: Path) -> None:
    """A hand-out from its question on, an acknowledgement with its answer, and one that is put back; who asks still."""
    write_runinfo(tmp_path, RunInfo(run="r"))
    recorder = DriverRecorder(tmp_path, "c1", "billing", suspend_ms=200)
    lane = {"topic": "orders", "broker": "b0", "queue_id": 3}
    leased = {"queue_offset": 7, "lease_id": "7/2"}
    lasts = {"reconsume_times": 1, "lease_until_us": 2_400_000}
    told: list[dict[str, Any]] = [
        {"event": "receiving", "receive": 1, **lane},
        {"event": "receiving", "receive": 2, **lane},
        {"event": "received", "receive": 1, **leased, **lasts},
        {"event": "acking", "ack": 3, **leased, **lane},
        {"event": "acked", "ack": 3, "outcome": "unknown"},
        {"event": "released", **leased, **lane},
    ]
    for at_ms, event in enumerate(told, 1_000):
        recorder.on_event({**event, "at_us": at_ms * 1_000})
    recorder.close()
    rows = list(compact_journal(tmp_path).rows())
    ms = [(row.kind, row.outcome, row.started_us // 1_000) for row in rows]
    assert ms == [
        (Kind.RECEIVE, Outcome.OK, 1_000),
        (Kind.RECEIVE, Outcome.UNKNOWN, 1_001),
        (Kind.ACK, Outcome.UNKNOWN, 1_003),
        (Kind.RELEASE, Outcome.SENT, 1_005),
    ]
    assert {(row.queue_offset, row.lease_id, row.group) for row in rows if row.queue_offset} == {
        (7, "7/2", "billing")
    }
    assert (rows[0].ended_us, rows[0].lease_until_us) == (1_002_000, 2_400_000)
    assert (rows[1].queue_offset, rows[0].reconsume_times) == (None, 1)


def test_questions_that_brought_nothing_and_a_message_that_was_put_back(tmp_path: Path) -> None:
    """An end of each, and nothing that would count as happening; a release with its pause and its answer."""
    write_runinfo(tmp_path, RunInfo(run="r"))
    recorder = DriverRecorder(tmp_path, "c1", "billing", suspend_ms=200)
    lane = {"topic": "orders", "broker": "b0", "queue_id": 3}
    asked: list[dict[str, Any]] = [
        {"event": "receiving", "receive": 1, **lane},
        {"event": "receiving", "receive": 2, **lane},
        {"event": "received", "receive": 1, "outcome": "refused"},
        {"event": "received", "receive": 2, "outcome": "unknown"},
    ]
    leased = {"queue_offset": 7, "lease_id": "7/2", "suspend_ms": 1_000}
    put_back: list[dict[str, Any]] = [
        {"event": "released", "release": 3, **leased, **lane},
        {"event": "put_back", "release": 3, "outcome": "refused"},
    ]
    for at_ms, event in enumerate(asked, 1_000):
        recorder.on_event({**event, "at_us": at_ms * 1_000})
    assert recorder.told == 0
    for at_ms, event in enumerate(put_back, 1_004):
        recorder.on_event({**event, "at_us": at_ms * 1_000})
    recorder.close()
    rows = list(compact_journal(tmp_path).rows())
    assert [(row.kind, row.outcome, row.ended_us) for row in rows] == [
        (Kind.RECEIVE, Outcome.REFUSED, 1_002_000),
        (Kind.RECEIVE, Outcome.UNKNOWN, 1_003_000),
        (Kind.RELEASE, Outcome.REFUSED, 1_005_000),
    ]
    assert (rows[2].queue_offset, rows[2].suspend_ms) == (7, 1_000)
