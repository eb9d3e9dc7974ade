"""RocketMQ's FIFO messages over gRPC keep what they promise, and each wrong client is refuted by its clause."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from conformance.drivers.smoke import smoke
from conformance.parts import rocketmq_proxy
from conformance.targets.base import find
from conformance.targets.rocketmq_grpc import CONFIG, LEAST_LIMIT, GrpcTarget, PythonGrpc, local
from specs.errors import UsageError
from specs.plan.ability import Ability
from specs.plan.plan import ListenerRule
from specs.verdicts.verdict import ClauseVerdict
from specs.vocabulary import Outcome
from tests.conformance.targets.asked import (
    BROKEN,
    KEPT,
    Work,
    bugs_of,
    children,
    claimed,
    found,
    judged,
    left_since,
    sabotaged,
)

NAME = "rocketmq-local:5.4.0+grpc:5.1.2"
SABOTAGED = Path(__file__).with_name("grpc_sabotage.py")
KEYS, TURNS, LIMIT = 8, 14, 2
BUGS = bugs_of(SABOTAGED)
CLAIMED = claimed("rocketmq-grpc-fifo")

needs_parts = pytest.mark.skipif(
    not rocketmq_proxy.present(rocketmq_proxy.DEFAULT)
    or not rocketmq_proxy.client(rocketmq_proxy.DEFAULT_CLIENT).present,
    reason="needs the jars of RocketMQ's proxy and the wheel of its Python client; "
    "`python -m conformance.parts.rocketmq_proxy` fetches them",
)


@pytest.fixture(scope="module")
def target() -> Iterator[GrpcTarget]:
    """One proxy for all of them: topics and groups are new in each run."""
    made = local("5.4.0+grpc:5.1.2")
    yield made
    made.release()


WORK = Work(
    replace(CONFIG, broker_lease_ms=4_000, max_reconsume_times=LIMIT),
    keys=KEYS,
    turns=TURNS,
    sends_ms=(2_000, 400),
    second_ms=(3_000, 7_000),
    fails=tuple(
        rule
        for number in range(1, KEYS * TURNS, 8)
        for rule in (
            ListenerRule(Outcome.SUSPEND, number=number, delivery_max=1),
            ListenerRule(Outcome.THREW, number=number + 2, delivery_max=1),
            ListenerRule(Outcome.SUSPEND, number=number + 5),
        )
    ),
    until_ms=9_000,
    settle_ms=60_000,
    floor=5,
)
"""A run of twenty seconds: a second consumer comes and goes while messages flow; some fail once, some always.

It does not wait until what the polls of who left were given comes again, and a limit of two may make a dead letter of
that: who is refuted is so all the same.
"""
TO_THE_END = replace(
    WORK,
    config=replace(
        WORK.config, broker_lease_ms=CONFIG.broker_lease_ms, max_reconsume_times=LEAST_LIMIT
    ),
    fails=(
        *(rule for rule in WORK.fails if rule.delivery_max == 1),
        *(ListenerRule(Outcome.SUSPEND, number=6 + 9 * turn) for turn in (0, 1, 2, 4, 6, 8, 9)),
    ),
    settle_ms=150_000,
)
"""What fails always takes ten seconds, and lies in lanes of its own, so that nothing waits behind it for long: the
proxy renews what waits for fifty, and loses where it lies (docs/systems/rocketmq-grpc.md)."""


def at_rest(clause: str, target: GrpcTarget, folder: Path, work: Work) -> dict[str, ClauseVerdict]:
    """What is said of all clauses by a run that says something of this one, or by a second one.

    On a busy machine a run may not come to rest in time, and then nothing is said of what waits for it.
    """
    for name in ("run", "again"):
        told = found(judged(target, folder / name, work))
        if told[clause] is not ClauseVerdict.NOT_CLAIMED:
            return told
    pytest.skip(f"nothing is said of {clause}: two runs did not come to rest on this machine")


@needs_parts
@pytest.mark.long
def test_it_is_upheld_and_leaves_nothing(target: GrpcTarget, tmp_path: Path) -> None:
    """All that it promises is at stake and upheld, and no driver is left."""
    before = children()
    told = at_rest("LIV-1", target, tmp_path, TO_THE_END)
    nobody_dies = {name: told[name] for name in CLAIMED if name != "ORD-4"}
    assert nobody_dies == dict.fromkeys(nobody_dies, KEPT)
    assert left_since(before) in ([], ["java", "java"]), "the servers may stay for the next"


@needs_parts
@pytest.mark.long
@pytest.mark.parametrize("bug", BUGS)
def test_a_wrong_client_is_refuted_by_its_clause(
    target: GrpcTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bug: str
) -> None:
    with sabotaged(target, PythonGrpc("5.1.2", SABOTAGED), bug, monkeypatch):
        told = at_rest(BUGS[bug], target, tmp_path, WORK)
    assert told[BUGS[bug]] is BROKEN


@needs_parts
@pytest.mark.long
def test_its_driver_has_manners() -> None:
    assert [check for check in smoke(NAME, lambda _: None) if not check.ok] == []


@needs_parts
@pytest.mark.long
def test_a_listener_that_returns_nothing_is_overtaken(tmp_path: Path) -> None:
    """What it was called with is put back, and what is behind comes first (docs/systems/rocketmq-grpc.md)."""
    made = local("5.4.0+grpc:5.1.2,app.null=none")
    nothing = tuple(
        ListenerRule(Outcome.NULL, number=number, delivery_max=LIMIT + 1)
        for number in range(1, KEYS * TURNS, 24)
    )
    at_once = replace(WORK, fails=nothing, sends_ms=(2_000, 10))  # more than one is handed out
    try:
        told = found(judged(made, tmp_path / "run", at_once))
    finally:
        made.release()
    assert (told["DLQ-1"], told["CMT-1"]) == (BROKEN, BROKEN)


def test_every_claim_has_a_wrong_client() -> None:
    assert sorted(set(CLAIMED) - set(BUGS.values())) == []


def test_its_plans_are_its_own() -> None:
    """What fails waits for the group's interval; one member dies, whose polls take fewer hand-outs than the limit."""
    target = local("5.4.0+grpc:5.1.2")
    plans = [target.own_plan(f"p{seed}-", seed, Random(seed)) for seed in range(20)]
    assert {rule.suspend_ms for plan in plans for rule in plan.listener} == {-1}
    for plan in plans:
        (gone,) = [action.do for action in plan.actions if action.do in ("crash", "stop")]
        assert gone == "crash"
        (topic,) = plan.topology.topics
        assert plan.config.max_reconsume_times > topic.queues


def test_its_proxy_is_not_killed() -> None:
    """Its clients are; and nobody asks what is stored of a lane."""
    abilities = find(NAME).abilities
    assert {Ability.CRASH_CLIENT, Ability.PAUSE_CLIENT, Ability.GIVE_UP, Ability.READ} <= abilities
    assert abilities.isdisjoint({Ability.CRASH_BROKER, Ability.PROGRESS})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("4.9.7+grpc:5.1.2", "no proxy of Apache RocketMQ '4.9.7' to start; known: 5.4.0"),
        ("5.4.0+grpc:5.0.1", "no gRPC client of Apache RocketMQ '5.0.1' to drive; known: 5.1.2"),
        ("5.4.0+grpc:", "no version of its client"),
        ("5.4.0+grpc:5.1.2,app.nul=none", "did you mean app.null"),
        ("5.4.0+grpc:5.1.2,app.null=maybe", "app.null can't be 'maybe'"),
    ],
)
def test_what_is_not_there_is_told_before_anything_starts(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        find(f"rocketmq-local:{text}")
