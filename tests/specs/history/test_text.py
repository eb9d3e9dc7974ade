"""The text notation: what is written is read, what is shown can be read again, and mistakes name their line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specs.clauses.catalogue import all_clauses
from specs.errors import HistoryError
from specs.history.row import Row
from specs.history.text import VERBS, parse_history, render_row, render_rows
from specs.vocabulary import Kind, Lane, Level, Outcome

SHOWN = (
    "kind",
    "outcome",
    "process",
    "client_id",
    "group",
    "topic",
    "broker",
    "queue_id",
    "started_us",
    "ended_us",
    "queue_offset",
    "message_id",
    "origin_id",
    "sharding_key",
    "key_seq",
    "reconsume_times",
    "value",
    "commit_mode",
    "suspend_ms",
    "delay_level",
    "code",
    "view",
    "detail",
)


def shown(row: Row) -> dict[str, object]:
    return {name: getattr(row, name) for name in SHOWN}


def test_a_line_of_each_form() -> None:
    """An instant, a span, an open operation; a lane, a queue, a group, a broker."""
    info, rows = parse_history(
        """
        config broker_lease_ms=3000 closed_world=no clock_bound_us=7
        # a comment
        0ms          alice  locks     billing/orders/b0/3   ok
        5ms..1.5s    alice  delivers  billing/orders/b0/3   offset=17 id=m17 rt=2 success   # another
        12us..       shop   sends     orders/b0/3           offset=18 id=m18 key=k1
        2s           alice  joins     billing               view=orders:*
        3s           b0     crashes   b0
        4s           b0     appends   orders/b0/3           offset=18
        """
    )
    assert info.config.broker_lease_ms == 3000
    assert not info.closed_world
    assert info.clock_bound_us == 7
    lock, send, deliver, join, crash, append = rows
    assert (lock.kind, lock.started_us, lock.ended_us, lock.seq_begin) == (
        Kind.LOCK,
        0,
        0,
        lock.seq_end,
    )
    assert lock.lane == Lane("billing", "orders", "b0", 3)
    assert (send.kind, send.ended_us, send.seq_end, send.outcome) == (
        Kind.SEND,
        None,
        None,
        Outcome.UNKNOWN,
    )
    assert (send.started_us, send.group, send.sharding_key) == (12, None, "k1")
    assert (deliver.ended_us, deliver.incarnation, deliver.reconsume_times) == (
        1_500_000,
        "alice#1",
        2,
    )
    assert (join.group, join.view, join.topic) == ("billing", "orders:*", None)
    assert (crash.broker, crash.client_id) == ("b0", "b0")
    assert append.level is Level.STORE
    assert [row.seq_begin for row in rows] == sorted(row.seq_begin for row in rows)


def test_the_messages_of_a_call_share_an_operation() -> None:
    """`call` names it; another client's call of the same name is another."""
    _, rows = parse_history(
        """
        0ms..5ms  alice  delivers  billing/orders/b0/3  offset=1 call=a success
        0ms..5ms  alice  delivers  billing/orders/b0/3  offset=2 call=a success
        0ms..5ms  bob    delivers  billing/orders/b0/4  offset=2 call=a success
        """
    )
    assert rows[0].op_id == rows[1].op_id != rows[2].op_id


def test_begins_and_ends_have_places_of_their_own() -> None:
    """By time, and by line where times are equal."""
    _, rows = parse_history(
        """
        0ms..5ms  a  pulls  g/t/b/0  ok
        5ms..6ms  b  pulls  g/t/b/0  ok
        """
    )
    places = [place for row in rows for place in (row.seq_begin, row.seq_end)]
    assert sorted(filter(None, places)) == [1, 2, 3, 4]
    assert rows[0].seq_end is not None
    assert rows[0].seq_end < rows[1].seq_begin


EXAMPLES = [
    text for clause in all_clauses() for text in (clause.shortest_violation, clause.lookalike)
]


@pytest.mark.parametrize("text", EXAMPLES)
def test_examples_survive_the_round_trip(text: str) -> None:
    """What is shown of a row is what is read back."""
    _, rows = parse_history(text)
    _, again = parse_history("\n".join(render_row(row) for row in rows))
    assert [shown(row) for row in again] == [shown(row) for row in rows]


WORDS = st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=1, max_size=8)
DETAILS = st.text(
    st.characters(codec="ascii", categories=("L", "N", "P", "Zs")), min_size=1, max_size=12
).filter(lambda text: "#" not in text and text == text.strip())


OF_THE_STORE = (Kind.APPEND, Kind.PERSIST, Kind.TRIM, Kind.PROGRESS)
"""What no client does."""


