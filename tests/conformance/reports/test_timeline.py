"""Drawings of events: who did what when, on a line per party."""

from __future__ import annotations

import pytest

from conformance.reports.timeline import draw
from specs.history.text import parse_history

PAUSED = """
    12000ms..12010ms    alice  locks     billing/orders/b0/3  ok
    12300ms..76s        alice  delivers  billing/orders/b0/3  offset=17 id=m17 success
    13s..75s            alice  pauses    -
    60s..60002ms        bob    locks     billing/orders/b0/3  ok
    60004ms..60010ms    bob    delivers  billing/orders/b0/3  offset=17 id=m17 success
    61s                 bob    commits   billing/orders/b0/3  value=18 sent
"""


def test_a_line_per_party_with_what_overlaps_on_a_line_of_its_own() -> None:
    """The pause of alice lies under her call, and bob's takeover falls into it."""
    _info, rows = parse_history(PAUSED)
    assert draw(rows, width=200).splitlines() == [
        "        12.000 s  12.300 s  13.000 s  60.000 s  60.004 s       61.000 s   75.000 s  76.000 s",
        "alice │ lock ✓    17 ▶ ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~ ◀ 17 success",
        "      │                     paused ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~ goes on",
        "bob   │                               lock ✓    17 ▶◀ success  commit 18",
    ]


@pytest.mark.parametrize("width", [40, 60, 80, 100])
def test_a_drawing_keeps_to_the_width(width: int) -> None:
    """What does not fit goes on in a further panel, and no label is lost."""
    _info, rows = parse_history(PAUSED)
    drawing = draw(rows, width=width)
    assert max(len(line) for line in drawing.splitlines()) <= width
    for label in (
        "lock ✓",
        "17 ▶",
        "paused",
        "17 ▶◀ success",
        "commit 18",
        "goes on",
        "◀ 17 success",
    ):
        assert label in drawing


def test_a_call_of_several_messages_is_one_operation() -> None:
    """Rows of one call are drawn once, with the span of their offsets."""
    _info, rows = parse_history(
        """
        0ms..5ms  alice  delivers  billing/orders/b0/3  offset=4 id=m4 call=a suspend
        0ms..5ms  alice  delivers  billing/orders/b0/3  offset=5 id=m5 call=a suspend
        """
    )
    assert "4–5 ▶◀ suspend" in draw(rows)


def test_an_operation_that_never_ended_runs_to_the_edge() -> None:
    """An open call has a begin and a wave, and no end."""
    _info, rows = parse_history(
        """
        0ms..  alice  delivers  billing/orders/b0/3  offset=4 id=m4
        1ms    bob    locks     billing/orders/b0/3  ok
        """
    )
    alice = draw(rows).splitlines()[1]
    assert alice.startswith("alice │ 4 ▶ ~~~")
    assert alice.endswith("~")


def test_refused_and_unanswered_requests_look_different() -> None:
    """✓ granted, ✗ refused, ? nobody knows."""
    _info, rows = parse_history(
        """
        0ms       alice  locks  billing/orders/b0/3  ok
        1ms       bob    locks  billing/orders/b0/3  refused
        2ms..9ms  carol  locks  billing/orders/b0/3  unknown
        """
    )
    drawing = draw(rows)
    assert ["lock ✓" in drawing, "lock ✗" in drawing, "lock ?" in drawing] == [True, True, True]


def test_the_context_is_drawn_with_the_evidence() -> None:
    """A crash that is no evidence is still part of the story."""
    _info, rows = parse_history(
        """
        0ms   alice  locks    billing/orders/b0/3  ok
        10ms  alice  crashes  -
        20ms  bob    locks    billing/orders/b0/3  ok
        """
    )
    assert "crash" in draw([rows[0], rows[2]], context=[rows[1]])


def test_nothing_is_drawn_of_nothing() -> None:
    """No rows, no drawing."""
    assert draw([]) == ""


def test_events_of_several_queues_name_their_queue() -> None:
    """A dead letter and its copy lie in different queues."""
    _info, rows = parse_history(
        """
        0ms   alice  dead-letters  billing/orders/b0/3        offset=4 id=m4 ok
        10ms  drain  reads         %DLQ%billing/b0/0          offset=0 id=d1 origin=m4
        """
    )
    drawing = draw(rows)
    assert "dead letter 4 ✓ orders/3" in drawing
    assert "read 0 %DLQ%billing/0" in drawing
