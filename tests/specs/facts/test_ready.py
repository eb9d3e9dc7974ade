"""Leases as a client knows them: what takes one away, whose it is, and from which lane it was sent away."""

from __future__ import annotations

import pytest

from specs.facts.columns import NEVER
from specs.facts.ready import Leases
from specs.facts.rows import Rows
from specs.facts.run_context import RunContext
from specs.facts.segments import ints
from specs.history.store import rows_to_table
from specs.history.text import parse_history
from specs.vocabulary import Kind

GRANTED = "0ms..1ms alice locks LANE process=p1 ok\n"
CALLED = "\n9ms..10ms alice delivers LANE offset=0 id=m0 process=p1 success"


def columns(text: str) -> Rows:
    info, rows = parse_history(text.replace("LANE", "billing/orders/b0/3"))
    return Rows(rows_to_table(rows), {info.run: RunContext.of_rows(info, rows)})


@pytest.mark.parametrize(
    ("answer", "lost", "asked"),
    [("refused", True, False), ("code=1 refused", False, True), ("unknown", False, True)],
)
def test_an_error_code_is_no_refusal_and_no_answer(answer: str, *, lost: bool, asked: bool) -> None:
    rows = columns(f"{GRANTED}2ms..3ms alice locks LANE {answer}{CALLED}")
    grant, call = ints([0]), ints([2])
    leases = rows.shared(Leases)
    assert leases.lost_since(grant, call, rows.begin[call]).tolist() == [lost]
    assert leases.asked_since(grant, call, rows.begin[call]).tolist() == [asked]


@pytest.mark.parametrize(("process", "lives"), [("p1", True), ("p2", False)])
def test_a_grant_outlives_what_its_own_process_does(process: str, *, lives: bool) -> None:
    rows = columns(GRANTED.replace("p1", process) + CALLED)
    grant, call = ints([0]), ints([1])
    found, renewal = rows.shared(Leases).outlive(grant, grant, call, ints([0]))
    assert (found.tolist(), renewal.tolist()) == ([lives], [-1])


LANE = "billing/orders/b0/3"
PULLS = f"10ms..11ms alice pulls {LANE} offset=18"

SENT_AWAY = (
    ("further back", f"{PULLS} value=3 code=21 refused", True),
    ("further ahead", f"{PULLS} value=50 code=21 refused", True),
    ("by a pull that names no incarnation", f"{PULLS} value=50 inc=- code=21 refused", True),
    ("it found messages", f"{PULLS} value=50 ok", False),
    ("it found none", f"{PULLS} value=18 ok", False),
    ("nobody answered", f"{PULLS} unknown", False),
    ("before that", f"1ms..2ms alice pulls {LANE} offset=18 value=3 code=21 refused", False),
    ("somebody else was", f"{PULLS} value=3 code=21 refused".replace("alice", "bob"), False),
    ("from another lane", f"{PULLS} value=3 code=21 refused".replace("b0/3", "b0/4"), False),
)


@pytest.mark.parametrize(
    ("what", "pull", "is_away"), SENT_AWAY, ids=[each[0] for each in SENT_AWAY]
)
def test_a_client_is_sent_away_from_a_lane(what: str, pull: str, is_away: bool) -> None:
    info, rows = parse_history(f"{pull}\n5ms..6ms alice delivers {LANE} offset=17 success")
    found = Rows(rows_to_table(rows), {info.run: RunContext.of_rows(info, rows)})
    call = found.of(Kind.DELIVER)
    told = Leases(found).sent_away(call, found.begin[call])
    assert told.tolist() == ([int(found.end.max())] if is_away else [NEVER])
