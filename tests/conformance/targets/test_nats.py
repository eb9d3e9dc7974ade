"""NATS is upheld by what it promises, and each wrong client and release is refuted by the clause that says so."""

from __future__ import annotations

import os
import re
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from conformance.parts import nats
from conformance.parts.local_server import HOST
from conformance.run import fresh_names, judge, run
from conformance.targets.base import Asked
from conformance.targets.nats import CONFIG, NatsPy, NatsTarget, local, remote
from specs import profiles
from specs.errors import UsageError
from specs.history.store import open_history
from specs.plan.plan import Action, ClientPlan, ListenerRule, Plan, TopicPlan, Topology
from specs.verdicts.verdict import ClauseVerdict, Verdict
from specs.vocabulary import Kind, Level, Outcome

SABOTAGED = Path(__file__).with_name("nats_sabotage.py")
KEYS, TURNS = 8, 10
BUGS = dict(re.findall(r'"(\w+)": \(\w+, "([A-Z]+-\d+)"\)', SABOTAGED.read_text(encoding="utf-8")))
AT_ONCE = ("early",)
"""In every run of the tests, the others in the long one."""
BROKEN, KEPT = ClauseVerdict.REFUTED, ClauseVerdict.UPHELD
CLAIMED = [
    name
    for name, claim in profiles.load("nats-queue").claims.items()
    if claim.status == "claimed" and not name.startswith("MET")
]
STATES = "{},app.rollups=true,app.filters=state"
TWO = "{},app.consumer=ordered,app.filters=below"
WILD = "{},app.consumer=ordered,app.filters=wild"
RELEASES = [
    (STATES.format("2.14.3"), "ORD-3", BROKEN),
    (STATES.format("2.15.2"), "ORD-3", KEPT),
    (TWO.format("2.10.27"), "LIV-1", BROKEN),
    (TWO.format("2.10.24"), "LIV-1", KEPT),
    (WILD.format("2.10.29"), "LIV-1", BROKEN),
    (WILD.format("2.12.1"), "LIV-1", KEPT),
]
"""Releases, and what the clause says that finds their bug (docs/systems.md)."""

needs_parts = pytest.mark.skipif(
    not nats.present(nats.DEFAULT) or not nats.client(nats.DEFAULT_CLIENT).present,
    reason="needs a NATS server and the wheel of nats-py; "
    "`python -m conformance.parts.nats` builds and fetches them",
)


@pytest.fixture(scope="module")
def target() -> Iterator[NatsTarget]:
    """One server for all of them: streams and groups are new in each run."""
    made = local(nats.DEFAULT)
    yield made
    made.release()


def judged(target: NatsTarget, folder: Path, *faults: Action) -> Verdict:
    """A run of five seconds: a second consumer comes and goes while messages flow, and some fail once."""
    names = fresh_names(7, 1)
    topic, group = f"{names}orders", f"{names}billing"
    shop, first, second = (f"{names}{word}" for word in ("shop", "c1", "c2"))
    sends = [
        Action(
            600 + turn * 250, "send", {"client": shop, "topic": topic, "key": f"k{key}", "count": 1}
        )
        for turn in range(TURNS)
        for key in range(KEYS)
    ]
    changes = [
        Action(1_000, "start", {"client": second}),
        Action(2_400, "stop", {"client": second}),
    ]
    fails = tuple(
        ListenerRule(Outcome.SUSPEND, number=number, delivery_max=1)
        for number in range(1, KEYS * TURNS, 5)
    )
    plan = Plan(
        topology=Topology(topics=(TopicPlan(topic, 4),), groups=(group,)),
        config=replace(CONFIG, broker_lease_ms=800, max_reconsume_times=-1, suspend_ms=40),
        clients=(
            ClientPlan(shop, "producer"),
            ClientPlan(first, "consumer", group, (topic,)),
            ClientPlan(second, "consumer", group, (topic,)),
        ),
        actions=(
            Action(0, "start", {"client": shop}),
            Action(0, "start", {"client": first}),
            *sorted([*sends, *changes, *faults], key=lambda action: action.at_ms),
        ),
        listener=fails,
        until_ms=3_400,
        settle_ms=12_000,
    )
    folder.mkdir()
    history = run(plan, target, folder, info={"profile": target.profile}, prefix=names)
    return judge(history, profiles.load(target.profile), options={"floor": 5})


def children() -> set[psutil.Process]:
    """Those of this process that run; other tests of the same process have theirs."""
    running = psutil.Process().children()
    return {child for child in running if child.status() != psutil.STATUS_ZOMBIE}


def found(verdict: Verdict) -> dict[str, ClauseVerdict]:
    return {clause.id: clause.verdict for clause in verdict.clauses}


@needs_parts
def test_it_is_upheld_and_leaves_nothing(target: NatsTarget, tmp_path: Path) -> None:
    """All that it promises is at stake and upheld, the witness saw progress, and no driver is left."""
    before = children()
    told = found(judged(target, tmp_path / "run"))
    assert {name: told[name] for name in CLAIMED} == dict.fromkeys(CLAIMED, KEPT)
    rows = list(open_history(tmp_path / "run").rows())
    seen = {row.lane for row in rows if row.kind is Kind.PROGRESS and row.level is Level.STORE}
    assert seen == {row.lane for row in rows if row.kind is Kind.DELIVER}
    left = children().difference(before)
    assert sorted(child.name() for child in left) in ([], ["nats-server"]), (
        "the server may stay for the next"
    )


