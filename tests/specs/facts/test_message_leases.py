"""Until when leases of messages certainly live."""

from __future__ import annotations

import pytest

from specs.facts.message_leases import MessageLeases
from specs.facts.rows import Rows
from specs.facts.run_context import RunContext
from specs.facts.segments import ints, positions
from specs.history.store import rows_to_table
from specs.history.text import parse_history
from specs.vocabulary import Kind

LANE = "billing/orders/b0/3"
HANDED = f"0ms..2ms alice receives {LANE} offset=7 lease=r1 until=30ms ok\n"
AGAIN = f"\n20ms..22ms bob receives {LANE} offset=7 lease=r2 until=50ms ok"
RENEWED = f"5ms..9ms alice renews {LANE} offset=7 lease=r1 until=40ms ok"


def columns(text: str) -> Rows:
    info, rows = parse_history("config delay_bound_ms=10\n" + text)
    of_queues = [row for row in rows if row.queue_id is not None]
    return Rows(rows_to_table(of_queues), {info.run: RunContext.of_rows(info, rows)})


UNTIL = (
    ("as the hand-out says", "", 30),
    ("as the renewal says", RENEWED, 40),
    ("as the last renewal says", f"{RENEWED}\n10ms alice renews {LANE} offset=7 lease=r1 until=35ms ok", 35),
    ("as the shorter one says", f"{RENEWED}\n6ms..8ms alice renews {LANE} offset=7 lease=r1 until=38ms ok", 38),
    ("nobody answered", f"5ms alice renews {LANE} offset=7 lease=r1 until=25ms sent", 25),
    ("it was refused", f"5ms alice renews {LANE} offset=7 lease=r1 until=25ms refused", 30),
    ("of another lease", f"5ms alice renews {LANE} offset=7 lease=r0 until=40ms ok", 30),
)  # fmt: skip


@pytest.mark.parametrize(("what", "text", "until_ms"), UNTIL, ids=[each[0] for each in UNTIL])
def test_a_lease_lasts_at_least(what: str, text: str, until_ms: int) -> None:
    """Until when the first hand-out's lease does, as of the second one's answer."""
    rows = columns(HANDED + text + AGAIN)
    first, second = positions(rows.are(Kind.RECEIVE)).tolist()
    leases = rows.shared(MessageLeases)
    assert leases.until_us(ints([first]), rows.end[[second]]).tolist() == [until_ms * 1000]


OVER = (
    ("nothing came", "", True),
    ("acknowledged", f"5ms..6ms alice acks {LANE} offset=7 ok", False),
    ("refused", f"5ms..6ms alice acks {LANE} offset=7 refused", True),
    ("of another message", f"5ms..6ms alice acks {LANE} offset=8 ok", True),
    ("it may be of any message", f"5ms..6ms alice acks {LANE} ok", False),
    ("under way before", f"-9ms alice acks {LANE} offset=7 sent", False),
    ("it has arrived by then", f"-11ms alice acks {LANE} offset=7 sent", True),
    ("held up later", f"-11ms alice acks {LANE} offset=7 sent\n-5ms..-1ms rig suffers - detail=hold ok", False),
    ("she died", "5ms alice crashes -", False),
    ("she had left before", "-9ms..-8ms alice leaves billing", True),
    ("she was leaving", "-9ms..1ms alice leaves audit", False),
    ("a fault was over", "-9ms..-1ms rig suffers - detail='hold alice b0' ok", True),
    ("a fault lasted", "-9ms..1ms rig suffers - detail='hold alice b0' ok", False),
    ("somebody else stood still", "5ms..6ms rig suffers - detail='pause bob' client_id=bob ok", True),
)  # fmt: skip


@pytest.mark.parametrize(("what", "text", "lives"), OVER, ids=[each[0] for each in OVER])
def test_a_lease_is_ended_by_what_may_have_ended_it(what: str, text: str, lives: bool) -> None:
    """Does it live when the message is handed out anew?"""
    rows = columns(HANDED + text + AGAIN)
    first, _ = rows.shared(MessageLeases).of_one_message
    assert (len(first) == 1) == lives
