"""What users hand in: whatever it is, the answer is one of the exit codes, and never the suite's own failure."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any

import pytest

from inorder.evidence.fuzzing.handed_in import (
    HISTORIES,
    KINDS,
    LEAST_TAKEN,
    LINES,
    MAPS,
    PROCESSES,
    REPORTS,
    TAKEN,
    WHOLE,
    Sample,
    at_the_door,
    make,
    tried,
)
from inorder.evidence.grid import Cell

SAMPLES = 80
IN_PROCESS = (LINES, MAPS, HISTORIES, REPORTS)


def cell(kind: str, samples: int, number: int = 0) -> Cell:
    return Cell("test", kind, {"kind": kind, "samples": samples, "seed": 7, "number": number})


def made_anew(cell: Cell) -> dict[str, Any]:
    """In a new process: the memory of this one is that of the tests before, and counted for those that it starts."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(make, cell).result()


@pytest.mark.parametrize("kind", IN_PROCESS)
def test_some_samples_of_each_kind_find_nothing(kind: str) -> None:
    made = made_anew(cell(kind, SAMPLES))
    assert made["found"] == []
    codes = Counter[str](made["codes"])
    assert codes.total() == SAMPLES
    assert sum(codes[str(code)] for code in TAKEN) / SAMPLES > LEAST_TAKEN / 2, (
        "few are taken, even for so few"
    )


@pytest.mark.long
@pytest.mark.parametrize("kind", IN_PROCESS)
def test_more_of_them_find_nothing(kind: str) -> None:
    """`--handed-in` tries all: fifty times as many."""
    samples = WHOLE[kind] // 50
    made = made_anew(cell(kind, samples))
    assert made["found"] == []
    codes = Counter[str](made["codes"])
    assert sum(codes[str(code)] for code in TAKEN) / samples > LEAST_TAKEN


@pytest.mark.long
def test_some_processes_find_nothing() -> None:
    assert made_anew(cell(PROCESSES, 10))["found"] == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("import", "csv", "--map", "map.toml", "/dev/full", "--out", "x"),
            "its line 1 does not end",
        ),
        (
            ("import", "csv", "--map", "map.toml", "log.csv", "--out", "/", "--hash-keys"),
            "no folder",
        ),
    ],
)
def test_what_was_found_once_is_told(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    with at_the_door():
        answer = tried(Sample(words, {}), tmp_path)
    assert (answer.code, said in answer.told) == (64, True), answer.told


def test_the_same_seed_makes_the_same_samples() -> None:
    for kind, draw in KINDS.items():
        assert draw(Random(kind)) == draw(Random(kind))


@pytest.mark.parametrize(
    "wrong", [RuntimeError("ours"), RecursionError("too deep"), TypeError("a mistake")]
)
def test_a_mistake_of_the_suite_would_be_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: Exception
) -> None:
    """An answer of 70, with the traceback in what was told."""

    def fails(*_: object) -> None:
        raise wrong

    monkeypatch.setattr("conformance.cli.diff.open_run", fails)
    with at_the_door():
        answer = tried(Sample(("diff", "run", "other"), {}), tmp_path)
    assert (answer.wrong, answer.code, str(wrong) in answer.told) == (True, 70, True)
