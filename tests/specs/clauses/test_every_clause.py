"""Every clause is judged by its own two examples, and by leaving events out."""

from __future__ import annotations

import pytest

from specs.clauses.base import Clause, Key
from specs.clauses.catalogue import FAMILIES, all_clauses
from specs.history.text import parse_history
from specs.verdicts.examine import examine, find_violations
from specs.vocabulary import Kind

CLAUSES = pytest.mark.parametrize("clause", all_clauses(), ids=lambda clause: clause.id)
EVIDENCE_AT_MOST = 10

THIS_SLICE: dict[str, tuple[int, ...]] = {
    # order
    "ORD": (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14),
    # lease
    "LSE": (1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 14, 15, 16),
    # suspend and retry
    "RTY": (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11),
    # dead letters
    "DLQ": (1, 2, 3, 4, 5, 6, 7, 8, 9, 10),
    # commit
    "CMT": (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13),
    # send and store
    "SND": (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13),
    "ASG": (1, 2, 4),
    # progress
    "LIV": (1, 2, 3, 4, 5),
}


def test_the_catalogue_holds_the_clauses_of_this_slice_in_order() -> None:
    """No clause is lost, none is found twice."""
    expected = [
        f"{family}-{number}" for family, numbers in THIS_SLICE.items() for number in numbers
    ]
    assert [clause.id for clause in all_clauses()] == expected


@CLAUSES
def test_the_shortest_violation_is_found_once_and_shown_whole(clause: Clause) -> None:
    """Its witness is the whole example."""
    info, rows = parse_history(clause.shortest_violation)
    found = find_violations(clause, rows, info)
    assert len(found) == 1
    assert found[0].certain
    tally = examine(rows, info, (clause,)).tallies[clause.id]
    assert list(tally.witness) == rows
    assert tally.violations == 1


@CLAUSES
def test_the_shortest_violation_is_minimal(clause: Clause) -> None:
    """Without any one of its events it is silent."""
    info, rows = parse_history(clause.shortest_violation)
    for index in range(len(rows)):
        assert find_violations(clause, rows[:index] + rows[index + 1 :], info) == [], rows[index]


@CLAUSES
def test_the_lookalike_is_silent(clause: Clause) -> None:
    """What is allowed though it looks wrong is not found."""
    info, rows = parse_history(clause.lookalike)
    assert find_violations(clause, rows, info) == []


@CLAUSES
def test_the_violation_is_explained_with_its_place_and_numbers(clause: Clause) -> None:
    """The sentence is one line and names a number of the evidence."""
    info, rows = parse_history(clause.shortest_violation)
    said = examine(rows, info, (clause,)).tallies[clause.id].explanation
    assert "\n" not in said
    assert any(character.isdigit() for character in said)
    assert not said.endswith(".")
    assert "None" not in said


@CLAUSES
def test_the_violation_is_an_opportunity(clause: Clause) -> None:
    """What is refuted was at stake."""
    info, rows = parse_history(clause.shortest_violation)
    assert examine(rows, info, (clause,)).tallies[clause.id].opportunities >= 1


@CLAUSES
def test_evidence_is_at_most_ten_events(clause: Clause) -> None:
    """No witness is longer than a person can read."""
    info, rows = parse_history(clause.shortest_violation)
    assert 1 <= len(find_violations(clause, rows, info)[0].rows) <= EVIDENCE_AT_MOST


@CLAUSES
def test_a_clause_is_complete(clause: Clause) -> None:
    """Title, statement, premise and sources are there, the family is that of its folder."""
    assert clause.statement.endswith(".")
    assert clause.doc
    assert clause.title == clause.title.strip(". ")
    assert clause.sources
    assert all(source.startswith("docs/sources.md#") for source in clause.sources)
    assert clause.kinds <= set(Kind)
    assert clause.key in set(Key)
    assert clause.FAMILIES[clause.family]
    assert len(FAMILIES) >= 6


@CLAUSES
def test_no_other_clause_objects_to_the_lookalike_without_reason(clause: Clause) -> None:
    """A lookalike is no violation of the clause even when all clauses are judged in one pass."""
    info, rows = parse_history(clause.lookalike)
    assert examine(rows, info).tallies[clause.id].violations == 0
