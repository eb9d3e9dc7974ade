"""Every example of every transcript comes out as it says, also where many are judged together."""

from __future__ import annotations

import pytest
from judging import in_memory, together_by_columns

from specs.clauses.catalogue import all_clauses
from specs.clauses.clause import Clause
from specs.clauses.transcript import Example, Expected
from specs.facts.judges import judges_of
from specs.history.text import parse_history
from specs.verdicts.examine import examine

EXAMPLES = [
    pytest.param(clause, example, id=f"{clause.id}-{number}-{example.expected.replace(' ', '-')}")
    for clause in all_clauses()
    for number, example in enumerate(clause.examples)
]


def came_out(clause: Clause, example: Example) -> Expected:
    """What becomes of an example."""
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


@pytest.mark.parametrize("clause", all_clauses(), ids=lambda clause: clause.id)
def test_examples_that_are_judged_together_come_out_as_by_themselves(clause: Clause) -> None:
    histories = [parse_history(example.text) for example in clause.examples]
    together = together_by_columns(histories, judges_of([clause]))
    for (info, rows), found in zip(histories, together, strict=True):
        assert found == in_memory(rows, info, (clause,))
        opportunities, violations = found[clause.id]
        assert opportunities >= len({seqs for seqs, _certain, _name in violations})


@pytest.mark.parametrize("clause", all_clauses(), ids=lambda clause: clause.id)
def test_a_clause_says_what_it_finds_and_needs(clause: Clause) -> None:
    assert clause.findings
    assert clause.needs <= clause.kinds
    assert {Expected.BROKEN, Expected.KEPT} <= {example.expected for example in clause.examples}
