"""The brokers of a run on sockets: topics, queues read to their end, a broker killed and started again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from conformance import answers
from conformance.answers import NotTold
from conformance.parts import own_disk, troubled_disk
from conformance.parts.processes import wait_until
from conformance.targets.base import CutShort, Run
from conformance.targets.systems import (
    ReferenceOnSockets,
    ServedReference,
    System,
    broker_addresses,
)
from conformance.wire import client
from conformance.wire.brokers import Brokers, make_topic
from conformance.wire.client import Answer, WireClient
from conformance.wire.runner import SHORT_LEASES
from reference_impl.core.broker import Broker, BrokerConfig, BrokerStore
from reference_impl.protocol.codes import ResponseCode
from specs.errors import Unavailable, UsageError
from specs.faults import (
    broker_crash,
    disk_full,
    name_server_crash,
    pause,
    power_cut,
    slow_disk,
)
from specs.history.journal import Journal, assemble, read_journal
from specs.plan.config import Config
from specs.plan.plan import Action, ClientPlan, Plan, TopicPlan, Topology
from specs.vocabulary import Kind, Lane, Outcome, Queue, dead_letter_topic

WHY_NOT = own_disk.why_not()
needs_a_disk = pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))
WHY_NO_TROUBLE = troubled_disk.why_not()
needs_trouble = pytest.mark.skipif(WHY_NO_TROUBLE is not None, reason=str(WHY_NO_TROUBLE))
PLAN = Plan(topology=Topology(topics=(TopicPlan("orders", 2),), groups=("billing",)))


def test_a_queue_is_read_to_its_end_also_after_the_broker_died(tmp_path: Path) -> None:
    run = Run(PLAN, tmp_path)
    brokers = Brokers(run, ReferenceOnSockets(SHORT_LEASES))
    try:
        queue = Queue("orders", "b0", 1)
        producer = brokers.client("shop")
        for number in range(3):
            producer.send(queue, f"m{number}", None)
        producer.close()
        for verb in (broker_crash.VERB, broker_crash.HEALED_BY):
            assert brokers.act(Action(0, verb, {"broker": "b0"}))
            brokers.act(Action(0, verb, {"broker": "b0"}))  # it is dead, or alive: nothing is done
        assert brokers.queues()[-1] == (Queue(dead_letter_topic("billing"), "b0", 0), "billing")
        found = [brokers.read(queue) for queue, _group in brokers.queues()]
        with pytest.raises(UsageError, match="b1 is no broker"):
            brokers.start("b1")
    finally:
        brokers.close()
        run.close()
    assert [[row["message_id"] for row in rows] for rows in found] == [[], ["m0", "m1", "m2"], []]
    journals = map(read_journal, sorted((tmp_path / "journal").glob("*.jsonl")))
    rows = assemble("a run", journals)
    assert [row.broker for row in rows if row.kind is Kind.CRASH] == ["b0"]


def in_a_process(config: Config) -> ServedReference:
    return ServedReference(replace(config, persist_first_ms=2 * config.persist_ms), "async")


@pytest.mark.parametrize("opens", [ReferenceOnSockets, in_a_process])
def test_a_frozen_broker_answers_when_it_goes_on(
    tmp_path: Path, opens: Callable[[Config], System]
) -> None:
    """Who was frozen and is killed has not stood still any more."""
    run = Run(PLAN, tmp_path)
    brokers = Brokers(run, opens(SHORT_LEASES))
    freeze, thaw = (Action(0, verb, {"node": "b0"}) for verb in (pause.VERB, pause.HEALED_BY))
    try:
        producer = brokers.client("shop")
        asking = threading.Thread(target=producer.send, args=(Queue("orders", "b0", 1), "m0", None))
        assert brokers.act(freeze)
        brokers.act(freeze)  # it stands: nothing is done
        asking.start()
        asking.join(0.3)
        assert brokers.act(thaw)
        brokers.act(thaw)
        asking.join()
        producer.close()
        brokers.act(freeze)
        brokers.crash("b0")
        brokers.heal()
        brokers.queues()
        found = brokers.read(Queue("orders", "b0", 1))
    finally:
        brokers.close()
        run.close()
    assert [row["message_id"] for row in found] == ["m0"]
    rows = assemble("a run", map(read_journal, sorted((tmp_path / "journal").glob("*.jsonl"))))
    kinds = (Kind.PAUSE, Kind.SEND, Kind.CRASH)
    ends = sorted((row.seq_end, row.kind) for row in rows if row.kind in kinds)
    assert [kind for _seq, kind in ends] == [Kind.PAUSE, Kind.SEND, Kind.PAUSE, Kind.CRASH]
    assert {row.outcome for row in rows if row.kind is Kind.PAUSE} == {Outcome.OK}


def test_a_broker_that_does_not_answer_has_not_said_that_a_queue_is_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor that a group has nothing stored, or no members."""
    monkeypatch.setattr(client, "TIMEOUT_S", 0.1)
    monkeypatch.setattr(answers.ask_again, "__defaults__", (0.1,))
    consumer = ClientPlan("c1", "consumer", "billing", ("orders",))
    run = Run(replace(PLAN, clients=(consumer,)), tmp_path)
    brokers = Brokers(run, ReferenceOnSockets(SHORT_LEASES))
    queue = Queue("orders", "b0", 1)
    try:
        asking = brokers.client("asking")
        asking.send(queue, "m0", None)
        assert brokers.progress("billing", queue) is None
        assert asking.living("billing") is None or asking.living("billing") == []
        brokers.act(Action(0, pause.VERB, {"node": "b0"}))
        with pytest.raises(CutShort, match=r"b0 did not say where .*orders.* ends"):
            brokers.read(queue)
        untold = (
            brokers.progress("billing", queue),
            brokers.all_is_stored(),
            asking.living("billing"),
            asking.fetch(Lane("billing", *queue))[1],
        )
        assert [type(each) for each in untold] == [NotTold] * 4
        brokers.heal()
        asking.close()
        assert [row["message_id"] for row in brokers.read(queue)] == ["m0"]
    finally:
        brokers.close()
        run.close()


