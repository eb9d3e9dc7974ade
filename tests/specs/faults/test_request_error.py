"""A request that gets an error is not done, and who asked knows it."""

from __future__ import annotations

from pathlib import Path

from conformance.cases.play import play
from conformance.cases.text import parse_case
from specs.faults.request_error import SYSTEM_BUSY
from specs.vocabulary import Kind, Outcome
from tests.specs.faults.simulated import AT_MS, run_with

SEND = 310


def test_a_send_that_gets_an_error_is_not_stored_and_its_producer_knows() -> None:
    rows, fault = run_with("request_error", 2_500, a="p1", b="b0", code=SEND)
    assert fault is not None
    assert (fault.detail, fault.outcome) == ("request_error b0 p1 310", Outcome.OK)
    refused = [row for row in rows if row.kind is Kind.SEND and row.outcome is Outcome.REFUSED]
    assert [row.code for row in refused] == [SYSTEM_BUSY]
    stored = {row.message_id for row in rows if row.kind is Kind.APPEND}
    assert refused[0].message_id not in stored
    assert refused[0].started_us >= AT_MS * 1000


def test_a_case_says_it() -> None:
    text = """# conformance/cases/lease/refused.txt
# A refused lock is no grant.

alice starts in billing on orders
next request LOCK_BATCH_MQ from alice to b0 is answered with 2
time passes 30000 ms
----
"""
    played = play(parse_case(text, Path("lease/refused.txt")))
    assert any(row.kind is Kind.LOCK and row.code == SYSTEM_BUSY for row in played.rows)
