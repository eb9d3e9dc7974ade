"""The commands of docs/gate.md, run as they stand, print what the page shows."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tests.conformance.cli.console import ROOT, run_as_shown

PAGE = ROOT / "docs" / "gate.md"


@pytest.mark.parametrize("examples", ["2", pytest.param("6", marks=pytest.mark.long)])
def test_the_commands_print_what_the_page_shows(
    run: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, examples: str
) -> None:
    """As they stand in the long tests; with fewer examples, which find the same, in every run of the tests."""
    monkeypatch.chdir(tmp_path)

    def shorter(command: str) -> str:
        return command.replace("--examples 6", f"--examples {examples}")

    assert run_as_shown(run, PAGE, shorter) == [0, 1, 1, 0, 0]
    entry = re.search(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert entry is not None
    assert entry[1] in (tmp_path / "baseline.toml").read_text(encoding="utf-8")
