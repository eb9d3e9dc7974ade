"""What a round has to show before its verdict can be green: somebody worked, and it came to rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from conformance import rounds as rounds_module
from conformance.rounds import conform_rounds
from conformance.targets.simulated import SimulatedTarget
from reference_impl.sim.simulate import simulate
from specs import profiles
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.history.store import History, write_history
from specs.plan.plan import Action, ClientPlan, Plan
from specs.verdicts.verdict import RunVerdict, Verdict
from specs.vocabulary import Kind

PLAN = Plan(
    clients=(ClientPlan("alice", "consumer", "billing", ("orders",)), ClientPlan("p", "producer")),
    actions=(
        Action(0, "start", {"client": "alice"}),
        Action(0, "start", {"client": "p"}),
        Action(50, "send", {"client": "p", "topic": "orders", "key": "k", "count": 9}),
    ),
    until_ms=9_000,
)
Change = Callable[[RunInfo, list[Row]], tuple[RunInfo, list[Row]]]


def judged(monkeypatch: pytest.MonkeyPatch, folder: Path, change: Change, log: str = "") -> Verdict:
    """Of one round on the correct reference, of which another story is told. log: the consumer's."""

    def run(
        plan: Plan, __: object, at: Path, *, info: Mapping[str, object], **___: object
    ) -> History:
        told, rows = change(*simulate(PLAN))
        if log:
            consumer = next(client for client in plan.clients if client.kind == "consumer")
            (at / f"{consumer.id}.log").write_text(log)
        return write_history(
            at, replace(told, **info), [row._replace(run=info["run"]) for row in rows]
        )  # type: ignore[arg-type]

    monkeypatch.setattr(rounds_module, "run", run)
    profile = profiles.load("ordered-queue")
    return conform_rounds(
        SimulatedTarget(), profile, seed=1, rounds=1, out=folder / "run", floor=1
    )[0]


def why(verdict: Verdict) -> list[str]:
    return [check.detail for check in verdict.met if check.id == "MET-10"]


def test_a_round_that_was_worked_on_and_came_to_rest_says_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    verdict = judged(monkeypatch, tmp_path, lambda told, rows: (told, rows))
    assert (verdict.verdict, why(verdict)) == (RunVerdict.UPHELD, [])


def test_a_round_in_which_nothing_was_delivered_is_inconclusive(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def idle(told: RunInfo, rows: list[Row]) -> tuple[RunInfo, list[Row]]:
        return told, [row for row in rows if row.kind is Kind.SEND]

    verdict = judged(monkeypatch, tmp_path, idle)
    assert verdict.verdict is RunVerdict.INCONCLUSIVE
    assert why(verdict) == ["in round 1 nothing was delivered of 9 sends"]


def test_where_nothing_was_delivered_the_last_error_of_a_client_is_quoted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Control characters are spelt out, and what is indented is no line of its own."""

    def idle(told: RunInfo, rows: list[Row]) -> tuple[RunInfo, list[Row]]:
        return told, [row for row in rows if row.kind is Kind.SEND]

    log = "begun\npoll: Invalid session \x1b[2Jtime-out\n    at Driver.poll\n\n"
    verdict = judged(monkeypatch, tmp_path, idle, log)
    assert why(verdict) == [
        "in round 1 nothing was delivered of 9 sends "
        "(c1's last word: poll: Invalid session \\x1b[2Jtime-out)"
    ]


def test_a_round_that_never_came_to_rest_is_inconclusive(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    verdict = judged(monkeypatch, tmp_path, lambda told, rows: (replace(told, settles=False), rows))
    assert verdict.verdict is RunVerdict.INCONCLUSIVE
    assert why(verdict) == ["round 1 did not come to rest, so LIV-1 was not judged"]
