"""The tap between our own clients and our own cluster: what it sees is what the client did."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import pytest

from conformance.tap.faults import Faults, parse_rule
from conformance.tap.proxy import ThreadedTap
from conformance.tap.rows import TapRecorder
from conformance.targets.systems import ReferenceOnSockets, System, broker_addresses
from conformance.wire.client import WireClient
from conformance.wire.nodes import PlanRunner
from reference_impl.shell.errors import split_address
from specs.history.journal import Journal, assemble, read_journal
from specs.history.row import Row
from specs.plan.config import Config
from specs.plan.plan import Action, ClientPlan, ListenerRule, Plan, TopicPlan, Topology
from specs.vocabulary import Kind, Lane, Level, Outcome, Queue

CONFIG = Config(
    max_reconsume_times=1, suspend_ms=10, rebalance_ms=200, heartbeat_ms=200, persist_ms=100, long_poll_ms=300
)


class Behind(System):
    """A running system, as those see it who know nothing but the tap."""

    def __init__(self, namesrv: str) -> None:
        self.namesrv = namesrv

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def rows_of(folder: Path, name: str) -> list[Row]:
    return assemble(name, [read_journal(path) for path in sorted((folder / "journal").glob(f"{name}.*.jsonl"))])


@contextmanager
def tapped(system: System, folder: Path, *rules: str, skip: frozenset[Kind] = frozenset()) -> Iterator[ThreadedTap]:
    with Journal(folder, "tap") as journal:
        recorder = TapRecorder(journal, skip=skip)
        with ThreadedTap(system.namesrv, recorder, Faults(tuple(map(parse_rule, rules)))) as tap:
            yield tap
        assert recorder.unreadable == 0


@pytest.fixture(scope="module")
def system() -> Iterator[System]:
    with ReferenceOnSockets(CONFIG) as running:
        yield running


def through(tap: ThreadedTap, folder: Path, name: str) -> WireClient:
    """A raw client that has asked the tap for the broker's address. Its own rows are of no interest."""
    ((broker, address),) = broker_addresses(tap.namesrv).items()
    return WireClient(name, address, broker, Journal(folder, name))


def what(rows: list[Row], *kinds: Kind) -> list[tuple[object, ...]]:
    """What a client and the tap have to agree about, in the order of the begins."""
    told: list[tuple[object, ...]] = []
    for row in rows:
        if row.kind in kinds and not (row.outcome is Outcome.UNKNOWN and row.seq_end is None):
            named = row.incarnation is not None and row.kind is not Kind.LOCK
            told.append((row.kind, row.lane, row.queue_offset, row.value, row.outcome, row.view or "", named))
    return told


def test_our_clients_own_record_is_what_the_tap_sees(system: System, tmp_path: Path) -> None:
    """Locks, look-ups, starts, pulls, commits, dead letters and unlocks, of one consumer with one lane."""
    plan = Plan(
        topology=Topology(topics=(TopicPlan("seen", 1),), groups=("watched",)),
        config=CONFIG,
        clients=(
            ClientPlan("shop", "producer", "shops"),
            ClientPlan("c1", "consumer", "watched", topics=("seen",)),
        ),
        actions=(
            Action(0, "start", {"client": "shop"}),
            Action(100, "send", {"client": "shop", "topic": "seen", "key": "k", "count": 4}),
            Action(300, "start", {"client": "c1"}),
            Action(1_500, "stop", {"client": "c1"}),
        ),
        listener=(ListenerRule(Outcome.SUSPEND, number=3, duration_ms=1),),
        until_ms=1_600,
    )
    with tapped(system, tmp_path) as tap:
        client = through(tap, tmp_path, "setup")
        assert client.create_topic("seen", 1).code == 0
        client.close()
        asyncio.run(PlanRunner(plan, Behind(tap.namesrv), tmp_path, "").run())
    seen, own = rows_of(tmp_path, "tap"), rows_of(tmp_path, "c1")
    assert {row.level for row in seen} == {Level.TAP}
    lane = Lane("watched", "seen", "b0", 0)
    mine = [row for row in seen if row.client_id == "c1" and row.lane == lane]
    kinds = (Kind.LOCK, Kind.FETCH_OFFSET, Kind.ADD, Kind.COMMIT, Kind.DEAD_LETTER, Kind.UNLOCK, Kind.DROP)
    wanted = what([row for row in own if row.lane == lane], *kinds)
    assert {entry[0] for entry in wanted} == set(kinds)
    # Our consumer takes a start at once and asks no second time, so that ADD may come a moment after the tap's.
    assert sorted(what(mine, *kinds), key=str) == sorted(wanted, key=str)
    (given_up,) = [row for row in mine if row.kind is Kind.DEAD_LETTER]
    assert (given_up.queue_offset, given_up.message_id, given_up.attempt) == (2, "m3", 1)
    sends = [row for row in seen if row.kind is Kind.SEND]
    told = [row for row in rows_of(tmp_path, "shop") if row.kind is Kind.SEND]
    assert [
        (r.queue, r.queue_offset, r.message_id, r.sharding_key, r.key_seq, r.body_hash, r.attempt) for r in sends
    ] == [(r.queue, r.queue_offset, r.message_id, r.sharding_key, r.key_seq, r.body_hash, r.attempt) for r in told]


