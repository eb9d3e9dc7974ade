"""A death is put behind the client's last word."""

from __future__ import annotations

from typing import Any

from conformance.drivers.deaths import ROOM, at_last_words
from specs.history.row import Row, make_row
from specs.vocabulary import Kind, Level, Outcome


def row(kind: Kind, client: str | None, seq: int, seq_end: int | None, **columns: Any) -> Row:
    return make_row(
        run="r",
        seq_begin=seq,
        seq_end=seq_end,
        op_id=seq,
        kind=kind,
        level=Level.CLIENT,
        process=client or "p",
        client_id=client,
        outcome=Outcome.OK,
        started_us=seq * 10,
        ended_us=None if seq_end is None else seq_end * 10,
        clock="host",
        wall_us=0,
        **columns,
    )


def test_another_may_have_begun_before_the_death_was_noted() -> None:
    """The order between others, and what they told, stays."""
    rows = [
        row(Kind.DELIVER, "a", 1, 2),
        row(Kind.DELIVER, "a", 3, None),
        row(Kind.DELIVER, "b", 4, 6),
        row(Kind.CRASH, "a", 5, 5),
        row(Kind.DELIVER, "a", 7, 8),
    ]
    found = at_last_words(rows)
    assert [(each.kind, each.client_id) for each in found] == [
        (Kind.DELIVER, "a"),
        (Kind.DELIVER, "a"),
        (Kind.CRASH, "a"),
        (Kind.DELIVER, "b"),
        (Kind.DELIVER, "a"),
    ]
    assert (found[2].seq_begin // ROOM, found[2].started_us) == (3, 30)
    assert [each.seq_end for each in found if each.client_id == "b"] == [6 * ROOM]


def test_who_dies_twice_without_a_word_has_two_deaths() -> None:
    """A start is a word, and no two rows have one place."""
    rows = [
        row(Kind.JOIN, "a", 1, 2),
        row(Kind.CRASH, "a", 3, 3),
        row(Kind.CRASH, "a", 5, 5),
    ]
    found = [each.seq_begin for each in at_last_words(rows) if each.kind is Kind.CRASH]
    assert [place // ROOM for place in found] == [2, 2]
    assert len(set(found)) == len(found)


def test_who_said_nothing_died_when_it_was_noted() -> None:
    found = at_last_words([row(Kind.CRASH, "a", 5, 5), row(Kind.CRASH, None, 6, 6)])
    assert [(each.seq_begin, each.started_us) for each in found] == [(5 * ROOM, 50), (6 * ROOM, 60)]
