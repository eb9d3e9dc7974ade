"""The tap between our own clients and our own cluster: what it sees is what the client did."""

from __future__ import annotations

import socket
import struct
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Self

import pytest

from conformance.run import run
from conformance.tap.faults import Faults, parse_rule
from conformance.tap.lives import BrokerLife, Sign
from conformance.tap.proxy import ThreadedTap
from conformance.tap.rows import TapRecorder
from conformance.targets import reference_tcp
from conformance.targets.systems import ReferenceOnSockets, System, broker_addresses
from conformance.waiting import wait_until
from conformance.wire.client import WireClient
from reference_impl.protocol.bodies import (
    ConsumerData,
    Heartbeat,
    LockBatch,
    Subscription,
    encode_lock_answer,
)
from reference_impl.protocol.codes import RequestCode, ResponseCode
from reference_impl.protocol.command import FLAG_ONEWAY, Command
from reference_impl.protocol.headers import (
    PULL_COMMIT,
    PULL_SUBSCRIPTION,
    Header,
    PullHeader,
    QueryConsumerOffsetHeader,
    SendBackHeader,
    UpdateConsumerOffsetHeader,
)
from reference_impl.shell.client import SyncClient
from reference_impl.shell.errors import split_address
from specs.history.clock import RecorderClock
from specs.history.journal import Journal, assemble, read_journal
from specs.history.row import Row
from specs.plan.config import Config
from specs.plan.plan import Action, ClientPlan, ListenerRule, Plan, TopicPlan, Topology
from specs.vocabulary import Kind, Lane, Level, Outcome, Queue

CONFIG = Config(
    max_reconsume_times=1,
    suspend_ms=10,
    rebalance_ms=200,
    heartbeat_ms=200,
    persist_ms=100,
    long_poll_ms=300,
)


class Behind(System):
    """A running system whose clients know nothing but the tap; who reads it back asks its brokers themselves."""

    def __init__(self, namesrv: str, brokers: Mapping[str, str]) -> None:
        self.namesrv, self.brokers = namesrv, brokers

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def work_behind(namesrv: str, brokers: Mapping[str, str], plan: Plan, folder: Path) -> None:
    """Our own clients do a plan behind a tap."""
    run(plan, reference_tcp.target(None).on(Behind(namesrv, brokers)), folder)


def rows_of(folder: Path, name: str) -> list[Row]:
    return assemble(
        name, [read_journal(path) for path in sorted((folder / "journal").glob(f"{name}.*.jsonl"))]
    )


@contextmanager
def tapped(
    system: System, folder: Path, *rules: str, skip: frozenset[Kind] = frozenset()
) -> Iterator[ThreadedTap]:
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


def is_unanswered(row: Row) -> bool:
    return row.outcome is Outcome.UNKNOWN and row.seq_end is None


def what(rows: list[Row], *kinds: Kind) -> list[tuple[object, ...]]:
    """What a client and the tap have to agree about, in the order of the begins."""
    told: list[tuple[object, ...]] = []
    for row in rows:
        if row.kind in kinds and not is_unanswered(row):
            # An unlock that follows its drop names none: on a busy machine it may, and no frame tells of the drop.
            named = row.incarnation is not None and row.kind not in (Kind.LOCK, Kind.UNLOCK)
            told.append(
                (
                    row.kind,
                    row.lane,
                    row.queue_offset,
                    row.value,
                    row.outcome,
                    row.view or "",
                    named,
                )
            )
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
        work_behind(tap.namesrv, system.brokers, plan, tmp_path / "own")
    seen, own = rows_of(tmp_path, "tap"), rows_of(tmp_path / "own", "c1")
    assert {row.level for row in seen} == {Level.TAP}
    lane = Lane("watched", "seen", "b0", 0)
    mine = [row for row in seen if row.client_id == "c1" and row.lane == lane]
    kinds = (
        Kind.LOCK,
        Kind.FETCH_OFFSET,
        Kind.ADD,
        Kind.COMMIT,
        Kind.DEAD_LETTER,
        Kind.UNLOCK,
        Kind.DROP,
    )
    wanted = what([row for row in own if row.lane == lane], *kinds)
    assert {entry[0] for entry in wanted} == set(kinds)
    # Our consumer takes a start at once and asks no second time, so that ADD may come a moment after the tap's. An
    # answer that the tap saw may meet a client that has stopped: then the client's row has none.
    seen_alone = Counter(what(mine, *kinds)) - Counter(wanted)
    assert not Counter(wanted) - Counter(what(mine, *kinds))
    unanswered = [row for row in own if row.lane == lane and is_unanswered(row)]
    assert not seen_alone - Counter(
        what(
            [row._replace(outcome=Outcome.OK, seq_end=row.seq_begin) for row in unanswered], *kinds
        )
    )
    (given_up,) = [row for row in mine if row.kind is Kind.DEAD_LETTER]
    assert (given_up.queue_offset, given_up.message_id, given_up.attempt) == (2, "m3", 1)
    sends = [row for row in seen if row.kind is Kind.SEND]
    told = [row for row in rows_of(tmp_path / "own", "shop") if row.kind is Kind.SEND]
    assert [
        (r.queue, r.queue_offset, r.message_id, r.sharding_key, r.key_seq, r.body_hash, r.attempt)
        for r in sends
    ] == [
        (r.queue, r.queue_offset, r.message_id, r.sharding_key, r.key_seq, r.body_hash, r.attempt)
        for r in told
    ]


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
        (
            row.client_id,
            row.kind,
            row.queue_id,
            row.value,
            row.outcome,
            (row.incarnation or "").partition("/")[2],
        )
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


