"""NATS is upheld by what it promises, and each wrong client and release is refuted by the clause that says so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.drivers.served import NODES
from conformance.parts import nats
from conformance.run import judge, run
from conformance.targets.nats import CONFIG, NatsPy, NatsTarget, local, remote
from specs import profiles
from specs.history.store import open_history
from specs.plan.plan import Action, ListenerRule, Plan, TopicPlan, Topology
from specs.verdicts.verdict import ClauseVerdict
from specs.vocabulary import Kind, Level, Outcome
from tests.conformance.targets.asked import (
    BROKEN,
    KEPT,
    OF_HANDOVERS,
    Work,
    begins_nothing_without_a_server,
    bugs_of,
    children,
    claimed,
    clients,
    found,
    is_ready,
    judged,
    left_since,
    of_a_release,
    one_server,
    parties,
    refuted,
    sabotaged,
    shows_no_credential,
    tells_before_anything_starts,
)

SABOTAGED = Path(__file__).with_name("nats_sabotage.py")
KEYS, TURNS = 8, 10
BUGS = bugs_of(SABOTAGED)
"""In every run of the tests, the others in the long one."""
CLAIMED = claimed("nats-queue")
STATES = "{},app.rollups=true,app.filters=state"
TWO = "{},app.consumer=ordered,app.filters=below"
WILD = "{},app.consumer=ordered,app.filters=wild"
FOUR = "{},app.outstanding=4"
RELEASES = [
    (STATES.format("2.14.3"), "ORD-3", BROKEN),
    (STATES.format("2.15.2"), "ORD-3", KEPT),
    (TWO.format("2.10.27"), "LIV-1", BROKEN),
    (TWO.format("2.10.24"), "LIV-1", KEPT),
    (WILD.format("2.10.29"), "LIV-1", BROKEN),
    (WILD.format("2.12.1"), "LIV-1", KEPT),
    (FOUR.format("2.10.9"), "FLR-2", BROKEN),
    (FOUR.format("2.15.2"), "FLR-2", KEPT),
]
"""Releases, and what the clause says that finds their bug (docs/systems/nats.md)."""

needs_parts = pytest.mark.skipif(
    not nats.present(nats.DEFAULT) or not nats.client(nats.DEFAULT_CLIENT).present,
    reason="needs a NATS server and the wheel of nats-py; "
    "`python -m conformance.parts.nats` builds and fetches them",
)


@pytest.fixture(scope="module")
def target() -> Iterator[NatsTarget]:
    """One server for all of them: streams and groups are new in each run."""
    yield from one_server(local, nats.DEFAULT)


WORK = Work(
    replace(CONFIG, broker_lease_ms=800, max_reconsume_times=-1, suspend_ms=40),
    keys=KEYS,
    turns=TURNS,
    sends_ms=(600, 250),
    second_ms=(700, 3_000),
    fails=tuple(
        ListenerRule(Outcome.SUSPEND, number=number, delivery_max=1)
        for number in range(1, KEYS * TURNS, 3)
    ),
    until_ms=3_400,
    settle_ms=12_000,
    floor=5,
)
"""A run of five seconds: a second consumer comes and goes while messages flow, and some fail once."""


@needs_parts
def test_it_is_upheld_and_leaves_nothing(target: NatsTarget, tmp_path: Path) -> None:
    """All that it promises of its work is at stake and upheld, the witness saw progress, and no driver is left."""
    before = children()
    told = found(judged(target, tmp_path / "run", WORK))
    assert refuted(told) == []
    work = set(CLAIMED) - OF_HANDOVERS
    assert {name: told[name] for name in work} == dict.fromkeys(work, KEPT)
    assert refuted(told) == []
    rows = list(open_history(tmp_path / "run").rows())
    seen = {row.lane for row in rows if row.kind is Kind.PROGRESS and row.level is Level.STORE}
    assert seen == {row.lane for row in rows if row.kind is Kind.DELIVER}
    assert left_since(before) in ([], ["nats-server"]), "the server may stay for the next"


@needs_parts
@pytest.mark.long
def test_a_server_that_is_killed_keeps_what_it_promised(target: NatsTarget, tmp_path: Path) -> None:
    """It is killed in the midst of the work, and started again on its data: nothing is lost, and all goes on."""
    broker = {"broker": "b0"}
    faults = (Action(1_300, "broker_crash", broker), Action(1_800, "broker_restart", broker))
    told = found(judged(target, tmp_path / "run", WORK, *faults))
    assert refuted(told) == []
    assert {told[name] for name in ("ORD-2", "ORD-3", "ORD-12", "SND-1", "SND-2", "LIV-1")} == {
        KEPT
    }


@needs_parts
@pytest.mark.long
def test_three_nodes_keep_what_one_of_them_was_told_and_leave_nothing(tmp_path: Path) -> None:
    """The leader is killed in the midst of the work: nothing is lost, all goes on, and no process is left."""
    before, made = children(), local(f"{nats.DEFAULT},{NODES}=3")
    broker = {"broker": "b0"}
    faults = (Action(1_300, "broker_crash", broker), Action(2_300, "broker_restart", broker))
    try:
        told = found(judged(made, tmp_path / "run", WORK, *faults))
    finally:
        made.release()
    assert refuted(told) == []
    assert {told[name] for name in ("ORD-2", "ORD-3", "ORD-12", "SND-1", "SND-2", "LIV-1")} == {
        KEPT
    }
    assert left_since(before) == []


@needs_parts
@pytest.mark.long
@pytest.mark.parametrize(
    ("late", "verdict"), [("drop", KEPT), ("send", BROKEN)], ids=["drop", "send"]
)
def test_a_late_acknowledgement_is_taken_for_anothers(
    tmp_path: Path, late: str, verdict: ClauseVerdict
) -> None:
    """A member that stood still in its work, and acknowledges it after the lease, lets the lane go on too early."""
    made = local(f"{nats.DEFAULT},app.late.acks={late}")
    names, topic, group, (shop, first, second) = parties(8)
    send = {"client": shop, "topic": topic, "key": "k", "count": 6}
    plan = Plan(
        topology=Topology(topics=(TopicPlan(topic, 1),), groups=(group,)),
        config=replace(CONFIG, broker_lease_ms=1_000, max_reconsume_times=-1),
        clients=clients(shop, first, second, group, topic),
        actions=(
            Action(0, "start", {"client": shop}),
            Action(0, "start", {"client": first}),
            Action(100, "send", send),
            Action(200, "start", {"client": second}),
        ),
        # The first works for longer than its lease lasts; the other one is given the message meanwhile.
        listener=(
            ListenerRule(duration_ms=600, number=1, client=second, delivery_max=1),
            ListenerRule(duration_ms=1_200, number=1, client=first, delivery_max=1),
        ),
        until_ms=3_000,
        settle_ms=8_000,
    )
    folder = tmp_path / "run"
    folder.mkdir()
    try:
        history = run(plan, made, folder, info={"profile": made.profile}, prefix=names)
    finally:
        made.release()
    told = found(judge(history, profiles.load("nats-queue"), options={"floor": 1}))
    assert told["ORD-3"] is verdict


@needs_parts
@pytest.mark.long
@pytest.mark.parametrize(("text", "clause", "verdict"), RELEASES)
def test_a_release_is_judged_by_the_same_clauses(
    tmp_path: Path, text: str, clause: str, verdict: ClauseVerdict
) -> None:
    """Four bugs of released servers, red where they are and green where they are not, by `conform` alone."""
    made = local(text)
    told = of_a_release(made, tmp_path / "run")
    assert told[clause] is verdict
    assert (BROKEN in told.values()) == (verdict is BROKEN)


@needs_parts
@pytest.mark.long
@pytest.mark.parametrize("bug", BUGS)
def test_a_wrong_client_is_refuted_by_its_clause(
    target: NatsTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bug: str
) -> None:
    with sabotaged(target, NatsPy(nats.DEFAULT_CLIENT, SABOTAGED), bug, monkeypatch):
        verdict = judged(target, tmp_path / "run", WORK)
    assert found(verdict)[BUGS[bug]] is BROKEN


def test_every_claim_has_a_wrong_client() -> None:
    assert sorted(set(CLAIMED) - set(BUGS.values())) == []


def test_the_profile_follows_from_the_target() -> None:
    names = {
        "2.15.2": "nats-queue",
        "2.15.2+nats-py:2.16.0,app.filters=below": "nats-queue",
        "2.15.2,app.late.acks=send": "nats-queue-late",
        "2.15.2,app.outstanding=4": "nats-shared",
        "2.15.2,app.consumer=ordered": "nats-ordered",
    }
    assert {text: local(text).profile for text in names} == names


@pytest.mark.parametrize(
    ("make", "text", "words"),
    [
        (local, None, "needs a version"),
        (local, "9.9", "known: 2.10.9, "),
        (local, "2.15.2+nats-py:0.1", "There is no nats-py"),
        (local, "2.15.2+go:1", "has no client"),
        (local, "2.15.2,app.filter=below", "did you mean app.filters"),
        (local, "2.15.2,app.filters=belo", "did you mean below"),
        (remote, "2.15.2", "needs a server's address"),
    ],
)
def test_what_is_not_there_is_told_before_anything_starts(
    make: object, text: str | None, words: str
) -> None:
    tells_before_anything_starts(make, text, words)


@needs_parts
def test_nobody_reads_a_credential(tmp_path: Path) -> None:
    """They are in no file that a run leaves, and in no command line."""
    shows_no_credential(local, nats.DEFAULT, "token", tmp_path)


def test_only_a_server_with_jetstream_is_ready() -> None:
    """What greets otherwise is not."""
    greetings = {
        b'INFO {"jetstream":true}\r\n': True,
        b"INFO {}\r\n": False,
        b"HTTP/1.1\r\n": False,
    }
    assert {
        greeting: is_ready(nats.NatsServer.answers, greeting) for greeting in greetings
    } == greetings


def test_where_no_server_is_nothing_is_begun(tmp_path: Path) -> None:
    begins_nothing_without_a_server(remote, "no NATS server answers at {} ", tmp_path)
