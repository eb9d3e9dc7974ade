"""A plan decides a simulated run to the byte; crashes, pauses and the drain leave their rows."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from reference_impl.mutants import load
from reference_impl.protocol.message import StoredMessage
from reference_impl.sim.cluster import Cluster
from reference_impl.sim.simulate import parties_of, simulate, with_config
from specs.history.row import Row
from specs.plan.config import Config
from specs.plan.listener import Listener
from specs.plan.plan import Action, ClientPlan, ListenerRule, Plan, TopicPlan, Topology
from specs.vocabulary import Kind, Lane, Level, Outcome

CLIENTS = (
    ClientPlan("alice", "consumer", "billing", ("orders",)),
    ClientPlan("bob", "consumer", "billing", ("orders",)),
    ClientPlan("p", "producer", topics=("orders",)),
    ClientPlan("eve", "prober"),
)
SHORT = Config(
    broker_lease_ms=3_000,
    client_lease_ms=1_500,
    lock_interval_ms=1_000,
    rebalance_ms=1_000,
    max_reconsume_times=1,
    suspend_ms=50,
)


def act(at_ms: int, do: str, **args: object) -> Action:
    return Action(at_ms, do, args)


def plan_of(
    *actions: Action,
    rules: tuple[ListenerRule, ...] = (),
    until_ms: int = 0,
    brokers: tuple[str, ...] = ("b0",),
) -> Plan:
    begin = (act(0, "start", client="alice"), act(0, "start", client="p"))
    return Plan(
        seed=3,
        topology=Topology(brokers, (TopicPlan("orders", 2),), ("billing",)),
        config=SHORT,
        clients=CLIENTS,
        actions=(*begin, *actions),
        listener=rules,
        until_ms=until_ms or (actions[-1].at_ms if actions else 0) + 1,
    )


def of(rows: list[Row], kind: Kind) -> list[Row]:
    return [row for row in rows if row.kind is kind]


BUSY = plan_of(
    act(100, "send", client="p", topic="orders", key="k1", count=5),
    act(100, "send", client="p", topic="orders", count=5),
    act(200, "start", client="bob"),
    act(
        300, "probe_lock", client="eve", group="billing", topic="orders", broker="b0", queues=[0, 1]
    ),
    act(1_500, "lose", a="alice", b="b0", percent=30),
    act(2_000, "send", client="p", topic="orders", key="k2", count=9),
    act(2_500, "crash", client="alice"),
    act(2_600, "broker_crash", broker="b0"),
    act(2_700, "broker_restart", broker="b0"),
    act(3_000, "pause", node="bob"),
    act(6_000, "resume", node="bob"),
    rules=(
        ListenerRule(duration_ms=7),
        ListenerRule(outcome=Outcome.SUSPEND, number=3, delivery_max=1),
        ListenerRule(outcome=Outcome.THREW, number=12),
    ),
)


def digest(rows: list[Row]) -> str:
    text = "\n".join(json.dumps(row, default=str) for row in rows)
    return hashlib.sha256(text.encode()).hexdigest()


IN_ANOTHER_PROCESS = """
import hashlib, json, sys
from reference_impl.sim.simulate import simulate
from specs.plan.plan import Plan
rows = simulate(Plan.from_json(json.load(sys.stdin)))[1]
print(hashlib.sha256("\\n".join(json.dumps(row, default=str) for row in rows).encode()).hexdigest())
"""


@pytest.mark.parametrize("hash_seed", ["1", "77"])
def test_same_plan_same_bytes_in_another_process_with_another_hash_seed(hash_seed: str) -> None:
    there = subprocess.run(
        [sys.executable, "-c", IN_ANOTHER_PROCESS],
        input=json.dumps(BUSY.to_json()),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        cwd=Path(__file__).parents[3],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
    )
    assert there.stdout.strip() == digest(simulate(BUSY)[1])


def test_another_seed_is_another_run() -> None:
    other = Plan.from_json({**BUSY.to_json(), "seed": 4})
    assert digest(simulate(BUSY)[1]) != digest(simulate(other)[1])


def test_driven_step_by_step_it_is_the_same_run() -> None:
    header = Plan(seed=BUSY.seed, topology=BUSY.topology, config=BUSY.config, clients=BUSY.clients)
    cluster = Cluster(header, run="reference-3")
    for rule in BUSY.listener:
        cluster.add_rule(rule)
    for action in BUSY.actions:
        if action.at_ms > cluster.now_ms:
            cluster.run_until(action.at_ms)
        cluster.perform(action.do, action.args)
    cluster.run_until(BUSY.until_ms)
    cluster.settle(BUSY.settle_ms)
    cluster.drain()
    assert digest(cluster.rows()) == digest(simulate(BUSY)[1])


def test_every_message_is_delivered_and_the_dead_letter_is_drained() -> None:
    info, rows = simulate(BUSY)
    sent = {row.message_id for row in of(rows, Kind.SEND) if row.outcome is Outcome.OK}
    finished = {row.message_id for row in of(rows, Kind.DELIVER) if row.outcome is Outcome.SUCCESS}
    dead = [
        row
        for row in of(rows, Kind.READ)
        if row.topic == "%DLQ%billing" and row.queue_offset is not None
    ]
    assert sent - finished == {"m12"}
    assert [(row.source_id, row.group) for row in dead] == [("m12", "billing")]
    assert info.config == replace(BUSY.config, guard_slack_ms=0, disk_slack_ms=0)


def test_the_drain_reads_each_queue_between_the_ends_of_its_marker() -> None:
    rows = of(simulate(BUSY)[1], Kind.READ)
    markers = {row.queue: row for row in rows if row.queue_offset is None}
    assert {row.topic for row in markers.values()} == {"orders", "%RETRY%billing", "%DLQ%billing"}
    for row in rows:
        marker = markers[row.queue]
        assert row.level is Level.WIRE
        assert marker.seq_begin <= row.seq_begin <= (marker.seq_end or 0)
        assert row.queue_offset is None or row.queue_offset < (marker.value or 0)


def test_a_crash_leaves_open_what_was_open_and_a_restart_is_another_process() -> None:
    plan = plan_of(
        act(100, "send", client="p", topic="orders", key="k1", count=1),
        act(200, "crash", client="alice"),
        rules=(ListenerRule(duration_ms=5_000, delivery_max=1),),
    )
    rows = simulate(plan)[1]
    crash = next(row for row in of(rows, Kind.CRASH))
    first, again = of(rows, Kind.DELIVER)
    assert (crash.client_id, crash.started_us) == ("alice", 200_000)
    assert (first.client_id, first.seq_end, first.outcome) == ("alice", None, Outcome.UNKNOWN)
    assert (again.client_id, again.process, again.outcome) == ("alice.2", "alice", Outcome.SUCCESS)


def test_a_broker_keeps_its_log_over_a_crash_and_forgets_its_leases() -> None:
    lock = {"client": "eve", "group": "idle", "topic": "orders", "broker": "b0", "queues": [0]}
    plan = plan_of(
        act(100, "send", client="p", topic="orders", key="k1", count=3),
        act(500, "probe_lock", **lock),
        act(600, "broker_crash", broker="b0"),
        act(700, "broker_restart", broker="b0"),
        act(800, "probe_lock", **lock),
        act(900, "probe_unlock", **lock),
    )
    rows = simulate(plan)[1]
    read = [
        row.message_id for row in of(rows, Kind.READ) if row.topic == "orders" and row.message_id
    ]
    asked = [
        (row.kind, row.outcome)
        for row in rows
        if row.client_id == "eve" and row.kind is not Kind.JOIN
    ]
    crash = next(row for row in of(rows, Kind.CRASH))
    assert read == ["m1", "m2", "m3"]
    assert asked == [(Kind.LOCK, Outcome.OK), (Kind.LOCK, Outcome.OK), (Kind.UNLOCK, Outcome.OK)]
    assert (crash.broker, crash.broker_epoch, crash.client_id) == ("b0", 1, None)


def test_a_paused_consumer_ends_its_call_when_it_goes_on() -> None:
    plan = plan_of(
        act(100, "send", client="p", topic="orders", key="k1", count=1),
        act(150, "pause", node="alice"),
        act(4_000, "resume", node="alice"),
        rules=(ListenerRule(duration_ms=200),),
    )
    rows = simulate(plan)[1]
    pause = next(row for row in of(rows, Kind.PAUSE))
    call = next(row for row in of(rows, Kind.DELIVER))
    fault = next(row for row in of(rows, Kind.FAULT))
    assert (pause.client_id, pause.started_us, pause.ended_us) == ("alice", 150_000, 4_000_000)
    assert (call.started_us < 150_000, call.ended_us) == (True, 4_000_000)
    assert (fault.detail, fault.outcome) == ("pause alice", Outcome.OK)


def test_faults_without_effect_say_so() -> None:
    plan = plan_of(
        act(100, "drop_next", a="bob", b="b0", code=41), act(200, "cut", a="alice", b="b0")
    )
    faults = [(row.detail, row.outcome) for row in of(simulate(plan)[1], Kind.FAULT)]
    assert faults == [("drop_next b0 bob 41", Outcome.REFUSED), ("cut alice b0", Outcome.OK)]


def test_a_clock_step_moves_the_wall_clock_and_is_recorded() -> None:
    plan = plan_of(
        act(100, "clock_step", node="p", ms=5_000),
        act(200, "send", client="p", topic="orders", count=1),
    )
    rows = simulate(plan)[1]
    step = next(row for row in of(rows, Kind.CLOCK_STEP))
    send = next(row for row in of(rows, Kind.SEND))
    assert (step.client_id, step.value) == ("p", 5_000)
    assert send.wall_us is not None
    assert step.wall_us is not None
    assert send.wall_us - step.wall_us == 5_000_000 + send.started_us - step.started_us


def test_actions_that_do_not_fit_the_moment_do_nothing() -> None:
    idle = plan_of()
    plan = plan_of(
        act(0, "restart", client="alice"),
        act(0, "start", client="alice"),
        act(0, "start", client="eve"),
        act(0, "crash", client="bob"),
        act(0, "crash", client="eve"),
        act(0, "stop", client="bob"),
        act(0, "broker_restart", broker="b0"),
        act(0, "broker_crash", broker="alice"),
        act(0, "resume", node="alice"),
        act(0, "pause", node="bob"),
        act(0, "probe_lock", client="alice", group="g", topic="orders", broker="b0", queues=[0]),
        act(0, "probe_lock", client="eve", group="g", topic="orders", broker="b0", queues=[]),
        act(0, "heal", a="alice", b="b0"),
    )
    assert digest(simulate(plan)[1]) == digest(simulate(idle)[1])


def test_messages_are_numbered_whether_or_not_their_producer_runs() -> None:
    plan = plan_of(
        act(50, "stop", client="p"),
        act(100, "send", client="p", topic="orders", key="k", count=2),
        act(200, "restart", client="p"),
        act(300, "send", client="p", topic="orders", key="k", count=2),
    )
    sends = of(simulate(plan)[1], Kind.SEND)
    assert [(row.message_id, row.key_seq, row.client_id) for row in sends] == [
        ("m3", 3, "p.2"),
        ("m4", 4, "p.2"),
    ]


def test_a_mutant_names_itself_as_the_party_it_replaces() -> None:
    assert parties_of(load("unlock-ignores-owner")) == {
        "broker": "inorder mutant unlock-ignores-owner",
        "client": "inorder reference",
        "producer": "inorder reference",
    }


# ---------------------------------------------------------------- the listener


def message(number: int, key: str | None = None) -> StoredMessage:
    properties = {"UNIQ_KEY": f"m{number}"} | ({} if key is None else {"__SHARDINGKEY": key})
    return StoredMessage("orders", 0, number, number, b"", properties)


LANE = Lane("billing", "orders", "b0", 0)


@pytest.mark.parametrize(
    ("now_ms", "client", "times", "expected"),
    [
        (0, "alice", 1, Outcome.SUSPEND),
        (0, "alice", 3, Outcome.SUCCESS),
        (0, "bob", 1, Outcome.NULL),
        (500, "alice", 1, Outcome.COMMIT),
    ],
)
def test_the_last_rule_that_matches_decides(
    now_ms: int, client: str, times: int, expected: Outcome
) -> None:
    listener = Listener(
        (
            ListenerRule(outcome=Outcome.SUSPEND, number=1, delivery_max=2),
            ListenerRule(outcome=Outcome.NULL, client="bob"),
            ListenerRule(outcome=Outcome.THREW, number=2),
            ListenerRule(outcome=Outcome.ROLLBACK, group="audit"),
            ListenerRule(outcome=Outcome.COMMIT, from_ms=500),
        )
    )
    assert listener.decide(now_ms, client, LANE, [message(1)], [times]).outcome is expected


def test_the_first_message_of_a_batch_that_has_a_rule_decides() -> None:
    listener = Listener(
        (ListenerRule(outcome=Outcome.NULL, key="k"), ListenerRule(outcome=Outcome.THREW, number=3))
    )
    batch = [message(1), message(2, "k"), message(3)]
    assert listener.decide(0, "alice", LANE, batch, [1, 1, 1]).outcome is Outcome.NULL


def test_a_delayed_message_of_a_plan_is_delivered_at_its_level_whatever_dies() -> None:
    """Level 2 is five seconds; the broker dies while they pass, and the message has no number of its key."""
    plan = plan_of(
        act(500, "send", client="p", topic="orders", key="k", count=1, delay_level=1),
        act(500, "send", client="p", topic="orders", key="k", count=2, delay_level=2),
        act(600, "send", client="p", topic="orders", key="k", count=1),
        act(1_800, "broker_crash", broker="b0"),
        act(2_000, "broker_restart", broker="b0"),
    )
    rows = simulate(with_config(plan, {"heartbeat_ms": 1_000}))[1]
    sent = {row.message_id: row for row in of(rows, Kind.SEND)}
    assert {row.message_id: (row.delay_level, row.key_seq) for row in sent.values()} == {
        "m1": (1, None),
        "m2": (2, None),
        "m3": (2, None),
        "m4": (None, 1),
    }
    calls = {row.message_id: row for row in of(rows, Kind.DELIVER)}
    assert list(calls) == ["m4", "m1", "m2", "m3"]
    waited_ms = {
        name: (row.started_us - sent[name].started_us) // 1000 for name, row in calls.items()
    }
    assert (waited_ms["m1"] // 100, waited_ms["m2"] // 1000) == (10, 5)


def test_a_dead_letter_of_a_4_9_broker_waits_for_its_level() -> None:
    """One retry allowed: level 3 + 1, thirty seconds; the copy is recorded with the level that was asked for."""
    plan = plan_of(
        act(100, "send", client="p", topic="orders", count=1),
        rules=(ListenerRule(outcome=Outcome.SUSPEND, number=1),),
    )
    rows = simulate(with_config(plan, {"dialect": "4.9"}))[1]
    (given_up,) = of(rows, Kind.DEAD_LETTER)
    copies = [
        (row.topic, row.queue_id, row.delay_level)
        for row in of(rows, Kind.APPEND)
        if row.origin_id == "m1"
    ]
    assert copies == [("SCHEDULE_TOPIC_XXXX", 3, 4), ("%DLQ%billing", 0, 4)]
    (read,) = [row for row in of(rows, Kind.READ) if row.origin_id == "m1"]
    assert 30_000 <= ((read.wall_us or 0) - (given_up.wall_us or 0)) // 1000 <= 30_010


def test_half_messages_of_a_plan_are_seen_after_their_commit_only() -> None:
    """Committed at once, rolled back, left open and answered when the broker asks, left open for ever."""

    def half(key: str, ends: str, checked: str) -> Action:
        return act(
            500,
            "send_half",
            client="p",
            topic="orders",
            key=key,
            count=1,
            ends=ends,
            checked=checked,
        )

    plan = plan_of(
        half("k1", "commit", "commit"),
        half("k2", "rollback", "commit"),
        half("k3", "unknown", "commit"),
        half("k4", "unknown", "rollback"),
        half("k5", "unknown", "unknown"),
        act(700, "crash", client="p"),  # another process of the group answers
        act(900, "restart", client="p"),
        act(20_000, "send", client="p", topic="orders", key="k1", count=1),
    )
    often = {
        "transaction_timeout_ms": 300,
        "transaction_check_interval_ms": 1_500,
        "transaction_check_max": 3,
    }
    rows = simulate(with_config(plan, often))[1]
    halves = {row.message_id: row for row in of(rows, Kind.SEND) if row.detail == "half"}
    assert {(row.outcome, row.queue_offset, row.key_seq) for row in halves.values()} == {
        (Outcome.OK, None, None)
    }
    assert [row.message_id for row in of(rows, Kind.DELIVER)] == ["m1", "m3", "m6"]
    asked = [(row.message_id, row.attempt, row.client_id) for row in of(rows, Kind.CHECK)]
    assert sorted(asked) == [
        ("m3", 1, "p.2"),
        ("m4", 1, "p.2"),
        ("m5", 1, "p.2"),
        ("m5", 2, "p.2"),
        ("m5", 3, "p.2"),
    ]
    assert [row.value for row in of(rows, Kind.END_TRANSACTION) if row.message_id == "m3"] == [0, 8]
