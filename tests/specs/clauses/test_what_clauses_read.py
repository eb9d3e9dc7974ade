"""Who a row is of, and what its `detail` and a RESET say, is established once, in `specs/facts`: no clause reads it.

Numbers that `Rows` gives to clients and incarnations are such facts (`Rows.client`, `Rows.incarnation`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import specs.clauses

FOLDER = Path(specs.clauses.__file__).parent
FILES = sorted(path for path in FOLDER.glob("*/*.py") if path.name != "__init__.py")
OF_FACTS = {"client_id", "detail", "incarnation", "process"}
READ_BY_NAME = {"text", "words", "name_of", "code", "number"}
EXCEPTIONS = {
    "commit/broadcast_keeps_its_offsets.py": "the file of offsets is a process's own, whatever the client is called",
}
RESETS = {
    "commit/broadcast_keeps_its_offsets.py": "a reset writes the file that is looked up",
    "commit/crash_loses_one_interval.py": "a reset is stored, as a commit is",
    "commit/fetch_answers_the_last_commit.py": "likewise",
    "commit/reset_wins_over_a_commit.py": "the promise is about resets",
}
"""Where what is stored is judged, a RESET stores; elsewhere it excuses, which tenures know."""


def read(tree: ast.AST) -> Iterator[str]:
    """The columns that are asked for by name, and the attributes, outside of explanations."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef) and "explain" in node.name:
            continue
        if isinstance(node, ast.Attribute) and node.attr != "incarnation":
            yield node.attr
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in READ_BY_NAME
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            yield str(node.args[0].value)
        yield from read(node)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_clause_leaves_these_columns_to_facts(path: Path) -> None:
    found = OF_FACTS.intersection(read(ast.parse(path.read_text(encoding="utf-8"))))
    assert bool(found) == (f"{path.parent.name}/{path.name}" in EXCEPTIONS), found


def asks_for_resets(tree: ast.AST) -> bool:
    """Does a judge ask for RESET rows? What the clause declares, and explains, is another matter."""
    return any(
        isinstance(node, ast.Attribute) and node.attr == "RESET"
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef) and "explain" not in function.name
        for node in ast.walk(function)
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_clause_leaves_resets_to_facts(path: Path) -> None:
    found = asks_for_resets(ast.parse(path.read_text(encoding="utf-8")))
    assert found == (f"{path.parent.name}/{path.name}" in RESETS)
