"""What a group had finished, and when; and what it may have finished unseen, as small histories tell."""

from __future__ import annotations

import numpy as np
import pytest

from specs.facts.backlog import Backlog
from specs.facts.columns import NEVER, NOWHERE
from specs.facts.corrections import Corrections
from specs.facts.finished import Finished
from specs.facts.rows import Rows
from specs.facts.run_context import RunContext
from specs.facts.starts import Starts
from specs.history.store import rows_to_table
from specs.history.text import parse_history
from specs.vocabulary import Kind

GROUPS = {"carol": "audit/", "shop": ""}
"""Of everybody else it is billing; a send is of none."""


def told(*lines: str, config: str = "") -> Rows:
    """lines: one after the other, without times and lane."""
    text = f"config {config}\n" if config else ""
    for number, line in enumerate(lines):
        who, verb, *more = line.split()
        span = f"{10 * number}ms..{10 * number + 5}ms"
        if verb in ("adds", "drops", "resets"):
            span = f"{10 * number}ms"
        text += f"{span} {who} {verb} {GROUPS.get(who, 'billing/')}orders/b0/3 {' '.join(more)}\n"
    info, rows = parse_history(text)
    return Rows(rows_to_table(rows), {info.run: RunContext.of_rows(info, rows)})


ADD = "alice adds value=17"
TAKES = "alice delivers offset=17 mode=manual success"
COMMITS = "alice delivers offset=18 mode=manual commit"
LETTER = "alice dead-letters offset=17 ok"
FINISHED = (
    ("a call that acknowledges", (ADD, "alice delivers offset=17 rollback"), 1),
    ("one that suspends", (ADD, "alice delivers offset=17 suspend"), None),
    ("a COMMIT covers it", (ADD, TAKES, COMMITS), 2),
    ("it was taken only", (ADD, TAKES), None),
    ("it was put back", (ADD, TAKES, "alice delivers offset=18 mode=manual rollback", COMMITS), None),
    ("the lane was moved", (ADD, TAKES, "admin resets value=0", COMMITS), None),
    ("the lane had been dropped", (ADD, "alice drops", "alice delivers offset=17 success"), None),
    ("it was given up", (ADD, "alice delivers offset=17 suspend", LETTER), 2),
    ("by hand", (ADD, "alice delivers offset=17 mode=manual suspend", LETTER), None),
    ("by hand, and covered", (ADD, "alice delivers offset=17 mode=manual suspend", LETTER, COMMITS), 3),
)  # fmt: skip


@pytest.mark.parametrize(("what", "lines", "by"), FINISHED, ids=[each[0] for each in FINISHED])
def test_when_a_message_is_finished(what: str, lines: tuple[str, ...], by: int | None) -> None:
    rows = told(*lines)
    finished = Finished(rows, Kind.DEAD_LETTER)
    message = finished.number(rows.lane[:1], np.asarray([17]))
    expected = NEVER if by is None else int(rows.end[by])
    assert finished.moment[message].tolist() == [expected]


VAIN = "alice delivers offset=17 rt=1 suspend"
BY_HAND = "alice delivers offset=17 rt=1 mode=manual suspend"
IN_DOUBT = (
    ("its retries were used up", (ADD, VAIN), True),
    ("one was left", (ADD, "alice delivers offset=17 rt=0 suspend"), False),
    ("it came again", (ADD, VAIN, VAIN.replace("suspend", "cut")), False),
    ("to another one", (ADD, VAIN, VAIN.replace("alice", "bob").replace("suspend", "cut")), True),
    ("the lane was moved", (ADD, VAIN, "admin resets value=0"), False),
    ("by hand it is taken only", (ADD, BY_HAND), False),
    ("by hand, and covered", (ADD, BY_HAND, COMMITS), True),
    ("it was taken when another one was given up", (ADD, TAKES, VAIN.replace("17", "18")), True),
)


@pytest.mark.parametrize(("what", "lines", "doubt"), IN_DOUBT, ids=[each[0] for each in IN_DOUBT])
def test_which_messages_may_be_given_up_unseen(
    what: str, lines: tuple[str, ...], doubt: bool
) -> None:
    rows = told(*lines, config="max_reconsume_times=1")
    finished = Finished(rows, Kind.DEAD_LETTER)
    message = finished.number(rows.lane[:1], np.asarray([17]))
    assert finished.in_doubt(message, np.asarray([NEVER - 1])).tolist() == [doubt]


def test_a_send_does_not_speak_for_a_group_that_comes_when_all_others_have_finished() -> None:
    rows = told(
        "shop sends offset=17 id=m17 ok",
        "shop sends offset=18 id=m18 ok",
        "alice delivers offset=17 success",
        "carol adds value=17",
    )
    finished, ends = Finished(rows, Kind.DEAD_LETTER), (np.asarray([17]), np.asarray([20]))
    backlog = Backlog(finished, rows.lane[-1:], *ends)
    assert backlog.offset[backlog.start[0] : backlog.stop[0]].tolist() == [17, 18]
    assert backlog.shown(np.arange(2), np.full(2, NEVER)).tolist() == [NOWHERE, 1]
    assert backlog.holds(backlog.start, np.asarray([NEVER])).tolist() == [True]
    assert backlog.holds(backlog.start, np.asarray([0])).tolist() == [False]


STARTS = (
    ("its ADD says so", (ADD,), 17),
    ("a look-up sets it anew", (ADD, "alice fetches inc=1 value=18 ok"), 18),
    ("nothing is stored", (ADD, "alice fetches inc=1 value=-1 refused"), 0),
    ("a reset makes it forgotten", (ADD, "admin resets value=0"), None),
)


@pytest.mark.parametrize(("what", "lines", "start"), STARTS, ids=[each[0] for each in STARTS])
def test_where_an_incarnation_begins(what: str, lines: tuple[str, ...], start: int | None) -> None:
    starts = Starts(told(*lines))
    row = starts.row(np.asarray([0]), np.asarray([NEVER]))
    assert starts.value[row[row != NOWHERE]].tolist() == [
        each for each in (start,) if each is not None
    ]


def test_what_was_delivered_before_a_correction_is_still_to_be_finished() -> None:
    rows = told(
        ADD,
        "alice delivers offset=17 suspend",
        "alice commits value=30 detail=corrected ok",
        "alice delivers offset=20 suspend",
        "alice commits value=31 ok",
    )
    corrections = Corrections(rows, np.asarray([4]))
    assert corrections.highest.tolist() == [30]
    assert corrections.had_before(np.asarray([0, 0]), np.asarray([1, 3])).tolist() == [True, False]
