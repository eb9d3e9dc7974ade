"""Runs on real sockets: a scenario on our own cluster with the bug that it names (`mutant+tcp:BUG`), in real time.

Rules:
- a scenario is run where its faults can be done: on brokers in memory, else on those that have a store
  (`mutant+tcp:BUG:sync`); where neither can have them the row says why;
- of a run that shows its bug only the verdict is kept; one that does not is kept whole;
- a run that does not show it and did not reach what it must (a fault without effect, on a busy machine) tells nothing
  of the scenario: it counts as one that does not, until the same command makes it again.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from chaos.cli import PROCESS, find_target, prepare, why_not
from chaos.scenario import load
from conformance.parts.processes import exit_on_sigterm
from inorder.evidence import grid
from inorder.evidence.chaos_grid import cells as chaos_grid
from reference_impl.mutants import load as load_mutant
from specs.fingerprint import code_digest
from specs.verdicts.verdict import ClauseVerdict

CODE = (*chaos_grid.CODE, "inorder/evidence/scenario_matrix/sockets.py")
KINDS = ("", ":sync")
"""The brokers, in the order in which they are tried: in memory, with a store."""


@cache
def target_of(scenario: str, bug: str) -> tuple[str, str]:
    """The target that can have the scenario, and an empty reason; or none, and why not."""
    why: dict[str, str | None] = {}
    for kind in KINDS:
        name = f"mutant+tcp:{bug}{kind}"
        why[name] = why_not(load(scenario), find_target(name, PROCESS), name, PROCESS)
        if why[name] is None:
            return name, ""
    told = next(iter(why.values())) or ""
    return "", told.partition(";")[0]  # behind it stands which other targets can


def cell_of(scenario: str, bug: str, seed: int) -> grid.Cell:
    """A run of a scenario with its bug. Raises ValueError where sockets can't have it."""
    target, why = target_of(scenario, bug)
    if not target:
        raise ValueError(f"{scenario} {why}")
    key = {"scenario": scenario, "bug": bug, "target": target, "seed": seed}
    text = {"text": code_digest(f"{chaos_grid.SCENARIOS}/{scenario}.toml")}
    name = f"{scenario} on {target}, seed {seed}"
    return grid.Cell("sockets", name, {**key, **grid.code_key(*CODE), **text})


def cells_of(wanted: Sequence[str], seeds: Sequence[int]) -> Iterator[grid.Cell]:
    """Each seed of all rows before the next one."""
    for seed in seeds:
        for name in wanted:
            for bug in load(name).shows:
                if target_of(name, bug)[0]:
                    yield cell_of(name, bug, seed)


def left_out(wanted: Sequence[str]) -> dict[tuple[str, str], str]:
    """The rows that sockets can't have, by scenario and bug, each with the reason."""
    return {
        (name, bug): why
        for name in wanted
        for bug in load(name).shows
        if (why := target_of(name, bug)[1])
    }


def folder_of(root: Path, cell: grid.Cell) -> Path:
    """Where a cell's run is kept."""
    key = cell.key
    return root.joinpath("sockets", key["scenario"], key["bug"], f"{key['seed']}")


def stands(cell: grid.Cell, value: Mapping[str, Any]) -> bool:
    """Whether a kept run says whether the scenario shows its bug."""
    shown = load_mutant(cell.key["bug"]).killed_by in value["refuted"]
    return shown or not value["missed"]


def make(root: Path, cell: grid.Cell) -> Mapping[str, Any]:
    """Its run, judged by all clauses; what an earlier run left in its folder goes first."""
    exit_on_sigterm()
    scenario, bug, folder = cell.key["scenario"], cell.key["bug"], folder_of(root, cell)
    if folder.exists():
        shutil.rmtree(folder)
    asked, _ = prepare((scenario,), cell.key["target"], None, PROCESS)
    try:
        verdict = asked.go(asked.scenarios[0])(cell.key["seed"], folder)
    finally:
        asked.target.release()
    refuted = [each.id for each in verdict.of(ClauseVerdict.REFUTED)]
    if load_mutant(bug).killed_by in refuted:
        chaos_grid.thin(folder)
    missed = [f"{check.title}: {check.detail}" for check in verdict.met if check.ok is False]
    return {"refuted": refuted, "word": verdict.verdict.value, "missed": missed}
