"""Our own clients on sockets, driven by a plan: what the harness writes down of them."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import pytest

from conformance.run import run
from conformance.targets.base import Run, find
from conformance.targets.systems import ReferenceOnSockets
from conformance.wire.runner import SHORT_LEASES
from conformance.wire.target import WireTarget
from reference_impl.shell.stalls import Stalls
from specs.errors import UsageError
from specs.history.row import Row
from specs.history.runinfo import RunInfo, write_runinfo
from specs.history.store import compact_journal
from specs.plan.plan import Action, ClientPlan, ListenerRule, Plan, TopicPlan, Topology
from specs.vocabulary import Kind, Outcome


def test_a_consumer_that_is_killed_is_told_as_dead(tmp_path: Path) -> None:
    """Without the row, a client that comes again under its name looks like one that forgot its work."""
    plan = Plan(
        topology=Topology(topics=(TopicPlan("orders", 1),), groups=("billing",)),
        clients=(ClientPlan("c1", "consumer", "billing", ("orders",)),),
        actions=(
            Action(0, "start", {"client": "c1"}),
            Action(300, "crash", {"client": "c1"}),
            Action(310, "restart", {"client": "c1"}),
        ),
        until_ms=500,
    )
    rows = [
        row for row in history_of(plan, tmp_path) if row.kind in (Kind.JOIN, Kind.CRASH, Kind.LEAVE)
    ]
    assert [(row.kind, row.client_id, row.group) for row in rows] == [
        (Kind.JOIN, "c1", "billing"),
        (Kind.CRASH, "c1", "billing"),
        (Kind.JOIN, "c1", "billing"),
    ]


class _Slow(ReferenceOnSockets):
    """It is up only when somebody says so. begun, left: whether it was entered, and left."""

    def __init__(self) -> None:
        super().__init__(SHORT_LEASES)
        self.begun, self.may_be_up, self.left = (threading.Event() for _ in range(3))

    def __enter__(self) -> Self:
        self.begun.set()
        assert self.may_be_up.wait(30)
        return super().__enter__()

    def __exit__(self, *why: Any) -> None:
        super().__exit__(*why)
        self.left.set()


def test_who_ends_a_run_while_its_system_starts_leaves_nothing_open(tmp_path: Path) -> None:
    """The loop hears of it at once, and the system that is up after all is left again."""
    system, found = _Slow(), find("reference+tcp")
    assert isinstance(found, WireTarget)
    target = replace(found, opens=lambda _config: system)

    async def ended_early() -> None:
        preparing = asyncio.create_task(target.prepare(Run(short_plan((), 1), tmp_path)))
        while not system.begun.is_set():
            await asyncio.sleep(0.01)
        preparing.cancel()
        system.may_be_up.set()
        with pytest.raises(asyncio.CancelledError):
            await preparing

    asyncio.run(asyncio.wait_for(ended_early(), 60))
    assert system.left.is_set()


def history_of(plan: Plan, folder: Path) -> list[Row]:
    """The plan done on sockets, with a drain at its end while everybody is at work."""
    return list(run(plan, find("reference+tcp"), folder).rows())


def short_plan(
    actions: tuple[Action, ...], until_ms: int, *listener: ListenerRule, **config: Any
) -> Plan:
    return Plan(
        topology=Topology(topics=(TopicPlan("orders", 1),), groups=("billing", "moved")),
        config=replace(SHORT_LEASES, **config),
        clients=(
            ClientPlan("p1", "producer"),
            ClientPlan("c1", "consumer", "billing", ("orders",)),
            ClientPlan("e1", "prober"),
        ),
        actions=(
            Action(0, "start", {"client": "p1"}),
            Action(0, "start", {"client": "c1"}),
            *actions,
        ),
        listener=listener,
        until_ms=until_ms,
    )


def send(at_ms: int, do: str = "send", **more: Any) -> Action:
    return Action(at_ms, do, {"client": "p1", "topic": "orders", "count": 1, **more})


def test_the_work_of_a_client_that_came_again_is_another_incarnation(tmp_path: Path) -> None:
    """Else it looks as if one incarnation had given its messages up twice (DLQ-2)."""
    again = (Action(1_500, "crash", {"client": "c1"}), Action(1_510, "restart", {"client": "c1"}))
    rows = history_of(short_plan((send(300), *again), 3_500), tmp_path)
    added = [
        row.incarnation or "" for row in rows if row.kind is Kind.ADD and row.topic == "orders"
    ]
    assert [incarnation.partition("#")[0] for incarnation in added] == ["c1", "c1.2"]


def test_a_copy_that_was_read_names_its_producers_message(tmp_path: Path) -> None:
    """The broker's copies name its own id of what they were made from: nobody had sent that (SND-2)."""
    plan = short_plan(
        (send(300),),
        3_500,
        ListenerRule(Outcome.SUSPEND),
        mode="concurrent",
        delay_levels=" ".join(["1s"] * 18),
    )
    rows = history_of(plan, tmp_path)
    dead = [
        row
        for row in rows
        if row.kind is Kind.READ and row.topic == "%DLQ%billing" and row.message_id
    ]
    assert [(row.message_id, row.origin_id) for row in dead] == [("m1", "m1")]


