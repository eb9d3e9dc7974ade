"""The tables of all grids: for a terminal, as Markdown, between marks in a page of the documentation, as pictures."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

from rich import box
from rich.table import Table
from rich.text import Text

from conformance.reports import plots, svg
from conformance.reports.html import SIGNS
from conformance.reports.plots import Cell, Kind
from specs.clauses.clause import Clause
from specs.errors import UsageError
from specs.verdicts.verdict import ClauseVerdict, RunVerdict


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


# ------------------------------------------------------------------------------------------ pictures

_KINDS: Mapping[ClauseVerdict, Kind] = {
    ClauseVerdict.UPHELD: Kind.GOOD,
    ClauseVerdict.REFUTED: Kind.BAD,
    ClauseVerdict.POSSIBLE: Kind.OPEN,
    ClauseVerdict.ALLOWED: Kind.ALLOWED,
    ClauseVerdict.NOT_EXERCISED: Kind.OPEN,
}
_OF_A_RUN: Mapping[RunVerdict, tuple[Kind, str]] = {
    RunVerdict.UPHELD: (Kind.GOOD, "✓"),
    RunVerdict.REFUTED: (Kind.BAD, "✗"),
    RunVerdict.INCONCLUSIVE: (Kind.OPEN, "?"),
    RunVerdict.INADMISSIBLE: (Kind.BAD, "!"),
}


def clause_cell(verdict: ClauseVerdict) -> Cell:
    """A clause's verdict as a cell."""
    kind = _KINDS.get(verdict, Kind.SILENT)
    return Cell(kind, SIGNS[verdict], verdict.value.replace("_", " "))


def run_cell(verdict: RunVerdict, more: str = "", told: str = "") -> Cell:
    """A run's verdict as a cell. more: what stands beside its sign."""
    kind, sign = _OF_A_RUN[verdict]
    return Cell(kind, f"{sign} {more}".rstrip(), ": ".join(filter(None, (verdict.value, told))))


def by_clause(
    key: str, title: str, systems: Mapping[str, Mapping[str, ClauseVerdict]]
) -> ElementTree.Element:
    """Systems by promises: a row for each system, a column for each clause that one of them was held to."""
    known: dict[str, set[ClauseVerdict]] = {}
    cells = {}
    for system, clauses in systems.items():
        for clause, verdict in clauses.items():
            known.setdefault(clause, set()).add(verdict)
            cells[system, clause] = clause_cell(verdict)
    columns = sorted(
        (name for name, verdicts in known.items() if verdicts != {ClauseVerdict.NOT_CLAIMED}),
        key=lambda name: (_family(name), int(name.split("-")[1])),
    )
    groups: dict[str, int] = {}
    for name in columns:
        groups[name.split("-")[0]] = groups.get(name.split("-")[0], 0) + 1
    there = {verdict for verdicts in known.values() for verdict in verdicts}
    legend = [
        (clause_cell(verdict), verdict.value.replace("_", " "))
        for verdict in ClauseVerdict
        if verdict in there
    ]
    return plots.heat_map(
        key,
        title,
        list(systems),
        columns,
        cells,
        groups=list(groups.items()),
        legend=legend,
        narrow=True,
    )


def _family(name: str) -> int:
    families = [*Clause.FAMILIES]
    family = name.split("-")[0]
    return families.index(family) if family in families else len(families)


def draw(path: Path, picture: ElementTree.Element) -> None:
    """Write a picture beside a grid's data."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(svg.render(picture), encoding="utf-8")
