"""A finding is an opportunity: whoever refutes a clause has seen it at stake. "Refuted, at stake 0 times" is no sum."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from inorder.evidence.track_record.__main__ import PAGE
from specs.clauses.catalogue import all_clauses
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.history.store import open_history
from specs.history.text import parse_history
from specs.verdicts.examine import Examiner, examine
from specs.verdicts.tally import Examination
from tests.specs.verdicts.test_drawn_histories import DRAWN, histories

KEPT = sorted(path.parent for path in PAGE.with_suffix("").glob("*/run.json"))


def uncounted(examination: Examination) -> set[str]:
    """The clauses that were broken without having been at stake."""
    return {
        clause
        for clause, tally in examination.tallies.items()
        if tally.found and not tally.opportunities
    }


def test_no_transcript_refutes_at_stake_zero() -> None:
    """By clause: in which examples, of whatever clause. What was written for one is a history for all."""
    alike: dict[str, list[tuple[str, RunInfo, list[Row]]]] = {}
    for clause in all_clauses():
        for number, example in enumerate(clause.examples, start=1):
            info, rows = parse_history(example.text)
            alike.setdefault(repr(info), []).append((f"{clause.id}, example {number}", info, rows))
    found: dict[str, set[str]] = {}
    for together in alike.values():
        examiner = Examiner(together[0][1])
        for bench in examiner.benches:
            bench.kept = []
        for name, _info, rows in together:
            examiner.feed(row._replace(run=name) for row in rows)
        examiner.result()
        for bench in examiner.benches:
            refuted = {finding.rows[0].run for finding in bench.kept or ()}
            uncounted_in = {run for run in refuted if not bench.times.get(run)}
            if uncounted_in:
                found[bench.clause.id] = uncounted_in
    assert found == {}


@pytest.mark.parametrize("folder", KEPT, ids=lambda folder: folder.name)
def test_no_kept_witness_refutes_at_stake_zero(folder: Path) -> None:
    history = open_history(folder)
    assert uncounted(examine(history.rows(), history.info)) == set()


@DRAWN
@given(histories())
def test_no_drawn_history_refutes_at_stake_zero(drawn: tuple[RunInfo, list[Row]]) -> None:
    info, rows = drawn
    assert uncounted(examine(rows, info)) == set()
