"""Every clause has its twin, and the twin says the same rule without asking the Python judge."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from drawn import histories
from hypothesis import HealthCheck, given, settings
from judging import by_python, by_twins, together_by_twins
from nearby import nearby
from neighbours import steps, turns
from recorded import recorded

import spark_checkers
from spark_checkers.catalogue import all_twins, clause_of, twin_modules
from spark_checkers.trace_mutants import DEFECTS, LOOKALIKES, Mutant, plant, spread
from specs.clauses.catalogue import all_clauses
from specs.clauses.clause import Clause
from specs.errors import UsageError
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.history.text import parse_history, render_rows

TWINS = Path(spark_checkers.__file__).parent / "clauses"


def test_every_clause_has_a_twin_in_the_same_place() -> None:
    assert [twin.id for twin in all_twins()] == [clause.id for clause in all_clauses()]
    for clause in all_clauses():
        where = Path(*clause.module.split(".")[2:]).with_suffix(".py")
        assert (TWINS / where).is_file(), where


def test_no_twin_asks_the_python_judge() -> None:
    for path in [*TWINS.rglob("*.py"), *TWINS.parent.glob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and path.parent != TWINS.parent:
                assert not re.match(r"specs\.clauses\.(?!(rows|intervals)$)", node.module), (
                    f"{path}: {node.module}"
                )
                assert not node.module.startswith("specs.verdicts"), f"{path}: {node.module}"


@pytest.mark.parametrize("clause", all_clauses(), ids=lambda clause: clause.id)
def test_both_judges_agree_on_the_two_examples_of_a_clause(clause: Clause) -> None:
    for text, broken in ((clause.shortest_violation, True), (clause.lookalike, False)):
        info, rows = parse_history(text)
        expected = by_python(rows, info, all_clauses())
        assert by_twins(rows, info, all_twins()) == expected
        assert bool(expected[clause.id][1]) == broken


@pytest.mark.parametrize(
    "every", [90, pytest.param(5, marks=pytest.mark.long)], ids=["few", "many"]
)
@pytest.mark.parametrize("clause", all_clauses(), ids=lambda clause: clause.id)
def test_both_judges_agree_a_step_from_the_transcript_of_a_clause(
    clause: Clause, every: int
) -> None:
    """Where its answer turns, and with whatever comes in its midst or beside it. every: so manieth of these."""
    twins = [twin for twin in all_twins() if twin.id == clause.id]
    examples = [parse_history(example.text) for example in clause.examples]
    others = [rows for _, rows in examples]
    for number, (info, rows) in enumerate(examples[:: every // 10 or 1], start=1):
        words = f"{clause.id} {number}"
        found = [*turns(info, rows, clause, words), *steps(info, rows, clause, others, words)]
        found = found[::every]
        for history, told in zip(found, together_by_twins(found, twins), strict=True):
            expected = by_python(history[1], history[0], (clause,))
            assert told == expected, render_rows(history[1])


@pytest.mark.parametrize("near", [2, pytest.param(60, marks=pytest.mark.long)], ids=["few", "many"])
@pytest.mark.parametrize("clause", all_clauses(), ids=lambda clause: clause.id)
def test_both_judges_agree_near_the_transcript_of_a_clause(clause: Clause, near: int) -> None:
    """Each example is about something; a small change leads to its other side. near: so many of each."""
    (twin,) = [twin for twin in all_twins() if twin.id == clause.id]
    for number, example in enumerate(clause.examples, start=1):
        for turn in range(near):
            draw = Random(f"{clause.id} {number} {turn} {near}")
            info, rows = nearby(*parse_history(example.text), draw)
            expected = by_python(rows, info, (clause,))
            assert by_twins(rows, info, (twin,)) == expected, render_rows(rows)


def test_both_judges_agree_on_a_reset_by_nobody() -> None:
    """Nobody of the history has a name."""
    info, rows = parse_history("0ms..5ms  ops  resets  billing/orders/b0/3   value=5 ok")
    rows = [row._replace(client_id=None, process=None) for row in rows]
    assert by_twins(rows, info, all_twins()) == by_python(rows, info, all_clauses())


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(histories())
def test_both_judges_agree_on_drawn_histories(history: tuple) -> None:
    info, rows = history
    assert by_twins(rows, info, all_twins()) == by_python(rows, info, all_clauses()), render_rows(
        rows
    )


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(histories(most=25))
def test_where_keys_are_cut_makes_no_difference(history: tuple) -> None:
    info, rows = history
    assert by_twins(rows, info, all_twins(), least=1) == by_twins(rows, info, all_twins())


RECORDED = sorted({(*mutant.consumed, mutant.tagged) for mutant in DEFECTS.values()})


@pytest.mark.parametrize(("mode", "message_model", "tagged"), RECORDED)
def test_both_judges_agree_on_a_recorded_history(
    mode: str, message_model: str, tagged: bool
) -> None:
    info, rows = recorded(mode, message_model, tagged=tagged)
    found = by_twins(rows, info, all_twins())
    assert found == by_python(rows, info, all_clauses())
    assert {clause for clause, (_, violations) in found.items() if violations} == set()


def planted(mutant: Mutant) -> tuple[RunInfo, Sequence[Row]]:
    """A recorded history with the defect or the lookalike in it."""
    info, rows = recorded(*mutant.consumed, tagged=mutant.tagged)
    return mutant.under(info), plant(mutant, spread(rows), info, seed=1).rows


@pytest.mark.parametrize("mutant", DEFECTS.values(), ids=list(DEFECTS))
def test_a_defect_of_a_recorded_history_breaks_the_clause_that_it_names(mutant: Mutant) -> None:
    """Judged by the one clause; what all of them say of it is the next test's."""
    info, rows = planted(mutant)
    twin = next(each for each in all_twins() if each.id == mutant.clause)
    found = by_twins(rows, info, [twin])
    assert found == by_python(rows, info, [twin.clause])
    assert found[twin.id][1]