def test_a_name_server_that_was_killed_hears_of_the_brokers_again(tmp_path: Path) -> None:
    run = Run(PLAN, tmp_path)
    brokers = Brokers(run, ReferenceOnSockets(SHORT_LEASES))
    try:
        for _again in range(2):
            assert brokers.act(Action(0, name_server_crash.VERB, {}))
        with pytest.raises(Unavailable, match="no name server answers"):
            broker_addresses(brokers.system.namesrv)
        brokers.heal()
        brokers.heal()
        found = wait_until(lambda: broker_addresses(brokers.system.namesrv), deadline_s=60)
    finally:
        brokers.close()
        run.close()
    assert found == dict(brokers.system.brokers)


@needs_a_disk
@pytest.mark.parametrize(
    ("flush", "synced", "left"),
    [
        ("async", False, []),
        pytest.param("sync", False, ["m0", "m1"], marks=pytest.mark.long),
        pytest.param("async", True, ["m0", "m1"], marks=pytest.mark.long),
    ],
)
def test_a_power_cut_shows_what_was_answered_before_the_sync(
    tmp_path: Path, flush: str, left: list[str], *, synced: bool
) -> None:
    """The broker syncs at each send, or each hour; with everything synced first nothing is lost."""
    cut = Action(1, power_cut.VERB, {"broker": "b0", "synced": synced})
    run = Run(replace(PLAN, actions=(cut,)), tmp_path)
    config = replace(SHORT_LEASES, flush=flush, flush_ms=3_600_000, persist_first_ms=1_000)
    brokers = Brokers(run, ServedReference(config, flush))
    try:
        producer = brokers.client("shop")
        for number in range(2):
            producer.send(Queue("orders", "b0", 1), f"m{number}", None)
        producer.close()
        assert brokers.act(cut)
        assert brokers.act(Action(2, power_cut.HEALED_BY, {"broker": "b0"}))
        brokers.queues()
        found = brokers.read(Queue("orders", "b0", 1))
    finally:
        brokers.close()
        run.close()
    assert [row["message_id"] for row in found] == left
    rows = assemble("a run", map(read_journal, sorted((tmp_path / "journal").glob("*.jsonl"))))
    (death,) = (row for row in rows if row.kind is Kind.CRASH)
    assert (death.view is None) is synced


def test_a_system_that_runs_already_can_not_have_a_power_cut(tmp_path: Path) -> None:
    cut = Action(1, power_cut.VERB, {"broker": "b0"})
    with pytest.raises(UsageError, match="runs already"):
        Brokers(Run(replace(PLAN, actions=(cut,)), tmp_path), nullcontext(cast(System, None)))


@needs_trouble
def test_a_served_broker_refuses_messages_while_its_disk_is_full(tmp_path: Path) -> None:
    """Also after it was killed and has begun again; and whoever heals the brokers makes room."""
    full, crash = (
        Action(1, verb, {"broker": "b0"}) for verb in (disk_full.VERB, broker_crash.VERB)
    )
    run = Run(replace(PLAN, actions=(full, crash)), tmp_path)
    brokers = Brokers(run, in_a_process(SHORT_LEASES))
    producer = brokers.client("shop")

    def is_told(code: ResponseCode) -> bool:
        answer = producer.send(Queue("orders", "b0", 1), "m0")
        return answer is not None and answer.code == code

    told = []
    try:
        told.append(is_told(ResponseCode.SUCCESS))
        assert brokers.act(full)
        told.append(wait_until(lambda: is_told(ResponseCode.SERVICE_NOT_AVAILABLE), deadline_s=30))
        for verb in (broker_crash.VERB, broker_crash.HEALED_BY):
            assert brokers.act(Action(1, verb, {"broker": "b0"}))
        told.append(wait_until(lambda: is_told(ResponseCode.SERVICE_NOT_AVAILABLE), deadline_s=30))
        brokers.heal()
        told.append(wait_until(lambda: is_told(ResponseCode.SUCCESS), deadline_s=30))
    finally:
        producer.close()
        brokers.close()
        run.close()
    assert told == [True] * 4


