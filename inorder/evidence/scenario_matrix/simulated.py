"""Runs in virtual time: a scenario with a bug, with none, and with the bug while its faults befall somebody else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from chaos.bystanders import befalls_bystanders
from chaos.runner import judged, of_twin, twin_plan
from chaos.scenario import load, names
from chaos.twin import play
from conformance.targets.simulated import PROFILE, SimulatedTarget
from inorder.evidence import grid
from inorder.evidence.chaos_grid import cells as chaos_grid
from inorder.evidence.chaos_grid.at_stake import at_stake, trouble_of
from reference_impl.mutants import load as load_mutant
from specs import profiles
from specs.clauses.catalogue import get
from specs.fingerprint import code_digest
from specs.verdicts.examine import examine

CODE = (*chaos_grid.CODE, "inorder/evidence/scenario_matrix/simulated.py")
CORRECT = "reference"
SHOWN, BESIDE, SYNC = "shown", "beside", "sync"
TIMES_CORRECT = 2
"""So many times as many seeds has the correct cluster: a false alarm is rarer than a bug."""


def cell_of(
    scenario: str, bug: str, seed: int, *, beside: bool = False, sync: bool = False
) -> grid.Cell:
    """A run of a scenario with a bug, or with none (`CORRECT`). sync: its broker answers after the sync."""
    way = f" {BESIDE}" if beside else f" {SYNC}" if sync else ""
    key = {"scenario": scenario, "bug": bug, "seed": seed, BESIDE: beside, SYNC: sync}
    text = {"text": code_digest(f"{chaos_grid.SCENARIOS}/{scenario}.toml")}
    name = f"{scenario} on {bug}{way}, seed {seed}"
    return grid.Cell("scenarios", name, {**key, **grid.code_key(*CODE), **text})


def cells_of(wanted: Sequence[str], seeds: Sequence[int], *, every: bool) -> Iterator[grid.Cell]:
    """every: each scenario meets the bugs of the others too."""
    bugs = sorted({bug for name in names() for bug in load(name).shows})
    for seed in seeds:
        for name in wanted:
            own = load(name).shows
            for bug in own:
                yield cell_of(name, bug, seed)
                yield cell_of(name, bug, seed, beside=True)
            if every and seed == seeds[0]:
                yield from (cell_of(name, bug, seed) for bug in bugs if bug not in own)
    correct = range(seeds[0], seeds[0] + TIMES_CORRECT * len(seeds))
    for seed in correct:
        for name in wanted:
            yield cell_of(name, CORRECT, seed)
            if "flush" not in load(name).config:
                yield cell_of(name, CORRECT, seed, sync=True)


def make(cell: grid.Cell) -> dict[str, Any]:
    """Its run, judged."""
    scenario, bug = load(cell.key["scenario"]), cell.key["bug"]
    plan = twin_plan(scenario, cell.key["seed"])
    if cell.key[BESIDE]:
        plan = befalls_bystanders(plan)
    if cell.key[SYNC]:
        plan = replace(plan, config=replace(plan.config, flush="sync"))
    twin = play(plan, None if bug == CORRECT else load_mutant(bug))
    if bug != CORRECT:  # judged by the one clause that is asked for: that takes half the time
        clause = get(load_mutant(bug).killed_by)
        return {"refuted": list(examine(twin.rows, twin.info, [clause]).refuted())}
    made = of_twin(twin, twin.info)
    verdict = judged(scenario, made, profiles.load(PROFILE), SimulatedTarget.abilities)
    missed = [f"{check.title}: {check.detail}" for check in verdict.met if check.ok is False]
    clauses = [get(clause) for clause in scenario.clauses]
    trouble = trouble_of(made.told, min(row.started_us for row in twin.rows))
    return {
        "refuted": list(made.found.refuted()),
        "word": verdict.verdict.value,
        "missed": missed,
        "sends": made.found.facts.sends,
        "stakes": at_stake(twin.rows, twin.info, clauses, trouble),
    }
