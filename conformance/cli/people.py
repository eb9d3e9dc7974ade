"""What people see beside the data: sentences, progress and consoles, all on stderr.

On a terminal progress is a bar; elsewhere it is a plain line each time a tenth more is done, so that a CI log
stays short and shows that the work goes on.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

DEFAULT_WIDTH = 100
NARROWEST = 60
_TENTHS = 10


def width() -> int:
    """Columns to draw in: COLUMNS, or the terminal's, or 100."""
    return max(NARROWEST, shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns)


def console(*, stderr: bool = False) -> Console:
    """A console of that width. Colours only on a terminal, and never with NO_COLOR set."""
    return Console(stderr=stderr, width=width(), highlight=False, emoji=False, markup=True)


def say(sentence: str) -> None:
    """One line on stderr, with our name in front: it may stand between other programs' lines."""
    click.echo(f"inorder: {sentence}", err=True)


def tell(line: str = "") -> None:
    """One line on stderr."""
    click.echo(line, err=True)


class Watching:
    """Shows how far the work is. Call it with (done, total, what)."""

    def __init__(self) -> None:
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._told = -1
        self._what = ""

    def __call__(self, done: int, total: int, what: str = "") -> None:
        if self._bar is not None:
            if self._task is None:
                self._task = self._bar.add_task(what, total=total or None)
            self._bar.update(self._task, completed=done, total=total or None, description=what)
            return
        tenth = _TENTHS * done // total if total else 0
        if (what, tenth) != (self._what, self._told):
            self._what, self._told = what, tenth
            tell(f"  {what} {done}/{total}" if total else f"  {what}")


@contextmanager
def watching() -> Iterator[Watching]:
    """A bar on a terminal, plain lines elsewhere; gone when the work is done."""
    watch = Watching()
    if not (sys.stderr.isatty() and os.environ.get("TERM") != "dumb"):
        yield watch
        return
    with Progress(
        TextColumn("  {task.description}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console(stderr=True),
        transient=True,
    ) as bar:
        watch._bar = bar
        yield watch
