"""The JSON schemas of what we print and save, by the name that every such object carries in `schema`."""

from __future__ import annotations

from functools import cache
from typing import Any

from specs.errors import SpecError
from specs.verdicts.schema import verdict_schema
from specs.verdicts.verdict import VERDICT_SCHEMA

LIST_SCHEMA = "inorder/list/v1"


@cache
def schema(name: str) -> dict[str, Any]:
    """The schema of that name. SpecError for one that is not printed here."""
    if name == VERDICT_SCHEMA:
        return verdict_schema()
    if name == LIST_SCHEMA:
        return list_schema()
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
