"""The tables of `docs/mutants.md`: every mutant, and every known bug with its mutants or the reason for none.

`python -m inorder.evidence.kill_matrix.document` writes them between the marks; a test says that they are fresh.
"""

from __future__ import annotations

from pathlib import Path

from inorder.evidence.kill_matrix.bugs import Bug, all_bugs, mutants_of
from reference_impl.mutants import Mutant, every_mutant

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "mutants.md"
MARKS = {
    "mutants": ("<!-- mutants: begin -->\n", "<!-- mutants: end -->\n"),
    "bugs": ("<!-- bugs: begin -->\n", "<!-- bugs: end -->\n"),
}


def mutants_table() -> str:
    """A row for each mutant, by the clause or wire rule that kills it."""
    found = sorted(every_mutant(), key=lambda mutant: (mutant.killed_by, mutant.name))
    head = ["| mutant | killed by | the bug | where it was met |", "|---|---|---|---|"]
    return "\n".join(head + [_mutant(mutant) for mutant in found]) + "\n"


def bugs_table() -> str:
    """A row for each known bug."""
    known = mutants_of()
    head = ["| bug | what went wrong | mutants | without a mutant |", "|---|---|---|---|"]
    return "\n".join(head + [_bug(bug, known[bug.id]) for bug in all_bugs()]) + "\n"


def with_tables(text: str) -> str:
    """The document with both tables made anew."""
    for name, table in (("mutants", mutants_table()), ("bugs", bugs_table())):
        begin, end = MARKS[name]
        before, rest = text.split(begin)
        text = f"{before}{begin}{table}{end}{rest.split(end)[1]}"
    return text


def _mutant(mutant: Mutant) -> str:
    return (
        f"| `{mutant.name}` | {mutant.killed_by} | {_cell(mutant.bug)} | {_cell(mutant.source)} |"
    )


def _bug(bug: Bug, mutants: list[Mutant]) -> str:
    names = ", ".join(f"`{mutant.name}`" for mutant in mutants)
    reason = bug.why_not
    if bug.waits_for:
        waits = f"waits for {', '.join(bug.waits_for)}"
        reason = f"{reason}; {waits}" if reason else waits
    return f"| {bug.id} | {_cell(bug.title)} | {names} | {_cell(reason)} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    DOCUMENT.write_text(with_tables(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
