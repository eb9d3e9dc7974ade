"""Who works on a lane after whom, and what may have taken a lane from somebody who does not know of it."""

from __future__ import annotations

import pytest

from specs.facts.columns import NOWHERE
from specs.facts.handovers import Handovers
from specs.facts.rows import Rows
from specs.facts.run_context import RunContext
from specs.facts.trouble import undisturbed
from specs.history.store import rows_to_table
from specs.history.text import parse_history
from specs.vocabulary import Kind

LANE = "billing/orders/b0/3"


def columns(text: str) -> Rows:
    info, rows = parse_history(text.replace("LANE", LANE))
    of_queues = [row for row in rows if row.queue_id is not None]
    return Rows(rows_to_table(of_queues), {info.run: RunContext.of_rows(info, rows)})


HANDOVERS = (
    ("alice goes on", "0ms..9ms alice 17\n10ms..19ms alice 18", ""),
    ("bob follows", "0ms..9ms alice 17\n10ms..19ms bob 18", "17-18"),
    ("he begins beside her", "0ms..19ms alice 17\n10ms..29ms bob 18", "17-18"),
    ("he goes on", "0ms..9ms alice 17\n10ms..19ms bob 18\n20ms..29ms bob 19", "17-18"),
    ("carol begins beside both", "0ms..90ms alice 1\n1ms..90ms bob 2\n2ms..3ms carol 3", "1-2 1-3 2-3"),
    ("two of hers still run", "0ms..90ms alice 1\n1ms..80ms alice 2\n2ms..3ms bob 3", "1-3 2-3"),
    ("of two of hers the one that runs", "0ms..90ms alice 1\n1ms..2ms alice 2\n3ms..4ms bob 3", "1-3 2-3"),
    ("nobody saw her end", "0ms.. alice 1 unknown\n2ms..3ms bob 3", ""),
    ("she was cut", "0ms..5ms alice 1 cut\n2ms..3ms bob 3", ""),
    ("he was cut", "0ms..5ms alice 1\n2ms..3ms bob 3 cut", "1-3"),
    ("he worked there before", "0ms..9ms alice 1\n1ms.. bob 2 unknown\n3ms..4ms bob 3", "1-2"),
    ("her process is another one", "0ms..9ms p1 1 client_id=alice\n3ms..4ms p2 3 client_id=alice", "1-3"),
    ("nobody says which", "0ms..9ms p1 1 client_id=alice\n3ms..4ms p2 3 client_id=alice level=tap", ""),
)  # fmt: skip


@pytest.mark.parametrize(("what", "calls", "pairs"), HANDOVERS, ids=[each[0] for each in HANDOVERS])
def test_a_call_is_seen_beside_those_of_others(what: str, calls: str, pairs: str) -> None:
    """Calls as time, who, offset and how it ended; pairs by their offsets."""
    lines = []
    for line in calls.splitlines():
        time, who, offset, *more = line.split()
        end = [] if more[-1:] in (["unknown"], ["cut"]) else ["success"]
        lines.append(" ".join([time, who, "delivers LANE", f"offset={offset}", *more, *end]))
    rows = columns("\n".join(lines))
    found = Handovers(rows)
    told = zip(rows.offset[found.first], rows.offset[found.second], strict=True)
    assert " ".join(sorted(f"{first}-{second}" for first, second in told)) == pairs


DROPS = (
    ("nothing is told", "", False),
    ("she drops it", "10ms alice drops LANE", True),
    ("likewise, by another incarnation", "10ms alice drops LANE inc=2", True),
    ("he does", "10ms bob drops LANE", False),
    ("she drops another one", "10ms alice drops billing/orders/b0/4", False),
    ("she takes it again", "10ms alice drops LANE\n12ms alice adds LANE inc=2 value=1", False),
    ("she drops it later", "25ms alice drops LANE", False),
)


@pytest.mark.parametrize(("what", "between", "dropped"), DROPS, ids=[each[0] for each in DROPS])
def test_a_lane_is_dropped_by_what_its_worker_told_last(
    what: str, between: str, dropped: bool
) -> None:
    rows = columns(f"""
        0ms        alice adds     LANE value=17
        1ms..30ms  alice delivers LANE offset=17 success
        {between}
        20ms..40ms bob   delivers LANE offset=17 success
    """)
    found = Handovers(rows)
    assert (found.dropped(found.first, found.second) != NOWHERE).tolist() == [dropped]


TROUBLE = (
    ("nothing happens", "", True),
    ("she stands still", "10ms..11ms alice pauses -", False),
    ("he does", "10ms..11ms bob pauses -", False),
    ("somebody else does", "10ms..11ms carol pauses -", True),
    ("she did before she was given it", "1ms..2ms alice pauses -", True),
    ("a fault", '10ms..11ms net suffers - detail="cut x y"', False),
    ("one that was over before", '1ms..2ms net suffers - detail="cut x y"', True),
    ("a broker dies", "10ms b1 crashes - broker=b1", False),
    ("it did before", "1ms b1 crashes - broker=b1", True),
    ("a broker stands still", "10ms..11ms b1 pauses - broker=b1", False),
    ("a clock is stepped", "10ms alice steps-clock - value=5", False),
    ("she leaves", "10ms..11ms alice leaves billing", False),
    ("he does", "10ms..11ms bob leaves billing", True),
    ("she leaves another group", "10ms..11ms alice leaves audit", True),
    ("she dies", "10ms alice crashes -", False),
    ("she starts anew", "10ms alice joins billing", False),
)


@pytest.mark.parametrize(("what", "line", "calm"), TROUBLE, ids=[each[0] for each in TROUBLE])
def test_trouble_of_either_worker_counts_since_it_was_given_the_lane(
    what: str, line: str, calm: bool
) -> None:
    lines = f"""
        4ms        bob   adds     LANE value=17
        5ms        alice adds     LANE value=17
        6ms..30ms  alice delivers LANE offset=17 success
        {line}
        20ms..40ms bob   delivers LANE offset=17 success
    """.strip().splitlines()
    text = "\n".join(sorted(filter(None, map(str.strip, lines)), key=_begin))
    rows = columns(f"config closed_world=no\n{text}")
    alice, bob = rows.of(Kind.DELIVER).reshape(2, 1)
    assert undisturbed(rows, alice, bob).tolist() == [calm]


def _begin(line: str) -> int:
    return int(line.split("ms")[0])
