"""`run.json`: what its schema forbids is refused, and each system's configuration is its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from specs.errors import HistoryError
from specs.history.runinfo import RUN_SCHEMA, RunInfo, declared, run_schema
from specs.history.text import parse_history
from specs.plan.config import Config, config_of
from specs.vocabulary import Kind

V1 = Path(__file__).parent / "v1"
KAFKA = {"system": "kafka", "session.timeout.ms": 45_000, "batch": 7, "consume_from": "earliest"}


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("seed", "7", "'seed' must be a whole number$"),
        ("seed", True, "'seed' must be a whole number$"),
        ("run", None, "'run' must be text$"),
        ("run", 3, "'run' must be text$"),
        ("profile", 3, "'profile' must be text or null$"),
        ("levels", "client", "'levels' must be a list of text$"),
        ("levels", ["clint"], "levels must be one of client, wire, tap, store, not 'clint'$"),
        ("clock_bounds_us", {"b": -1}, "'clock_bounds_us' must not be negative$"),
        ("closed_world", "no", "'closed_world' must be true or false$"),
        ("records", [], "'records' must be an object or null$"),
        ("records", {"clint": []}, "the unknown word 'clint'; did you mean 'client'[?]$"),
        ("records", {"client": ["delver"]}, "unknown word 'delver'; did you mean 'deliver'[?]$"),
        ("config", [], "config must be a JSON object$"),
        ("config", {"batch": "two"}, "config: configuration batch must be a whole number$"),
        ("config", {"mode": "odd"}, "configuration mode must be one of"),
        ("config", {"system": 3}, "'system' must be text$"),
        ("plan", [], "'plan' must be an object or null$"),
        ("workload_floor", -1, "'workload_floor' must not be negative$"),
        ("environment", {"python": 3}, "'environment' must be text$"),
        ("settle", True, "unknown field 'settle'; did you mean 'settles'[?]$"),
    ],
)
def test_the_reader_refuses_what_the_schema_forbids(field: str, value: Any, words: str) -> None:
    """Both come from one model."""
    data = {**RunInfo(run="r").to_json(), field: value}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, run_schema())
    with pytest.raises(HistoryError, match=words) as raised:
        RunInfo.from_json(data)
    assert str(raised.value).startswith("run.json")
    assert "\n" not in str(raised.value)


def test_a_short_description_is_an_open_world() -> None:
    """What a stranger writes by hand; and the schema has nothing against it."""
    data = {"schema": RUN_SCHEMA, "run": "mine"}
    jsonschema.validate(data, run_schema())
    assert RunInfo.from_json(data) == RunInfo(run="mine", closed_world=False)


def test_a_recorder_says_what_it_writes_at_the_store() -> None:
    """Level `store` beside the others."""
    records = declared(client=[Kind.DELIVER, Kind.ADD], store={Kind.PROGRESS})
    assert records == {"client": ("add", "deliver"), "store": ("progress",)}
    info = RunInfo(run="r", levels=("client", "store"), records=records)
    jsonschema.validate(info.to_json(), run_schema())
    assert RunInfo.from_json(json.loads(json.dumps(info.to_json()))) == info


def test_another_system_s_configuration_is_kept_as_it_is() -> None:
    """Its own names; a name that is RocketMQ's too counts where the value can be one; the rest is not known."""
    info = RunInfo(run="r", config=config_of(KAFKA))
    data = json.loads(json.dumps(info.to_json()))
    assert data["config"] == KAFKA
    jsonschema.validate(data, run_schema())
    config = RunInfo.from_json(data).config
    assert config == info.config
    assert (config.system, config.batch) == ("kafka", 7)
    assert {"broker_lease_ms", "consume_from", "mode"} <= config.untold
    assert not {"batch", "delay_bound_ms", "schedule_slack_ms"} & config.untold
    assert Config().untold == frozenset()


def test_version_1_knew_rocketmq_alone() -> None:
    """Its configuration names no system; it is written again as version 2."""
    old = json.loads((V1 / "parquet" / "run.json").read_text(encoding="utf-8"))
    info = RunInfo.from_json(old)
    assert (old["schema"], info.config.system) == ("inorder/run/v1", "rocketmq")
    new = info.to_json()
    assert new["config"] == {**Config().to_json(), "system": "rocketmq", **old["config"]}
    assert {**new, "schema": None, "config": None} == {**old, "schema": None, "config": None}
    assert RunInfo.from_json(new) == info


def test_text_says_whose_configuration_it_is() -> None:
    """In one line, or in several."""
    info, _ = parse_history("config system=kafka session_ms=45000\nconfig batch=7 profile=p\n")
    assert info.config == config_of({"system": "kafka", "session_ms": 45_000, "batch": 7})
    assert info.profile == "p"