def test_no_byte_passes_the_tap_by(system: System, tmp_path: Path) -> None:
    with tapped(system, tmp_path) as tap:
        ((broker, address),) = broker_addresses(tap.namesrv).items()
    assert (broker, address != system.brokers[broker]) == ("b0", True)


def test_what_a_request_says_and_hears(system: System, tmp_path: Path) -> None:
    queue = Queue("asked", "b0", 0)
    lane = Lane("askers", *queue)
    with tapped(system, tmp_path) as tap:
        alice, bob = through(tap, tmp_path, "alice"), through(tap, tmp_path, "bob")
        alice.create_topic("asked", 2)
        alice.heartbeat("askers", "asked")
        alice.lock("askers", [queue])
        bob.lock("askers", [queue, queue._replace(queue_id=1)])
        alice.fetch(lane)
        alice.commit(lane, 3)
        alice.fetch(lane)
        alice.unlock("askers", [queue])
        alice.commit(lane, 4)
        alice.fetch(lane)
        for client in (alice, bob):
            client.close()
    told = [
        (row.client_id, row.kind, row.queue_id, row.value, row.outcome, (row.incarnation or "").partition("/")[2])
        for row in rows_of(tmp_path, "tap")
    ]
    assert told == [
        ("alice", Kind.LOCK, 0, None, Outcome.OK, ""),
        ("bob", Kind.LOCK, 0, None, Outcome.REFUSED, ""),
        ("bob", Kind.LOCK, 1, None, Outcome.OK, ""),
        ("alice", Kind.FETCH_OFFSET, 0, -1, Outcome.REFUSED, ""),
        ("alice", Kind.COMMIT, 0, 3, Outcome.OK, "asked/b0/0"),
        ("alice", Kind.FETCH_OFFSET, 0, 3, Outcome.OK, ""),
        ("alice", Kind.ADD, 0, 3, Outcome.OK, "asked/b0/0"),
        ("alice", Kind.UNLOCK, 0, None, Outcome.OK, "asked/b0/0"),
        ("alice", Kind.COMMIT, 0, 4, Outcome.OK, "asked/b0/0"),
        ("alice", Kind.FETCH_OFFSET, 0, 4, Outcome.OK, ""),
        ("alice", Kind.ADD, 0, 4, Outcome.OK, "asked/b0/0#2"),
    ]


def test_who_unregisters_drops_the_lanes_that_were_its_own(system: System, tmp_path: Path) -> None:
    """Also one that it has given back, and taken once more, but none that went to somebody else."""
    queues = [Queue("left", "b0", number) for number in range(3)]
    lanes = [Lane("leavers", *queue) for queue in queues]
    with tapped(system, tmp_path) as tap:
        alice, bob = through(tap, tmp_path, "alice"), through(tap, tmp_path, "bob")
        alice.create_topic("left", 3)
        alice.heartbeat("leavers", "left")
        alice.lock("leavers", queues)
        for lane in lanes:
            alice.commit(lane, 1)
            alice.fetch(lane)
        alice.unlock("leavers", queues)
        alice.pull("leavers", queues[0], 1)  # was on its way: no new incarnation
        bob.lock("leavers", queues[2:])
        alice.lock("leavers", queues[1:2])
        for _ in range(2):
            assert alice.unregister("leavers").code == 0
        for client in (alice, bob):
            client.close()
    rows = [row for row in rows_of(tmp_path, "tap") if row.client_id == "alice"]
    dropped = [(row.queue_id, row.incarnation) for row in rows if row.kind is Kind.DROP]
    assert dropped == [(0, "alice/left/b0/0"), (1, "alice/left/b0/1")]
    assert [row.queue_id for row in rows if row.kind is Kind.ADD] == [0, 1, 2]


