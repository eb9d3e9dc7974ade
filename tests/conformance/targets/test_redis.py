"""Redis is upheld by what it promises, and each wrong client and release is refuted by the clause that says so."""

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

from conformance.parts import redis
from conformance.parts.local_server import HOST
from conformance.run import fresh_names, judge, run
from conformance.targets.base import Asked
from conformance.targets.redis import CONFIG, RedisPy, RedisTarget, local, remote
from specs import profiles
from specs.errors import UsageError
from specs.history.store import open_history
from specs.plan.plan import Action, ClientPlan, ListenerRule, Plan, TopicPlan, Topology
from specs.verdicts.verdict import ClauseVerdict, Verdict
from specs.vocabulary import Kind, Level, Outcome

SABOTAGED = Path(__file__).with_name("redis_sabotage.py")
KEYS, QUEUES = 12, 8
FEW, TURNS, MANY = 4, 13, 40
BUGS = dict(re.findall(r'"(\w+)": \(\w+, "([A-Z]+-\d+)"\)', SABOTAGED.read_text(encoding="utf-8")))
FLOOR = 3
AT_ONCE = ("early",)
"""In every run of the tests, the others in the long one."""
OF_HANDOVERS = {"ORD-4", "ORD-5", "ORD-13", "LSE-2", "CMT-5", "CMT-9"}
"""A second consumer has to come in time for them, which it does not always on a busy machine."""
BROKEN, KEPT = ClauseVerdict.REFUTED, ClauseVerdict.UPHELD
CLAIMED = [
    name
    for name, claim in profiles.load("redis-streams").claims.items()
    if claim.status == "claimed" and not name.startswith("MET")
]
STATES = "{},app.states=true"
RELEASES = [
    (STATES.format("6.2.14"), "LIV-1", BROKEN),
    (STATES.format("7.0.15"), "LIV-1", KEPT),
]
"""Releases, and what the clause says that finds their bug (docs/systems.md)."""

needs_parts = pytest.mark.skipif(
    not redis.present(redis.DEFAULT) or not redis.client(redis.DEFAULT_CLIENT).present,
    reason="needs a Redis server and the wheel of redis-py; "
    "`python -m conformance.parts.redis` fetches them",
)


@pytest.fixture(scope="module")
def target() -> Iterator[RedisTarget]:
    """One server for all of them: streams and groups are new in each run."""
    made = local(redis.DEFAULT)
    yield made
    made.release()


def judged(target: RedisTarget, folder: Path, *faults: Action, turns: int = TURNS) -> Verdict:
    """A run of a few seconds: a second consumer comes and goes while messages flow, and some fail once.

    turns: of sends; with FEW the first consumer stays alone.
    """
    names = fresh_names(7, 1)
    topic, group = f"{names}orders", f"{names}billing"
    shop, first, second = (f"{names}{word}" for word in ("shop", "c1", "c2"))
    sends = [
        Action(
            400 + turn * 200, "send", {"client": shop, "topic": topic, "key": f"k{key}", "count": 1}
        )
        for turn in range(turns)
        for key in range(KEYS)
    ]
    changes = [
        Action(500, "start", {"client": second}),
        Action(turns * 175, "stop", {"client": second}),
    ]
    fails = tuple(
        ListenerRule(Outcome.SUSPEND, number=number, delivery_max=1)
        for number in range(1, KEYS * turns, 5)
    )
    plan = Plan(
        topology=Topology(topics=(TopicPlan(topic, QUEUES),), groups=(group,)),
        config=replace(
            CONFIG, broker_lease_ms=700, rebalance_ms=100, max_reconsume_times=-1, suspend_ms=40
        ),
        clients=(
            ClientPlan(shop, "producer"),
            ClientPlan(first, "consumer", group, (topic,)),
            ClientPlan(second, "consumer", group, (topic,)),
        ),
        actions=(
            Action(0, "start", {"client": shop}),
            Action(0, "start", {"client": first}),
            *sorted(
                [*sends, *(changes if turns > FEW else ()), *faults],
                key=lambda action: action.at_ms,
            ),
        ),
        listener=fails,
        until_ms=400 + turns * 200,
        settle_ms=12_000,
    )
    folder.mkdir()
    history = run(plan, target, folder, info={"profile": target.profile}, prefix=names)
    return judge(history, profiles.load(target.profile), options={"floor": FLOOR})


def children() -> set[psutil.Process]:
    """Those of this process that run; other tests of the same process have theirs."""
    running = psutil.Process().children()
    return {child for child in running if child.status() != psutil.STATUS_ZOMBIE}


def found(verdict: Verdict) -> dict[str, ClauseVerdict]:
    return {clause.id: clause.verdict for clause in verdict.clauses}


