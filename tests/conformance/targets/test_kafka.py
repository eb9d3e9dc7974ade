"""Kafka is upheld by what it promises, and each wrong client is refuted by the clause that says so."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from conformance.cli.main import root
from conformance.drivers.served import NODES
from conformance.parts import golang, kafka, kafka_go
from conformance.parts.java import find_java
from conformance.targets.kafka import (
    CONFIG,
    CONSUMER,
    SHARED,
    TRANSACTIONS,
    KafkaTarget,
    Librdkafka,
    in_transactions,
    local,
    remote,
)
from inorder.evidence.track_record.with_kafka import ComesAndGoes, LeaderKilled, SendsInFlight
from specs import profiles
from specs.plan.ability import Ability
from specs.plan.plan import Action, ListenerRule, Plan
from specs.verdicts.verdict import ClauseVerdict
from specs.vocabulary import Outcome
from tests.conformance.targets.asked import (
    BROKEN,
    FIRST,
    KEPT,
    OF_HANDOVERS,
    Work,
    bugs_of,
    children,
    found,
    judged,
    left_since,
    of_a_release,
    one_server,
    refuted,
    sabotaged,
    shows_no_credential,
    tells_before_anything_starts,
)

SABOTAGED = Path(__file__).with_name("kafka_sabotage.py")
APART = ("rejects", "returns", "overtakes")
"""Wrong clients that show in work of their own."""
BUGS = {bug: clause for bug, clause in bugs_of(SABOTAGED).items() if bug not in APART}
"""In every run of the tests, the others in the long one."""
FLOORS = [
    "ORD-2",
    "ORD-4",
    "ORD-5",
    "ORD-7",
    "ORD-12",
    "CMT-1",
    "CMT-4",
    "CMT-5",
    "CMT-9",
    "SND-1",
    "SND-2",
]

PASSES = f"{kafka.DEFAULT}+java:{{}},enable.auto.commit=true,auto.commit.interval.ms=100{{}}"
RESUMES = f"{kafka.DEFAULT}+librdkafka:{{}},app.on.failure=pause"
CLAIMED_OF_SHARES = ["ORD-7", "ORD-9", "SND-1", "SND-2", "SND-10", "LIV-1"]
RELEASES = [
    (PASSES.format("4.4.0", ",group.protocol=consumer"), "CMT-1", BROKEN),
    (PASSES.format("4.1.0", ",group.protocol=consumer"), "CMT-1", KEPT),
    (PASSES.format("4.4.0", ""), "CMT-1", KEPT),
    (RESUMES.format("2.3.0"), "ORD-10", BROKEN),
    (RESUMES.format("2.4.0"), "ORD-10", KEPT),
]
"""Releases, and what the clause says that finds their bug (docs/systems/kafka.md)."""

needs_parts = pytest.mark.skipif(
    not kafka.server_jars(kafka.DEFAULT).present
    or not kafka.librdkafka(kafka.DEFAULT_LIBRDKAFKA).present
    or find_java() is None,
    reason="needs Java, the jars of Kafka and the wheel of librdkafka; "
    "`python -m conformance.parts.kafka` fetches them",
)


@pytest.fixture(scope="module")
def target() -> Iterator[KafkaTarget]:
    """One server for all of them: topics and groups are new in each run."""
    yield from one_server(local, kafka.DEFAULT)


WORK = Work(
    replace(CONFIG, max_reconsume_times=-1, suspend_ms=20),
    keys=8,
    turns=12,
    sends_ms=(600, 350),
    second_ms=(1_500, 3_500),
    fails=(ListenerRule(Outcome.SUSPEND, number=20, delivery_max=1),),
    until_ms=5_500,
    settle_ms=20_000,
)
"""A run of ten seconds: a second consumer comes and goes while messages flow, and one fails once."""


@needs_parts
def test_it_is_upheld_and_leaves_nothing(target: KafkaTarget, tmp_path: Path) -> None:
    """Nothing that it promises is refuted, what such work puts at stake is upheld, and no driver is left."""
    before = children()
    verdict = judged(target, tmp_path / "run", WORK)
    told = found(verdict)
    assert refuted(told) == []
    assert [name for name in FLOORS if told[name] is not KEPT and name not in OF_HANDOVERS] == []
    assert left_since(before) in ([], ["java"]), "the server may stay for the next"


@needs_parts
@pytest.mark.long
def test_a_server_that_is_killed_keeps_what_it_promised(
    target: KafkaTarget, tmp_path: Path
) -> None:
    """It is killed in the midst of the work, and started again on its data: nothing is lost, and all goes on."""
    broker = {"broker": "b0"}
    faults = (Action(2_200, "broker_crash", broker), Action(3_200, "broker_restart", broker))
    told = found(judged(target, tmp_path / "run", WORK, *faults))
    assert refuted(told) == []
    assert {told[name] for name in ("ORD-2", "ORD-7", "SND-1", "SND-2", "LIV-1")} == {KEPT}


@needs_parts
@pytest.mark.long
@pytest.mark.parametrize(("text", "clause", "verdict"), RELEASES)
def test_a_release_is_judged_by_the_same_clauses(
    tmp_path: Path, text: str, clause: str, verdict: ClauseVerdict
) -> None:
    """Two bugs of released clients, red where they are and green where they are not, by `conform` alone."""
    made = local(text)
    told = of_a_release(made, tmp_path / "run")
    assert told[clause] is verdict
    assert (BROKEN in told.values()) == (verdict is BROKEN)


@needs_parts
@pytest.mark.long
@pytest.mark.parametrize(("idempotent", "verdict"), [("false", BROKEN), ("true", KEPT)])
def test_a_producer_that_is_not_idempotent_stores_twice_what_had_no_answer(
    tmp_path: Path, idempotent: str, verdict: ClauseVerdict
) -> None:
    """Sends in flight together over a link that loses answers: one setting decides, and nothing else is refuted."""
    target = f"{kafka.DEFAULT},enable.idempotence={idempotent},app.in.flight=20"
    name = f"kafka-local:{target}"
    results = SendsInFlight()(name, "kafka-librdkafka", "SND-2", (1,), tmp_path, lambda _: None)
    assert [each.verdict for each in results] == [verdict]


@needs_parts
@pytest.mark.long
@pytest.mark.parametrize(("version", "verdict"), [("1.8.2", BROKEN), ("1.9.2", KEPT)])
def test_an_offset_that_is_stored_too_late_goes_back_with_an_old_library(
    tmp_path: Path, version: str, verdict: ClauseVerdict
) -> None:
    """A second consumer comes and goes while calls run."""
    if golang.go() is None and not kafka_go.DRIVER.present(version):
        pytest.skip("needs Go, or the driver that it has built")
    name = f"kafka-local:{kafka.DEFAULT}+go:{version}"
    results = ComesAndGoes()(name, "kafka-go", "CMT-6", (1,), tmp_path, lambda _: None)
    assert [each.verdict for each in results] == [verdict]


@needs_parts
@pytest.mark.long
def test_the_driver_in_go_keeps_the_protocol() -> None:
    """What each driver has to do, by `smoke`."""
    if golang.go() is None and not kafka_go.DRIVER.present(kafka_go.DEFAULT):
        pytest.skip("needs Go, or the driver that it has built")
    target = f"kafka-local:{kafka.DEFAULT}+go:{kafka_go.DEFAULT}"
    done = CliRunner().invoke(root, ["smoke", "--target", target, "--format", "json"])
    assert [item for item in json.loads(done.stdout)["items"] if not item["ok"]] == []
    assert done.exit_code == 0


def test_an_older_client_does_the_plan_of_a_newer_one() -> None:
    """Of each seed one, whatever the version."""
    old, new = (local(f"{kafka.DEFAULT}+go:{version}") for version in kafka_go.DRIVER.versions)
    plans = [ComesAndGoes().plan(old, seed) for seed in (1, 2, 3)]
    assert plans == [ComesAndGoes().plan(new, seed) for seed in (1, 2, 3)]
    assert len({each.until_ms for each in plans}) == len(plans)


@needs_parts
@pytest.mark.long
@pytest.mark.parametrize(("bug", "wrong"), [("", []), ("rejects", ["LIV-1"])])
def test_a_share_group_is_upheld_and_who_rejects_what_failed_is_refuted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bug: str, wrong: list[str]
) -> None:
    """Nobody owns a lane, and every record is worked on to its end."""
    made = local(f"{kafka.DEFAULT},{CONSUMER}={SHARED}")
    program = SABOTAGED if bug else Librdkafka.program
    try:
        with sabotaged(made, Librdkafka(kafka.SHARE, program), bug, monkeypatch):
            # Of a lane whose last member has left nothing is owed.
            told = found(judged(made, tmp_path / "run", replace(WORK, second_ms=None)))
    finally:
        made.release()
    assert refuted(told) == wrong
    assert {told[name] for name in CLAIMED_OF_SHARES if name not in wrong} == {KEPT}


@needs_parts
@pytest.mark.long
@pytest.mark.parametrize(("level", "verdict"), [("uncommitted", BROKEN), ("committed", KEPT)])
def test_who_reads_uncommitted_is_given_what_was_aborted(
    tmp_path: Path, level: str, verdict: ClauseVerdict
) -> None:
    """Producers send in transactions and abort some; one setting of the consumers' decides."""
    made = local(f"{kafka.DEFAULT},{TRANSACTIONS}=true,isolation.level=read_{level}")
    try:
        told = found(judged(made, tmp_path / "run", WORK))
    finally:
        made.release()
    assert refuted(told) == (["SND-6"] if verdict is BROKEN else [])
    assert (told["SND-6"], told["SND-13"], told["ORD-2"]) == (verdict, KEPT, KEPT)


