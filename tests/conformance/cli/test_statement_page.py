"""The commands of docs/statement.md, run as they stand, print what the page shows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tests.conformance.cli.console import ROOT, run_as_shown

PAGE = ROOT / "docs" / "statement.md"


@pytest.mark.long
def test_the_commands_print_what_the_page_shows(
    run: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the two searches to the badge; `test_statement.py` has the same on small histories."""
    monkeypatch.chdir(tmp_path)
    assert run_as_shown(run, PAGE) == [0, 0, 0, 0, 1, 0, 1]
    assert (tmp_path / "badge.svg").read_text(encoding="utf-8").startswith("<svg")
