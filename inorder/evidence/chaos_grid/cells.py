"""One cell: a run of a scenario on a target by a seed, judged as `inorder chaos` judges it.

Rules:
- its key names the code and the scenario's own text, so that a change of one scenario makes the runs of that one anew;
- of a run that was upheld only the verdict is kept, so that a long grid does not fill the disk; what came to anything
  else is kept whole.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from chaos.cli import Asked
from chaos.rounds import Try
from chaos.scenario import FOLDER, Scenario
from conformance.reports.recovery import recoveries
from conformance.reports.view import VERDICT_FILE, VerdictView, opened_in
from inorder.evidence import grid
from inorder.evidence.chaos_grid.at_stake import at_stake, trouble_of
from specs import faults
from specs.clauses.catalogue import get
from specs.fingerprint import ROOT, code_digest
from specs.history.store import History
from specs.verdicts.tally import FaultTold
from specs.verdicts.verdict import ClauseVerdict, RunVerdict
from specs.vocabulary import Kind

SCENARIOS = f"chaos/{FOLDER}"
CODE = (
    "specs",
    "reference_impl",
    "conformance",
    *(f"chaos/{part.name}" for part in (ROOT / "chaos").iterdir() if part.name != FOLDER),
    "inorder/evidence/chaos_grid",
)
"""What every run depends on; beside it its scenario."""
NOT_JUDGED = {ClauseVerdict.NOT_CLAIMED, ClauseVerdict.NOT_RECORDED}


def cell_of(target: str, scenario: str, profile: str, seed: int) -> grid.Cell:
    """A run of a scenario, and all that its verdict depends on."""
    key = {"target": target, "scenario": scenario, "profile": profile, "seed": seed}
    text = {"text": code_digest(f"{SCENARIOS}/{scenario}.toml")}
    name = f"{scenario} on {target}, seed {seed}"
    return grid.Cell("chaos", name, {**key, **grid.code_key(*CODE), **text})


def folder_of(root: Path, cell: grid.Cell) -> Path:
    """Where a cell's run is kept."""
    plain = "".join(
        char if char.isalnum() or char in "+.-_" else "-" for char in cell.key["target"]
    )
    return root / plain / str(cell.key["scenario"]) / str(cell.key["seed"])


def is_there(root: Path, cell: grid.Cell) -> bool:
    """Whether what a finished cell tells of is still there."""
    return (folder_of(root, cell) / VERDICT_FILE).is_file()


def play(cell: grid.Cell, asked: Asked, root: Path) -> dict[str, Any]:
    """Make a cell; what an earlier run left in its folder goes first."""
    name, seed, folder = cell.key["scenario"], cell.key["seed"], folder_of(root, cell)
    if folder.exists():
        shutil.rmtree(folder)
    scenario = next(each for each in asked.scenarios if each.name == name)
    view = asked.go(scenario)(seed, folder)
    made = Try(name, 1, seed, folder, view)
    told = {"word": made.word, "refuted": made.refuted, "missed": made.missed}
    told |= of_history(scenario, view, opened_in(folder))
    if made.word == RunVerdict.UPHELD:
        thin(folder)
    return told


def of_history(scenario: Scenario, view: VerdictView, history: History | None) -> dict[str, Any]:
    """What the run's rows say: how much was at stake, and how soon lanes went on."""
    rows = [] if history is None else list(history.rows())
    if history is None or not rows:
        return {"messages": 0, "at_stake": {}, "faults": [], "recovery": []}
    told = [fault.told for fault in view.told_faults if fault.told is not None]
    wanted = {each.id for each in view.clauses if each.verdict not in NOT_JUDGED}
    clauses = [get(id) for id in scenario.clauses if id in wanted]
    trouble = trouble_of(told, min(row.started_us for row in rows))
    return {
        "messages": sum(row.kind is Kind.SEND for row in rows),
        "at_stake": at_stake(rows, history.info, clauses, trouble),
        "faults": [
            {"verb": verb_of(fault), "lanes": fault.lanes, "recovered_ms": fault.recovered_ms}
            for fault in told
        ],
        "recovery": [
            {"what": each.what, "lane": str(each.lane), "ms": each.ms} for each in recoveries(rows)
        ],
    }


def verb_of(fault: FaultTold) -> str:
    """What it is called in a scenario; a step that is no fault keeps its own word."""
    word = fault.name.partition(" ")[0]
    found = faults.named(word)
    return word if found is None else found.verb


def thin(folder: Path, kept: Sequence[str] = (VERDICT_FILE,)) -> None:
    """Nothing stays but the files of these names."""
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name not in kept:
            path.unlink()