def test_the_end_of_a_queue_is_a_start_where_nothing_is_stored(
    system: System, tmp_path: Path
) -> None:
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
    assert [
        (row.outcome, row.value, row.code) for row in rows if row.kind is Kind.FETCH_OFFSET
    ] == [
        (Outcome.REFUSED, -1, 22),
        (Outcome.REFUSED, None, 1),
        (Outcome.REFUSED, -1, 22),
    ]
    told = [(row.outcome, row.detail) for row in rows if row.kind is Kind.FAULT]
    assert told == [
        (Outcome.OK, "QUERY_CONSUMER_OFFSET#2=answer:1 met alice faulty 0"),
        (Outcome.REFUSED, "PULL_MESSAGE=lose"),
    ]


def test_a_lost_answer_leaves_the_request_open_and_its_effect_in_place(
    system: System, tmp_path: Path
) -> None:
    queue = Queue("lost", "b0", 0)
    with tapped(
        system, tmp_path, "UPDATE_CONSUMER_OFFSET#1=lose-answer", "PULL_MESSAGE=delay:50"
    ) as tap:
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
    with (
        tapped(system, tmp_path) as tap,
        socket.create_connection(split_address(tap.namesrv), 3) as link,
    ):
        link.sendall(struct.pack(">i", 1 << 30))
        assert link.recv(1) == b""


# ---------------------------------------------------------------- brokers that die


def test_a_broker_has_died_when_nobody_is_connected_and_it_refuses() -> None:
    life = BrokerLife()
    assert not life.refused()  # nobody has seen it alive
    life.opened(1)
    life.opened(2)
    assert not life.refused()  # somebody is connected
    assert life.closed(1, by_broker=True, at_s=5.0) is Sign.NOTHING
    assert (
        life.closed(2, by_broker=False, at_s=5.1) is Sign.NOTHING
    )  # the last one left by itself: nothing to try
    assert life.is_alone
    assert [life.refused(), life.refused()] == [True, False]  # it dies once
    life.opened(3)
    assert life.closed(3, by_broker=True, at_s=5.2) is Sign.DOUBT
    assert life.refused()


@pytest.mark.parametrize(("apart_s", "sign"), [(1.0, Sign.DEATH), (1.1, Sign.DOUBT)])
def test_a_broker_has_died_when_it_ends_all_connections_at_once(apart_s: float, sign: Sign) -> None:
    """What it ends one after the other was idle."""
    life = BrokerLife()
    life.opened(1)
    life.opened(2)
    assert life.closed(1, by_broker=True, at_s=5.0) is Sign.NOTHING
    assert life.closed(2, by_broker=True, at_s=5.0 + apart_s) is sign
    assert life.refused() is (sign is Sign.DOUBT)


