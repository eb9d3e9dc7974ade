"""Pages of the documentation whose tables a run writes between marks. Rows of what was not run again stay."""

from __future__ import annotations

from collections.abc import Sequence

from specs.errors import UsageError


def refresh(
    page: str,
    marks: tuple[str, str],
    head: Sequence[str],
    order: Sequence[str],
    run: Sequence[str],
    rows: Sequence[Sequence[str]],
    keys: int = 1,
) -> str:
    """The page with one table written anew.

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
