"""Trials over the wire: a short run of the wire machine against a released broker, for each seed one session.

It is `inorder conform` without our consumers at work: a broker's bugs show in its answers and in what it stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from conformance.records import OF_RAW_CLIENTS
from conformance.targets.base import Target, find
from conformance.targets.systems import System
from conformance.wire.machine import run_machine
from conformance.wire.session import Session
from specs import profiles
from specs.clauses.catalogue import by_id
from specs.errors import UsageError
from specs.history.journal import Journal
from specs.history.runinfo import RunInfo, write_runinfo
from specs.history.store import compact_journal
from specs.model.rules import RULES
from specs.plan.ability import Ability
from specs.profiles import Profile
from specs.verdicts.engine import examined
from specs.verdicts.verdict import Judged, conclude
from specs.vocabulary import Level

EXAMPLES = 8
STEPS = 40


def ask_over_the_wire(
    target: str,
    profile: str,
    judged_by: str,
    seeds: Sequence[int],
    folder: Path,
    say: Callable[[str], Any],
) -> list[Judged]:
    """One result per seed; the broker is started once. Raises UsageError where a part is missing."""
    run = find(target)
    if Ability.WIRE not in run.abilities:
        raise UsageError(f"{target} is not spoken to over the wire")
    found: list[Judged] = []
    with run.open_system(run.config, False) as system:
        for seed in seeds:
            say(f"{target}, seed {seed}")
            found.append(
                _session(run, system, profiles.load(profile), judged_by, seed, folder / f"{seed}")
            )
    return found


def _session(
    run: Target, system: System, profile: Profile, judged_by: str, seed: int, folder: Path
) -> Judged:
    name, address = next(iter(sorted(system.brokers.items())))
    info = RunInfo(
        run=f"track-record-{seed}",
        seed=seed,
        target=run.name,
        parties=run.parties,
        profile=profile.name,
        levels=(Level.WIRE,),
        clock_bounds_us={"host": 0},
        records=OF_RAW_CLIENTS,
        config=run.config,
    )
    folder.mkdir(parents=True)
    write_runinfo(folder, info)
    with Journal(folder, "wire", common={"level": Level.WIRE}) as journal:
        session = Session(
            address,
            name,
            journal,
            run.config,
            profile.wire,
            f"t{seed}-",
            run.lease_known,
        )
        run_machine(session, seed, EXAMPLES, steps=STEPS)
        session.drain_when_settled()
    if judged_by in RULES:
        (line,) = session.found().judged(info, profile, 1, (judged_by,))
        return line
    return judge_history(folder, profile, judged_by)


def judge_history(folder: Path, profile: Profile, clause_id: str) -> Judged:
    """What one clause says to the history that a run left in its folder."""
    history = compact_journal(folder)
    clause = by_id()[clause_id]
    examination = examined(history, (clause,))
    verdict = conclude(
        examination, history.info, profile, require_exercised=False, clauses=(clause,)
    )
    return verdict.clauses[0]
