"""The JSON schemas of `run.json` and of a history row, made from their definitions."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from specs.history.runinfo import RUN_SCHEMA
from specs.plan.config import Config
from specs.verdicts.schema import row_schema
from specs.vocabulary import Kind, Level

ROW_SCHEMA = "inorder/history-row/v1"
_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_TEXT = {"type": "string"}
_TEXT_OR_NULL = {"type": ["string", "null"]}
_TEXT_BY_NAME = {"type": "object", "additionalProperties": _TEXT}


def history_row_schema() -> dict[str, Any]:
    """A line of `history/*.jsonl`: a row's columns, the empty ones left out."""
    return {"$schema": _DRAFT, "$id": ROW_SCHEMA, "title": "One row of a history", **row_schema()}


def config_schema() -> dict[str, Any]:
    """The numbers that a run was made with."""
    kinds = {"int": {"type": "integer"}, "str": _TEXT}
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {field.name: kinds[str(field.type)] for field in fields(Config)},
    }


def run_schema() -> dict[str, Any]:
    """`run.json`."""
    return {
        "$schema": _DRAFT,
        "$id": RUN_SCHEMA,
        "title": "What a judge must know about a run besides its rows",
        "type": "object",
        "additionalProperties": False,
        "required": ["schema", "run"],
        "properties": {
            "schema": {"const": RUN_SCHEMA},
            "run": {**_TEXT, "description": "The run's name, as in the column `run`."},
            "seed": {"type": "integer"},
            "target": {**_TEXT, "description": "What was tested."},
            "parties": {
                **_TEXT_BY_NAME,
                "description": "Who implements broker, client and producer.",
            },
            "profile": _TEXT_OR_NULL,
            "levels": {
                "type": "array",
                "items": _TEXT,
                "description": "At which levels it was recorded.",
            },
            "clock_bounds_us": {
                "type": "object",
                "additionalProperties": {"type": "integer", "minimum": 0},
                "description": "For each clock domain, how far it may be from the others.",
            },
            "closed_world": {
                "type": "boolean",
                "description": "Does the history hold every producer and consumer, from first to last?",
            },
            "begins_late": {
                "type": "boolean",
                "description": "Are rows before the first one missing: a rotated log?",
            },
            "records": {
                "type": ["object", "null"],
                "propertyNames": {"enum": [level.value for level in Level]},
                "additionalProperties": {
                    "type": "array",
                    "items": {"enum": [kind.value for kind in Kind]},
                },
                "description": "By level, the kinds of rows that the recorder writes whenever they happen.",
            },
            "config": config_schema(),
            "plan": {"type": ["object", "null"]},
            "replay": {**_TEXT_OR_NULL, "description": "The command that repeats the run."},
            "workload_floor": {"type": "integer", "minimum": 0},
            "settles": {
                "type": "boolean",
                "description": "Is all healed and quiet before the drain?",
            },
            "environment": _TEXT_BY_NAME,
        },
    }
