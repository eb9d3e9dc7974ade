"""What people see beside the data: sentences, progress and consoles, all on stderr.

On a terminal progress is a bar; elsewhere it is a plain line each time a tenth more is done, so that a CI log
stays short and shows that the work goes on.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from typing import TextIO

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from conformance.reports.lost import STDOUT, told_anyway
from conformance.reports.visible import visible
from specs.secrets import masked

DEFAULT_WIDTH = 100
NARROWEST = 60
_TENTHS = 10
_COUNT = re.compile(r"(?P<what>.*?)\s*(?P<done>\d+) of (?P<total>\d+)$")


def width() -> int:
    """Columns to draw in: COLUMNS, or the terminal's, or 100."""
    return max(NARROWEST, shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns)


class _Console(Console):
    """One that tells of a reader who is gone: rich's own ends the program with 1, which means refuted here."""

    def on_broken_pipe(self) -> None:
        raise


def console(*, stderr: bool = False) -> Console:
    """A console of that width. Colours only on a terminal, and never with NO_COLOR set."""
    return _Console(stderr=stderr, width=width(), highlight=False, emoji=False, markup=True)


def carries_everything(stream: TextIO) -> bool:
    """Can the stream be written any character? An ASCII one can't."""
    try:
        "▶".encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def lose_no_line() -> None:
    """Where an output can't carry a character (PYTHONIOENCODING=ascii, LC_ALL=C), show `?` in its place.

    A verdict without its arrows is a verdict; an exception in its middle is none.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and not carries_everything(stream):
            stream.reconfigure(errors="replace")


def about(doc: str) -> str:
    """What a docstring says to whoever reads a list: its first paragraph, without what it raises."""
    first = " ".join(doc.strip().partition("\n\n")[0].split())
    return first.partition(" Raises ")[0]


def say(sentence: str) -> None:
    """One line on stderr, with our name in front: it may stand between other programs' lines."""
    tell(f"inorder: {sentence}")


def tell(line: str = "") -> None:
    """One line on stderr."""
    with contextlib.suppress(OSError):  # nobody to be told, and the work goes on
        click.echo(visible(masked(line)), err=True)


def put(words: str, *, end: bool = True) -> None:
    """Data on stdout, with its control characters spelt out. Raises OutputLost. end: with an end of the last line."""
    with told_anyway(STDOUT):
        click.echo(visible(masked(words)), nl=end)


class Watching:
    """Shows how far the work is: sentences, and what is counted as a bar where there is a terminal.

    write: where plain lines go.
    """

    def __init__(self, bar: Progress | None = None, write: Callable[[str], None] = tell) -> None:
        self._bar = bar
        self._write = write
        self._task: TaskID | None = None
        self._told = -1

    def say(self, line: str) -> None:
        """A step of the work. A line that ends in `n of m` is progress: shown as a bar, or at each tenth."""
        counted = _COUNT.match(line)
        if counted is None:
            self._plain(line)
        else:
            self.progress(int(counted["done"]), int(counted["total"]), counted["what"])

    def progress(self, done: int, total: int, what: str) -> None:
        """done of total."""
        if self._bar is None:
            tenth = _TENTHS * done // total if total else 0
            if tenth != self._told:
                self._told = tenth
                self._write(f"  {done} of {total}  {what}")
        elif self._task is None:
            self._task = self._bar.add_task(what, total=total, completed=done)
        else:
            self._bar.update(self._task, completed=done, total=total, description=what)

    def _plain(self, line: str) -> None:
        if self._bar is None:
            self._write(f"  {line}")
        else:
            self._bar.console.print(f"  {visible(masked(line))}", markup=False)


@contextmanager
def watching(*, quiet: bool = False) -> Iterator[Watching]:
    """A bar on a terminal, plain lines elsewhere, nothing if quiet; the bar is gone when the work is done."""
    if quiet:
        yield Watching(write=lambda _line: None)
        return
    if not (sys.stderr.isatty() and os.environ.get("TERM") != "dumb"):
        yield Watching()
        return
    with Progress(
        TextColumn(" "),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
        console=console(stderr=True),
        transient=True,
    ) as bar:
        yield Watching(bar)
