"""What waits to come again, since when, and what is left where a part has come, as a small history tells."""

from __future__ import annotations

import numpy as np
import pytest

from specs.facts.columns import NEVER
from specs.facts.put_back import PutBack
from specs.facts.rows import Rows
from specs.facts.run_context import RunContext
from specs.history.store import rows_to_table
from specs.history.text import parse_history

LANE = "billing/orders/b0/3"
ADDED = f"0ms alice adds {LANE} value=17"


def put_back(text: str, config: str = "batch=2") -> PutBack:
    info, rows = parse_history(f"config {config}\n{ADDED}\n{text}")
    return PutBack(Rows(rows_to_table(rows), {info.run: RunContext.of_rows(info, rows)}))


def call(number: int, span: str, *offsets: int, ends: str = "suspend=1000 suspend") -> str:
    return "\n".join(
        f"{span} alice delivers {LANE} offset={offset} call={number} rt=0 {ends}" for offset in offsets
    )  # fmt: skip


LETTER = f"21ms..{{end}}ms alice dead-letters {LANE} offset=17"
DUE = (
    ("after its pause", "", "", 1020),
    ("a dead letter failed", "max_reconsume_times=0", LETTER.format(end=30) + " refused", 1030),
    ("it is on its way", "max_reconsume_times=0", LETTER.format(end=9000) + " refused", None),
    ("it was acknowledged", "max_reconsume_times=0", LETTER.format(end=30) + " ok", None),
    ("nobody sent one", "max_reconsume_times=0", "", None),
)


@pytest.mark.parametrize(("what", "config", "letter", "due_ms"), DUE, ids=[each[0] for each in DUE])
def test_a_batch_is_due(what: str, config: str, letter: str, due_ms: int | None) -> None:
    found = put_back(f"{call(1, '10ms..20ms', 17, 18)}\n{letter}", f"batch=2 {config}")
    waiting = found.batches()
    due_us, _ = found.due(
        waiting, np.arange(1), np.full(1, int(found.rows.end.max()) + 1 - (due_ms is None))
    )
    assert due_us.tolist() == [NEVER if due_ms is None else 1000 * due_ms]


def test_nothing_waits_of_a_lane_that_was_added_anew_or_dropped_meanwhile() -> None:
    for verb in ("adds", "drops"):
        text = f"{call(1, '10ms..20ms', 17)}\n15ms alice {verb} {LANE}"
        assert len(put_back(text).batches().call) == 0


LEFT = (
    ("a part came and ended well", "success", [18]),
    ("it asks to come again", "suspend", []),
    ("nobody saw its end", "cut", []),
)


@pytest.mark.parametrize(("what", "ends", "left"), LEFT, ids=[each[0] for each in LEFT])
def test_the_rest_waits_where_a_part_came(what: str, ends: str, left: list[int]) -> None:
    again = call(2, "1021ms..1500ms", 17, ends=ends)
    found = put_back(f"{call(1, '10ms..20ms', 17, 18)}\n{again}")
    waiting = found.batches()
    first = waiting.call[:1]
    waiting = found.left(waiting, found.calls.then[waiting.call])
    of_first = waiting.rest[np.isin(found.calls.call_of[waiting.rest], first)]
    assert found.rows.offset[of_first].tolist() == left
    assert waiting.due_us[: len(left)].tolist() == [1_500_000] * len(left)
