"""Who asks one thing after the other waits from before a link is held until after: that shows the hold, too."""

from __future__ import annotations

import pytest

from specs.faults import FAULTS
from specs.history.row import Row, make_row
from specs.vocabulary import Kind, Outcome


def sent(from_ms: int, to_ms: int) -> Row:
    return make_row(
        kind=Kind.SEND,
        client_id="shop",
        broker="b0",
        started_us=from_ms * 1_000,
        ended_us=to_ms * 1_000,
        outcome=Outcome.OK,
    )


@pytest.mark.parametrize(
    ("request_ms", "held_ms", "shows"),
    [
        ((900, 3_050), (1_000, 3_000), True),
        ((900, 2_900), (1_000, 3_000), False),  # it was answered meanwhile
        ((900, 950), (1_000, 3_000), False),  # and before
        ((900, 1_050), (1_000, 1_010), False),  # too short to hold anybody back
        ((1_500, 3_050), (1_000, 3_000), True),
    ],
)
def test_a_request_under_way_shows_that_the_link_was_held(
    request_ms: tuple[int, int], held_ms: tuple[int, int], *, shows: bool
) -> None:
    fault = make_row(
        kind=Kind.FAULT,
        started_us=held_ms[0] * 1_000,
        ended_us=held_ms[1] * 1_000,
        detail="hold shop b0",
    )
    told = FAULTS["hold"].attest([sent(*request_ms)], fault)
    assert (told is not None) is shows