def test_a_restarted_broker_is_told_by_a_crash_and_its_epoch(tmp_path: Path) -> None:
    queue = Queue("epochs", "b0", 0)
    with ReferenceOnSockets(CONFIG) as system, tapped(system, tmp_path) as tap:
        alice, bob = through(tap, tmp_path, "alice"), through(tap, tmp_path, "bob")
        alice.create_topic("epochs", 1)
        alice.lock("lived", [queue])
        bob.members("lived")
        system.crash_broker("b0")
        system.restart_broker("b0")
        # Whose connection ends first, the client's or the broker's, is what the tap goes by.
        assert wait_until(
            lambda: any(row.kind is Kind.CRASH for row in rows_of(tmp_path, "tap")), 10.0
        )
        for client in (alice, bob):
            client.close()
        carol = through(tap, tmp_path, "carol")
        assert wait_until(lambda: carol.lock("lived", [queue])[0].code == 0, 10.0)
        carol.close()
    rows = [row for row in rows_of(tmp_path, "tap") if row.kind is not Kind.MEMBER]
    assert [
        (row.kind, row.broker, row.broker_epoch)
        for row in rows
        if row.outcome is not Outcome.UNKNOWN
    ] == [
        (Kind.LOCK, "b0", 1),
        (Kind.CRASH, "b0", 1),
        (Kind.LOCK, "b0", 2),
    ]


def test_clients_that_leave_and_come_back_are_no_death(system: System, tmp_path: Path) -> None:
    queue = Queue("coming", "b0", 0)
    with tapped(system, tmp_path) as tap:
        for name in ("alice", "alice", "bob"):
            client = through(tap, tmp_path, name)
            client.lock("comers", [queue])
            client.close()
    assert [(row.kind, row.broker_epoch) for row in rows_of(tmp_path, "tap")] == [
        (Kind.LOCK, 1)
    ] * 3


def test_a_broker_that_ends_idle_connections_and_takes_new_ones_lives(tmp_path: Path) -> None:
    """The tap tries whether it takes one, and tells nothing."""
    config = replace(CONFIG, channel_expiry_ms=200)
    queue = Queue("idle", "b0", 0)
    with ReferenceOnSockets(config) as system, tapped(system, tmp_path) as tap:
        alice = through(tap, tmp_path, "alice")
        alice.heartbeat("idlers", "idle")
        alice.lock("idlers", [queue])
        (life,) = tap._tap._lives.values()
        assert wait_until(lambda: life.is_alone, 10.0)
        alice.close()
        bob = through(tap, tmp_path, "bob")
        bob.lock("idlers", [queue])
        bob.close()
    rows = rows_of(tmp_path, "tap")
    assert {(row.kind, row.broker_epoch) for row in rows} == {(Kind.LOCK, 1)}


# ---------------------------------------------------------------- what is concluded


def answer_pull(code: int, next_offset: int) -> Command:
    told = {
        "suggestWhichBrokerId": "0",
        "nextBeginOffset": str(next_offset),
        "minOffset": "0",
        "maxOffset": "9",
    }
    return Command(code, ext=told, opaque=1, flag=1)


