"""Who was granted a lane until when, what clients know of it, and for whom a lane is certainly free."""

from __future__ import annotations

import pytest

from specs.facts.columns import NOWHERE
from specs.facts.free_lanes import FreeLanes
from specs.facts.leases import Contests, Grants, LeaseNews
from specs.facts.rows import Rows
from specs.facts.run_context import RunContext
from specs.facts.segments import ints
from specs.history.store import rows_to_table
from specs.history.text import parse_history

LANE = "billing/orders/b0/3"


def columns(text: str) -> Rows:
    info, rows = parse_history(text.replace("LANE", LANE))
    of_queues = [row for row in rows if row.queue_id is not None]
    return Rows(rows_to_table(of_queues), {info.run: RunContext.of_rows(info, rows)})


def when(rows: Rows, where: int) -> str:
    """When the row began, in ms."""
    return "-" if where == NOWHERE else str(int(rows.started[where]) // 1000)


GIVEN_BACK = (
    ("never", "0ms alice locks LANE ok", "0:-"),
    ("after the answer", "0ms alice locks LANE ok\n9ms alice unlocks LANE sent", "0:9"),
    ("by somebody else", "0ms alice locks LANE ok\n9ms bob unlocks LANE sent", "0:-"),
    ("it may come late", "0ms alice unlocks LANE sent\n9ms alice locks LANE ok", "9:0"),
    ("it had arrived", "0ms..1ms alice unlocks LANE ok\n9ms alice locks LANE ok", "9:-"),
    ("it is long ago", "0ms alice unlocks LANE sent\n4s alice locks LANE ok", "4000:-"),
    ("a frame came twice", "0ms..2ms alice unlocks LANE ok\n1ms..5ms rig suffers - detail='duplicate alice b0' ok\n"
     "9ms alice locks LANE ok", "9:0"),
    ("a link held it up", "0ms alice unlocks LANE sent\n1ms..5s rig suffers - detail='partition alice b0' ok\n"
     "7s alice locks LANE ok", "7000:0"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("what", "text", "found"), GIVEN_BACK, ids=[each[0] for each in GIVEN_BACK]
)
def test_a_grant_is_given_back_by_an_unlock_that_may_end_it(
    what: str, text: str, found: str
) -> None:
    """Each grant, and the unlock, by when they began."""
    rows = columns(text)
    grants = rows.shared(Grants)
    told = zip(grants.at.tolist(), grants.given_back.tolist(), strict=True)
    assert " ".join(f"{when(rows, at)}:{when(rows, unlock)}" for at, unlock in told) == found


CONTESTS = (
    ("while it lives", "0ms alice locks LANE ok\n60s bob locks LANE refused", "0-60000"),
    ("when it is over", "0ms alice locks LANE ok\n60001ms bob locks LANE refused", ""),
    ("given back", "0ms alice locks LANE ok\n1s alice unlocks LANE sent\n2s bob locks LANE ok", ""),
    ("her own", "0ms alice locks LANE ok\n2s alice locks LANE ok", ""),
    ("no answer", "0ms alice locks LANE ok\n2s bob locks LANE unknown", ""),
    ("under way together", "0ms..9ms alice locks LANE ok\n5ms..20ms bob locks LANE ok", "0-5"),
    ("once", "0ms alice locks LANE ok\n1s bob locks LANE ok\n2s bob locks LANE ok", "0-1000"),
    ("of two the one asked for later", "0ms..9ms alice locks LANE ok\n1ms..5ms alice locks LANE ok\n"
     "60s bob locks LANE refused", "1-60000"),
    ("the broker died", "0ms alice locks LANE ok\n1s b0 crashes b0\n2s bob locks LANE ok", ""),
)  # fmt: skip


@pytest.mark.parametrize(("what", "text", "found"), CONTESTS, ids=[each[0] for each in CONTESTS])
def test_a_lease_is_contested_by_answers_to_others_while_it_lives(
    what: str, text: str, found: str
) -> None:
    rows = columns(text)
    contests = rows.shared(Contests)
    told = zip(contests.lease.tolist(), contests.asked.tolist(), strict=True)
    assert " ".join(f"{when(rows, lease)}-{when(rows, asked)}" for lease, asked in told) == found


FREE = (
    ("his own", "0ms bob locks LANE ok\n1s bob locks LANE ok", "own"),
    ("her lease lives", "0ms alice locks LANE ok\n60s bob locks LANE ok", ""),
    ("her lease is over", "0ms alice locks LANE ok\n60001ms bob locks LANE ok", "expired"),
    ("she gave it back", "0ms alice locks LANE ok\n1s..2s alice unlocks LANE ok\n3s bob locks LANE ok", "released"),
    ("it may not have arrived", "0ms alice locks LANE ok\n1s alice unlocks LANE sent\n3s bob locks LANE ok", ""),
    ("it has arrived", "0ms alice locks LANE ok\n1s alice unlocks LANE sent\n5s bob locks LANE ok", "released"),
    ("it has arrived, and one from before", "0ms..2s bob unlocks LANE ok\n1ms bob locks LANE ok\n"
     "1s..1001ms bob unlocks LANE ok\n3s alice locks LANE ok", "released"),
    ("carol may have it", "0ms bob locks LANE ok\n1s carol locks LANE unknown\n2s bob locks LANE ok", ""),
    ("she would not any more", "0ms bob locks LANE ok\n1s carol locks LANE unknown\n65s bob locks LANE ok", "own"),
    ("nobody had it", "1s bob locks LANE ok", ""),
)  # fmt: skip


@pytest.mark.parametrize(("what", "text", "why"), FREE, ids=[each[0] for each in FREE])
def test_a_lane_is_free_where_nobody_else_may_have_it(what: str, text: str, why: str) -> None:
    """Of the last request."""
    lanes = columns(text).shared(FreeLanes)
    found = [name for name in ("own", "released", "expired") if getattr(lanes, name)[-1]]
    assert " ".join(found) == why


NEWS = (
    ("a grant", "0ms alice locks LANE ok", "0"),
    ("no answer", "0ms alice locks LANE ok\n1s alice locks LANE unknown", "0"),
    ("an error", "0ms alice locks LANE ok\n1s alice locks LANE refused code=1", "0"),
    ("a refusal", "0ms alice locks LANE ok\n1s alice locks LANE refused", "1000"),
    ("a late one", "0ms..2s alice locks LANE refused\n1s alice locks LANE ok", "1000"),
    ("a late one, after an unlock", "0ms..2s alice locks LANE refused\n500ms alice locks LANE ok\n"
     "1s alice unlocks LANE sent", "0"),
    ("an unlock of another process", "0ms..2s alice locks LANE ok\n1s alice crashes -\n"
     "3s alice unlocks LANE sent", "0"),
)  # fmt: skip


@pytest.mark.parametrize(("what", "text", "last"), NEWS, ids=[each[0] for each in NEWS])
def test_what_a_client_knows_last_of_its_lease(what: str, text: str, last: str) -> None:
    rows = columns(text)
    news = rows.shared(LeaseNews)
    (found,) = news.line.last_before(news.client[:1], ints([1 << 40])).tolist()
    assert when(rows, found) == last
