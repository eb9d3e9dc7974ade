"""Whole runs on wire targets: our cluster on sockets, and the two Apache releases that differ."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.parts import jars
from conformance.parts.processes import living
from conformance.targets.base import find
from conformance.wire.runner import BROKER_KILLS, conform_wire
from conformance.wire.target import WireTarget
from specs import profiles
from specs.errors import UsageError
from specs.history.store import open_history
from specs.verdicts.verdict import ClauseVerdict, Judged, RunVerdict, Verdict
from specs.vocabulary import Kind
from tests.conformance.test_records import undeclared

EXAMPLES = 20
FLOOR = 10
CODES_OF_5 = {"WIR-6", "WIR-10", "WIR-15", "WIR-16", "WIR-17", "WIR-20"}
"""The rules in which the measured answers of 4.9 and 5.x differ."""


SHORT = (8, 5)
"""Examples and floor of the same search in every run of the tests."""
EFFORTS = [
    pytest.param(SHORT, id="short"),
    pytest.param((EXAMPLES, FLOOR), id="whole", marks=pytest.mark.long),
]


def conform(
    target: str, profile: str | None, out: Path, effort: tuple[int, int] = (EXAMPLES, FLOOR)
) -> Verdict:
    run = find(target)
    assert isinstance(run, WireTarget)
    chosen = profiles.load(profile or run.profile)
    examples, floor = effort
    verdict, history = conform_wire(
        run, chosen, seed=3, examples=examples, out=out, floor=floor, rounds=0
    )
    assert living() == []
    assert history.why_cut == ()
    assert undeclared(list(history.rows()), history.info.records or {}) == set()
    return verdict


def by_id(verdict: Verdict) -> dict[str, Judged]:
    return {judged.id: judged for judged in verdict.clauses}


def refuted(verdict: Verdict) -> set[str]:
    return {judged.id for judged in verdict.of(ClauseVerdict.REFUTED)}


def why(verdict: Verdict) -> list[str]:
    """For a failed assertion: what was found."""
    return [f"{judged.id}: {judged.explanation}" for judged in verdict.of(ClauseVerdict.REFUTED)]


@pytest.mark.parametrize("effort", EFFORTS)
def test_our_cluster_on_sockets_keeps_every_clause_and_every_wire_rule(
    tmp_path: Path, effort: tuple[int, int]
) -> None:
    verdict = conform("reference+tcp", None, tmp_path / "run", effort)
    assert (verdict.verdict, why(verdict)) == (RunVerdict.UPHELD, [])
    other = [judged for judged in verdict.clauses if judged.verdict is not ClauseVerdict.UPHELD]
    assert {judged.verdict for judged in other} <= {ClauseVerdict.NOT_CLAIMED}
    excuses = (
        "its premise is not met",
        "such a run ",
        "a queue is leased",
        "progress is committed",
        "a broker stores the offsets",
        "a producer waits",
    )
    assert all(judged.reason.startswith(excuses) for judged in other)
    assert len(verdict.of(ClauseVerdict.UPHELD)) >= 60
    assert open_history(tmp_path / "run").info.target == "reference+tcp"


@pytest.mark.long
@pytest.mark.parametrize("flush", ["sync", "async"])
def test_our_cluster_with_a_store_keeps_every_clause_though_it_is_killed(
    flush: str, tmp_path: Path
) -> None:
    """Twice, with SIGKILL, while clients are at work; what was acknowledged before is read back afterwards.

    A broker's death excuses much: ORD-16 alone may be at stake too seldom.
    """
    verdict = conform(f"reference+tcp:{flush}={tmp_path / 'store'}", None, tmp_path / "run")
    seldom = {each.id for each in verdict.of(ClauseVerdict.NOT_EXERCISED)}
    assert seldom <= {"ORD-16"}
    assert why(verdict) == []
    assert verdict.verdict is (RunVerdict.INCONCLUSIVE if seldom else RunVerdict.UPHELD)
    crashes = [
        row
        for row in open_history(tmp_path / "run").rows()
        if row.kind is Kind.CRASH and row.broker
    ]
    assert len(crashes) == BROKER_KILLS
    judged = by_id(verdict)
    at_stake = {
        clause: judged[clause].opportunities
        for clause in ("SND-1", "CMT-7", "CMT-9", "ORD-7", "ORD-9")
    }
    assert min(at_stake.values()) >= FLOOR, at_stake


def needs(version: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(
        not jars.present(version),
        reason=f"the jars of RocketMQ {version} are not here; run `make setup`",
    )


@pytest.mark.apache
@needs("5.4.0")
@pytest.mark.parametrize("effort", EFFORTS)
def test_rocketmq_5_4_0_keeps_what_5_x_promises(tmp_path: Path, effort: tuple[int, int]) -> None:
    verdict = conform("rocketmq-local:5.4.0", None, tmp_path / "run", effort)
    assert (verdict.verdict, why(verdict)) == (RunVerdict.UPHELD, [])
    of_the_broker = [
        judged for judged in verdict.of(ClauseVerdict.UPHELD) if judged.party == "broker"
    ]
    assert len(of_the_broker) >= 10
    assert all(judged.opportunities >= effort[1] for judged in of_the_broker)
    # What the track record sees broken in 4.9.7.
    assert "DLQ-7" in {judged.id for judged in of_the_broker}
    # What only our own client keeps says nothing about Apache's broker.
    assert by_id(verdict)["ORD-2"].verdict is ClauseVerdict.NOT_CLAIMED


@pytest.mark.long
@pytest.mark.apache
@needs("4.9.7")
def test_rocketmq_4_9_7_breaks_a_promise_of_5_x_and_answers_with_its_own_codes(
    tmp_path: Path,
) -> None:
    verdict = conform("rocketmq-local:4.9.7", "rocketmq-5-orderly", tmp_path / "run")
    assert verdict.verdict is RunVerdict.REFUTED
    # Dead letters that wait for different levels overtake each other: DLQ-4, in most runs.
    assert refuted(verdict) - {"DLQ-4"} == {"DLQ-7", *CODES_OF_5}
    assert len(by_id(verdict)["DLQ-7"].witness) <= 10


@pytest.mark.apache
@pytest.mark.long
@needs("4.9.7")
def test_rocketmq_4_9_7_keeps_what_4_9_promises(tmp_path: Path) -> None:
    verdict = conform("rocketmq-local:4.9.7", None, tmp_path / "run")
    assert (verdict.verdict, why(verdict)) == (RunVerdict.UPHELD, [])


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("rocketmq:127.0.0.1:1", "no name server answers"),
        ("rocketmq:nowhere", "name server's address"),
        ("rocketmq-local:3.2.6", "3.2.6"),
        ("rocketmq-local", "needs a version"),
        ("reference+tcp:x", "no argument"),
    ],
)
def test_a_wrong_target_is_told_in_a_sentence(tmp_path: Path, target: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        conform(target, "rocketmq-5-orderly", tmp_path / "run")


def test_a_folder_that_is_no_run_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "precious.txt").write_text("mine")
    with pytest.raises(UsageError, match="no run of ours"):
        conform("reference+tcp", None, tmp_path)
    assert (tmp_path / "precious.txt").read_text() == "mine"
