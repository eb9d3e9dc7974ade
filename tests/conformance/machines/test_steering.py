"""What a clause wants is what puts it at stake."""

from __future__ import annotations

from functools import cache
from inspect import signature

import pytest
from hypothesis.stateful import INITIALIZE_RULE_MARKER, RULE_MARKER

from conformance.machines.cluster import ClusterMachine, Collector, Run
from conformance.machines.steering import (
    INGREDIENTS,
    MIXTURES,
    WANTS,
    WORK,
    ingredients_for,
    steered,
)
from conformance.runner import EXAMPLES, ORDINARY_PER_MIXTURE, run_machine
from specs.clauses.catalogue import by_id

SEED = 3
RUNS = 10
ORDINARY_RUNS = 40
MARGIN = 1.2
"""A row that does nothing would come to 1."""


def rates(runs: int, ingredients: tuple[str, ...] = ()) -> dict[str, float]:
    """How often each clause was at stake in a run."""
    collector = Collector(lambda refuted: ())
    run_machine(collector, SEED, runs, ingredients)
    return {
        clause: tally.opportunities / collector.runs
        for clause, tally in collector.total.tallies.items()
    }


@cache
def ordinary() -> dict[str, float]:
    return rates(ORDINARY_RUNS)


@pytest.mark.long
@pytest.mark.parametrize("ingredients", MIXTURES, ids=" + ".join)
def test_each_row_raises_how_often_its_clause_is_at_stake(ingredients: tuple[str, ...]) -> None:
    wanting = [clause for clause, wants in WANTS.items() if wants == ingredients]
    found = rates(RUNS, ingredients)
    too_low = {
        c: (found[c], ordinary()[c]) for c in wanting if not found[c] > MARGIN * ordinary()[c]
    }
    assert too_low == {}


def test_rows_name_clauses_and_ingredients_and_each_ingredient_is_wanted() -> None:
    assert set(WANTS) <= set(by_id())
    assert {name for wants in WANTS.values() for name in wants} == set(INGREDIENTS)


@pytest.mark.parametrize("name", INGREDIENTS)
def test_an_ingredient_names_rules_and_arguments_of_the_machine(name: str) -> None:
    """One that is misspelt would silently leave the machine as it is."""
    for rule, arguments in INGREDIENTS[name].draws.items():
        assert set(arguments) <= set(signature(getattr(ClusterMachine, rule)).parameters)
    for rule in INGREDIENTS[name].rules:
        assert hasattr(getattr(ClusterMachine, rule), RULE_MARKER)


@pytest.mark.parametrize("name", [name for name, each in INGREDIENTS.items() if each.rules])
def test_where_rules_are_left_out_there_is_always_one_that_can_be_taken(name: str) -> None:
    assert set(WORK) <= set(INGREDIENTS[name].rules)


def test_the_machine_keeps_what_no_ingredient_speaks_of() -> None:
    machine = steered(ClusterMachine, ("many lanes", "one thread", "handovers"))
    begin = getattr(machine.begin, INITIALIZE_RULE_MARKER).arguments
    before = getattr(ClusterMachine.begin, INITIALIZE_RULE_MARKER).arguments
    assert {name for name in before if begin[name] is not before[name]} == {
        *("brokers", "queues", "keys", "threads", "effort", "members")
    }
    left = {name for name in dir(machine) if hasattr(getattr(machine, name), RULE_MARKER)}
    assert left == {*WORK, "hand_over", "join_or_leave"}
    assert getattr(machine.send_work, RULE_MARKER).preconditions
    assert hasattr(ClusterMachine.meddle, RULE_MARKER)
    assert steered(ClusterMachine, ()) is ClusterMachine


def test_runs_have_what_they_are_to_have() -> None:
    runs: list[Run] = []
    run_machine(Collector(lambda refuted: (), on_run=runs.append), SEED, 2, ("a filter by tags",))
    assert {run.plan.config.subscription for run in runs} == {"Aa || red"}
    runs.clear()
    run_machine(
        Collector(lambda refuted: (), on_run=runs.append), SEED, 2, ("rollbacks in manual mode",)
    )
    assert all(run.plan.listener[0].manual for run in runs)


def test_a_clause_without_a_row_gets_ordinary_runs() -> None:
    assert ingredients_for("ORD-1") == ()


@pytest.mark.long
def test_a_search_of_the_usual_length_has_runs_of_every_mixture() -> None:
    assert len(MIXTURES) <= EXAMPLES // ORDINARY_PER_MIXTURE
