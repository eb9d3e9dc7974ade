"""Apache's Java client at work, judged: on our own broker, which sees what the client asks, and on Apache's."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from conformance.cli.main import root
from conformance.drivers import java
from conformance.parts.doctor import why_not
from conformance.parts.processes import living
from conformance.rounds import conform_rounds
from conformance.targets.base import find
from conformance.targets.driven import pair
from specs import profiles
from specs.clauses.catalogue import all_clauses
from specs.clauses.certainty import recorded
from specs.errors import UsageError
from specs.history.store import open_history
from specs.verdicts.verdict import ClauseVerdict, Verdict
from specs.vocabulary import Kind
from tests.conformance.test_records import undeclared


def needs(*versions: str) -> None:
    """Skip, with the reason, where a part is missing."""
    for part in ("java", "maven"):
        if (reason := why_not(part)) is not None:
            pytest.skip(reason)
    try:
        for version in versions:
            java.classes(version)
    except UsageError as error:
        pytest.skip(str(error))


def refuted(verdict: Verdict) -> dict[str, str]:
    return {judged.id: judged.explanation for judged in verdict.of(ClauseVerdict.REFUTED)}


@pytest.mark.apache
def test_the_java_client_on_our_broker(tmp_path: Path) -> None:
    """Its locks, pulls and commits are seen by the broker, so that nearly every clause can be judged."""
    needs("5.4.0")
    run = pair(None, "5.4.0")
    out = tmp_path / "run"
    verdict, rounds = conform_rounds(
        run, profiles.load(run.profile), seed=1, rounds=1, out=out, floor=5, changes=2
    )
    assert living() == []
    assert refuted(verdict) == {}
    upheld = {judged.id for judged in verdict.of(ClauseVerdict.UPHELD)}
    assert {
        "ORD-2",
        "ORD-3",
        "LSE-3",
        "LSE-11",
        "LSE-13",
        "RTY-3",
        "DLQ-2",
        "CMT-1",
        "CMT-2",
    } <= upheld
    # What only our own broker keeps says nothing about their client.
    assert (
        next(judged for judged in verdict.clauses if judged.id == "LSE-4").verdict
        is ClauseVerdict.NOT_CLAIMED
    )
    history = open_history(out)
    assert history.why_cut == ()
    kinds = {row.kind for row in history.rows()}
    assert undeclared(list(history.rows()), history.info.records or {}) == set()
    assert {Kind.LOCK, Kind.COMMIT, Kind.ADD} <= (recorded(history.info) or set())
    assert {
        Kind.ADD,
        Kind.DROP,
        Kind.LOCK,
        Kind.PULL,
        Kind.COMMIT,
        Kind.DEAD_LETTER,
        Kind.ASSIGN,
    } <= kinds
    assert len(rounds) == 1


@pytest.mark.apache
@pytest.mark.long
def test_the_java_client_on_apaches_broker(tmp_path: Path) -> None:
    """What nobody sees is not upheld, and not refuted either."""
    needs("5.4.0")
    if (reason := why_not("rocketmq-5.4.0")) is not None:
        pytest.skip(reason)
    run = pair("5.4.0", "5.4.0")
    verdict, _ = conform_rounds(
        run, profiles.load(run.profile), seed=1, rounds=1, out=tmp_path / "run", floor=5, changes=2
    )
    assert refuted(verdict) == {}
    upheld = {judged.id for judged in verdict.of(ClauseVerdict.UPHELD)}
    assert {"ORD-2", "ORD-3", "RTY-3", "DLQ-1", "SND-1"} <= upheld
    unseen = {
        clause.id for clause in all_clauses() if clause.needs & {Kind.LOCK, Kind.PULL, Kind.COMMIT}
    }
    assert not upheld & unseen
    not_recorded = {judged.id: judged.reason for judged in verdict.of(ClauseVerdict.NOT_RECORDED)}
    assert not_recorded["CMT-4"] == "the history does not tell commit"
    assert not verdict.of(ClauseVerdict.POSSIBLE)
    history = open_history(tmp_path / "run")
    kinds = {row.kind for row in history.rows()}
    assert {Kind.ADD, Kind.DROP, Kind.DELIVER} <= kinds
    assert undeclared(list(history.rows()), history.info.records or {}) == set()
    assert Kind.LOCK not in (recorded(history.info) or set())


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("reference+java", "needs the client's version"),
        ("reference+java:1.0", "no Java client"),
        ("rocketmq-local:5.4.0+java:1.0", "no Java client"),
        ("rocketmq-local:1.0+java:5.4.0", "no jars"),
    ],
)
def test_a_wrong_target_is_told_in_a_sentence(target: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        find(target)


def test_the_targets_are_listed() -> None:
    done = CliRunner().invoke(root, ["list", "targets"])
    assert "reference+java" in done.stdout
