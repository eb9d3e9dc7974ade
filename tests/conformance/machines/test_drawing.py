"""What a machine draws comes from the seed alone, and every run is a new one."""

from __future__ import annotations

import importlib.util
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import seed as hypothesis_seed
from hypothesis import strategies as st

from conformance.machines.drawing import INDEPENDENT

EXAMPLES = 60
NUMBERS = st.lists(st.integers(0, 1_000_000), min_size=20, max_size=20)


def drawn(seed: int) -> list[tuple[int, ...]]:
    """What sixty runs draw."""
    seen: list[tuple[int, ...]] = []

    @hypothesis_seed(seed)
    @settings(backend=INDEPENDENT, max_examples=EXAMPLES, database=None, deadline=None)
    @given(NUMBERS)
    def run(numbers: list[int]) -> None:
        seen.append(tuple(numbers))

    run()
    return seen


def test_the_constants_of_an_imported_module_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hypothesis would draw some of them: a seed would mean another run after any edit."""
    before = drawn(5)
    path = tmp_path / "constants.py"
    path.write_text(
        f"NUMBERS = [{', '.join(str(number) for number in range(123_000, 123_900))}]\n",
        encoding="utf-8",
    )
    spec = importlib.util.spec_from_file_location("inorder_constants_for_a_test", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    spec.loader.exec_module(module)
    assert drawn(5) == before


def test_runs_are_independent_of_each_other() -> None:
    """None is a variation of another: two runs in a row agree in hardly any place."""
    runs = drawn(6)[1:]
    agreements = [
        sum(a == b for a, b in zip(run, later, strict=True)) for run, later in pairwise(runs)
    ]
    assert len(runs) >= EXAMPLES - 1
    assert max(agreements) <= 3
