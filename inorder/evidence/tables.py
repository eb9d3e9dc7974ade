"""The tables of all grids: for a terminal, as Markdown, and between marks in a page of the documentation."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from specs.errors import UsageError


def terminal(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Collection[str] = (),
    bad: Callable[[int], bool] = lambda number: False,
) -> Table:
    """For people at a terminal. right: columns of numbers. bad: whether the row of that number is to stand out."""
    drawn = Table(box=box.SIMPLE_HEAD, show_edge=False)
    for column in head:
        drawn.add_column(column, no_wrap=True, justify="right" if column in right else "left")
    for number, row in enumerate(rows):
        drawn.add_row(*map(Text, row), style="bold red" if bad(number) else None)
    return drawn


def markdown(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, right: Collection[str] = ()
) -> list[str]:
    """The lines of a table; a cell is one line, and nothing in it ends it."""
    marks = ("---:" if column in right else "---" for column in head)
    return [line(head), f"|{'|'.join(marks)}|", *map(line, rows)]


def line(cells: Sequence[str]) -> str:
    """A row of a Markdown table."""
    return f"| {' | '.join(map(one_line, cells))} |"


def one_line(text: str) -> str:
    """Text as a Markdown cell or sentence shows it."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def refresh(
    page: str,
    marks: tuple[str, str],
    head: Sequence[str],
    order: Sequence[str],
    run: Sequence[str],
    rows: Sequence[Sequence[str]],
    keys: int = 1,
) -> str:
    """The page with one table written anew; rows of what was not run again stay.

    marks: the lines between which it stands. order: the first `keys` cells of all rows that there may be, joined by a
    blank, in their order. run: those that were run; their old rows go. Raises UsageError for a page without the marks.
    """
    begin, end = marks
    before, found, rest = page.partition(begin)
    old, closed, after = rest.partition(end)
    if not found or not closed:
        raise UsageError(f"the page has no table between {begin!r} and {end!r}")
    kept = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in old.splitlines()
        if line.startswith("| ")
    ]
    # The old head is not in the order either.
    known = [
        row for row in kept if " ".join(row[:keys]) in order and " ".join(row[:keys]) not in run
    ]
    written = [[_plain(cell) for cell in row] for row in rows]
    everything = sorted([*known, *written], key=lambda row: order.index(" ".join(row[:keys])))
    lines = [
        f"| {' | '.join(head)} |",
        f"|{'---|' * len(head)}",
        *(f"| {' | '.join(row)} |" for row in everything),
    ]
    return "\n".join([f"{before}{begin}", *lines, f"{end}{after}"])


def _plain(text: str) -> str:
    """Text that can't end a table's cell."""
    return text.replace("|", "/").replace("\n", " ")
