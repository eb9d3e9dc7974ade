"""Simulated brokers on disks: a crash loses what was not synced, and a plan decides to the byte what that is."""

from __future__ import annotations

import pytest

from reference_impl.sim.cluster import Cluster
from reference_impl.sim.simulate import runinfo_of, simulate, with_config
from reference_impl.storage import DiskStore
from specs.history.row import Row
from specs.plan.plan import Action, ClientPlan, Plan, TopicPlan, Topology
from specs.verdicts.examine import examine
from specs.vocabulary import Kind, Outcome
from tests.reference_impl.sim.test_cluster import BUSY, digest, of


def act(at_ms: int, do: str, **args: object) -> Action:
    return Action(at_ms, do, args)


def plan_of(flush: str, *actions: Action) -> Plan:
    """One broker, one queue and one producer, who is there from the begin."""
    plan = Plan(
        topology=Topology(("b0",), (TopicPlan("orders", 1),), ("billing",)),
        clients=(ClientPlan("p", "producer", topics=("orders",)),),
        actions=tuple(
            sorted((act(0, "start", client="p"), *actions), key=lambda action: action.at_ms)
        ),
        until_ms=3_000,
        settle_ms=10_000,
    )
    return with_config(plan, {"flush": flush})


def sends(*times: int) -> tuple[Action, ...]:
    return tuple(
        act(at_ms, "send", client="p", topic="orders", key="k", count=1) for at_ms in times
    )


def crashes(*times: int) -> tuple[Action, ...]:
    return tuple(
        action
        for at_ms in times
        for action in (
            act(at_ms, "broker_crash", broker="b0"),
            act(at_ms + 50, "broker_restart", broker="b0"),
        )
    )


def found(rows: list[Row]) -> list[str | None]:
    """The messages that are there in the end."""
    return [
        row.message_id
        for row in of(rows, Kind.READ)
        if row.topic == "orders" and row.queue_offset is not None
    ]


def acknowledged(rows: list[Row]) -> dict[str | None, int]:
    """Message → when the answer came, in ms."""
    return {
        row.message_id: (row.ended_us or 0) // 1000
        for row in of(rows, Kind.SEND)
        if row.outcome is Outcome.OK
    }


EVERY_20_MS = sends(*range(100, 2_900, 20))
CRASHES = (640, 1_300, 2_000, 2_750)


def test_with_sync_nothing_acknowledged_is_lost_and_with_async_the_newest_only() -> None:
    """What async loses is younger than its interval, and is the end of what was there."""
    for flush, may_be_lost_ms in (("sync", 0), ("async", 502)):
        info, rows = simulate(plan_of(flush, *EVERY_20_MS, *crashes(*CRASHES)))
        there, answered = found(rows), acknowledged(rows)
        lost = {name: at_ms for name, at_ms in answered.items() if name not in there}
        for at_ms in lost.values():
            assert any(crash - may_be_lost_ms <= at_ms <= crash for crash in CRASHES)
        assert bool(lost) == (flush == "async")
        assert len(there) == len(set(there)) > 80
        assert examine(rows, info).refuted() == ()


def test_in_memory_a_crash_loses_nothing() -> None:
    _, rows = simulate(plan_of("memory", *EVERY_20_MS, *crashes(*CRASHES)))
    assert set(acknowledged(rows)) <= set(found(rows))


@pytest.mark.parametrize("flush", ["sync", "async"])
def test_the_same_plan_loses_the_same_bytes(flush: str) -> None:
    plan = plan_of(flush, *EVERY_20_MS, *crashes(*CRASHES))
    assert digest(simulate(plan)[1]) == digest(simulate(plan)[1])
    assert simulate(plan)[0].target == f"reference:{flush}"


@pytest.mark.parametrize("flush", ["sync", "async"])
def test_a_busy_cluster_keeps_every_clause(flush: str) -> None:
    """Consumers at work, a link that loses frames, a pause and crashes."""
    plan = with_config(BUSY, {"flush": flush})
    info, rows = simulate(plan)
    assert examine(rows, info).refuted() == ()


def test_a_full_disk_stays_full_over_a_crash_and_loses_nothing() -> None:
    """It refuses, its broker starts again all the same, and goes on when there is room."""
    plan = plan_of(
        "sync",
        *sends(100, 300, 700, 1_000),
        act(200, "disk_full", broker="b0"),
        *crashes(400),
        act(900, "disk_room", broker="b0"),
    )
    info, rows = simulate(plan)
    ends = [(row.outcome, row.code) for row in of(rows, Kind.SEND)]
    assert ends == [(Outcome.OK, 0), (Outcome.REFUSED, 14), (Outcome.REFUSED, 14), (Outcome.OK, 0)]
    assert found(rows) == ["m1", "m4"]
    assert (
        next(row for row in of(rows, Kind.FAULT) if "disk_full" in (row.detail or "")).outcome
        is Outcome.OK
    )
    assert examine(rows, info).refuted() == ()


def test_the_log_goes_through_several_segments() -> None:
    """And each start recovers all of them."""
    plan = plan_of("sync", *EVERY_20_MS)
    cluster = Cluster(plan)
    for action in (*plan.actions, *crashes(3_000)):
        cluster.run_until(action.at_ms)
        cluster.perform(action.do, action.args)
    core = cluster.node("b0").core
    store = core.store  # type: ignore[union-attr]
    assert isinstance(store, DiskStore)
    assert store.end > 3 * 8 * 1024
    assert store.queue("orders", 0).max_offset == len(EVERY_20_MS)
    assert runinfo_of(plan, None).config.flush == "sync"


def test_a_slow_disk_answers_later_by_the_number_of_ms_until_it_is_fast_again() -> None:
    """A second fault goes on by its own number; one that nobody ends is over when the cluster settles."""
    plan = plan_of(
        "sync",
        *sends(100, 300, 900, 1_500, 2_500),
        act(200, "slow_disk", broker="b0", ms=100),
        act(800, "slow_disk", broker="b0", ms=200),
        act(1_400, "disk_fast", broker="b0"),
        act(2_400, "slow_disk", broker="b0", ms=300),
    )
    info, rows = simulate(plan)
    took_ms = [((row.ended_us or 0) - row.started_us) // 1000 for row in of(rows, Kind.SEND)]
    assert [each // 100 for each in took_ms] == [0, 1, 2, 0, 3]
    told = [(row.detail, row.outcome) for row in of(rows, Kind.FAULT)]
    assert told == [(f"slow_disk b0 {ms}", Outcome.OK) for ms in (100, 200, 300)]
    assert examine(rows, info).refuted() == ()


def test_a_disk_that_nobody_waits_for_is_slow_in_vain() -> None:
    slow = act(200, "slow_disk", broker="b0", ms=100), act(900, "disk_fast", broker="b0")
    for flush in ("memory", "sync"):
        _, rows = simulate(plan_of(flush, *sends(100, *[300] * (flush == "memory")), *slow))
        (fault,) = of(rows, Kind.FAULT)
        assert fault.outcome is Outcome.REFUSED
