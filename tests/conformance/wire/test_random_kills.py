"""A served broker is killed with SIGKILL at random moments under consumers with leases; the clauses judge."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from conformance.run import run
from conformance.targets.base import find
from conformance.targets.systems import FIRST_PERSISTS
from conformance.wire.runner import SHORT_LEASES, orderly_plan
from specs.history.row import Row
from specs.plan.plan import Action, Plan
from specs.profiles import load
from specs.vocabulary import Kind

CONFIG = replace(SHORT_LEASES, persist_first_ms=FIRST_PERSISTS * SHORT_LEASES.persist_ms)
PROFILE = load("reference")
MESSAGES = 480
DEAD_MS = (50, 1_500)


def with_kills(plan: Plan, kills: int, seed: int) -> Plan:
    """The broker dies at so many moments, drawn from the seed, and each time lives again before the next."""
    dice = Random(seed)
    part_ms = (plan.until_ms - 1_000) // kills
    more = []
    for number in range(kills):
        dies_ms = 1_000 + number * part_ms + dice.randrange(part_ms - DEAD_MS[1])
        more.append(Action(dies_ms, "broker_crash", {"broker": "b0"}))
        more.append(Action(dies_ms + dice.randint(*DEAD_MS), "broker_restart", {"broker": "b0"}))
    return replace(
        plan, actions=tuple(sorted((*plan.actions, *more), key=lambda action: action.at_ms))
    )


def recorded(folder: Path, store: Path, flush: str, seed: int, kills: int) -> list[Row]:
    """The history of such a run, in the folder."""
    prefix = f"k{seed}-"
    plan = with_kills(orderly_plan(CONFIG, prefix, seed, MESSAGES), kills, seed)
    target = find(f"reference+tcp:{flush}={store}")
    return list(run(plan, target, folder, prefix=prefix).rows())


def checked(folder: Path) -> dict[str, Any]:
    """What `inorder check` says of it: clause → verdict and opportunities."""
    command = [
        sys.executable,
        "-m",
        "inorder",
        "check",
        str(folder),
        "--profile",
        PROFILE.name,
        "--format",
        "json",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode in (0, 2), (
        done.stdout + done.stderr
    )  # 2: some clause was hardly at stake
    return {clause["id"]: clause for clause in json.loads(done.stdout)["clauses"]}


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(6))
def test_killed_at_random_moments(seed: int, tmp_path: Path) -> None:
    """Five times, with either way of flushing: leases, commits, order and every acknowledged message are upheld."""
    flush = ("sync", "async")[seed % 2]
    rows = recorded(tmp_path / "run", tmp_path / "store", flush, seed, kills=5)
    assert len([row for row in rows if row.kind is Kind.CRASH and row.broker == "b0"]) == 5
    clauses = checked(tmp_path / "run")
    assert {
        name: one["explanation"] for name, one in clauses.items() if one["verdict"] == "refuted"
    } == {}
    at_stake = {
        name: clauses[name]["opportunities"]
        for name in ("SND-1", "ORD-2", "ORD-4", "LSE-3", "CMT-1")
    }
    assert min(at_stake.values()) > 0, at_stake
