"""Commands as the pages show them: in fenced blocks, those that print something beside what they print."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

from click.testing import Result

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
OURS = re.compile(r"^ *(?:\$ )?inorder (?=[a-z])")
CUT = "..."


def lines(page: Path) -> Iterator[str]:
    """Of the page's blocks, those that go on put together."""
    for _, block in BLOCK.findall(page.read_text(encoding="utf-8")):
        yield from block.replace("\\\n", " ").splitlines()


def commands(page: Path) -> Iterator[str]:
    """What the page's blocks call of `inorder`, without it."""
    return (OURS.sub("", line) for line in lines(page) if OURS.match(line))


def shown(page: Path) -> list[tuple[str, list[str]]]:
    """Command → the lines that it prints, of the page's console blocks."""
    found: list[tuple[str, list[str]]] = []
    for language, block in BLOCK.findall(page.read_text(encoding="utf-8")):
        for line in block.splitlines() if language == "console" else ():
            if line.startswith("$ inorder "):
                found.append((line.removeprefix("$ inorder "), []))
            else:
                found[-1][1].append(line)
    return found


def run_as_shown(
    run: Callable[..., Result], page: Path, changed: Callable[[str], str] = str
) -> list[int]:
    """Run the page's commands, one after the other; what they print is compared. Their exit codes."""
    codes = []
    for as_it_stands, lines in shown(page):
        command = changed(as_it_stands)
        result = run(*shlex.split(command), env={"COLUMNS": "160"})
        codes.append(result.exit_code)
        printed = result.stdout + result.stderr
        for line in lines:
            words = [re.escape(part.strip()) for part in line.split(CUT) if part.strip()]
            assert not words or re.search(r".*".join(words), printed), (command, line, printed)
    return codes
