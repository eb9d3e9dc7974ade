"""How long lanes stood still: from histories written by hand."""

from __future__ import annotations

from conformance.reports.recovery import recovered, recoveries
from specs.history.text import parse_history
from specs.vocabulary import Kind


def found(text: str) -> list[tuple[str, str, str, float | None]]:
    _, rows = parse_history(text)
    return [(each.what, each.party, str(each.lane), each.ms) for each in recoveries(rows)]


def test_a_lane_goes_on_at_another_client() -> None:
    """From the crash until the next message of the lane is begun; a lane of somebody else does not count."""
    assert found("""
        0ms  alice  delivers  billing/orders/b0/0  offset=0 id=m0 success
        0ms  bob    delivers  billing/orders/b0/1  offset=0 id=n0 success
        100ms  alice  crashes  -
        900ms  bob  delivers  billing/orders/b0/1  offset=1 id=n1 success
        1100ms  bob  delivers  billing/orders/b0/0  offset=1 id=m1 success
    """) == [("crash", "alice", "billing/orders/b0/0", 1000.0)]


def test_a_lane_in_which_nothing_was_left_does_not_count() -> None:
    """Unless a message was acknowledged that nobody was handed any more."""
    idle = """
        0ms  shop  sends  orders/b0/0  offset=0 id=m0 ok
        1ms  alice  delivers  billing/orders/b0/0  offset=0 id=m0 success
        100ms  alice  crashes  -
    """
    assert found(idle) == []
    owed = idle + "        200ms  shop  sends  orders/b0/0  offset=1 id=m1 ok\n"
    assert found(owed) == [("crash", "alice", "billing/orders/b0/0", None)]


def test_a_client_that_was_paused_may_go_on_itself() -> None:
    assert found("""
        0ms  alice  delivers  billing/orders/b0/0  offset=0 id=m0 success
        100ms..600ms  alice  pauses  -
        700ms  alice  delivers  billing/orders/b0/0  offset=1 id=m1 success
    """) == [("pause", "alice", "billing/orders/b0/0", 600.0)]


def test_a_client_may_be_known_by_its_process_alone() -> None:
    """Some clients, as those of NATS, have no name of their own in what they tell."""
    _, rows = parse_history("""
        0ms  alice  delivers  billing/orders/b0/0  offset=0 id=m0 success
        100ms  alice  crashes  -
        300ms  bob  delivers  billing/orders/b0/0  offset=1 id=m1 success
    """)
    nameless = [
        row._replace(client_id=None, process=row.client_id) if row.kind is Kind.DELIVER else row
        for row in rows
    ]
    assert [each.ms for each in recoveries(nameless)] == [200.0]


def after(text: str, ended_ms: int) -> tuple[int, int | None]:
    _, rows = parse_history(text)
    found = recovered(rows, ended_ms * 1000)
    return found.lanes, found.ms


def test_after_a_fault_the_slowest_lane_with_work_counts() -> None:
    text = """
        0ms  shop  sends  orders/b0/0  offset=0 id=m0 ok
        0ms  shop  sends  orders/b0/1  offset=0 id=n0 ok
        1ms  alice  delivers  billing/orders/b0/0  offset=0 id=m0 success
        1ms  alice  delivers  billing/orders/b0/1  offset=0 id=n0 success
        2ms  shop  sends  orders/b0/0  offset=1 id=m1 ok
        500ms  shop  sends  orders/b0/1  offset=1 id=n1 ok
        {}
    """
    assert after(
        text.format("400ms  bob  delivers  billing/orders/b0/0  offset=1 id=m1 success"), 100
    ) == (1, 300)
    assert after(text.format(""), 100) == (1, None)
    assert after(text.format(""), 1) == (0, None)