def test_the_end_of_a_queue_is_a_start_where_nothing_is_stored(system: System, tmp_path: Path) -> None:
    queue = Queue("ended", "b0", 0)
    with tapped(system, tmp_path) as tap:
        alice = through(tap, tmp_path, "alice")
        alice.create_topic("ended", 1)
        alice.lock("enders", [queue])
        alice.max_offset(queue)  # nobody asked for a stored offset yet: this is no start
        alice.fetch(Lane("enders", *queue))
        alice.max_offset(queue)
        alice.pull("enders", queue, 0)
        alice.close()
    kinds = [(row.kind, row.value) for row in rows_of(tmp_path, "tap")]
    assert kinds == [(Kind.LOCK, None), (Kind.FETCH_OFFSET, -1), (Kind.ADD, 0), (Kind.PULL, 0)]


def test_a_first_pull_shows_the_start_at_the_latest(system: System, tmp_path: Path) -> None:
    queue = Queue("pulled", "b0", 0)
    with tapped(system, tmp_path) as tap:
        alice = through(tap, tmp_path, "alice")
        alice.create_topic("pulled", 1)
        alice.send(queue, "m1")
        alice.lock("pullers", [queue])
        alice.pull("pullers", queue, 1)
        alice.pull("pullers", queue, 0)
        alice.close()
    adds = [row.value for row in rows_of(tmp_path, "tap") if row.kind is Kind.ADD]
    assert adds == [1]


def test_faults_are_done_and_told(system: System, tmp_path: Path) -> None:
    queue = Queue("faulty", "b0", 0)
    lane = Lane("faults", *queue)
    with tapped(system, tmp_path, "QUERY_CONSUMER_OFFSET#2=answer:1", "PULL_MESSAGE=lose") as tap:
        alice = through(tap, tmp_path, "alice")
        alice.create_topic("faulty", 1)
        alice.lock("faults", [queue])
        codes = [alice.fetch(lane)[0].code for _ in range(3)]
        alice.close()
    assert codes == [22, 1, 22]
    rows = rows_of(tmp_path, "tap")
    assert [(row.outcome, row.value, row.code) for row in rows if row.kind is Kind.FETCH_OFFSET] == [
        (Outcome.REFUSED, -1, 22),
        (Outcome.REFUSED, None, 1),
        (Outcome.REFUSED, -1, 22),
    ]
    told = [(row.outcome, row.detail) for row in rows if row.kind is Kind.FAULT]
    assert told == [
        (Outcome.OK, "QUERY_CONSUMER_OFFSET#2=answer:1 met alice faulty 0"),
        (Outcome.REFUSED, "PULL_MESSAGE=lose"),
    ]


def test_a_lost_answer_leaves_the_request_open_and_its_effect_in_place(system: System, tmp_path: Path) -> None:
    queue = Queue("lost", "b0", 0)
    with tapped(system, tmp_path, "UPDATE_CONSUMER_OFFSET#1=lose-answer", "PULL_MESSAGE=delay:50") as tap:
        alice = through(tap, tmp_path, "alice")
        alice.create_topic("lost", 1)
        alice.heartbeat("losers", "lost")
        alice.send(queue, "m1")
        alice.lock("losers", [queue])
        lane = Lane("losers", *queue)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("conformance.wire.client.TIMEOUT_S", 0.3)
            assert alice.commit(lane, 1).code is None
        assert alice.fetch(lane)[1] == 1
        assert [message.message_id for message in alice.pull("losers", queue, 0)[1]] == ["m1"]
        alice.close()
    commits = [row for row in rows_of(tmp_path, "tap") if row.kind is Kind.COMMIT]
    assert [(row.outcome, row.seq_end) for row in commits] == [(Outcome.UNKNOWN, None)]


def test_what_is_no_frame_is_not_passed_on(system: System, tmp_path: Path) -> None:
    with tapped(system, tmp_path) as tap, socket.create_connection(split_address(tap.namesrv), 3) as link:
        link.sendall(struct.pack(">i", 1 << 30))
        assert link.recv(1) == b""
