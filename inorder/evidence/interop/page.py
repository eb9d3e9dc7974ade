"""`docs/matrix.md`: the tables that a run writes between marks. Rows of cells that were not run again stay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.etree.ElementTree import Element

from inorder.evidence import tables
from inorder.evidence.interop.cells import Cell
from inorder.evidence.interop.features import Checked
from specs.verdicts.verdict import ClauseVerdict

CELLS = "cells"
DEVIATIONS = "deviations"
FEATURES = "features"
_COUNTS = ("upheld", "refuted", "allowed", "not exercised", "not recorded", "not claimed")
HEADS: Mapping[str, tuple[str, ...]] = {
    CELLS: ("cell", "broker", "client", *_COUNTS, "rounds", "run"),
    DEVIATIONS: ("cell", "clause", "how often", "what was seen first", "why it is known", "source"),
    FEATURES: ("feature", "direction", "works", "what was seen", "run"),
}


def marks(table: str) -> tuple[str, str]:
    """The lines between which a table stands."""
    return f"<!-- table {table}: written by `make matrix` -->", f"<!-- end of table {table} -->"


def cell_row(cell: Cell) -> tuple[str, ...]:
    counts = cell.counts
    refuted = counts[ClauseVerdict.REFUTED] + counts[ClauseVerdict.POSSIBLE]
    numbers = (
        counts[ClauseVerdict.UPHELD], refuted, counts[ClauseVerdict.ALLOWED], counts[ClauseVerdict.NOT_EXERCISED],
        counts[ClauseVerdict.NOT_RECORDED], counts[ClauseVerdict.NOT_CLAIMED], cell.rounds,
    )  # fmt: skip
    return (f"`{cell.target}`", cell.broker, cell.client, *map(str, numbers), cell.date)


def deviation_rows(cell: Cell) -> list[tuple[str, ...]]:
    return [
        (
            f"`{cell.target}`",
            f"{each.clause} {each.title}",
            f"{each.violations} of {each.opportunities}",
            each.seen,
            each.known or "**not known**",
            each.source,
        )
        for each in cell.deviations
    ]


def feature_row(checked: Checked) -> tuple[str, ...]:
    return (
        checked.feature,
        checked.direction,
        "yes" if checked.works else "no",
        checked.seen,
        checked.date,
    )


def picture(cells: Sequence[Cell]) -> Element:
    """Every cell of the matrix by every clause."""
    systems = {cell.target: cell.clauses for cell in cells}
    return tables.by_clause("matrix", "Brokers and clients, promise by promise", systems)


def refresh(
    page: str,
    table: str,
    order: Sequence[str],
    run: Sequence[str],
    rows: Sequence[Sequence[str]],
    keys: int = 1,
) -> str:
    """The page with one of its tables written anew, as `inorder.evidence.tables.refresh` tells."""
    return tables.refresh(page, marks(table), HEADS[table], order, run, rows, keys)
