"""Apache's own client of Kafka: what is at stake in trouble alone is upheld, and told otherwise it is refuted."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.parts import kafka
from conformance.parts.java import find_java
from conformance.targets.kafka import JavaClient, KafkaTarget, local
from specs.plan.plan import Action, ListenerRule
from specs.verdicts.verdict import ClauseVerdict
from tests.conformance.targets.asked import (
    BROKEN,
    FIRST,
    KEPT,
    found,
    judged,
    one_server,
    refuted,
    sabotaged,
)
from tests.conformance.targets.test_kafka import WORK

VERSION = "4.4.0"
TARGET = (
    f"{kafka.DEFAULT}+java:{VERSION},group.protocol=consumer,retry.backoff.ms=400,app.in.flight=5"
)
"""The library tries nothing twice so soon that a refusal could be the answer to its second try.

With the classic protocol nobody can tell: after so long a sleep its library has lost its coordinator, looks for it
anew, and only then sends the commit.
"""
SLEEPS_MS, WAKES_MS = 4_500, 9_500
"""When it has its partitions also on a busy machine; longer than its session, and until another has them, and has
committed."""
LYING = Path(__file__).parents[1] / "drivers" / "lying.py"

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not kafka.server_jars(kafka.DEFAULT).present
        or not kafka.client_jars(VERSION).present
        or find_java() is None,
        reason=f"needs Java and the jars of Kafka; `python -m conformance.parts.kafka {kafka.DEFAULT} java:{VERSION}` "
        "fetches them",
    ),
]


class Lying(JavaClient):
    """The driver, with one lie between it and the suite."""

    def __init__(self, version: str, bug: str) -> None:
        super().__init__(version)
        self._bug = bug

    def command(self) -> tuple[Sequence[str | Path], Mapping[str, str]]:
        rightly, env = super().command()
        return [sys.executable, LYING, self._bug, *rightly], env


@pytest.fixture(scope="module")
def target() -> Iterator[KafkaTarget]:
    """One server for both."""
    yield from one_server(local, TARGET)


@pytest.mark.parametrize(("bug", "verdict"), [("", KEPT), ("returns", BROKEN)])
def test_who_was_not_heard_for_long_can_not_commit(
    target: KafkaTarget,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    bug: str,
    verdict: ClauseVerdict,
) -> None:
    """The first consumer stands still in the midst of a call, and comes back to a lane that is another's."""
    first = {"node": FIRST}
    faults = (Action(SLEEPS_MS, "pause", first), Action(WAKES_MS, "resume", first))
    slow = ListenerRule(duration_ms=800, client=FIRST)
    second_ms = (SLEEPS_MS - 1_800, 20_000)
    work = replace(WORK, second_ms=second_ms, fails=(slow,), until_ms=WAKES_MS + 500)
    lies = sabotaged(target, Lying(VERSION, bug), bug, monkeypatch) if bug else nullcontext()
    with lies:
        told = found(judged(target, tmp_path / "run", work, *faults))
    assert told["GEN-1"] is verdict
    assert bug or refuted(told) == []


@pytest.mark.parametrize(("bug", "verdict"), [("", KEPT), ("waits", BROKEN)])
def test_sends_in_flight_keep_their_order(
    target: KafkaTarget,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    bug: str,
    verdict: ClauseVerdict,
) -> None:
    lies = sabotaged(target, Lying(VERSION, bug), bug, monkeypatch) if bug else nullcontext()
    with lies:
        told = found(judged(target, tmp_path / "run", WORK))
    assert told["ORD-15"] is verdict
    assert bug or refuted(told) == []