@needs_parts
@pytest.mark.long
def test_a_server_that_is_killed_keeps_what_it_promised(target: NatsTarget, tmp_path: Path) -> None:
    """It is killed in the midst of the work, and started again on its data: nothing is lost, and all goes on."""
    broker = {"broker": "b0"}
    faults = (Action(1_300, "broker_crash", broker), Action(1_800, "broker_restart", broker))
    told = found(judged(target, tmp_path / "run", *faults))
    assert [name for name, each in told.items() if each is BROKEN] == []
    assert {told[name] for name in ("ORD-2", "ORD-3", "ORD-12", "SND-1", "SND-2", "LIV-1")} == {
        KEPT
    }


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
    names = fresh_names(8, 1)
    topic, group = f"{names}orders", f"{names}billing"
    shop, first, second = (f"{names}{word}" for word in ("shop", "c1", "c2"))
    send = {"client": shop, "topic": topic, "key": "k", "count": 6}
    plan = Plan(
        topology=Topology(topics=(TopicPlan(topic, 1),), groups=(group,)),
        config=replace(CONFIG, broker_lease_ms=1_000, max_reconsume_times=-1),
        clients=(
            ClientPlan(shop, "producer"),
            ClientPlan(first, "consumer", group, (topic,)),
            ClientPlan(second, "consumer", group, (topic,)),
        ),
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
    """Three bugs of released servers, red where they are and green where they are not, by `conform` alone."""
    made = local(text)
    searched = made.search(
        profiles.load(made.profile), Asked(seed=1, examples=1, floor=None, out=tmp_path / "run")
    )
    told = found(searched.verdict)
    assert told[clause] is verdict
    assert (BROKEN in told.values()) == (verdict is BROKEN)


@needs_parts
@pytest.mark.parametrize(
    "bug",
    [each if each in AT_ONCE else pytest.param(each, marks=pytest.mark.long) for each in BUGS],
)
def test_a_wrong_client_is_refuted_by_its_clause(
    target: NatsTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bug: str
) -> None:
    monkeypatch.setenv("INORDER_SABOTAGE", bug)
    rightly = target.library
    target.library = NatsPy(nats.DEFAULT_CLIENT, SABOTAGED)
    try:
        verdict = judged(target, tmp_path / "run")
    finally:
        target.library = rightly
    assert found(verdict)[BUGS[bug]] is BROKEN


def test_every_claim_has_a_wrong_client() -> None:
    assert sorted(set(CLAIMED) - set(BUGS.values())) == []


def test_the_profile_follows_from_the_target() -> None:
    names = {
        "2.15.2": "nats-queue",
        "2.15.2+nats-py:2.16.0,app.filters=below": "nats-queue",
        "2.15.2,app.late.acks=send": "nats-queue-late",
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
    with pytest.raises(UsageError, match=words):
        make(text)  # type: ignore[operator]


@needs_parts
def test_nobody_reads_a_credential(tmp_path: Path) -> None:
    """They are in no file that a run leaves, and in no command line."""
    secret = f"secret-{os.getpid()}"
    config = tmp_path / "mine.toml"
    config.write_text(f'[credentials]\n"token" = "{secret}"\n')
    made = local(f"{nats.DEFAULT},config={config}")
    assert secret not in made.name + repr(made.parties)
    driver = made.library.start("c1", {"token": secret}, tmp_path, lambda _: None)
    try:
        driver.hello()
        assert secret not in " ".join(psutil.Process(driver.process.pid).cmdline())
    finally:
        driver.kill()
    logs = [path for path in tmp_path.iterdir() if path != config]
    assert [path for path in logs if secret in path.read_text()] == []


def test_only_a_server_with_jetstream_is_ready() -> None:
    """What greets otherwise is not."""
    greetings = {
        b'INFO {"jetstream":true}\r\n': True,
        b"INFO {}\r\n": False,
        b"HTTP/1.1\r\n": False,
    }
    assert {greeting: is_ready(greeting) for greeting in greetings} == greetings


def test_where_no_server_is_nothing_is_begun(tmp_path: Path) -> None:
    """One sentence, and no driver was started."""
    with socket.create_server((HOST, 0)) as listening:
        nobody = f"{HOST}:{listening.getsockname()[1]}"
    made, names = remote(nobody), fresh_names(9, 1)
    plan = Plan(topology=Topology(topics=(TopicPlan(f"{names}orders", 1),), groups=()))
    with pytest.raises(UsageError, match=f"no NATS server answers at {nobody} "):
        run(plan, made, tmp_path, prefix=names)
    assert list(tmp_path.glob("*.log")) == []


def is_ready(greeting: bytes) -> bool:
    """What is found of a server that greets so."""
    with socket.create_server((HOST, 0)) as listening:

        def greet() -> None:
            taken, _ = listening.accept()
            with taken:
                taken.sendall(greeting)

        thread = threading.Thread(target=greet)
        thread.start()
        try:
            return nats.answers(HOST, listening.getsockname()[1])
        finally:
            thread.join()
