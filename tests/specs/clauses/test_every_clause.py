"""Every clause is judged by its own two examples, and by leaving events out."""

from __future__ import annotations

from collections import Counter

import pytest

from specs.clauses.catalogue import FAMILIES, all_clauses, catalogue
from specs.clauses.clause import Clause, Promise
from specs.clauses.transcript import Expected
from specs.history.text import parse_history
from specs.verdicts.examine import examine, find_violations
from specs.vocabulary import Key, Kind

CLAUSES = pytest.mark.parametrize("clause", all_clauses(), ids=lambda clause: clause.id)
EVIDENCE_AT_MOST = 10


def test_the_ids_of_a_family_are_dense() -> None:
    """No clause is lost, none is found twice, and the order is that of the families and their numbers."""
    members = Counter(promise.family for promise in catalogue())
    expected = [
        f"{family}-{number}"
        for family in Promise.FAMILIES
        for number in range(1, members[family] + 1)
    ]
    assert [promise.id for promise in catalogue()] == expected


def test_a_clause_that_no_history_decides_says_what_does() -> None:
    """An exchange on the wire, or a table of vectors."""
    assert [promise.id for promise in catalogue() if not promise.judged_by] == []


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


POSSIBLE_IN_PART = {"SND-4"}
"""A second try alone: another producer may have made the first one (its own example says so)."""


@CLAUSES
def test_the_shortest_violation_is_minimal(clause: Clause) -> None:
    """Without any one of its events nothing is found, or nothing certain where a part of it is at least possible."""
    info, rows = parse_history(clause.shortest_violation)
    for index in range(len(rows)):
        found = find_violations(clause, rows[:index] + rows[index + 1 :], info)
        assert not any(each.certain for each in found), rows[index]
        assert found == [] or clause.id in POSSIBLE_IN_PART, rows[index]


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


@pytest.mark.parametrize(
    "clause", [each for each in all_clauses() if each.looks_back], ids=lambda clause: clause.id
)
def test_a_clause_that_looks_back_shows_that_it_doubts_a_late_begin(clause: Clause) -> None:
    late = [each for each in clause.examples if parse_history(each.text)[0].begins_late]
    assert any(each.expected is Expected.POSSIBLE for each in late)
