"""The tables of the matrix, for its folder and for the docs, and its picture."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from chaos.scenario import load, names
from conformance.reports import plots
from inorder.evidence import grid, tables
from inorder.evidence.chaos_grid.pages import write as write_tables
from inorder.evidence.scenario_matrix.lines import HEAD, Line, Row, clause_of
from inorder.evidence.scenario_matrix.simulated import BESIDE, CORRECT

DATA, PAGE = "chaos-matrix.json", "chaos-matrix.md"
STAKES = (
    "scenario",
    "runs",
    "messages at least",
    "clauses at stake: in the run with fewest, in all",
)


def write(root: Path, found: Sequence[Line], kept: Sequence[grid.Done]) -> None:
    """The table as JSON and as Markdown, and a picture: who shows what."""
    root.mkdir(parents=True, exist_ok=True)
    data = [line.to_json() for line in found]
    (root / "matrix.json").write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
    lines = tables.markdown(HEAD, [line.row for line in found])
    (root / "matrix.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    stakes = tables.markdown(STAKES, stakes_of(kept))
    (root / "stakes.md").write_text("\n".join(stakes) + "\n", encoding="utf-8")
    if kept:
        tables.draw(root / "matrix.svg", picture(kept))


def stakes_of(kept: Sequence[grid.Done]) -> list[Row]:
    """A row for each scenario with a run of the correct cluster.

    What these runs had to do, and how often the clauses were at stake while something was broken.
    """
    runs: dict[str, list[Any]] = {}
    for done in kept:
        if done.cell.key["bug"] == CORRECT:
            runs.setdefault(done.cell.key["scenario"], []).append(done.value)
    return [_stakes(scenario, each) for scenario, each in sorted(runs.items())]


def _stakes(scenario: str, runs: Sequence[Mapping[str, Any]]) -> Row:
    told = (
        f"{clause} {min(numbers)}, {sum(numbers)}"
        for clause in load(scenario).clauses
        if (numbers := [run["stakes"][clause] for run in runs])
    )
    return (scenario, str(len(runs)), str(min(run["sends"] for run in runs)), "; ".join(told))


def refresh(docs: Path, found: Sequence[Line], kept: Sequence[grid.Done]) -> None:
    """The page of the docs: what was tried now takes the place of what was tried before, way by way."""
    file = docs / DATA
    data = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    before = {line.place: line for line in map(Line.from_json, data.get("lines", ()))}
    lines = before | {line.place: line.after(before.get(line.place)) for line in found}
    known = [(name, bug) for name in names() for bug in load(name).shows or ("",)]
    told = [lines[place] for place in known if place in lines]
    stakes = {row[0]: row for row in (*data.get("stakes", ()), *stakes_of(kept))}
    rows = [stakes[name] for name in names() if name in stakes]
    file.write_text(_as_json([line.to_json() for line in told], rows), encoding="utf-8")
    parts = {
        "matrix": tables.markdown(HEAD, [line.row for line in told]),
        "left out": left_out(told),
        "stakes": tables.markdown(STAKES, rows),
    }
    write_tables(docs / PAGE, parts)


def _as_json(lines: Sequence[Any], stakes: Sequence[Any]) -> str:
    """A row is a line: a diff shows it."""
    told = []
    for name, rows in (("lines", lines), ("stakes", stakes)):
        each = ",\n".join(map(json.dumps, rows))
        told.append(f"{json.dumps(name)}: [\n{each}\n]")
    return f"{{{', '.join(told)}}}\n"


def left_out(lines: Sequence[Line]) -> list[str]:
    """The reasons why sockets can't have a scenario, each with its scenarios."""
    by_why: dict[str, list[str]] = {}
    for line in lines:
        if line.left_out and line.scenario not in by_why.setdefault(line.left_out, []):
            by_why[line.left_out].append(line.scenario)
    rows = [(why, ", ".join(scenarios)) for why, scenarios in sorted(by_why.items())]
    return tables.markdown(("why", "scenarios"), rows) if rows else ["None."]


def picture(kept: Sequence[grid.Done]) -> Any:
    """By scenario and bug: in how many of the runs with effect the bug's clause was refuted."""
    shown: dict[tuple[str, str], list[bool]] = {}
    for done in kept:
        key = done.cell.key
        if not key.get(BESIDE) and key["bug"] != CORRECT:
            right = clause_of(key["bug"]) in done.value["refuted"]
            shown.setdefault((key["scenario"], key["bug"]), []).append(right)
    cells = {place: _cell(place, each) for place, each in shown.items()}
    rows, columns = (sorted({place[n] for place in cells}) for n in (0, 1))
    title = "Scenarios, and the bugs that they show"
    return plots.heat_map("scenarios", title, rows, columns, cells)


def _cell(place: tuple[str, str], shown: Sequence[bool]) -> plots.Cell:
    told = f"{clause_of(place[1])} refuted in {sum(shown)} of {len(shown)}"
    if place[1] in load(place[0]).shows and not all(shown):
        return plots.Cell(plots.Kind.BAD, f"{sum(shown)}", told)
    kind = plots.Kind.GOOD if any(shown) else plots.Kind.SILENT
    return plots.Cell(kind, f"{sum(shown)}" if any(shown) else "", told)
