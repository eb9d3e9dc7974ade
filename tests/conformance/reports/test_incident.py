"""The model of a failure, from which every picture of it is drawn."""

from __future__ import annotations

import pytest

from conformance.reports.incident import MOST_AROUND, Role, Shape, incident
from conformance.reports.timeline import draw
from specs.history.row import make_row
from specs.history.text import parse_history


def test_the_violation_is_where_the_last_evidence_begins() -> None:
    """A call that was already running ends later, and is not what broke the promise; the context never is."""
    _info, rows = parse_history(
        """
        0ms..90ms   alice  delivers  billing/orders/b0/3  offset=4 id=m4 success
        10ms..99ms  bob    delivers  billing/orders/b0/3  offset=4 id=m4 success
        50ms        bob    crashes   -
        """
    )
    what = incident(rows[:2], rows[2:])
    assert what.broken is not None
    assert what.moments[what.broken].label == "4 ▶"
    assert what.moments[what.broken].at_us == 10_000


def test_a_lease_lasts_from_its_grant_to_its_unlock() -> None:
    """A grant to the holder is the same lease; who is refused has none; what the evidence tells no end of has none."""
    _info, rows = parse_history(
        """
        0ms..2ms  alice  locks    billing/orders/b0/3  ok
        4ms       bob    locks    billing/orders/b0/3  refused
        5ms       alice  locks    billing/orders/b0/3  ok
        8ms       alice  unlocks  billing/orders/b0/3  ok
        9ms       bob    locks    billing/orders/b0/3  ok
        """
    )
    what = incident(rows)
    found = [
        (
            lease.party,
            what.moments[lease.first].label,
            None if lease.last is None else what.moments[lease.last].label,
        )
        for lease in what.leases
    ]
    assert found == [("alice", "lock ✓", "unlock ✓"), ("bob", "lock ✓", None)]
    assert [what.moments[lease.first].at_us for lease in what.leases] == [0, 9_000]


def test_who_a_party_is_follows_from_what_it_did() -> None:
    """Clients have ids, brokers stores, and the harness neither."""
    _info, rows = parse_history(
        """
        0ms        alice  sends    orders/b0/3  offset=4 id=m4 ok
        1ms        b0     appends  orders/b0/3  offset=4 id=m4 ok
        """
    )
    fault = make_row(
        run=rows[0].run,
        seq_begin=9,
        seq_end=10,
        op_id=9,
        kind="fault",
        process="harness",
        outcome="ok",
        started_us=0,
        ended_us=5,
    )
    what = incident(rows, [fault])
    assert {track.party: track.role for track in what.tracks} == {
        "alice": Role.CLIENT,
        "b0": Role.BROKER,
        "harness": Role.HARNESS,
    }
    assert [step.shape for step in what.steps] == [Shape.SEND, Shape.SEND, Shape.FAULT]


@pytest.mark.parametrize("many", [MOST_AROUND, MOST_AROUND + 7])
def test_a_picture_shows_what_befell_nearest_to_the_violation(many: int) -> None:
    """Of more it says how many there were, also in words."""
    lines = [f"{number}ms  alice  pauses  -" for number in range(many)]
    _info, rows = parse_history(
        "\n".join([*lines, f"{many}ms  bob  locks  billing/orders/b0/3  ok"])
    )
    what = incident(rows[-1:], rows[:-1])
    assert len(what.steps) == MOST_AROUND + 1
    assert what.left_out == many - MOST_AROUND
    assert what.steps[0].row == rows[many - MOST_AROUND]
    told = f"and {many - MOST_AROUND} more faults, pauses and crashes" in draw(
        rows[-1:], context=rows[:-1]
    )
    assert told == (many > MOST_AROUND)
