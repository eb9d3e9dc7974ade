"""What comes of a case is a history like any other: the judges refute nothing of the reference in it."""

from __future__ import annotations

import pytest

from conformance.cases.folder import all_cases
from conformance.cases.play import play
from conformance.cases.text import Case
from specs.profiles import load
from specs.verdicts.examine import examine
from specs.verdicts.verdict import ClauseVerdict, conclude

NOT_JUDGED = {
    "dialect=4.9": "the 4.9 line promises less than the reference's profile",
    "without an id": "a message without an id is nobody's in a history",
    "send back": "the copy that a broker makes names its origin by its place in the log",
}
CASES = [
    case
    for case in all_cases()
    if not any(
        words in line.text
        for block in case.blocks
        for line in block.commands
        for words in NOT_JUDGED
    )
]


def test_most_cases_are_judged() -> None:
    """What is left out are exceptions."""
    assert len(CASES) > 150


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_nothing_is_refuted(case: Case) -> None:
    """Neither is the run inadmissible."""
    played = play(case)
    examined = examine(played.rows, played.info)
    verdict = conclude(
        examined, played.info, load("reference"), floor=1, require_exercised=False, tool={}
    )
    refuted = [
        each.id
        for each in verdict.clauses
        if each.verdict in (ClauseVerdict.REFUTED, ClauseVerdict.POSSIBLE)
    ]
    assert (
        refuted,
        [check.detail for check in verdict.met if check.ok is False and check.id == "MET-1"],
    ) == ([], [])