def test_every_fourth_send_becomes_a_transaction_that_is_aborted() -> None:
    send = {"client": "shop", "topic": "orders", "key": "k", "count": 1}
    plan = Plan(actions=tuple(Action(at_ms, "send", send) for at_ms in range(8)))
    made = in_transactions(plan)
    assert [action.args["ends"] for action in made.actions] == [*["commit"] * 3, "rollback"] * 2
    assert in_transactions(made) == made


@needs_parts
@pytest.mark.long
@pytest.mark.parametrize(
    ("acks", "verdict"), [("1,enable.idempotence=false", BROKEN), ("all", KEPT)], ids=["1", "all"]
)
def test_what_one_node_alone_acknowledged_is_lost_with_it(
    tmp_path: Path, acks: str, verdict: ClauseVerdict
) -> None:
    """Replicas that fetch late, and a leader that is killed: whom a producer waits for decides."""
    late = "server.replica.fetch.min.bytes=1000000,server.replica.fetch.wait.max.ms=400"
    name = f"kafka-local:{kafka.DEFAULT},{NODES}=3,{late},app.in.flight=200,acks={acks}"
    results = LeaderKilled()(name, "kafka-librdkafka", "SND-1", (1,), tmp_path, lambda _: None)
    assert [each.verdict for each in results] == [verdict]


