"""The JSON schemas of what we print and save, by the name that every such object carries in `schema`."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any

from specs.errors import SpecError

LIST_SCHEMA = "inorder/list/v1"


@cache
def schema(name: str) -> dict[str, Any]:
    """The schema of `inorder/KIND/vN`: from `specs/schemas/KIND.vN.json`, or one of ours. SpecError for others."""
    if name == LIST_SCHEMA:
        return list_schema()
    _, kind, version = name.split("/")
    file = resources.files("specs") / "schemas" / f"{kind}.{version}.json"
    if not file.is_file():
        raise SpecError(f"there is no schema for {name}: specs/schemas/{kind}.{version}.json is missing")
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


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
