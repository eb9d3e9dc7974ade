"""A fault's verb is spelled in its file and nowhere else in the product: whoever needs it reads the registry."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from specs.faults import FAULTS

ROOT = Path(__file__).parents[3]
PRODUCT = ("specs", "reference_impl", "conformance", "chaos", "spark_checkers", "inorder")
HOME = ROOT / "specs" / "faults"

OTHER_MEANINGS = {
    "specs/plan/rig.py": "what can be wrong with a link, of which its faults are made",
    "specs/vocabulary.py": "kinds and outcomes of a history's rows",
    "specs/history/text.py": "the field `delay` of a message",
    "lease/dead_owners_lane_is_taken_over.py": "the role of a row in a finding",
    "specs/clauses/links.py": "the tap's rules, as its rows tell them",
    "specs/verdicts": "the field `cut` of a verdict: why a history lacks its end",
    "conformance/reports/view.py": "the field `cut` of a verdict",
    "conformance/reports/incident.py": "what a timeline draws for a row of that kind",
    "reference_impl/core/broker/storing.py": "the name of a timer",
    "chaos/toxiproxy/toxics.py": "an attribute of toxiproxy's own",
    "fuzzing/readers.py": "bytes that end too soon",
    "conformance/targets/kafka.py": "what an application does when a record failed: Consumer.pause",
    "conformance/tap/faults.py": "the tap's own rules, on frames of one code",
    "machines/lock_table.py": "an operation of a bench's program",
    "machines/membership.py": "an operation of a bench's program",
    "machines/message_log.py": "an operation of a bench's program",
    "machines/offset_table.py": "an operation of a bench's program",
}
"""Files, by the end of their paths, and folders in which such a word is one of another vocabulary, and which."""


def spelled() -> Iterator[tuple[str, str]]:
    """(file, verb) for each string of the product that is a fault's verb; a docstring that consists of it is none."""
    for folder in PRODUCT:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if HOME in path.parents:
                continue
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant) and node.value in FAULTS:
                    yield path.relative_to(ROOT).as_posix(), node.value


@pytest.fixture(scope="module")
def found() -> list[tuple[str, str]]:
    """Once for both: reading the whole product takes a while."""
    return list(spelled())


def is_of(name: str, place: str) -> bool:
    return f"/{name}".endswith(f"/{place}") or name.startswith(f"{place}/")


def test_no_verb_of_a_fault_is_spelled_outside_of_its_file(found: list[tuple[str, str]]) -> None:
    strangers = [
        (name, verb)
        for name, verb in found
        if not any(is_of(name, place) for place in OTHER_MEANINGS)
    ]
    assert strangers == []


def test_every_exception_is_needed(found: list[tuple[str, str]]) -> None:
    files = {name for name, _ in found}
    assert [
        place for place in OTHER_MEANINGS if not any(is_of(name, place) for name in files)
    ] == []