@pytest.mark.parametrize(
    "mutant",
    [
        pytest.param(mutant, id=name, marks=[] if number % 8 == 0 else pytest.mark.long)
        for number, (name, mutant) in enumerate(DEFECTS.items())
    ],
)
def test_both_judges_agree_on_a_recorded_history_with_a_defect(mutant: Mutant) -> None:
    """By all clauses: every eighth defect, the others in the long tests; drawn histories are judged so too."""
    info, rows = planted(mutant)
    assert by_twins(rows, info, all_twins()) == by_python(rows, info, all_clauses())


@pytest.mark.parametrize(
    "mutant",
    [
        pytest.param(mutant, id=name, marks=[] if number % 3 == 0 else pytest.mark.long)
        for number, (name, mutant) in enumerate(LOOKALIKES.items())
    ],
)
def test_a_lookalike_of_a_recorded_history_breaks_nothing(mutant: Mutant) -> None:
    info, rows = planted(mutant)
    found = by_twins(rows, info, all_twins())
    assert found == by_python(rows, info, all_clauses())
    assert {clause for clause, (_, violations) in found.items() if violations} == set()


def test_every_clause_has_a_defect() -> None:
    assert {mutant.clause for mutant in DEFECTS.values()} == {clause.id for clause in all_clauses()}


def test_a_defect_lies_with_the_twin_of_the_clause_that_it_breaks() -> None:
    """And a lookalike names no clause: it breaks nothing."""
    for module in twin_modules():
        assert {mutant.clause for mutant in module.DEFECTS} == {clause_of(module)}
        assert {mutant.clause for mutant in getattr(module, "LOOKALIKES", ())} <= {None}


def test_a_history_without_a_place_for_a_defect_says_so() -> None:
    info, rows = parse_history("0ms alice locks billing/orders/b0/3 ok")
    with pytest.raises(UsageError, match="no place for the defect commit-rewinds"):
        plant(DEFECTS["commit-rewinds"], rows, info)
