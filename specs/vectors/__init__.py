"""Tables of vectors: what a function has to give for what it is given, for clauses that no history decides.

A table is a JSON file: the schema, the clause and its rows. Made by hand or by a program of its own from the sources,
never by what it is to judge; read by whoever has such functions to compare.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from specs.errors import SpecError

SCHEMA = "inorder/vectors/v1"


def load(name: str) -> Sequence[Mapping[str, Any]]:
    """The rows of a table, by its file's name. Raises SpecError where there is none or it is of another schema."""
    source = resources.files(__name__) / name
    if not source.is_file():
        raise SpecError(f"there is no table {name} among the vectors")
    table = json.loads(source.read_text(encoding="utf-8"))
    if table.get("schema") != SCHEMA:
        raise SpecError(
            f"the table {name} has schema {table.get('schema')!r}; this version reads {SCHEMA}"
        )
    rows: Sequence[Mapping[str, Any]] = table["rows"]
    return rows