class Frames:
    """A recorder that is told frames, without any socket."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.journal = Journal(folder, "tap")
        self.recorder = TapRecorder(self.journal)
        self.recorder.opened(1, "10.0.0.1:1", "b0")
        consumer = ConsumerData("billing", subscriptions=(Subscription.of("orders"),))
        self.ask(RequestCode.HEART_BEAT, body=Heartbeat("c1", consumers=(consumer,)).encode())

    def ask(
        self,
        code: int,
        header: Header | None = None,
        answer: Command | None = None,
        body: bytes = b"",
    ) -> None:
        ext = {} if header is None else header.to_ext()
        self.recorder.asked(
            1, Command(code, ext=ext, body=body, opaque=1, flag=0 if answer else FLAG_ONEWAY)
        )
        if answer is not None:
            self.recorder.answered(1, answer)

    def fetch(self, offset: int | None) -> None:
        answer = Command(
            22 if offset is None else 0,
            ext={} if offset is None else {"offset": str(offset)},
            opaque=1,
        )
        self.ask(
            RequestCode.QUERY_CONSUMER_OFFSET,
            QueryConsumerOffsetHeader("billing", "orders", 0),
            answer,
        )

    def pull(self, offset: int, code: int, next_offset: int, commit: int | None = None) -> None:
        flags = PULL_SUBSCRIPTION | (0 if commit is None else PULL_COMMIT)
        header = PullHeader("billing", "orders", 0, offset, 32, flags, commit or 0)
        self.ask(RequestCode.PULL_MESSAGE, header, answer_pull(code, next_offset))

    def commit(self, offset: int) -> None:
        self.ask(
            RequestCode.UPDATE_CONSUMER_OFFSET,
            UpdateConsumerOffsetHeader("billing", "orders", 0, offset),
        )

    def lease(self, code: int) -> None:
        asked = LockBatch("billing", "c1", (Queue("orders", "b0", 0),))
        told = encode_lock_answer(asked.queues) if code == RequestCode.LOCK_BATCH_MQ else b""
        self.ask(code, None, Command(0, body=told, opaque=1), asked.encode())

    def rows(self, *kinds: Kind) -> list[Row]:
        self.journal.close()
        return [row for row in rows_of(self.folder, "tap") if row.kind in kinds]


def test_a_commit_of_where_a_pull_was_sent_to_is_a_correction(tmp_path: Path) -> None:
    frames = Frames(tmp_path)
    frames.commit(5)
    frames.pull(0, ResponseCode.PULL_OFFSET_MOVED, 5)
    frames.commit(4)
    frames.commit(5)
    frames.pull(5, ResponseCode.SUCCESS, 6, commit=5)
    frames.commit(6)
    frames.commit(5)
    commits = frames.rows(Kind.COMMIT)
    assert [(row.value, row.detail) for row in commits] == [
        (5, None),
        (4, None),
        (5, "corrected"),
        (5, "corrected"),
        (6, None),
        (5, None),  # it went on, and comes back: no correction any more
    ]


def test_who_has_pulled_and_looks_its_offset_up_begins_anew(tmp_path: Path) -> None:
    """Orderly consumers of 5.x look it up twice before they pull: the second answer counts."""
    frames = Frames(tmp_path)
    for offset in (3, 3, 4):
        frames.fetch(offset)
    frames.pull(4, ResponseCode.PULL_NOT_FOUND, 4)
    frames.commit(4)
    frames.fetch(7)
    frames.pull(7, ResponseCode.PULL_NOT_FOUND, 7)
    frames.fetch(None)
    frames.pull(0, ResponseCode.PULL_NOT_FOUND, 0)
    rows = frames.rows(Kind.ADD, Kind.PULL, Kind.COMMIT)
    assert [(row.kind, row.value, (row.incarnation or "").partition("#")[2]) for row in rows] == [
        (Kind.ADD, 3, ""),
        (Kind.ADD, 4, "2"),
        (Kind.PULL, 4, "2"),
        (Kind.COMMIT, 4, "2"),
        (Kind.ADD, 7, "3"),
        (Kind.PULL, 7, "3"),
        (Kind.ADD, 0, "4"),
        (Kind.PULL, 0, "4"),
    ]


def test_who_connects_again_is_known_by_its_lane(tmp_path: Path) -> None:
    """After a restart of the broker a client's first frame may be a pull, before it says its name."""
    frames = Frames(tmp_path)
    frames.fetch(3)
    frames.pull(3, ResponseCode.PULL_NOT_FOUND, 3)
    frames.recorder.opened(2, "10.0.0.1:2", "b0")
    header = PullHeader("billing", "orders", 0, 3, 32, PULL_SUBSCRIPTION)
    pull = Command(RequestCode.PULL_MESSAGE, ext=header.to_ext(), opaque=7)
    frames.recorder.asked(2, pull)  # c1 is connected: this is somebody else
    frames.recorder.closed(1)
    frames.recorder.asked(2, pull)
    rows = frames.rows(Kind.ADD, Kind.PULL)
    assert [(row.kind, row.client_id) for row in rows] == [
        (Kind.ADD, "c1"),
        (Kind.PULL, "c1"),
        (Kind.PULL, "c1"),
    ]


