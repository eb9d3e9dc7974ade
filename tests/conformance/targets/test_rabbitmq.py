"""RabbitMQ is upheld by what it promises, and each wrong client is refuted by the clause that says so."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.parts import rabbitmq
from conformance.parts.local_server import HOST
from conformance.targets.base import find
from conformance.targets.rabbitmq import CONFIG, WORK_MS, Pika, RabbitTarget, local, remote
from inorder.evidence.track_record.entries import entry
from inorder.evidence.track_record.handed_over import HandedOver
from inorder.evidence.track_record.planned import digest
from specs import profiles
from specs.plan.plan import Action, ListenerRule
from specs.verdicts.verdict import ClauseVerdict
from specs.vocabulary import Outcome
from tests.conformance.targets.asked import (
    BROKEN,
    KEPT,
    OF_HANDOVERS,
    Work,
    begins_nothing_without_a_server,
    bugs_of,
    children,
    claimed,
    found,
    judged,
    left_since,
    one_server,
    refuted,
    sabotaged,
    shows_no_credential,
    tells_before_anything_starts,
)

SABOTAGED = Path(__file__).with_name("rabbitmq_sabotage.py")
KEYS, TURNS = 8, 20
BUGS = bugs_of(SABOTAGED)
CLAIMED = claimed("rabbitmq-classic")

needs_parts = pytest.mark.skipif(
    not rabbitmq.present(rabbitmq.DEFAULT) or not rabbitmq.client(rabbitmq.DEFAULT_CLIENT).present,
    reason="needs a RabbitMQ server and the wheel of pika; "
    "`python -m conformance.parts.rabbitmq` fetches them",
)


@pytest.fixture(scope="module")
def target() -> Iterator[RabbitTarget]:
    """One server for all of them: exchanges and queues are new in each run."""
    yield from one_server(local, rabbitmq.DEFAULT)


WORK = Work(
    replace(CONFIG, max_reconsume_times=-1, suspend_ms=40),
    keys=KEYS,
    turns=TURNS,
    sends_ms=(600, 350),
    second_ms=(700, 6_300),
    first_ms=(4_000, 4_600),
    fails=tuple(
        ListenerRule(Outcome.SUSPEND, number=number, delivery_max=1)
        for number in range(1, KEYS * TURNS, 5)
    ),
    until_ms=8_000,
    settle_ms=15_000,
)
"""A run of ten seconds: the first consumer leaves to the second, comes back, and has it again; some fail once."""


@needs_parts
@pytest.mark.long
@pytest.mark.parametrize("queue", ["classic", "quorum"])
def test_it_is_upheld_and_leaves_nothing(tmp_path: Path, queue: str) -> None:
    """All that it promises of one consumer's work is at stake and upheld; no driver, server or port mapper is left.

    A hand-over of a quorum queue brings what the former consumer held too late, on some runs: its profile allows it.
    """
    before = children()
    made = local(f"{rabbitmq.DEFAULT},app.queue={queue}")
    try:
        told = found(judged(made, tmp_path / "run", WORK))
    finally:
        made.release()
    assert refuted(told) == []
    claims = profiles.load(made.profile).claims
    allowed = {id for id, claim in claims.items() if claim.status == "allowed"}
    missed = {name for name in set(CLAIMED) - OF_HANDOVERS if told[name] is not KEPT}
    assert {name: told[name] for name in missed} == dict.fromkeys(
        missed & allowed, ClauseVerdict.ALLOWED
    )
    assert left_since(before) == []


@needs_parts
@pytest.mark.long
def test_a_server_that_is_killed_keeps_what_it_promised(
    target: RabbitTarget, tmp_path: Path
) -> None:
    """It is killed in the midst of the work, and started again on its data: nothing is lost, and all goes on."""
    broker = {"broker": "b0"}
    faults = (Action(1_300, "broker_crash", broker), Action(1_800, "broker_restart", broker))
    slow = replace(WORK, sends_ms=(600, 1_000), until_ms=25_000)  # it may take ten seconds to boot
    told = found(judged(target, tmp_path / "run", slow, *faults))
    assert refuted(told) == []
    assert {told[name] for name in ("ORD-2", "ORD-3", "ORD-12", "SND-1", "SND-2", "LIV-1")} == {
        KEPT
    }


@needs_parts
@pytest.mark.long
@pytest.mark.parametrize("bug", BUGS)
def test_a_wrong_client_is_refuted_by_its_clause(
    target: RabbitTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bug: str
) -> None:
    with sabotaged(target, Pika(rabbitmq.DEFAULT_CLIENT, SABOTAGED), bug, monkeypatch):
        verdict = judged(target, tmp_path / "run", WORK)
    assert found(verdict)[BUGS[bug]] is BROKEN


def test_every_claim_has_a_wrong_client() -> None:
    assert sorted(set(CLAIMED) - set(BUGS.values())) == []


def test_the_profile_follows_from_the_queues() -> None:
    names = {
        "3.10.8": "rabbitmq-classic",
        "3.10.8+pika:1.4.4,app.prefetch=5": "rabbitmq-classic",
        "3.10.8,app.queue=quorum": "rabbitmq-quorum",
    }
    assert {text: local(text).profile for text in names} == names


def test_both_sides_of_the_handover_do_one_plan() -> None:
    """They differ in the kind of the queues alone, and are held to what the users of the one were told."""
    chosen = entry("Q-1")
    red, green = find(chosen.red), find(chosen.green)
    assert isinstance(chosen.trial, HandedOver)
    plans = [chosen.trial.plan(side, 1) for side in (red, green)]
    assert len({digest(plan.to_json()) for plan in plans}) == 1
    assert (red.parties, chosen.profile) == (green.parties, "rabbitmq-quorum-documented")
    assert plans[0].listener == (ListenerRule(duration_ms=WORK_MS),)


@pytest.mark.parametrize(
    ("make", "text", "words"),
    [
        (local, None, "needs a version"),
        (local, "9.9", "known: 3.10.8"),
        (local, "3.10.8+pika:0.1", "There is no pika"),
        (local, "3.10.8+go:1", "has no client"),
        (local, "3.10.8,app.queu=quorum", "did you mean app.queue"),
        (local, "3.10.8,app.queue=quorun", "did you mean quorum"),
        (remote, "3.10.8", "needs a server's address"),
    ],
)
def test_what_is_not_there_is_told_before_anything_starts(
    make: object, text: str | None, words: str
) -> None:
    tells_before_anything_starts(make, text, words)


@needs_parts
@pytest.mark.long
def test_nobody_reads_a_credential(tmp_path: Path) -> None:
    """They are in no file that a run leaves, and in no command line."""
    shows_no_credential(local, rabbitmq.DEFAULT, "password", tmp_path)


def test_where_no_server_is_nothing_is_begun(tmp_path: Path) -> None:
    begins_nothing_without_a_server(remote, "no RabbitMQ server answers at {} ", tmp_path)


def test_who_does_not_listen_is_not_ready() -> None:
    with socket.create_server((HOST, 0)) as free:
        port = free.getsockname()[1]
    assert not rabbitmq.RabbitServer.answers(HOST, port)