@needs_parts
@pytest.mark.long
def test_three_nodes_keep_what_one_of_them_was_told_and_leave_nothing(tmp_path: Path) -> None:
    """The leader is killed in the midst of the work: nothing is lost, all goes on, and no process is left."""
    before, made = children(), local(f"{kafka.DEFAULT},{NODES}=3")
    broker = {"broker": "b0"}
    faults = (Action(2_200, "broker_crash", broker), Action(4_200, "broker_restart", broker))
    try:
        told = found(judged(made, tmp_path / "run", WORK, *faults))
    finally:
        made.release()
    assert refuted(told) == []
    assert {told[name] for name in ("ORD-2", "ORD-7", "SND-1", "SND-2", "LIV-1")} == {KEPT}
    assert left_since(before) == []


SLEEPS_MS, WAKES_MS = 6_000, 11_000
"""Once it has its partitions, also on a busy machine; longer than its session, and until another has them, and has
committed."""


@needs_parts
@pytest.mark.long
@pytest.mark.parametrize(("bug", "verdict"), [("", KEPT), ("returns", BROKEN)])
def test_who_was_not_heard_for_long_can_not_commit(
    target: KafkaTarget,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    bug: str,
    verdict: ClauseVerdict,
) -> None:
    """The first consumer stands still in the midst of a call; a sabotaged one says that its late commit was taken."""
    first = {"node": FIRST}
    faults = (Action(SLEEPS_MS, "pause", first), Action(WAKES_MS, "resume", first))
    slow = ListenerRule(duration_ms=800, client=FIRST)
    second_ms = (SLEEPS_MS - 1_800, 20_000)
    work = replace(WORK, turns=6, second_ms=second_ms, fails=(slow,), until_ms=WAKES_MS + 500)
    program = SABOTAGED if bug else Librdkafka.program
    with sabotaged(target, Librdkafka(kafka.DEFAULT_LIBRDKAFKA, program), bug, monkeypatch):
        told = found(judged(target, tmp_path / "run", work, *faults))
    assert told["GEN-1"] is verdict
    assert bug or refuted(told) == []


