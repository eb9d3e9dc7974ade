"""What lies beside the packages is found in a checkout and in an installed wheel alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.parts import places

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = ("specs", "reference_impl", "conformance", "chaos", "spark_checkers")
"""Those that a wheel's users use; `inorder.evidence` measures the suite itself, and writes a checkout's pages."""


def test_a_checkout_has_it_where_it_lies() -> None:
    assert places.beside("drivers") == ROOT / "drivers"
    assert places.beside("docs") == ROOT / "docs"


def test_a_wheel_has_it_inside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As pyproject.toml puts it there."""
    (tmp_path / "conformance" / "beside").mkdir(parents=True)
    monkeypatch.setattr(places, "__file__", str(tmp_path / "conformance" / "parts" / "places.py"))
    assert places.beside("drivers") == tmp_path / "conformance" / "beside" / "drivers"


def test_nobody_looks_for_it_in_the_checkout_alone() -> None:
    """An installed package would not find it."""
    modules = [file for package in PACKAGES for file in (ROOT / package).rglob("*.py")]
    ours = ROOT / "conformance" / "parts" / "places.py"
    assert [file for file in modules if "CHECKOUT" in file.read_text() and file != ours] == []
