"""A plan's steps: written and read as JSON, by the schema too, and refused where they contradict the plan."""

from __future__ import annotations

import json

import jsonschema
import pytest

from specs.errors import UsageError
from specs.plan.ability import Ability
from specs.plan.plan import ClientPlan, Plan
from specs.plan.schema import plan_schema
from specs.plan.step import EVERYBODY, Step

STEPS = (
    Step("crash", {"client": "c1"}, client="c1", at_work=True),
    Step("stop", {"client": "c2"}, finished=0, for_ms=300, heals=False, beside=True),
    Step("cut", {"a": EVERYBODY, "b": "b0"}, client="c1", for_ms=3_000, deadline_ms=5_000),
)
CLIENTS = tuple(ClientPlan(name, "consumer", "billing", ("orders",)) for name in ("c1", "c2"))


def test_steps_are_read_as_they_were_written() -> None:
    plan = Plan(clients=CLIENTS, steps=STEPS)
    written = json.loads(json.dumps(plan.to_json()))
    jsonschema.validate(written, plan_schema())
    assert Plan.from_json(written).steps == STEPS


def test_a_plan_without_steps_says_nothing_of_them() -> None:
    assert "steps" not in Plan(clients=CLIENTS).to_json()


def test_a_step_says_what_it_needs_and_what_ends_it() -> None:
    crash, stop, cut = STEPS
    assert [step.needs for step in STEPS] == [(Ability.CRASH_CLIENT,), (), (Ability.BREAK_LINK,)]
    assert (crash.healed_by, crash.healing_args) == ("restart", {"client": "c1"})
    assert (stop.healed_by, cut.healed_by) == (None, "heal")
    assert [step.detail for step in STEPS] == ["crash c1", "stop c2", "link_down"]


def test_a_fault_of_one_link_needs_what_the_fault_needs_besides() -> None:
    alone = Step("lose", {"a": "c1", "b": "b0", "percent": 30}, client="c1")
    assert alone.needs == (Ability.SPOIL_LINK, Ability.BREAK_ONE_LINK)


@pytest.mark.parametrize(
    ("step", "sentence"),
    [
        ({"do": "send", "args": {"client": "c1", "topic": "orders", "count": 1}}, "a step is"),
        ({"do": "crash", "args": {"client": "c9"}}, "no node 'c9'"),
        ({"do": "crash", "args": {"client": "c1"}, "client": "c3"}, "no node 'c3'"),
        ({"do": "crash", "args": {"client": "c1"}, "when": 3}, "unknown field 'when'"),
        ({"do": "crash", "args": {"client": "c1"}, "finished": "ten"}, "whole number"),
        ({"do": "crash", "args": {}}, "'client' is missing"),
    ],
)
def test_a_wrong_step_is_told_in_a_sentence(step: dict[str, object], sentence: str) -> None:
    data = {**Plan(clients=CLIENTS).to_json(), "steps": [step]}
    with pytest.raises(UsageError, match=sentence):
        Plan.from_json(data)
