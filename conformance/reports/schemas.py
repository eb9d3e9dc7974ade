"""The JSON schemas of what we print and save, by the name that every such object carries in `schema`."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any

from specs.errors import SpecError

LIST_SCHEMA = "inorder/list/v1"
DOCTOR_SCHEMA = "inorder/doctor/v1"


@cache
def schema(name: str) -> dict[str, Any]:
    """The schema of `inorder/NAME/vN`, from `specs/schemas/NAME.vN.json`. SpecError where there is none."""
    _, kind, version = name.split("/")
    file = resources.files("specs") / "schemas" / f"{kind}.{version}.json"
    if not file.is_file():
        raise SpecError(f"there is no schema for {name}: specs/schemas/{kind}.{version}.json is missing")
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found
