"""Redis is upheld by what it promises, and each wrong client and release is refuted by the clause that says so."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.parts import redis
from conformance.targets.base import Run
from conformance.targets.redis import CONFIG, RedisPy, RedisTarget, local, remote
from specs.history.store import open_history
from specs.plan.plan import Action, ListenerRule, Plan
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
    found,
    is_ready,
    judged,
    left_since,
    of_a_release,
    one_server,
    refuted,
    sabotaged,
    shows_no_credential,
    tells_before_anything_starts,
)

SABOTAGED = Path(__file__).with_name("redis_sabotage.py")
KEYS, QUEUES = 12, 8
TURNS, MANY = 13, 40
BUGS = bugs_of(SABOTAGED)
FLOOR = 3
CLAIMED = claimed("redis-streams")
STATES = "{},app.states=true"
RELEASES = [
    (STATES.format("6.2.14"), "LIV-1", BROKEN),
    (STATES.format("7.0.15"), "LIV-1", KEPT),
]
"""Releases, and what the clause says that finds their bug (docs/systems/redis.md)."""

needs_parts = pytest.mark.skipif(
    not redis.present(redis.DEFAULT) or not redis.client(redis.DEFAULT_CLIENT).present,
    reason="needs a Redis server and the wheel of redis-py; "
    "`python -m conformance.parts.redis` fetches them",
)


@pytest.fixture(scope="module")
def target() -> Iterator[RedisTarget]:
    """One server for all of them: streams and groups are new in each run."""
    yield from one_server(local, redis.DEFAULT)


def work(turns: int) -> Work:
    """A run of a few seconds: a second consumer comes and goes while messages flow, and some fail once.

    turns: of sends.
    """
    return Work(
        replace(
            CONFIG,
            broker_lease_ms=700,
            client_lease_ms=300,
            rebalance_ms=100,
            max_reconsume_times=-1,
            suspend_ms=40,
        ),
        keys=KEYS,
        turns=turns,
        sends_ms=(400, 200),
        second_ms=(500, turns * 175),
        fails=tuple(
            ListenerRule(Outcome.SUSPEND, number=number, delivery_max=1)
            for number in range(1, KEYS * turns, 5)
        ),
        until_ms=400 + turns * 200,
        settle_ms=12_000,
        queues=QUEUES,
        floor=FLOOR,
    )


@needs_parts
def test_it_is_upheld_and_leaves_nothing(target: RedisTarget, tmp_path: Path) -> None:
    """What it promises is upheld, the witness saw progress, and no driver is left."""
    before = children()
    told = found(judged(target, tmp_path / "run", work(TURNS)))
    always = [name for name in CLAIMED if name not in OF_HANDOVERS]
    assert {name: told[name] for name in always} == dict.fromkeys(always, KEPT)
    assert refuted(told) == []
    rows = list(open_history(tmp_path / "run").rows())
    seen = {row.lane for row in rows if row.kind is Kind.PROGRESS and row.level is Level.STORE}
    assert seen == {row.lane for row in rows if row.kind is Kind.DELIVER}
    assert left_since(before) in ([], ["redis-server"]), "the server may stay for the next"


@needs_parts
@pytest.mark.long
def test_all_that_it_promises_is_at_stake_and_upheld(target: RedisTarget, tmp_path: Path) -> None:
    """Also in the handovers, for which there is time here."""
    told = found(judged(target, tmp_path / "run", work(MANY)))
    assert {name: told[name] for name in CLAIMED} == dict.fromkeys(CLAIMED, KEPT)


@needs_parts
@pytest.mark.long
def test_a_server_that_is_killed_keeps_what_it_promised(
    target: RedisTarget, tmp_path: Path
) -> None:
    """It is killed in the midst of the work, and started again on its data: nothing is lost, and all goes on."""
    broker = {"broker": "b0"}
    faults = (Action(1_300, "broker_crash", broker), Action(1_800, "broker_restart", broker))
    told = found(judged(target, tmp_path / "run", work(TURNS), *faults))
    assert refuted(told) == []
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
    told = of_a_release(made, tmp_path / "run")
    assert told[clause] is verdict
    assert (BROKEN in told.values()) == (verdict is BROKEN)


@needs_parts
@pytest.mark.long
@pytest.mark.parametrize("bug", BUGS)
def test_a_wrong_client_is_refuted_by_its_clause(
    target: RedisTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bug: str
) -> None:
    with sabotaged(target, RedisPy(redis.DEFAULT_CLIENT, SABOTAGED), bug, monkeypatch):
        verdict = judged(target, tmp_path / "run", work(MANY // 2))
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
    tells_before_anything_starts(make, text, words)


@needs_parts
def test_nobody_reads_a_credential(tmp_path: Path) -> None:
    """They are in no file that a run leaves, and in no command line."""
    shows_no_credential(
        local, redis.DEFAULT, "password", tmp_path, server="127.0.0.1:1", lease_ms="1"
    )


def test_a_server_is_ready_once_it_has_read_its_data() -> None:
    """One that wants a password is, and what is no Redis is not."""
    answers = {
        b"+PONG\r\n": True,
        b"-NOAUTH Authentication required.\r\n": True,
        b"-LOADING Redis is loading the dataset in memory\r\n": False,
        b"HTTP/1.1\r\n": False,
    }
    assert {answer: is_ready(redis.RedisServer.answers, answer) for answer in answers} == answers


@needs_parts
def test_a_server_elsewhere_that_stands_still_is_not_at_rest(tmp_path: Path) -> None:
    """Who started it nobody knows; that it answered as the run began is enough to ask it again."""
    with redis.RedisServer(redis.DEFAULT, workdir=tmp_path / "server") as server:
        made, run = remote(server.address), Run(Plan(), tmp_path)

        async def looks() -> list[bool]:
            await made.prepare(run)
            found = [await made.is_awake()]
            server.process.pause()
            try:
                found.append(await made.is_awake())
            finally:
                server.process.resume()
            await made.close()
            return [*found, await made.is_awake()]

        assert asyncio.run(looks()) == [True, False, True]


def test_where_no_server_is_nothing_is_begun(tmp_path: Path) -> None:
    begins_nothing_without_a_server(remote, "no Redis server answers at {} ", tmp_path)
