"""The JSON schemas of what we print and save, by the name that every such object carries in `schema`.

`python -m conformance.reports.schemas` writes them into `specs/schemas/`, where other programs find them.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from specs.errors import SpecError
from specs.verdicts.schema import verdict_schema
from specs.verdicts.verdict import VERDICT_SCHEMA

LIST_SCHEMA = "inorder/list/v1"
CASE_SCHEMA = "inorder/case/v1"
NAMES = (VERDICT_SCHEMA, LIST_SCHEMA, CASE_SCHEMA)


@cache
def schema(name: str) -> dict[str, Any]:
    """The schema of that name. SpecError for one that is not printed here."""
    if name == VERDICT_SCHEMA:
        return verdict_schema()
    if name == LIST_SCHEMA:
        return list_schema()
    if name == CASE_SCHEMA:
        return case_schema()
    raise SpecError(f"there is no schema of the name {name}")


def list_schema() -> dict[str, Any]:
    """What every `--format json` of a command that lists things prints; draft 2020-12."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": LIST_SCHEMA,
        "title": "A list of things, each an object",
        "type": "object",
        "required": ["schema", "items"],
        "additionalProperties": False,
        "properties": {
            "schema": {"const": LIST_SCHEMA},
            "items": {
                "type": "array",
                "items": {
                    "type": "object",
                    "anyOf": [{"required": ["name"]}, {"required": ["id"]}, {"required": ["verdict", "schema"]}],
                },
            },
        },
    }


def case_schema() -> dict[str, Any]:
    """What `inorder replay CASE --format json` prints; draft 2020-12."""
    lines = {"type": "array", "items": {"type": "string"}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": CASE_SCHEMA,
        "title": "A case, played: what its file expects and what happened",
        "type": "object",
        "required": ["schema", "case", "why", "target", "as_expected", "blocks"],
        "additionalProperties": False,
        "properties": {
            "schema": {"const": CASE_SCHEMA},
            "case": {"type": "string", "description": "Topic and name."},
            "why": {"type": "string"},
            "target": {"type": "string"},
            "as_expected": {"type": "boolean"},
            "blocks": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["line", "commands", "expected", "happened", "as_expected"],
                    "additionalProperties": False,
                    "properties": {
                        "line": {"type": "integer", "minimum": 1},
                        "commands": lines,
                        "expected": lines,
                        "happened": lines,
                        "as_expected": {"type": "boolean"},
                    },
                },
            },
        },
    }


def text_of(name: str) -> str:
    """The schema as its file `specs/schemas/KIND.vN.json` holds it."""
    return json.dumps(schema(name), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def file_of(name: str) -> str:
    """`inorder/verdict/v1` → `verdict.v1.json`."""
    _, kind, version = name.split("/")
    return f"{kind}.{version}.json"


def write_all(folder: Path) -> None:
    """Write the schemas of this module's names into `folder`."""
    for name in NAMES:
        (folder / file_of(name)).write_text(text_of(name), encoding="utf-8")


if __name__ == "__main__":
    write_all(Path(__file__).resolve().parents[2] / "specs" / "schemas")
