"""What the generated pages share: their first line, and tables."""

from __future__ import annotations

from collections.abc import Iterable

GENERATED = "<!-- Written by `python -m specs.docs`; a test says when it is stale. -->\n"


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table in Markdown, with a line feed at its end."""
    columns = list(head)
    lines = [columns, ["---"] * len(columns), *rows]
    return (
        "\n".join(
            f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |" for line in lines
        )
        + "\n"
    )
