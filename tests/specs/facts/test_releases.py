"""Which hold of a lane an unlock gives back."""

from __future__ import annotations

import pytest

from specs.facts.releases import given_back
from specs.facts.rows import Rows
from specs.facts.run_context import RunContext
from specs.history.store import rows_to_table
from specs.history.text import parse_history

LANE = "billing/orders/b0/3"
TWO = "alice adds LANE\nalice drops LANE\nalice adds LANE inc=2\nalice drops LANE inc=2\nalice unlocks LANE inc=-\n"
THREE = f"{TWO}alice unlocks LANE inc=-\nalice adds LANE inc=3\nalice drops LANE inc=3\nalice unlocks LANE inc=-"
RELEASES = (
    ("it is named", "alice adds LANE\nalice unlocks LANE inc=1", "0-1"),
    ("it is named twice", "alice adds LANE\nalice unlocks LANE inc=1\nalice unlocks LANE inc=1", "0-1"),
    ("it was added again", "alice adds LANE\nalice adds LANE\nalice unlocks LANE inc=1", "1-2"),
    ("it works on", "alice adds LANE\nalice unlocks LANE inc=-", ""),
    ("it was dropped", "alice adds LANE\nalice drops LANE\nalice unlocks LANE inc=-", "0-2"),
    ("its client leaves", "alice adds LANE\nalice leaves billing\nalice unlocks LANE inc=-", "0-2"),
    ("its client died", "alice adds LANE\nalice drops LANE\nalice crashes -\nalice unlocks LANE inc=-", ""),
    ("another one unlocks", "alice adds LANE\nalice drops LANE\nbob unlocks LANE inc=-", ""),
    ("nobody saw it added", "alice drops LANE\nalice unlocks LANE inc=-", ""),
    ("one of two", f"{TWO}alice unlocks LANE inc=2", ""),
    ("a third one, when both were given back", THREE, "6-8"),
)  # fmt: skip


@pytest.mark.parametrize(("what", "lines", "pairs"), RELEASES, ids=[each[0] for each in RELEASES])
def test_an_unlock_gives_back_what_is_named_or_the_only_one(
    what: str, lines: str, pairs: str
) -> None:
    """Pairs of an ADD and an UNLOCK, each by its line."""
    text = "\n".join(f"{at}ms {line}" for at, line in enumerate(lines.splitlines()))
    info, rows = parse_history(text.replace("LANE", LANE))
    of_queues = [row for row in rows if row.queue_id is not None]
    found = Rows(rows_to_table(of_queues), {info.run: RunContext.of_rows(info, rows)})
    told = (
        f"{rows.index(of_queues[add])}-{rows.index(of_queues[unlock])}"
        for add, unlock in given_back(found)
    )
    assert " ".join(told) == pairs
