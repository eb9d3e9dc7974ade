"""The commands of the pages, in their order, with what the page shows of their output; and the files that it writes.

A command is: a line of a `console` block that begins with `$`; a line of a plain block that begins with a program of
ours; and `code` in a sentence or a table that begins with one and says more than its name. What stands behind ` #` is
its comment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.docs.reading import FENCE, ROOT, named, pages

PROGRAMS = r"(?:inorder|make|python3?|pytest|pip|mqadmin|eval|_INORDER_COMPLETE=\w+)"
_LINE = re.compile(rf"^ *{PROGRAMS} +\S")
_SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_IN_PROSE = re.compile(r"^(?:inorder [a-z]+ \S|make [a-z]|python3? -m (?:[a-z_]+\.)|pytest \S)")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_FORM = re.compile(r"-m \S*NAME$|[\[<]")
_ALONE = re.compile(r"^(?:inorder [a-z]+)$")


@dataclass(frozen=True, slots=True)
class Command:
    """One command where it stands. shown: the lines of its output on the page; None where the page shows none."""

    page: str
    line: int
    text: str
    comment: str = ""
    shown: tuple[str, ...] | None = None

    @property
    def told(self) -> str:
        return f"{self.page}:{self.line}: {self.text}"


@dataclass(frozen=True, slots=True)
class File:
    """A block with a name: the reader is to write it."""

    name: str
    text: str


Step = Command | File


@cache
def steps(page: Path) -> tuple[Step, ...]:
    """What a reader of the page does, from its top to its end."""
    text = page.read_text(encoding="utf-8")
    found: list[tuple[int, Step]] = []
    prose = _COMMENT.sub(_blank, text)
    for block in FENCE.finditer(text):
        prose = prose[: block.start()] + _blank(block) + prose[block.end() :]
        language, _, name = block[2].strip().partition(" ")
        if name:
            found.append((block.start(), File(name, block[3])))
        elif language in ("console", ""):
            first = text.count("\n", 0, block.start()) + 2
            of_it = _shown(page, block[3], first) if language else _typed(page, block[3], first)
            found += [(block.start(), each) for each in of_it]
    for span in _SPAN.finditer(prose):
        line = text.count("\n", 0, span.start()) + 1
        alone = text.splitlines()[line - 1].strip() == span[0]
        if _FORM.search(span[1]):
            continue  # no command: its form
        if _IN_PROSE.match(span[1]) or (alone and _ALONE.match(span[1])):
            found.append((span.start(), Command(named(page), line, span[1])))
    return tuple(step for _, step in sorted(found, key=lambda each: each[0]))


def _blank(found: re.Match[str]) -> str:
    """As long as it was, with nothing in it."""
    return re.sub(r"[^\n]", " ", found[0])


def _shown(page: Path, block: str, first: int) -> Iterator[Command]:
    """Of a console block: each command with what follows it."""
    lines = block.splitlines()
    at = 0
    while at < len(lines):
        begin, typed = at, lines[at].strip()
        assert typed.startswith("$ "), (
            f"{named(page)}:{first + at}: output before the first command"
        )
        while typed.endswith("\\"):
            at += 1
            typed = typed[:-1] + lines[at].strip()
        at += 1
        output = at
        while at < len(lines) and not lines[at].lstrip().startswith("$ "):
            at += 1
        text, comment = _apart(typed.removeprefix("$ "))
        shown = tuple(lines[output:at]) or None
        yield Command(named(page), first + begin, text, comment, shown)


def _typed(page: Path, block: str, first: int) -> Iterator[Command]:
    """Of a plain block: the lines that begin with a program of ours."""
    for number, line in enumerate(block.splitlines()):
        if _LINE.match(line):
            yield Command(named(page), first + number, *_apart(line.strip()))


def _apart(line: str) -> tuple[str, str]:
    text, _, comment = line.partition(" #")
    return text.strip(), comment.strip()


@cache
def every_command() -> tuple[Command, ...]:
    """Those of all pages; what a page says twice is one command of it."""
    found: dict[tuple[str, str], Command] = {}
    for page in read_pages():
        for step in steps(page):
            if isinstance(step, Command):
                found.setdefault((step.page, step.text), step)
    return tuple(found.values())


def read_pages() -> list[Path]:
    """README, CONTRIBUTING and the docs. The changelog tells of commands as they were."""
    return [page for page in pages() if page != ROOT / "CHANGELOG.md"]