@given(
    verb=st.sampled_from(sorted(VERBS)),
    begin=st.integers(0, 10**7),
    length=st.none() | st.integers(0, 10**7),
    place=st.tuples(WORDS, WORDS, WORDS, st.integers(0, 99)),
    offset=st.none() | st.integers(0, 10**9),
    detail=st.none() | DETAILS,
    outcome=st.sampled_from(Outcome),
)
def test_any_row_survives_the_round_trip(
    verb: str,
    begin: int,
    length: int | None,
    place: tuple[str, str, str, int],
    offset: int | None,
    detail: str | None,
    outcome: Outcome,
) -> None:
    """Also times in odd µs, and details with blanks and quotes."""
    row = Row(
        **{
            **dict.fromkeys(Row._fields),
            "run": "example",
            "seq_begin": 1,
            "seq_end": None if length is None else 2,
            "op_id": 1,
            "kind": VERBS[verb],
            "level": Level.CLIENT,
            "process": "who",
            "client_id": None if VERBS[verb] in OF_THE_STORE else "who",
            "group": place[0],
            "topic": place[1],
            "broker": place[2],
            "queue_id": place[3],
            "queue_offset": offset,
            "detail": detail,
            "outcome": outcome,
            "started_us": begin,
            "ended_us": None if length is None else begin + length,
        }
    )
    _, (again,) = parse_history(render_row(row))
    assert shown(again) == shown(row)


def test_rows_are_shown_from_the_first_begin_in_columns() -> None:
    """Times start at 0, columns are aligned."""
    _, rows = parse_history(
        "10ms  alice  locks  g/t/b/0  ok\n12ms..13ms  bobby  unlocks  g/t/b/0  sent"
    )
    assert (
        render_rows(rows)
        == "0ms       alice  locks    g/t/b/0  ok\n2ms..3ms  bobby  unlocks  g/t/b/0  sent"
    )
    assert render_rows([]) == ""


WRONG = {
    "0ms alice locks": "line 1: expected time, who, what, where",
    "0ms alice dances g/t/b/0 ok": "line 1: 'dances' is not one of",
    "soon alice locks g/t/b/0 ok": "line 1: 'soon' is no time",
    "xms alice locks g/t/b/0 ok": "line 1: 'xms' is no time",
    "0ms alice locks g/t/b/one ok": "line 1: the queue must be a whole number, not 'one'",
    "0ms alice locks g/t ok": "line 1: 'g/t' is no lane",
    "0ms alice locks g/t/b/0 fine": "line 1: 'fine' is no outcome",
    "0ms alice locks g/t/b/0 offset=first": "line 1: offset must be a whole number, not 'first'",
    "\n\nconfig quick": "line 3: config words are name=value, not 'quick'",
    "0ms alice locks g/t/b/0 mood=fine": "line 1: there is no column mood",
    "0ms alice locks g/t/b/0 detail='so": "line 1: a quotation mark is open",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_mistake_names_its_line(text: str) -> None:
    """HistoryError in one sentence."""
    with pytest.raises(HistoryError, match=WRONG[text]) as raised:
        parse_history(text)
    assert "\n" not in str(raised.value)


def test_what_other_systems_have() -> None:
    """A renewal under a named grant and generation, and what the store says that a group has reached."""
    text = (
        "0ms..2ms  alice  renews     billing/orders/b0/3  offset=17  gen=4  lease=r-1  ok\n"
        "3ms..4ms  admin  witnesses  billing/orders/b0/3  value=18  ok\n"
        "5ms       admin  witnesses  billing/orders/b0/2  value=-1  refused"
    )
    info, rows = parse_history(text)
    assert [line.split() for line in render_rows(rows).splitlines()] == [
        line.split() for line in text.splitlines()
    ]
    renewed, reached, none = rows
    assert (renewed.kind, renewed.generation, renewed.lease_id) == (Kind.RENEW, 4, "r-1")
    assert renewed.level is Level.CLIENT
    for row in (reached, none):
        assert (row.kind, row.level) == (Kind.PROGRESS, Level.STORE)
        assert (row.process, row.client_id) == ("admin", None)
    assert info.levels == ("client",)
    assert parse_history(render_rows(rows))[1] == rows


def test_messages_that_are_leased_one_by_one() -> None:
    """A hand-out with the end of its lease, an acknowledgement that came too late, and a message that was put back."""
    text = (
        "0ms..2ms  alice  receives  billing/orders/b0/3  offset=17  rt=0  lease=r-1  until=30ms  ok\n"
        "35ms      alice  acks      billing/orders/b0/3  offset=17  lease=r-1  refused\n"
        "36ms      bob    releases  billing/orders/b0/3  offset=17  suspend=500  lease=r-2  ok"
    )
    _, rows = parse_history(text)
    assert [line.split() for line in render_rows(rows).splitlines()] == [
        line.split() for line in text.splitlines()
    ]
    assert [(row.kind, row.lease_id, row.incarnation) for row in rows] == [
        (Kind.RECEIVE, "r-1", None),
        (Kind.ACK, "r-1", None),
        (Kind.RELEASE, "r-2", None),
    ]
    assert [row.lease_until_us for row in rows] == [30_000, None, None]