def test_a_late_unlock_is_the_earlier_incarnations(tmp_path: Path) -> None:
    """Clients up to 5.1 give a lane back 20 s after they dropped it, though they have it again."""
    frames = Frames(tmp_path)
    frames.lease(RequestCode.LOCK_BATCH_MQ)
    frames.fetch(3)
    frames.pull(3, ResponseCode.PULL_NOT_FOUND, 3)
    frames.fetch(3)
    frames.pull(3, ResponseCode.PULL_NOT_FOUND, 3)
    frames.lease(RequestCode.UNLOCK_BATCH_MQ)
    frames.commit(4)
    frames.lease(RequestCode.UNLOCK_BATCH_MQ)
    frames.commit(4)
    rows = frames.rows(Kind.UNLOCK, Kind.COMMIT)
    assert [(row.kind, (row.incarnation or "").partition("#")[2]) for row in rows] == [
        (Kind.UNLOCK, ""),
        (Kind.COMMIT, "2"),
        (Kind.UNLOCK, "2"),
        (Kind.COMMIT, "2"),
    ]


def test_what_is_sent_back_without_a_level_has_the_one_that_the_broker_takes(
    system: System, tmp_path: Path
) -> None:
    queue = Queue("returned", "b0", 0)
    with tapped(system, tmp_path) as tap:
        alice = through(tap, tmp_path, "alice")
        alice.create_topic("returned", 1)
        alice.heartbeat("returners", "returned")
        alice.send(queue, "m1")
        (message,) = alice.pull("returners", queue, 0)[1]
        with SyncClient() as link:
            link.call(
                broker_addresses(tap.namesrv)["b0"],
                Command(RequestCode.HEART_BEAT, body=Heartbeat("alice").encode()),
            )
            for level in (0, 2, -1):
                header = SendBackHeader(
                    message.physical_offset, "returners", level, message.offset_id, "returned"
                )
                link.call(
                    broker_addresses(tap.namesrv)["b0"],
                    Command(RequestCode.CONSUMER_SEND_MSG_BACK, header.to_ext()),
                )
        alice.close()
    backs = [row for row in rows_of(tmp_path, "tap") if row.kind is Kind.SEND_BACK]
    assert [(row.delay_level, row.reconsume_times) for row in backs] == [(3, 0), (2, 0), (-1, 0)]


def test_a_request_that_is_held_begins_when_it_is_passed_on(system: System, tmp_path: Path) -> None:
    """Else a one-way commit would seem to have been applied long before it was; one whose client went is none."""
    queue = Queue("held", "b0", 0)
    lane = Lane("holders", *queue)
    with tapped(system, tmp_path, "UPDATE_CONSUMER_OFFSET=delay:300") as tap:
        alice = through(tap, tmp_path, "alice")
        alice.create_topic("held", 1)
        alice.heartbeat("holders", "held")
        alice.lock("holders", [queue])
        alice.commit(lane, 3)
        alice.close()
        with SyncClient() as link:
            update = UpdateConsumerOffsetHeader("holders", "held", 0, 4).to_ext()
            command = Command(RequestCode.UPDATE_CONSUMER_OFFSET, ext=update, flag=FLAG_ONEWAY)
            link.oneway(broker_addresses(tap.namesrv)["b0"], command)

        def both_met() -> bool:
            return [row.kind for row in rows_of(tmp_path, "tap")].count(
                Kind.FAULT
            ) == 2 and not tap._tap._connections._tasks

        assert wait_until(both_met, 10.0, 0.1)
    rows = rows_of(tmp_path, "tap")
    fault = next(row for row in rows if row.kind is Kind.FAULT)
    (commit,) = [row for row in rows if row.kind is Kind.COMMIT]
    assert (commit.value, commit.started_us - fault.started_us >= 300_000) == (3, True)


def test_a_clock_that_is_set_is_told(tmp_path: Path) -> None:
    now = {"wall": 5_000_000, "mono": 1_000_000}
    clock = RecorderClock("host", lambda: now["mono"], lambda: now["wall"])
    with Journal(tmp_path, "tap") as journal:
        recorder = TapRecorder(journal, clock=clock)
        recorder.opened(1, "10.0.0.1:1", "b0")
        for wall_us, mono_us in (
            (1_000_000, 1_000_000),
            (50_000, 0),
            (-3_000_000, 0),
            (1_000, 1_000),
        ):
            now["wall"] += wall_us
            now["mono"] += mono_us
            recorder.asked(1, Command(RequestCode.GET_MAX_OFFSET, opaque=1))
    assert [(row.kind, row.value) for row in rows_of(tmp_path, "tap")] == [
        (Kind.CLOCK_STEP, -3_000)
    ]
