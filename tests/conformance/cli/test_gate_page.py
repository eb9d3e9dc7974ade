"""The commands of docs/gate.md, run as they stand, print what the page shows."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Run = Callable[..., Result]
PAGE = Path(__file__).parents[3] / "docs" / "gate.md"
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
CODES = [0, 1, 1, 0, 0]


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


@pytest.mark.parametrize("examples", ["2", pytest.param("6", marks=pytest.mark.long)])
def test_the_commands_print_what_the_page_shows(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, examples: str
) -> None:
    """As they stand in the long tests; with fewer examples, which find the same, in every run of the tests."""
    monkeypatch.chdir(tmp_path)
    codes = []
    for as_it_stands, shown in steps():
        command = as_it_stands.replace("--examples 6", f"--examples {examples}")
        result = run(*shlex.split(command), env={"COLUMNS": "160"})
        codes.append(result.exit_code)
        printed = result.stdout + result.stderr
        for line in shown:
            words = [re.escape(part.strip()) for part in line.split("...") if part.strip()]
            assert not words or re.search(r".*".join(words), printed), (command, line, printed)
    assert codes == CODES
    entry = re.search(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert entry is not None
    assert entry[1] in (tmp_path / "baseline.toml").read_text(encoding="utf-8")
