"""Trials without a server: a client's own choice, held against the table of vectors that decides the clause."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from conformance.drivers.java import start_java
from conformance.vectors import wrong_queues
from specs.clauses.catalogue import by_id
from specs.errors import UsageError
from specs.plan.config import Config
from specs.verdicts.verdict import ClauseVerdict, Judged

ALONE = "java:"


def choose_with_java(
    target: str,
    profile: str,
    judged_by: str,
    seeds: Sequence[int],
    folder: Path,
    say: Callable[[str], Any],
) -> list[Judged]:
    """One result per seed, each of a process of its own. target: `java:VERSION`. UsageError where a part is missing."""
    kind, version = target[: len(ALONE)], target[len(ALONE) :]
    if kind != ALONE:
        raise UsageError(f"{target} is no Java client alone; write it as java:5.4.0")
    clause = by_id()[judged_by]
    found: list[Judged] = []
    for seed in seeds:
        say(f"{target}, seed {seed}")
        with start_java(version, "chooser", Config(), folder / f"{seed}", lambda _: None) as driver:
            driver.hello()

            def choose(key: str, queues: int) -> int | str:
                answer = driver.ask_anything(
                    {"verb": "select", "id": driver.next_number(), "key": key, "queues": queues}
                )
                return int(answer["queue_id"]) if answer["ok"] else str(answer["error"])

            rows, wrong = wrong_queues(judged_by, choose)
            driver.stop()
        found.append(
            Judged(
                clause.id,
                clause.title,
                clause.statement,
                ClauseVerdict.REFUTED if wrong else ClauseVerdict.UPHELD,
                clause.party.value,
                (f"Apache Java client {version}",),
                opportunities=rows,
                floor=1,
                violations=len(wrong),
                explanation=wrong[0] if wrong else "",
            )
        )
    return found
