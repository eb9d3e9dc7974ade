"""A plan is data that survives the way through JSON, and says where it is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specs.errors import UsageError
from specs.plan.config import Config
from specs.plan.plan import (
    LISTENER_OUTCOMES,
    STATES,
    VERBS,
    Action,
    ClientPlan,
    ListenerRule,
    Plan,
    TopicPlan,
    Topology,
    read_plan,
)
from specs.plan.schema import plan_schema

SCHEMA = jsonschema.Draft202012Validator(plan_schema())
"""Made once: `jsonschema.validate` would check the schema itself, which is large, for every plan."""
NODES = ("alice", "p", "eve", "b0", "ns")
ARGUMENTS: dict[str, st.SearchStrategy[Any]] = {
    "node": st.sampled_from(NODES),
    "state": st.sampled_from(STATES),
    "string": st.text(max_size=5),
    "integer": st.integers(0, 9),
    "boolean": st.booleans(),
    "integers": st.lists(st.integers(0, 9), max_size=3),
}


@st.composite
def actions(draw: st.DrawFn) -> tuple[Action, ...]:
    found = []
    at_ms = 0
    for verb in draw(st.lists(st.sampled_from(sorted(VERBS)), max_size=6)):
        at_ms += draw(st.integers(0, 50))
        args = {
            name: draw(ARGUMENTS[kind])
            for name, (kind, required) in VERBS[verb].items()
            if required or draw(st.booleans())
        }
        found.append(Action(at_ms, verb, args))
    return tuple(found)


rules = st.builds(
    ListenerRule,
    outcome=st.sampled_from(LISTENER_OUTCOMES),
    suspend_ms=st.integers(-1, 40_000),
    duration_ms=st.integers(0, 9),
    manual=st.booleans(),
    key=st.none() | st.text(max_size=3),
    number=st.none() | st.integers(1, 9),
    delivery_max=st.none() | st.integers(1, 3),
)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    done = draw(actions())
    return Plan(
        seed=draw(st.integers(0, 99)),
        topology=Topology(("b0",), (TopicPlan("orders", draw(st.integers(1, 4))),), ("billing",)),
        config=Config(batch=draw(st.integers(1, 2)), max_reconsume_times=draw(st.integers(-1, 2))),
        clients=(
            ClientPlan("alice", "consumer", "billing", ("orders",)),
            ClientPlan("p", "producer"),
            ClientPlan("eve", "prober"),
        ),
        actions=done,
        listener=tuple(draw(st.lists(rules, max_size=3))),
        until_ms=(done[-1].at_ms if done else 0) + draw(st.integers(0, 9)),
        settle_ms=draw(st.integers(0, 9)),
        drain=draw(st.booleans()),
    )


@settings(deadline=None, max_examples=60)
@given(plans())
def test_a_plan_comes_back_from_json_as_it_went_and_keeps_its_schema(plan: Plan) -> None:
    data = json.loads(json.dumps(plan.to_json()))
    SCHEMA.validate(data)
    assert Plan.from_json(data) == plan


def test_the_schema_file_is_the_generated_one() -> None:
    path = Path(__file__).parents[3] / "specs" / "schemas" / "plan.v2.json"
    assert json.loads(path.read_text(encoding="utf-8")) == plan_schema()


HALF = {"client": "p", "topic": "orders", "count": 1, "ends": "commit", "checked": "commit"}


def whole() -> dict[str, Any]:
    clients = (ClientPlan("alice", "consumer", "billing", ("orders",)), ClientPlan("p", "producer"))
    send = Action(5, "send", {"client": "p", "topic": "orders", "count": 1})
    return Plan(clients=clients, actions=(send,), listener=(ListenerRule(),), until_ms=9).to_json()


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (
            ("schema",),
            "inorder/plan/v3",
            "this version reads inorder/plan/v1 to v2; a newer inorder",
        ),
        (("sede",), 1, "unknown field 'sede'; did you mean 'seed'"),
        (("seed",), "1", "'seed' must be a whole number"),
        (("seed",), True, "'seed' must be a whole number"),
        (("until_ms",), -1, "'until_ms' must not be negative"),
        (("actions", 0, "args", "count"), -1, "'count' must not be negative"),
        (("until_ms",), 4, "until_ms 4 comes before the last action, at 5"),
        (("drain",), 1, "'drain' must be true or false"),
        (("actions",), {}, "'actions' must be a list"),
        (("config", "batsh"), 1, "unknown configuration: batsh"),
        (("topology", "brokers"), [], "'brokers' must hold at least one"),
        (("topology", "brokers"), [1], "must be a list of text"),
        (("topology", "brokers"), ["p"], "'p' stands for two nodes"),
        (("clients", 0, "kind"), "consumr", "kind must be one of"),
        (("clients", 0, "topics"), [], "needs a group and topics"),
        (("clients", 0, "topics"), ["order"], "unknown topic 'order'"),
        (("actions", 0, "do"), "sent", "unknown action 'sent'; did you mean 'send'"),
        (("actions", 0, "args", "cuont"), 1, "unknown field 'cuont'; did you mean 'count'"),
        (("actions", 0, "args", "client"), "q", "there is no node 'q'"),
        (
            ("actions", 0, "args"),
            {"client": "p", "topic": "orders"},
            "the field 'count' is missing",
        ),
        (
            ("actions", 0),
            {"at_ms": 5, "do": "send_half", "args": {**HALF, "ends": "maybe"}},
            "ends must be one of commit, rollback, unknown, not 'maybe'",
        ),
        (("actions", 0), 3, "actions[0] must be a JSON object"),
        (("listener", 0, "outcome"), "ok", "outcome must be one of"),
        (("listener", 0, "number"), "7", "'number' must be a whole number"),
    ],
)
def test_a_wrong_plan_is_told_where_it_is_wrong(
    place: tuple[Any, ...], value: Any, words: str
) -> None:
    data = json.loads(json.dumps(whole()))
    inner = data
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    with pytest.raises(UsageError) as caught:
        Plan.from_json(data)
    assert words in str(caught.value)


def test_actions_that_go_back_in_time_are_refused() -> None:
    data = whole()
    data["actions"] = [data["actions"][0], {**data["actions"][0], "at_ms": 1}]
    with pytest.raises(UsageError, match="comes before the action ahead of it"):
        Plan.from_json(data)


def test_a_file_that_is_no_plan_is_told_by_its_path(tmp_path: Path) -> None:
    missing, torn = tmp_path / "missing.json", tmp_path / "torn.json"
    torn.write_text("{", encoding="utf-8")
    with pytest.raises(UsageError, match=r"missing\.json can't be read"):
        read_plan(missing)
    with pytest.raises(UsageError, match=r"torn\.json is not JSON"):
        read_plan(torn)
