"""The commands of docs/reports.md, run as they stand, print what the page shows; its picture is theirs.

`pytest --rewrite` writes the picture anew, and somebody looks at it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Run = Callable[..., Result]
PAGE = Path(__file__).parents[3] / "docs" / "reports.md"
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
PICTURE = re.compile(r"!\[[^\]]+\]\(([^)]+)\)")


def steps() -> list[tuple[str, list[str]]]:
    """Command → the lines that it prints, as the page shows them."""
    found: list[tuple[str, list[str]]] = []
    for block in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        for line in block.splitlines():
            if line.startswith("$ inorder "):
                found.append((line.removeprefix("$ inorder "), []))
            else:
                found[-1][1].append(line)
    return found


def test_the_commands_print_what_the_page_shows(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    """Line by line; and the picture in the documents is the one that the run left."""
    monkeypatch.chdir(tmp_path)
    codes = []
    for command, shown in steps():
        result = run(*shlex.split(command), env={"COLUMNS": "160"})
        codes.append(result.exit_code)
        printed = result.stdout + result.stderr
        for line in shown:
            words = [re.escape(part.strip()) for part in line.split("...") if part.strip()]
            assert not words or re.search(r".*".join(words), printed), (command, line, printed)
    assert codes == [1, 0, 0, 0, 0]
    told = PICTURE.search(PAGE.read_text(encoding="utf-8"))
    assert told is not None
    kept, drawn = PAGE.parent / told[1], tmp_path / "runs/refuted/pictures/LSE-2.svg"
    if pytestconfig.getoption("--rewrite"):
        kept.write_text(drawn.read_text(encoding="utf-8"), encoding="utf-8")
    assert kept.read_text(encoding="utf-8") == drawn.read_text(encoding="utf-8")