def test_half_messages_resets_and_a_full_disk_are_done_on_sockets_too(tmp_path: Path) -> None:
    lane = {"client": "e1", "group": "moved", "topic": "orders", "broker": "b0"}
    plan = short_plan(
        (
            send(300, "send_half", ends="commit", checked="commit"),
            send(310, "send_half", ends="rollback", checked="commit"),
            Action(400, "probe_commit", {**lane, "queue": 0, "offset": 7}),
            Action(500, "reset", {**lane, "queue": 0, "offset": 0}),
            Action(600, "probe_offset", {**lane, "queues": [0]}),
            Action(700, "disk_full", {"broker": "b0"}),
            send(800, key="k"),
            Action(1_500, "disk_room", {"broker": "b0"}),
        ),
        2_000,
    )
    rows = history_of(plan, tmp_path)
    seen = [
        row.message_id
        for row in rows
        if row.kind is Kind.READ and row.topic == "orders" and row.message_id
    ]
    assert seen == ["m1"]
    asked = [row.value for row in rows if row.kind is Kind.FETCH_OFFSET and row.group == "moved"]
    assert asked == [0]
    assert [row.outcome for row in rows if row.kind is Kind.SEND and row.message_id == "m3"] == [
        Outcome.REFUSED
    ]
    marks = [
        row
        for row in rows
        if row.kind is Kind.READ and row.message_id is None and row.topic == "orders"
    ]
    assert [row.detail for row in marks] == ["settled"]


def test_what_the_store_says_of_a_group_is_written_down_at_the_end(tmp_path: Path) -> None:
    """By somebody who is neither the consumer nor the drain; a group that stored nothing is told so."""
    rows = history_of(short_plan((send(300), send(310)), 2_000), tmp_path)
    told = {
        row.group: (row.level, row.process, row.outcome, row.value)
        for row in rows
        if row.kind is Kind.PROGRESS
    }
    assert told == {
        "billing": ("store", "witness", Outcome.OK, 2),
        "moved": ("store", "witness", Outcome.REFUSED, -1),
    }


def test_a_broadcast_consumer_that_comes_again_goes_on_at_its_own_offset(tmp_path: Path) -> None:
    again = (Action(2_000, "stop", {"client": "c1"}), Action(2_600, "restart", {"client": "c1"}))
    plan = short_plan(
        (send(300), *again, send(3_000)),
        4_500,
        mode="concurrent",
        message_model="broadcasting",
        persist_first_ms=500,
    )
    rows = history_of(plan, tmp_path)
    assert [row.message_id for row in rows if row.kind is Kind.DELIVER] == ["m1", "m2"]


def test_a_process_that_stood_still_is_written_down_as_a_pause_of_its_clients(
    tmp_path: Path,
) -> None:
    """It began when the loop was last seen to run: before all that came too late."""

    async def stand_still() -> None:
        task = asyncio.create_task(Stalls(tmp_path, lambda: ("c1", "c2")).watch())
        await asyncio.sleep(0.05)
        threading.Event().wait(0.4)  # nothing else of this loop runs meanwhile
        await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.wait([task])

    write_runinfo(tmp_path, RunInfo(run="r"))
    asyncio.run(stand_still())
    rows = [row for row in compact_journal(tmp_path).rows() if row.kind is Kind.PAUSE]
    assert {row.client_id for row in rows} == {"c1", "c2"}
    assert max((row.ended_us or 0) - (row.started_us or 0) for row in rows) >= 400_000


def test_a_broker_of_the_plan_dies_and_comes_again_and_its_disk_is_filled(tmp_path: Path) -> None:
    """Faults are done by the registry's verbs, on a broker of the system."""
    actions = (
        Action(300, "disk_full", {"broker": "b0"}),
        send(350),
        Action(600, "disk_room", {"broker": "b0"}),
        Action(700, "broker_crash", {"broker": "b0"}),
        Action(900, "broker_restart", {"broker": "b0"}),
        send(1_500),
    )
    rows = history_of(short_plan(actions, 3_500), tmp_path)
    assert [row.broker for row in rows if row.kind is Kind.CRASH] == ["b0"]
    sent = [row.outcome for row in rows if row.kind is Kind.SEND and row.message_id == "m1"]
    assert Outcome.REFUSED in sent
    assert Outcome.OK in [row.outcome for row in rows if row.message_id == "m2"]


@pytest.mark.parametrize(
    ("verb", "args", "ability"),
    [
        ("pause", {"node": "c1"}, "stop a client between two instructions"),
        ("cut", {"a": "c1", "b": "b0"}, "break, hold and delay a connection"),
        ("clock_step", {"node": "c1", "ms": 5}, "step a client's wall clock"),
    ],
)
def test_a_fault_beyond_the_systems_abilities_is_refused_with_the_one_that_is_missing(
    verb: str, args: dict[str, Any], ability: str, tmp_path: Path
) -> None:
    plan = short_plan((Action(0, verb, args),), 100)
    with pytest.raises(UsageError, match=f"'{verb}' needs a target that can {ability}"):
        run(plan, find("reference+tcp"), tmp_path)
