"""The same rows are judged alike, whether they are judged as they lie in memory or brought together as files are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from drawn import histories
from hypothesis import HealthCheck, given, settings
from judging import by_columns, in_memory
from nearby import nearby
from recorded import recorded

import spark_checkers
from spark_checkers.catalogue import all_judges, planted_modules
from spark_checkers.trace_mutants import DEFECTS, LOOKALIKES, Mutant, plant, spread
from specs.clauses.catalogue import all_clauses, get
from specs.clauses.clause import Clause
from specs.errors import UsageError
from specs.facts.judges import judges_of
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.history.text import parse_history, render_rows

PLANTED = Path(spark_checkers.__file__).parent / "clauses"


def test_what_breaks_a_clause_lies_in_the_same_place() -> None:
    """And nothing else lies there, which nobody would plant."""
    clauses = [Path(*clause.module.split(".")[2:]).with_suffix(".py") for clause in all_clauses()]
    there = {path.relative_to(PLANTED) for path in PLANTED.rglob("*.py")}
    assert {path for path in there if path.name != "__init__.py"} == {*clauses}


@pytest.mark.parametrize("clause", all_clauses(), ids=lambda clause: clause.id)
def test_so_are_two_examples_of_a_clause(clause: Clause) -> None:
    for text, broken in ((clause.shortest_violation, True), (clause.lookalike, False)):
        info, rows = parse_history(text)
        expected = in_memory(rows, info, all_clauses())
        assert by_columns(rows, info, all_judges()) == expected
        assert bool(expected[clause.id][1]) == broken


@pytest.mark.parametrize("clause", all_clauses(), ids=lambda clause: clause.id)
def test_so_is_what_is_near_the_transcript_of_a_clause(clause: Clause) -> None:
    """Each example is about something; a small change leads to its other side."""
    judges = judges_of([clause])
    for number, example in enumerate(clause.examples, start=1):
        info, rows = nearby(*parse_history(example.text), Random(f"{clause.id} {number}"))
        expected = in_memory(rows, info, (clause,))
        assert by_columns(rows, info, judges) == expected, render_rows(rows)


def test_so_is_a_reset_by_nobody() -> None:
    """Nobody of the history has a name."""
    info, rows = parse_history("0ms..5ms  ops  resets  billing/orders/b0/3   value=5 ok")
    rows = [row._replace(client_id=None, process=None) for row in rows]
    assert by_columns(rows, info, all_judges()) == in_memory(rows, info, all_clauses())


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(histories())
def test_so_are_drawn_histories(history: tuple) -> None:
    info, rows = history
    assert by_columns(rows, info, all_judges()) == in_memory(rows, info, all_clauses()), (
        render_rows(rows)
    )


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(histories(most=25))
def test_where_keys_are_cut_makes_no_difference(history: tuple) -> None:
    info, rows = history
    assert by_columns(rows, info, all_judges(), least=1) == by_columns(rows, info, all_judges())


RECORDED = sorted({(*mutant.consumed, mutant.tagged) for mutant in DEFECTS.values()})


@pytest.mark.parametrize(("mode", "message_model", "tagged"), RECORDED)
def test_so_is_a_recorded_history(mode: str, message_model: str, tagged: bool) -> None:
    info, rows = recorded(mode, message_model, tagged=tagged)
    found = by_columns(rows, info, all_judges())
    assert found == in_memory(rows, info, all_clauses())
    assert {clause for clause, (_, violations) in found.items() if violations} == set()


def planted(mutant: Mutant) -> tuple[RunInfo, Sequence[Row]]:
    """A recorded history with the defect or the lookalike in it."""
    info, rows = recorded(*mutant.consumed, tagged=mutant.tagged)
    return mutant.under(info), plant(mutant, spread(rows), info, seed=1).rows


@pytest.mark.parametrize("mutant", DEFECTS.values(), ids=list(DEFECTS))
def test_a_defect_of_a_recorded_history_breaks_the_clause_that_it_names(mutant: Mutant) -> None:
    """Judged by the one clause; what all of them say of it is the next test's."""
    info, rows = planted(mutant)
    clause = get(mutant.clause or "")
    found = by_columns(rows, info, judges_of([clause]))
    assert found == in_memory(rows, info, [clause])
    assert found[clause.id][1]


@pytest.mark.parametrize(
    "mutant",
    [
        pytest.param(mutant, id=name, marks=[] if number % 8 == 0 else pytest.mark.long)
        for number, (name, mutant) in enumerate(DEFECTS.items())
    ],
)
def test_so_is_a_recorded_history_with_a_defect(mutant: Mutant) -> None:
    """By all clauses: every eighth defect, the others in the long tests; drawn histories are judged so too."""
    info, rows = planted(mutant)
    assert by_columns(rows, info, all_judges()) == in_memory(rows, info, all_clauses())


@pytest.mark.parametrize(
    "mutant",
    [
        pytest.param(mutant, id=name, marks=[] if number % 3 == 0 else pytest.mark.long)
        for number, (name, mutant) in enumerate(LOOKALIKES.items())
    ],
)
def test_a_lookalike_of_a_recorded_history_breaks_nothing(mutant: Mutant) -> None:
    info, rows = planted(mutant)
    found = by_columns(rows, info, all_judges())
    assert found == in_memory(rows, info, all_clauses())
    assert {clause for clause, (_, violations) in found.items() if violations} == set()


def test_every_clause_has_a_defect() -> None:
    assert {mutant.clause for mutant in DEFECTS.values()} == {clause.id for clause in all_clauses()}


def test_a_defect_breaks_the_clause_by_which_it_lies() -> None:
    """And a lookalike breaks none. No two have the same name."""
    breaks: list[tuple[str, str | None]] = []
    for clause, module in zip(all_clauses(), planted_modules(), strict=True):
        mutants = [each for each in vars(module).values() if isinstance(each, Mutant)]
        breaks += [(mutant.name, clause.id if mutant.breaks else None) for mutant in mutants]
    known = {**DEFECTS, **LOOKALIKES}
    assert {name: mutant.clause for name, mutant in known.items()} == dict(breaks)
    assert len(breaks) == len(known)


def test_what_is_planted_judges_nothing() -> None:
    """A clause has one text, which lies in `specs`."""
    for module in planted_modules():
        theirs = {getattr(each, "__module__", "") for each in vars(module).values()}
        assert not any(name.startswith("specs.facts") for name in theirs), module.__name__
        assert not vars(module).keys() & {"judge", "find", "explain", "pick"}, module.__name__


def test_a_history_without_a_place_for_a_defect_says_so() -> None:
    info, rows = parse_history("0ms alice locks billing/orders/b0/3 ok")
    with pytest.raises(UsageError, match="no place for the defect commit-rewinds"):
        plant(DEFECTS["commit-rewinds"], rows, info)
