"""JSON and TOML that others wrote: what can't be read is one sentence, and everybody reads by the one reader."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from specs.documents import DEPTH_MAX, NotReadable, from_json, from_toml, json_in, text_in
from specs.errors import HistoryError

ROOT = Path(__file__).parents[2]
PRODUCT = ("specs", "reference_impl", "conformance", "chaos", "spark_checkers", "inorder")
ELSEWHERE = {
    "specs/documents.py": "the reader",
    "specs/vectors/__init__.py": "a file of the project",
    "specs/glossary.py": "a file of the project",
    "reference_impl/protocol/": "bounded by a frame, and read again as other brokers write it",
    "conformance/plugin.py": "written by this session",
    "conformance/run.py": "a plan that was read already",
    "conformance/live.py": "a journal that this process writes",
    "conformance/importing/sources.py": "keeps numbers as they are written, and catches what nests too deep",
    "conformance/reports/power.py": "a file of the project",
    "conformance/drivers/process.py": "lines of a driver, which have errors of their own",
    "conformance/targets/rocketmq_grpc.py": "what our own producer sent",
    "conformance/parts/": "what a server or a tool that we started says",
    "chaos/attach/": "what our own helper says",
    "inorder/evidence/": "what the evidence itself has kept, and files of the project",
}
"""Who reads by another way, and why that may be."""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 100_000, "nests deeper than"),
        ("[" * (DEPTH_MAX + 1) + "]" * (DEPTH_MAX + 1), "nests deeper than"),
        ('{"a":' * 5_000 + "1" + "}" * 5_000, "nests deeper than"),
        ('{"a": "\\ud800"}', "one half of a character"),
        ('{"\\udfff": 1}', "one half of a character"),
        ("NaN", "NaN is no number"),
        ("[-Infinity]", "-Infinity is no number"),
        ("1e999", "too large"),
        ("9" * 5_000, "is not JSON"),
        (f"[{2**63}]", "too large"),
        ("[1,", "is not JSON"),
        (b"\xff", "is not in UTF-8, at byte 0"),
    ],
)
def test_what_is_no_json_of_ours_is_told(text: str | bytes, said: str) -> None:
    with pytest.raises(NotReadable, match=said):
        from_json(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[" * DEPTH_MAX + "]" * DEPTH_MAX, None),
        ('"\\ud83d\\ude00"', "\N{GRINNING FACE}"),
        (b"\xef\xbb\xbf[1.5]", [1.5]),
        (f"[{2**63 - 1}, {-(2**63)}]", [2**63 - 1, -(2**63)]),
    ],
)
def test_what_is_json_is_read(text: str | bytes, value: object) -> None:
    assert value is None or from_json(text) == value


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = " + "[" * 100_000, "nests deeper than"),
        ("x = " + "[" * 150 + "]" * 150, "nests deeper than"),
        (".".join("a" * 400_000) + " = 1", "nests deeper than"),
        (" . ".join(['"a b"'] * 1_000) + " = 1", "nests deeper than"),
        ("x = " + "9" * 5_000, "is no TOML"),
        (f"x = {2**63}", "too large"),
        ("x = ", "is no TOML"),
        ("# " + "x" * (2 << 20), "is larger than 1 MiB"),
    ],
)
def test_what_is_no_toml_of_ours_is_told(text: str, said: str) -> None:
    with pytest.raises(NotReadable, match=said):
        from_toml(text)


def test_dots_in_texts_are_no_keys() -> None:
    addresses = ", ".join('"10.0.0.1"' for _ in range(200))
    assert len(from_toml(f"x = [{addresses}]")["x"]) == 200


def test_a_file_is_read_up_to_its_bound(tmp_path: Path) -> None:
    """A device without an end and a folder are one sentence, with the error that the reader's caller names."""
    with pytest.raises(HistoryError, match="/dev/zero is larger than 1 MiB"):
        text_in(Path("/dev/zero"), error=HistoryError)
    with pytest.raises(HistoryError, match="can't be read: Is a directory"):
        json_in(tmp_path, error=HistoryError)


def _readings(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            named = f"{node.value.id}.{node.attr}"
            if named in (
                "json.loads",
                "json.load",
                "json.JSONDecoder",
                "tomllib.loads",
                "tomllib.load",
            ):
                yield f"{path.relative_to(ROOT)}:{node.lineno}: {named}"


def test_everybody_reads_by_the_one_reader() -> None:
    found = [
        reading
        for room in PRODUCT
        for path in sorted((ROOT / room).rglob("*.py"))
        if not str(path.relative_to(ROOT)).startswith(tuple(ELSEWHERE))
        for reading in _readings(path)
    ]
    assert found == [], "by specs.documents, or with a reason in ELSEWHERE"


def test_the_reasons_are_those_of_files_that_there_are() -> None:
    assert [place for place in ELSEWHERE if not (ROOT / place).exists()] == []
