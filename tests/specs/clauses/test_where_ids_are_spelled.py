"""A clause costs three files and a mutant: no other file of the product holds its id and has to be looked for.

Docstrings and comments may speak of any clause. What counts is a text that code uses.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

from specs.clauses.catalogue import catalogue
from specs.clauses.clause import Promise

ROOT = Path(__file__).parents[3]
PRODUCT = ("specs", "reference_impl", "conformance", "chaos", "spark_checkers", "inorder", "tools")
ID = re.compile(rf"\b(?:{'|'.join(Promise.FAMILIES)})-\d+\b")
PLACES = (
    "specs/clauses/*/*.py",
    "specs/profiles/*.toml",
    "reference_impl/mutants/*.py",
    "chaos/scenarios/*.toml",
)
"""Clauses, profiles, mutants, what a scenario must put at stake."""
OF_THE_RUN = "MET-"
"""Checks of the run itself are no clauses, and lie with what checks."""
ELSEWHERE = {
    "specs/profiles/__init__.py": "promises of two parties whose deviations are one party's",
    "machines/steering.py": "what a search makes more of when a clause is seldom at stake; none has to be in it",
    "track_record/entries.py": "which clause refuted which release, as it was",
    "evidence/systems/systems.toml": "which clauses a user's words stand for",
    "kill_matrix/bugs.py": "what is known of bugs that were planted once",
    "operators/histories.py": "towards which clauses drawn histories are steered; none has to be in it",
    "/demo.py": "a demonstration of two clauses",
    "fuzzing/handed_in.py": "what users type names a clause; any would do",
    "spark_checkers/in_sql.py": "six clauses once more in SQL, as a measure of speed",
    "/vectors.py": "by which function a table is held against the code",
}
"""The end of a file's path, and why it holds ids all the same."""


def texts(path: Path) -> Iterator[str]:
    """The texts that a module uses: its constants, without its docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    told = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
            yield node.value


def spelled() -> dict[str, set[str]]:
    """The ids that each module and each TOML file of the product uses."""
    found: dict[str, set[str]] = {}
    for room in PRODUCT:
        for path in (ROOT / room).rglob("*"):
            if path.suffix == ".py":
                used = texts(path)
            elif path.suffix == ".toml":
                used = iter(path.read_text(encoding="utf-8").splitlines())
            else:
                continue
            ids = {name for text in used for name in ID.findall(text)}
            names = {name for name in ids if not name.startswith(OF_THE_RUN)}
            if names:
                found[path.relative_to(ROOT).as_posix()] = names
    return found


def is_a_place(path: str) -> bool:
    return any(fnmatch(path, place) for place in PLACES)


@pytest.fixture(scope="module")
def found() -> dict[str, set[str]]:
    return spelled()


def test_an_id_is_spelled_in_its_places_only(found: dict[str, set[str]]) -> None:
    """Whatever else needs to know of a clause asks the clause."""
    astray = {
        path: sorted(ids)
        for path, ids in found.items()
        if not is_a_place(path) and not path.endswith((*ELSEWHERE,))
    }
    assert astray == {}


def test_every_exception_is_needed(found: dict[str, set[str]]) -> None:
    """One that no file needs any more is taken back."""
    astray = [path for path in found if not is_a_place(path)]
    assert {end for end in ELSEWHERE if not any(path.endswith(end) for path in astray)} == set()


def test_only_clauses_that_exist_are_spelled(found: dict[str, set[str]]) -> None:
    """An id that was never given, or was mistyped, is nobody's."""
    known = {promise.id for promise in catalogue()}
    astray = {path: sorted(ids - known) for path, ids in found.items() if ids - known}
    assert astray == {}


def test_a_clause_that_a_history_decides_has_a_mutant(found: dict[str, set[str]]) -> None:
    """Its transcript is read with it. The others are asked on the wire, or held against a table, and need neither."""
    judged = {promise.id for promise in catalogue() if promise.BY_HISTORY}
    mutants = (ids for path, ids in found.items() if path.startswith("reference_impl/mutants/"))
    assert judged - set().union(*mutants) == set()
