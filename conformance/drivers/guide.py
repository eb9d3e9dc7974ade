"""What `docs/drivers.md` is made of: its table of clauses and events, and the driver that it writes block by block.

The table is made from what clauses need and what events are recorded as.

`python -m conformance.drivers.guide` writes it between the two marks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from conformance.drivers.protocol import REQUIRED_EVENTS
from conformance.drivers.recording import TOLD_BY
from conformance.records import BEFALLS
from conformance.targets.base import NEVER_ASKED
from specs.clauses.catalogue import catalogue
from specs.clauses.clause import Clause
from specs.vocabulary import Kind

BEGIN, END = "<!-- events: begin -->\n", "<!-- events: end -->\n"
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "drivers.md"
DRIVER = "driver.py"
"""Into it go the blocks of Python that name no file."""
_PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)
_NAMED = re.compile(r"# (\w+\.py)\n")
EVENT_OF: Mapping[Kind, str] = {
    kind: event for event, kind in TOLD_BY.items() if event not in REQUIRED_EVENTS
}
KNOWN = (
    frozenset(TOLD_BY[event] for event in REQUIRED_EVENTS if event in TOLD_BY)
    | BEFALLS
    | NEVER_ASKED
    | {Kind.READ, Kind.JOIN, Kind.LEAVE}
)
"""What every driver tells, who makes the run writes down, or nobody is ever asked for."""


def write_example(folder: Path) -> Path:
    """The driver of the document, and the queue that it drives, as files in a folder; where the driver lies."""
    parts: dict[str, list[str]] = {}
    for block in _PYTHON.findall(DOCUMENT.read_text(encoding="utf-8")):
        named = _NAMED.match(block)
        parts.setdefault(named[1] if named else DRIVER, []).append(block)
    for name, blocks in parts.items():
        (folder / name).write_text("\n\n".join(blocks) + "\n", encoding="utf-8")
    return folder / DRIVER


def events_table() -> str:
    """Markdown: a row for each set of events, with the clauses that need it, and what makes their findings certain."""
    rows: dict[tuple[str, str], list[str]] = {}
    for clause in catalogue():
        wanted = _wanted(clause) if isinstance(clause, Clause) else None
        if wanted is not None:
            rows.setdefault(wanted, []).append(f"[{clause.id}](clauses/{clause.id}.md)")
    ordered = sorted(rows.items(), key=lambda row: (row[0][0].count("`"), row[0]))
    lines = [
        f"| {needs or 'none'} | {certain or 'none'} | {', '.join(ids)} |"
        for (needs, certain), ids in ordered
    ]
    head = ["| needs of the optional events | can be refuted with | clauses |", "|---|---|---|"]
    return "\n".join([*head, *lines]) + "\n"


def _wanted(clause: Clause) -> tuple[str, str] | None:
    """What must be told, and what besides so that a finding is more than possible. None: no driver can tell."""
    needs, excuses = clause.needs - KNOWN, clause.excuses - KNOWN - clause.needs
    if not needs <= EVENT_OF.keys() - {Kind.PULL}:  # of its pulls it tells but where they moved
        return None
    return _named(needs), _named(excuses & EVENT_OF.keys())


def _named(kinds: Iterable[Kind]) -> str:
    return ", ".join(sorted(f"`{EVENT_OF[kind]}`" for kind in kinds))


def with_table(text: str) -> str:
    """The document with today's table."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{events_table()}{END}{after}"


if __name__ == "__main__":
    DOCUMENT.write_text(with_table(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
