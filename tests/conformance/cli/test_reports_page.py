"""The commands of docs/reports.md, run as they stand, print what the page shows; its picture is theirs.

`pytest --rewrite` writes the picture anew, and somebody looks at it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tests.conformance.cli.console import ROOT, run_as_shown

PAGE = ROOT / "docs" / "reports.md"
PICTURE = re.compile(r"!\[[^\]]+\]\(([^)]+)\)")


def test_the_commands_print_what_the_page_shows(
    run: Callable[..., Result],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    pytestconfig: pytest.Config,
) -> None:
    """Line by line; and the picture in the documents is the one that the run left."""
    monkeypatch.chdir(tmp_path)
    assert run_as_shown(run, PAGE) == [1, 0, 0, 0, 0]
    told = PICTURE.search(PAGE.read_text(encoding="utf-8"))
    assert told is not None
    kept, drawn = PAGE.parent / told[1], tmp_path / "runs/refuted/pictures/LSE-2.svg"
    if pytestconfig.getoption("--rewrite"):
        kept.write_text(drawn.read_text(encoding="utf-8"), encoding="utf-8")
    assert kept.read_text(encoding="utf-8") == drawn.read_text(encoding="utf-8")
