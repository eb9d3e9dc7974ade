"""Where the dead letters of a group were read to their ends, as a small history tells."""

from __future__ import annotations

import numpy as np
import pytest

from specs.facts.columns import NOWHERE
from specs.facts.drains import Drains
from specs.facts.rows import Rows
from specs.facts.run_context import RunContext
from specs.history.store import rows_to_table
from specs.history.text import parse_history

DEAD = "billing/%DLQ%billing"
READ = f"2000ms..2010ms drain reads {DEAD}/b0/0 value=1 ok"
COPY = f"2001ms drain reads {DEAD}/b0/0 offset=0 id=c1 origin=m17 ok"
GONE = f"3000ms..3010ms drain reads {DEAD}/b0/0 value=0 ok"


def drains(text: str) -> Drains:
    info, rows = parse_history(text)
    of_queues = [row for row in rows if row.queue_id is not None]
    return Drains(Rows(rows_to_table(of_queues), {info.run: RunContext.of_rows(info, rows)}))


@pytest.mark.parametrize(
    ("what", "text", "is_read"),
    [
        ("to its end", READ, True),
        ("a message alone", COPY, False),
        ("in vain", READ.replace("ok", "unknown"), False),
        ("one of two queues", f"{READ}\n1ms b1 trims %DLQ%billing/b1/0 value=4", False),
        ("somebody takes them of nobody knows which", f"{READ}\n1ms..2ms dora delivers "
         "rescue/%DLQ%billing/b0/0 offset=0 id=m1 success", False),
    ],
)  # fmt: skip
def test_all_queues_that_are_shown_have_to_be_read(what: str, text: str, is_read: bool) -> None:
    found = drains(text)
    assert bool((found.last != NOWHERE).any()) == is_read


def test_what_a_later_reading_of_the_queue_does_not_tell_is_gone() -> None:
    for text, lies in ((f"{READ}\n{COPY}", True), (f"{READ}\n{COPY}\n{GONE}", False)):
        found = drains(text)
        copy = found.reads[found.rows.offset[found.reads] == 0]
        assert found.still_lies(copy).tolist() == [lies]


def test_a_broker_that_stands_still_has_longer() -> None:
    for text, waited in ((READ, True), (f"{READ}\n1000ms..1500ms b0 pauses b0", False)):
        found = drains(text)
        row = found.reads[:1]
        assert found.waited_for(row, np.zeros(1), np.full(1, 1_000_000)).tolist() == [waited]
