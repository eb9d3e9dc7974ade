"""The tables of `docs/mutants.md`: every mutant, and every known bug with its mutants or the reason for none.

`python -m inorder.evidence.kill_matrix.document` writes them between the marks, and the picture of how soon searches
find the mutants (from `conformance/reports/power.json`) beside the page; a test says that they are fresh.
"""

from __future__ import annotations

import json
from pathlib import Path

from conformance.reports import svg
from inorder.evidence.kill_matrix import power, report
from inorder.evidence.kill_matrix.bugs import Bug, all_bugs, mutants_of
from reference_impl.mutants import HISTORY, Mutant, every_mutant

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "mutants.md"
PICTURE = DOCUMENT.parent / "pictures" / "found-after.svg"
MARKS = {
    "mutants": ("<!-- mutants: begin -->\n", "<!-- mutants: end -->\n"),
    "bugs": ("<!-- bugs: begin -->\n", "<!-- bugs: end -->\n"),
}


def found_after() -> str:
    """How many mutants a search has found after so many runs, seed by seed, as SVG."""
    data = json.loads(power.FILE.read_text(encoding="utf-8"))
    bugs = [bug for bugs in data["clauses"].values() for bug in bugs.values()]
    searched = [bug for bug in bugs if bug["oracle"] == HISTORY]
    seeds = sorted({int(seed) for bug in searched for seed in bug["runs"]})
    curves = {}
    for seed in seeds:
        if any(str(seed) not in bug["runs"] for bug in searched):
            continue  # of a seed by which only some were searched for the line would end too low
        runs = [bug["runs"][str(seed)] for bug in searched]
        curves[f"seed {seed}"] = report.found_after([run for run in runs if run is not None])
    title = "Planted bugs that a search has found after so many runs"
    return svg.render(report.found_picture("power", title, curves, len(searched)))


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
    PICTURE.write_text(found_after(), encoding="utf-8")
