"""docs/import.md, as a stranger follows it: its files written, its commands typed, their output as the page has it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Run = Callable[..., Result]
PAGE = Path(__file__).parents[3] / "docs" / "import.md"
BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LEFT_OUT = "..."


def test_the_guide_works_as_it_stands(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the first file to the last command; `...` stands for what is left out."""
    monkeypatch.chdir(tmp_path)
    typed = 0
    for language, name, text in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        if name:
            (tmp_path / name).write_text(text, encoding="utf-8")
        elif language == "console":
            for command, shown in _commands(text):
                result = run(*shlex.split(command)[1:])
                refuted = "REFUTED" in shown
                possible = "INCONCLUSIVE" in shown
                assert result.exit_code == (1 if refuted else 2 if possible else 0), result.output
                _compare(shown, result.output, command)
                typed += 1
    assert typed >= 8


def _commands(text: str) -> list[tuple[str, str]]:
    """Each command of a block with what the page shows of its output."""
    found = re.split(r"^\$ (.*)\n", text, flags=re.MULTILINE)
    return list(zip(found[1::2], found[2::2], strict=True))


def _compare(shown: str, printed: str, command: str) -> None:
    """Line by line; a line `...` stands for any lines, one that ends in it for any end."""
    lines = [line.rstrip() for line in printed.splitlines()]
    at, anywhere = 0, False
    for wanted in shown.splitlines():
        if wanted == LEFT_OUT:
            anywhere = True
            continue
        while at < len(lines) and anywhere and not _fits(wanted.rstrip(), lines[at]):
            at += 1
        assert at < len(lines), (
            f"{command}: the page shows {wanted!r}, which is not printed:\n{printed}"
        )
        assert _fits(wanted.rstrip(), lines[at]), f"{command}: {wanted!r} is not {lines[at]!r}"
        at, anywhere = at + 1, False
    assert anywhere or at == len(lines), f"{command} prints more: {lines[at:]}"


def _fits(wanted: str, line: str) -> bool:
    if wanted.endswith(LEFT_OUT):
        return line.startswith(wanted.removesuffix(LEFT_OUT).rstrip())
    return wanted == line
