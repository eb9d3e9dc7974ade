"""What is given up, and may come again with others of its last call, as a small history tells."""

from __future__ import annotations

import numpy as np
import pytest

from specs.facts.columns import NOWHERE
from specs.facts.given_up import GivenUp
from specs.facts.rows import Rows
from specs.facts.run_context import RunContext
from specs.history.store import rows_to_table
from specs.history.text import parse_history

LANE = "billing/orders/b0/3"
OFFSET = "alice {verb} " + LANE + " offset={offset} {more}"


def given_up(*lines: str) -> GivenUp:
    """lines: `17 1 suspend` is a delivery of offset 17 in call 1, `17 ok` a dead letter of it; one after the other."""
    text = "config batch=2\n"
    for number, line in enumerate(lines):
        offset, *more = line.split()
        is_call = len(more) > 1
        said = f"call={more[0]} {more[1]}" if is_call else more[0]
        verb = "delivers" if is_call else "dead-letters"
        span = f"{10 * number}ms..{10 * number + 5}ms"
        text += f"{span} {OFFSET.format(verb=verb, offset=offset, more=said)}\n"
    info, rows = parse_history(text)
    return GivenUp(Rows(rows_to_table(rows), {info.run: RunContext.of_rows(info, rows)}))


COMES = (
    ("18 of its call has to come", ("17 1 suspend", "18 1 suspend", "17 2 success"), True),
    ("18 came alone", ("17 1 suspend", "18 1 suspend", "18 2 success", "17 3 success"), False),
    ("18 was given up", ("17 1 suspend", "18 1 suspend", "18 ok", "17 2 success"), False),
    ("that failed", ("17 1 suspend", "18 1 suspend", "18 refused", "17 2 success"), True),
    ("the call was done", ("17 1 success", "18 1 success", "17 2 success"), False),
    ("its call is not here", ("18 1 success", "17 2 success"), True),
    (
        "its call's number came again, with 18",
        ("17 1 suspend", "18 1 suspend", "19 2 success", "18 1 success", "17 1 success"),
        True,
    ),
    (
        "its call's number came again, with 18 alone",
        ("17 1 suspend", "18 1 suspend", "19 2 success", "18 1 success", "17 3 success"),
        False,
    ),
)


@pytest.mark.parametrize(("what", "lines", "comes"), COMES, ids=[each[0] for each in COMES])
def test_a_message_comes_again_with_others_of_its_last_call(
    what: str, lines: tuple[str, ...], comes: bool
) -> None:
    found = given_up(*lines)
    last = np.asarray([len(lines) - 1])
    assert found.may_come(last).tolist() == [comes]


LETTERS = (
    ("it was acknowledged", ("17 1 suspend", "17 ok", "17 2 suspend"), True),
    ("it was refused", ("17 1 suspend", "17 refused", "17 2 suspend"), False),
    ("it came again, in vain", ("17 1 suspend", "17 ok", "17 2 suspend", "17 refused", "17 3 success"), False),
    ("a second one was refused", ("17 1 suspend", "17 ok", "17 refused", "17 2 success"), True),
)  # fmt: skip


@pytest.mark.parametrize(("what", "lines", "is_given_up"), LETTERS, ids=[each[0] for each in LETTERS])  # fmt: skip
def test_a_message_is_given_up_until_it_came_again_and_that_failed(
    what: str, lines: tuple[str, ...], is_given_up: bool
) -> None:
    found = given_up(*lines)
    last = np.asarray([len(lines) - 1])
    assert (found.letter(last, found.rows.begin[last]) != NOWHERE).tolist() == [is_given_up]
