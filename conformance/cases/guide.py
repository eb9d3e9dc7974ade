"""The table of commands in `docs/cases.md`, made from the functions that do them.

`python -m conformance.cases.guide` writes it between the two marks.
"""

from __future__ import annotations

from pathlib import Path

import conformance.cases.commands  # noqa: F401  (fills the table)
from conformance.cases.table import TABLE, Handler

BEGIN, END = "<!-- commands: begin -->\n", "<!-- commands: end -->\n"
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "cases.md"


def commands_table() -> str:
    """Markdown: a row for each command, with its explanation; several forms of one command share a row."""
    forms: dict[Handler, list[str]] = {}
    for sentence in TABLE:
        forms.setdefault(sentence.handler, []).append(f"`{sentence.form}`")
    rows = [f"| {'<br>'.join(said)} | {_explained(handler)} |" for handler, said in forms.items()]
    return "\n".join(["| command | what it does |", "|---|---|", *rows]) + "\n"


def _explained(handler: Handler) -> str:
    return " ".join((handler.__doc__ or "").split()).replace("|", "\\|")


def with_table(text: str) -> str:
    """The document with today's table."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{commands_table()}{END}{after}"


if __name__ == "__main__":
    DOCUMENT.write_text(with_table(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