@needs_trouble
def test_a_served_brokers_sends_wait_for_a_slow_disk_until_it_is_healed(tmp_path: Path) -> None:
    """What is answered during the fault took as long as a sync does at least."""
    later_ms = 300
    slow = Action(1, slow_disk.VERB, {"broker": "b0", "ms": later_ms})
    run = Run(replace(PLAN, actions=(slow,)), tmp_path)
    config = replace(SHORT_LEASES, flush="sync", persist_first_ms=2 * SHORT_LEASES.persist_ms)
    brokers = Brokers(run, ServedReference(config, "sync"))
    try:
        producer = brokers.client("shop")
        assert brokers.act(slow)
        producer.send(Queue("orders", "b0", 1), "m0")
        broken = dict(brokers._broken)
        brokers.heal()
        producer.close()
        healed = dict(brokers._broken)
    finally:
        brokers.close()
        run.close()
    rows = assemble("a run", map(read_journal, sorted((tmp_path / "journal").glob("*.jsonl"))))
    (sent,) = (row for row in rows if row.kind is Kind.SEND)
    assert sent.outcome is Outcome.OK
    assert (sent.ended_us or 0) - sent.started_us >= later_ms * 1_000
    assert (list(broken), healed) == ([("b0", slow_disk.HEALED_BY)], {})


def test_a_broker_with_the_machines_own_disk_can_not_have_it_troubled() -> None:
    system = in_a_process(SHORT_LEASES)
    with pytest.raises(UsageError, match="started with the machine's own disk"):
        system.fill_disk("b0", full=True)
    with pytest.raises(UsageError, match="started with the machine's own disk"):
        system.slow_disk("b0", 5)
    system.__exit__(None, None, None)


def test_what_is_there_already_is_left_alone(tmp_path: Path) -> None:
    """On somebody's own cluster her topics and groups are not ours to consume."""
    with ReferenceOnSockets(SHORT_LEASES) as system:
        hers = WireClient("her", system.brokers["b0"], "b0", Journal(tmp_path, "her"))
        make_topic(hers, "orders", 2, system.namesrv)
        with pytest.raises(UsageError, match="the topic orders is on the brokers already"):
            Brokers(Run(PLAN, tmp_path), nullcontext(system))
        assert hers.heartbeat("payments", "orders").code == 0
        own = Topology(topics=(TopicPlan("inorder-1", 1),), groups=("payments",))
        with pytest.raises(UsageError, match="the group payments is on the brokers already"):
            Brokers(Run(Plan(topology=own), tmp_path), nullcontext(system))
        hers.close()


def test_a_broker_is_known_by_the_plans_name(tmp_path: Path) -> None:
    """A plan is written before anybody knows what a system calls its brokers."""
    run = Run(replace(PLAN, topology=replace(PLAN.topology, brokers=("primary",))), tmp_path)
    brokers = Brokers(run, ReferenceOnSockets(SHORT_LEASES))
    try:
        assert (brokers.name("primary"), brokers.name("b0")) == ("b0", "b0")
    finally:
        brokers.close()
    two = replace(PLAN, topology=replace(PLAN.topology, brokers=("b0", "b1")))
    with pytest.raises(UsageError, match="the plan has 2 brokers, the target has 1"):
        Brokers(Run(two, tmp_path), ReferenceOnSockets(SHORT_LEASES))


def test_a_broker_on_which_ours_could_not_consume_is_told_with_the_remedy(tmp_path: Path) -> None:
    """Before any client has started."""

    def strict(config: BrokerConfig, store: BrokerStore) -> Broker:
        return Broker(replace(config, auto_create_groups=False), store)

    system = ReferenceOnSockets(SHORT_LEASES, make_broker=strict)
    with pytest.raises(UsageError, match="autoCreateSubscriptionGroup=true there, or make inorder"):
        Brokers(Run(PLAN, tmp_path), system)


def test_a_broker_that_lets_us_create_no_topic_is_told_with_the_remedy() -> None:
    class Refusing:
        broker_name = "b0"

        def create_topic(self, *_: object) -> Answer:
            return Answer(ResponseCode.NO_PERMISSION, 0, 0, remark="for admins")

    with pytest.raises(UsageError, match=r"for admins.*must allow UPDATE_AND_CREATE_TOPIC"):
        make_topic(Refusing(), "orders", 1, "nowhere")  # type: ignore[arg-type]
