"""SQS FIFO queues are upheld by what they promise, and each wrong client is refuted by the clause that says so."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.parts import elasticmq
from conformance.parts.local_server import HOST
from conformance.targets.sqs import CONFIG, Boto3, SqsTarget, local, remote
from specs.errors import Unavailable
from specs.plan.ability import Ability
from specs.plan.plan import ListenerRule
from specs.vocabulary import Outcome
from tests.conformance.targets.asked import (
    BROKEN,
    KEPT,
    OF_HANDOVERS,
    Work,
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

SABOTAGED = Path(__file__).with_name("sqs_sabotage.py")
KEYS, TURNS = 8, 10
BUGS = bugs_of(SABOTAGED)
CLAIMED = claimed("sqs-fifo")
LAST = (75, 76, 79, 80)
"""The last message of each of four lanes."""

needs_parts = pytest.mark.skipif(
    not elasticmq.present(elasticmq.DEFAULT)
    or not elasticmq.client(elasticmq.DEFAULT_CLIENT).present,
    reason="needs the jars of ElasticMQ and the wheel of boto3; "
    "`python -m conformance.parts.elasticmq` fetches them",
)


@pytest.fixture(scope="module")
def target() -> Iterator[SqsTarget]:
    """One server for all of them: queues are new in each run."""
    yield from one_server(local, elasticmq.DEFAULT)


WORK = Work(
    replace(CONFIG, max_reconsume_times=-1, suspend_ms=600),
    keys=KEYS,
    turns=TURNS,
    sends_ms=(600, 450),
    second_ms=(10, 9_000),
    fails=(
        *(
            ListenerRule(Outcome.SUSPEND, number=number, delivery_max=1)
            for number in range(1, KEYS * TURNS, 5)
        ),
        *(ListenerRule(duration_ms=2_600, number=number, delivery_max=3) for number in LAST),
    ),
    until_ms=9_200,
    settle_ms=30_000,
    floor=5,
)
"""A run of twenty seconds: a second consumer comes and goes while messages flow, some fail once, and the last one of
each lane takes longer than its lease lasts, and again: the first deletion comes while the second receipt lives."""


@needs_parts
@pytest.mark.long
def test_it_is_upheld_and_leaves_nothing(target: SqsTarget, tmp_path: Path) -> None:
    """What it promises is upheld, and no driver is left."""
    before = children()
    told = found(judged(target, tmp_path / "run", WORK))
    always = [name for name in CLAIMED if name not in OF_HANDOVERS]
    assert {name: told[name] for name in always} == dict.fromkeys(always, KEPT)
    assert refuted(told) == []
    assert left_since(before) in ([], ["java"]), "the server may stay for the next"


@needs_parts
@pytest.mark.long
@pytest.mark.parametrize("bug", BUGS)
def test_a_wrong_client_is_refuted_by_its_clause(
    target: SqsTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bug: str
) -> None:
    with sabotaged(target, Boto3(elasticmq.DEFAULT_CLIENT, SABOTAGED), bug, monkeypatch):
        verdict = judged(target, tmp_path / "run", WORK)
    assert found(verdict)[BUGS[bug]] is BROKEN


def test_every_claim_has_a_wrong_client() -> None:
    assert sorted(set(CLAIMED) - set(BUGS.values())) == []


def test_what_is_in_memory_can_not_be_killed() -> None:
    """Its clients can, and its link can be broken."""
    abilities = local("1.6.11").abilities
    assert Ability.CRASH_BROKER not in abilities
    assert {Ability.CRASH_CLIENT, Ability.BREAK_LINK} <= abilities


@pytest.mark.parametrize(
    ("make", "text", "words"),
    [
        (local, None, "needs a version"),
        (local, "9.9", "known: 1.6.11"),
        (local, "1.6.11+boto3:0.1", "There is no boto3"),
        (local, "1.6.11+go:1", "has no client"),
        (local, "1.6.11,region=x", "did you mean region_name"),
        (remote, "127.0.0.1:9324", "needs an endpoint"),
        (remote, "ftp://127.0.0.1:9324", "needs an endpoint"),
    ],
)
def test_what_is_not_there_is_told_before_anything_starts(
    make: object, text: str | None, words: str
) -> None:
    tells_before_anything_starts(make, text, words)


def test_an_endpoint_is_an_address() -> None:
    """With the port of its scheme, where it names none."""
    addresses = {
        "http://127.0.0.1:9324": "127.0.0.1:9324",
        "https://sqs.eu-west-1.amazonaws.com": "sqs.eu-west-1.amazonaws.com:443",
    }
    assert {text: remote(text).address for text in addresses} == addresses


@needs_parts
@pytest.mark.long
def test_nobody_reads_a_credential(tmp_path: Path) -> None:
    """They are in no file that a run leaves, and in no command line."""
    shows_no_credential(local, elasticmq.DEFAULT, "aws_secret_access_key", tmp_path)


def test_where_no_server_is_nothing_is_begun() -> None:
    with socket.create_server((HOST, 0)) as free:
        port = free.getsockname()[1]
    made = remote(f"http://{HOST}:{port}")
    with pytest.raises(Unavailable, match=f"answers at {HOST}:{port} "):
        made._reach()
    assert not elasticmq.ElasticServer.answers(HOST, port)