@needs_parts
@pytest.mark.long
@pytest.mark.parametrize(("bug", "verdict"), [("", KEPT), ("overtakes", BROKEN)])
def test_sends_in_flight_keep_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bug: str, verdict: ClauseVerdict
) -> None:
    made = local(f"{kafka.DEFAULT},app.in.flight=5")
    program = SABOTAGED if bug else Librdkafka.program
    try:
        with sabotaged(made, Librdkafka(kafka.DEFAULT_LIBRDKAFKA, program), bug, monkeypatch):
            told = found(judged(made, tmp_path / "run", WORK))
    finally:
        made.release()
    assert told["ORD-15"] is verdict
    assert bug or refuted(told) == []


@needs_parts
@pytest.mark.long
@pytest.mark.parametrize("bug", BUGS)
def test_a_wrong_client_is_refuted_by_its_clause(
    target: KafkaTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bug: str
) -> None:
    with sabotaged(target, Librdkafka(kafka.DEFAULT_LIBRDKAFKA, SABOTAGED), bug, monkeypatch):
        verdict = judged(target, tmp_path / "run", WORK)
    assert found(verdict)[BUGS[bug]] is BROKEN


def test_the_profile_follows_from_the_target() -> None:
    names = {
        "4.3.1": "kafka-librdkafka",
        "4.3.1,enable.auto.commit=true": "kafka-librdkafka-auto",
        "4.3.1,enable.auto.commit=true,enable.auto.offset.store=false": "kafka-librdkafka-stored",
        "4.3.1,app.transactions=true": "kafka-librdkafka-transactions",
        "4.3.1,app.consumer=share": "kafka-share",
        "4.3.1+go:1.8.2": "kafka-go",
        "4.3.1+java:4.4.0,group.protocol=consumer": "kafka-java",
        "4.3.1+java:4.4.0,enable.auto.commit=true": "kafka-java-auto",
    }
    assert {text: local(text).profile for text in names} == names
    assert all(profiles.load(name) for name in names.values())


@pytest.mark.parametrize(
    ("make", "text", "words"),
    [
        (local, None, "needs a version"),
        (local, "9.9", "known: 4.1.0, 4.3.1"),
        (local, "4.3.1+java:1.0", "There is no Java client"),
        (local, "4.3.1+librdkafka:1.0", "There is no librdkafka"),
        (local, "4.3.1+go:1.8.1", "no confluent-kafka-go '1.8.1' to drive; known: 1.8.2, 1.9.2"),
        (local, "4.3.1+go,enable.auto.commit=true", "enable.auto.commit can't be set"),
        (local, "4.3.1+go,app.transactions=true", "librdkafka's driver alone"),
        (local, "4.3.1,group.protcol=x", "did you mean group.protocol"),
        (local, "4.3.1,app.on.failure=cry", "wait or pause"),
        (local, "4.3.1,app.in.flight=0", "at least 1"),
        (
            local,
            "4.3.1,app.transactions=true,enable.auto.commit=true",
            "commits by the application",
        ),
        (local, "4.3.1+java,app.transactions=true", "librdkafka's driver alone"),
        (local, "4.1.0,app.consumer=share", "needs the server 4.3.1"),
        (local, "4.3.1+librdkafka:2.12.1,app.consumer=share", "from 2.16.1 on"),
        (local, "4.3.1,app.consumer=share,app.on.failure=pause", "no other setting"),
        (local, "4.3.1,app.nodes=2", "known are 1, 3"),
        (remote, "127.0.0.1:1,app.nodes=3", "knows no option 'app.nodes'"),
        (remote, "127.0.0.1:1,server.min.insync.replicas=1", "knows no option 'server"),
        (local, "4.3.1+java,app.on.failure=pause", "librdkafka's driver alone"),
        (remote, "4.3.1", "needs a server's address"),
    ],
)
def test_what_is_not_there_is_told_before_anything_starts(
    make: object, text: str | None, words: str
) -> None:
    tells_before_anything_starts(make, text, words)


def test_the_link_of_several_nodes_is_not_ours_to_break() -> None:
    """Of one node everything goes over it, and it can be frozen; of three a client knows all addresses."""
    one, three = (local(f"{kafka.DEFAULT},{NODES}={nodes}").abilities for nodes in (1, 3))
    assert one - three == {Ability.BREAK_LINK, Ability.PAUSE_BROKER}


@needs_parts
def test_nobody_reads_a_credential(tmp_path: Path) -> None:
    """They are in no file that a run leaves, and in no command line."""
    shows_no_credential(local, kafka.DEFAULT, "sasl.password", tmp_path)
