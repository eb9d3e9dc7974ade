"""Trials over the wire: a short run of the wire machine against a released broker, for each seed one session.

It is `inorder conform` without our consumers at work: a broker's bugs show in its answers and in what it stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from conformance.run import judge
from conformance.targets.base import find
from conformance.wire.runner import ask
from conformance.wire.target import WireTarget
from specs import profiles
from specs.clauses.catalogue import by_id
from specs.errors import UsageError
from specs.history.store import History, compact_journal
from specs.profiles import Profile
from specs.verdicts.verdict import Judged

EXAMPLES = 8


def ask_over_the_wire(
    target: str,
    profile: str,
    judged_by: str,
    seeds: Sequence[int],
    folder: Path,
    say: Callable[[str], Any],
) -> list[Judged]:
    """One result per seed; the broker is started once. Raises UsageError where a part is missing."""
    asked = find(target)
    if not isinstance(asked, WireTarget):
        raise UsageError(f"{target} is not spoken to over the wire")
    chosen = profiles.load(profile)
    found: list[Judged] = []
    with asked.open_system(asked.config) as system:
        for seed in seeds:
            say(f"{target}, seed {seed}")
            _, part = ask(
                asked,
                system,
                asked.config,
                chosen,
                seed=seed,
                examples=EXAMPLES,
                folder=folder / f"{seed}",
            )
            found.append(judged_by_one(part.history, chosen, judged_by))
    return found


def judge_history(folder: Path, profile: Profile, clause_id: str) -> Judged:
    """What one clause says to the journals that a run left in its folder."""
    return judged_by_one(compact_journal(folder), profile, clause_id)


def judged_by_one(history: History, profile: Profile, name: str) -> Judged:
    """What one clause, or one wire rule, says to a run."""
    named = (
        {"clauses": (name,), "rules": ()} if name in by_id() else {"clauses": (), "rules": (name,)}
    )
    (line,) = judge(history, profile, options=named).clauses
    return line
