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
    recorder.on_event({"event": "sent", "id": 9, "outcome": "refused", "code": 16, "at_us": 4_000_000})
    recorder.sending(10, {"topic": "orders", "message_id": "m3"})  # and never answered
    recorder.close()
    rows = list(compact_journal(tmp_path).rows())
    calls = [row for row in rows if row.kind is Kind.DELIVER]
    assert [(row.started_us, row.ended_us, row.outcome, row.suspend_ms, row.attempt) for row in calls] == [
        (1_000_000, 1_500_000, Outcome.SUSPEND, 10, 1),
        (2_000_000, 2_100_000, Outcome.NULL, 200, 2),
        (3_000_000, None, Outcome.UNKNOWN, None, 3),
    ]
    assert {(row.incarnation, row.client_id, row.group, row.sharding_key, row.key_seq) for row in calls} == {
        ("c1/orders/b0/3", "c1", "billing", "k", 5)
    }
    sends = [row for row in rows if row.kind is Kind.SEND]
    assert [(row.message_id, row.outcome, row.code) for row in sends] == [
        ("m2", Outcome.REFUSED, 16),
        ("m3", Outcome.UNKNOWN, None),
    ]
