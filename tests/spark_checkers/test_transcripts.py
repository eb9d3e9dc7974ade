"""Every example of every transcript comes out as it says, in both engines, which tell the same of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from judging import by_python, by_twins, together_by_twins
from nearby import not_telling

from spark_checkers.catalogue import all_twins
from specs.clauses.catalogue import all_clauses
from specs.clauses.clause import Clause
from specs.clauses.transcript import Example, Expected
from specs.history.row import Row
from specs.history.text import parse_history
from specs.verdicts.examine import examine

EXAMPLES = [
    pytest.param(clause, example, id=f"{clause.id}-{number}-{example.expected.replace(' ', '-')}")
    for clause in all_clauses()
    for number, example in enumerate(clause.examples)
]


def came_out(clause: Clause, example: Example) -> Expected:
    """What the Python judge makes of an example."""
    info, rows = parse_history(example.text)
    tally = examine(rows, info, (clause,)).tallies[clause.id]
    if tally.missing:
        return Expected.NOT_RECORDED
    if tally.violations:
        return Expected.BROKEN
    if tally.possible:
        return Expected.POSSIBLE
    # An example that says so must not be at stake; one that is kept may not be either.
    idle = example.expected is Expected.NOT_AT_STAKE and not tally.opportunities
    return Expected.NOT_AT_STAKE if idle else Expected.KEPT


@pytest.mark.parametrize(("clause", "example"), EXAMPLES)
def test_an_example_comes_out_as_it_says(clause: Clause, example: Example) -> None:
    assert came_out(clause, example) is example.expected, example.why


@pytest.mark.parametrize(("clause", "example"), EXAMPLES)
def test_both_engines_tell_the_same_of_an_example(clause: Clause, example: Example) -> None:
    info, rows = parse_history(example.text)
    twin = next(twin for twin in all_twins() if twin.id == clause.id)
    found = by_twins(rows, info, (twin,))
    assert found == by_python(rows, info, (clause,))
    opportunities, violations = found[clause.id]
    assert opportunities >= len({seqs for seqs, _certain, _name in violations}) or not violations


def by_nobody(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """The history with each row in turn, and all of each kind, not naming their client where they need not."""
    for at, row in enumerate(rows):
        yield [*rows[:at], not_telling(row, "client_id"), *rows[at + 1 :]]
    for kind in sorted({row.kind for row in rows}):
        yield [not_telling(row, "client_id") if row.kind is kind else row for row in rows]


@pytest.mark.parametrize("clause", all_clauses(), ids=lambda clause: clause.id)
def test_both_engines_tell_the_same_of_what_nobody_did(clause: Clause) -> None:
    """A server's consumer adds a lane, a producer is not told: one of them must not accuse where the other does not."""
    twin = next(twin for twin in all_twins() if twin.id == clause.id)
    for example in clause.examples:
        info, rows = parse_history(example.text)
        histories = [(info, each) for each in by_nobody(rows) if each != rows]
        found = together_by_twins(histories, [twin]) if histories else []
        for (_, changed), by_kernels in zip(histories, found, strict=True):
            assert by_kernels == by_python(changed, info, [clause])


@pytest.mark.parametrize("clause", all_clauses(), ids=lambda clause: clause.id)
def test_a_clause_says_what_it_finds_and_needs(clause: Clause) -> None:
    assert clause.findings
    assert clause.needs <= clause.kinds
    assert {Expected.BROKEN, Expected.KEPT} <= {example.expected for example in clause.examples}
