"""RocketMQ's Go client: what it promises is upheld, and told otherwise it is refuted by its clause."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from conformance.parts import golang, rocketmq_go
from conformance.parts.doctor import why_not
from conformance.targets.base import find
from specs.plan.config import Config
from specs.plan.plan import ListenerRule
from specs.vocabulary import Outcome
from tests.conformance.targets.asked import (
    BROKEN,
    KEPT,
    Work,
    bugs_of,
    found,
    judged,
    refuted,
)

OURS, APACHES = "reference+go:2.1.2", "rocketmq-local:5.4.0+go:2.1.2"
ON_APACHES = ("misplaces", "loses", "strays", "overtakes")
"""What is sent is asked of Apache's brokers; what else a client does is seen whole on ours, which tell each pull."""
LYING = Path(__file__).parents[1] / "drivers" / "lying.py"
KEYS, TURNS = 8, 14
OTHERS = ("returns", "waits")
"""RocketMQ refuses no commit, and has one send of a producer in flight at a time."""
BUGS = {bug: clause for bug, clause in bugs_of(LYING).items() if bug not in OTHERS}


pytestmark = [pytest.mark.long, pytest.mark.apache]

WORK = Work(
    Config(
        rebalance_ms=500, lock_interval_ms=500, heartbeat_ms=500, persist_ms=300, suspend_ms=100,
        consume_from="first", max_reconsume_times=20,
    ),
    keys=KEYS,
    turns=TURNS,
    sends_ms=(2_000, 300),
    second_ms=(3_500, 6_000),
    fails=tuple(
        ListenerRule(Outcome.SUSPEND, number=number, delivery_max=3)
        for number in range(1, KEYS * TURNS, 8)
    ),
    until_ms=8_500,
    settle_ms=30_000,
)  # fmt: skip
"""A run of twelve seconds: a second consumer comes and goes while messages flow, and some fail three times."""


@pytest.fixture(scope="module")
def targets() -> Iterator[Callable[[str], Any]]:
    """One cluster of a kind for all of them: topics and groups are new in each run."""
    for part in ("rocketmq-go", "java"):
        if (reason := why_not(part)) is not None:
            pytest.skip(reason)
    made = cache(find)
    yield made
    for name in (OURS, APACHES):
        made(name).release()


def clauses_on(name: str) -> list[str]:
    return [clause for bug, clause in BUGS.items() if (bug in ON_APACHES) == (name == APACHES)]


@pytest.mark.parametrize("name", [OURS, APACHES])
def test_what_it_did_is_upheld(targets: Callable[[str], Any], tmp_path: Path, name: str) -> None:
    """All that a lie is about is at stake, and nothing is refuted."""
    told = found(judged(targets(name), tmp_path / "run", WORK))
    assert refuted(told) == []
    clauses = clauses_on(name)
    assert {clause: told[clause] for clause in clauses} == dict.fromkeys(clauses, KEPT)


@pytest.mark.parametrize("bug", BUGS)
def test_a_lie_is_refuted_by_its_clause(
    targets: Callable[[str], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bug: str
) -> None:
    """The driver is the right one; what it says is told otherwise."""
    program = tmp_path / "driver"
    words = [sys.executable, str(LYING), bug, str(rocketmq_go.DRIVER.ensure(rocketmq_go.DEFAULT))]
    program.write_text(f"#!/bin/sh\nexec {shlex.join(words)}\n")
    program.chmod(0o755)
    monkeypatch.setattr(golang.Driver, "ensure", lambda driver, version: program)
    target = targets(APACHES if bug in ON_APACHES else OURS)
    told = found(judged(target, tmp_path / "run", WORK))
    assert told[BUGS[bug]] is BROKEN
