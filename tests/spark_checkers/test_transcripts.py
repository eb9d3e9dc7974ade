"""Every example of every transcript comes out as it says, also where many are judged together."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from judging import in_memory, together_by_columns

from specs.clauses.catalogue import all_clauses
from specs.clauses.clause import Clause
from specs.clauses.transcript import Example, Expected
from specs.facts.judges import judges_of
from specs.history.text import parse_history
from specs.verdicts.examine import examine

STAKES = Path(__file__).with_name("at_stake.txt")
"""By clause how often it is at stake in each example, in their order."""
EXAMPLES = [
    pytest.param(
        clause, number, example, id=f"{clause.id}-{number}-{example.expected.replace(' ', '-')}"
    )
    for clause in all_clauses()
    for number, example in enumerate(clause.examples)
]


def came_out(clause: Clause, example: Example) -> tuple[Expected, int]:
    """What becomes of an example, and how often the clause is at stake."""
    info, rows = parse_history(example.text)
    tally = examine(rows, info, (clause,)).tallies[clause.id]
    # An example that says so must not be at stake; one that is kept may not be either.
    idle = example.expected is Expected.NOT_AT_STAKE and not tally.opportunities
    word = Expected.NOT_AT_STAKE if idle else Expected.KEPT
    if tally.missing:
        word = Expected.NOT_RECORDED
    elif tally.violations:
        word = Expected.BROKEN
    elif tally.possible:
        word = Expected.POSSIBLE
    return word, tally.opportunities


@cache
def at_stake() -> dict[str, list[int]]:
    """By clause, how often it is at stake in each of its examples."""
    lines = [line.split() for line in STAKES.read_text(encoding="utf-8").splitlines()]
    return {clause: [int(each) for each in times] for clause, *times in lines}


@pytest.mark.parametrize(("clause", "number", "example"), EXAMPLES)
def test_an_example_comes_out_as_it_says(clause: Clause, number: int, example: Example) -> None:
    """And its clause is at stake as often as is written down."""
    word, times = came_out(clause, example)
    assert word is example.expected, example.why
    assert at_stake()[clause.id][number : number + 1] == [times], (
        "`pytest --rewrite` writes it anew"
    )


def test_of_every_example_it_is_written_down_how_often_it_is_at_stake(
    request: pytest.FixtureRequest,
) -> None:
    """In the catalogue's order; `pytest --rewrite` counts anew, and who changed a judge says why it counts so."""
    if request.config.getoption("--rewrite"):
        lines = [
            " ".join([clause.id, *(str(came_out(clause, each)[1]) for each in clause.examples)])
            for clause in all_clauses()
        ]
        STAKES.write_text("\n".join(lines) + "\n", encoding="utf-8")
        at_stake.cache_clear()
    expected = [(clause.id, len(clause.examples)) for clause in all_clauses()]
    assert expected == [(clause, len(times)) for clause, times in at_stake().items()]


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