@needs_parts
def test_it_is_upheld_and_leaves_nothing(target: RedisTarget, tmp_path: Path) -> None:
    """What it promises is upheld, the witness saw progress, and no driver is left."""
    before = children()
    told = found(judged(target, tmp_path / "run"))
    always = [name for name in CLAIMED if name not in OF_HANDOVERS]
    assert {name: told[name] for name in always} == dict.fromkeys(always, KEPT)
    assert [name for name, each in told.items() if each is BROKEN] == []
    rows = list(open_history(tmp_path / "run").rows())
    seen = {row.lane for row in rows if row.kind is Kind.PROGRESS and row.level is Level.STORE}
    assert seen == {row.lane for row in rows if row.kind is Kind.DELIVER}
    left = children().difference(before)
    assert sorted(child.name() for child in left) in ([], ["redis-server"]), (
        "the server may stay for the next"
    )


@needs_parts
@pytest.mark.long
def test_all_that_it_promises_is_at_stake_and_upheld(target: RedisTarget, tmp_path: Path) -> None:
    """Also in the handovers, for which there is time here."""
    told = found(judged(target, tmp_path / "run", turns=MANY))
    assert {name: told[name] for name in CLAIMED} == dict.fromkeys(CLAIMED, KEPT)


@needs_parts
@pytest.mark.long
def test_a_server_that_is_killed_keeps_what_it_promised(
    target: RedisTarget, tmp_path: Path
) -> None:
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
    target: RedisTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bug: str
) -> None:
    monkeypatch.setenv("INORDER_SABOTAGE", bug)
    rightly = target.library
    target.library = RedisPy(redis.DEFAULT_CLIENT, SABOTAGED)
    try:
        verdict = judged(target, tmp_path / "run", turns=FEW if bug in AT_ONCE else MANY // 2)
    finally:
        target.library = rightly
    assert found(verdict)[BUGS[bug]] is BROKEN


def test_every_claim_has_a_wrong_client() -> None:
    assert sorted(set(CLAIMED) - set(BUGS.values())) == []


@pytest.mark.parametrize(
    ("make", "text", "words"),
    [
        (local, None, "needs a version"),
        (local, "9.9", "known: 6.2.14, 7.0.15"),
        (local, "7.0.15+redis-py:0.1", "There is no redis-py"),
        (local, "7.0.15+go:1", "has no client"),
        (local, "7.0.15,app.fences=none", "did you mean app.fence"),
        (local, "7.0.15,app.fence=non", "did you mean none"),
        (remote, "7.0.15", "needs a server's address"),
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
    config.write_text(f'[credentials]\n"password" = "{secret}"\n')
    made = local(f"{redis.DEFAULT},config={config}")
    assert secret not in made.name + repr(made.parties)
    driver = made.library.start(
        "c1",
        {"password": secret, "server": "127.0.0.1:1", "lease_ms": "1"},
        tmp_path,
        lambda _: None,
    )
    try:
        driver.hello()
        assert secret not in " ".join(psutil.Process(driver.process.pid).cmdline())
    finally:
        driver.kill()
    logs = [path for path in tmp_path.iterdir() if path != config]
    assert [path for path in logs if secret in path.read_text()] == []


def test_a_server_is_ready_once_it_has_read_its_data() -> None:
    """One that wants a password is, and what is no Redis is not."""
    answers = {
        b"+PONG\r\n": True,
        b"-NOAUTH Authentication required.\r\n": True,
        b"-LOADING Redis is loading the dataset in memory\r\n": False,
        b"HTTP/1.1\r\n": False,
    }
    assert {answer: is_ready(answer) for answer in answers} == answers


def test_where_no_server_is_nothing_is_begun(tmp_path: Path) -> None:
    """One sentence, and no driver was started."""
    with socket.create_server((HOST, 0)) as listening:
        nobody = f"{HOST}:{listening.getsockname()[1]}"
    made, names = remote(nobody), fresh_names(9, 1)
    plan = Plan(topology=Topology(topics=(TopicPlan(f"{names}orders", 1),), groups=()))
    with pytest.raises(UsageError, match=f"no Redis server answers at {nobody} "):
        run(plan, made, tmp_path, prefix=names)
    assert list(tmp_path.glob("*.log")) == []


def is_ready(answer: bytes) -> bool:
    """What is found of a server that greets so."""
    with socket.create_server((HOST, 0)) as listening:

        def greet() -> None:
            taken, _ = listening.accept()
            with taken:
                taken.sendall(answer)

        thread = threading.Thread(target=greet)
        thread.start()
        try:
            return redis.answers(HOST, listening.getsockname()[1])
        finally:
            thread.join()
