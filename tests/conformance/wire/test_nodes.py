"""Our own clients on sockets, driven by a plan: what the harness writes down of them."""

from __future__ import annotations

import asyncio
from pathlib import Path

from conformance.targets.systems import ReferenceOnSockets
from conformance.wire.nodes import PlanRunner
from specs.history.runinfo import RunInfo, write_runinfo
from specs.history.store import compact_journal
from specs.plan.plan import Action, ClientPlan, Plan, TopicPlan, Topology
from specs.vocabulary import Kind


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
    write_runinfo(tmp_path, RunInfo(run="r"))
    with ReferenceOnSockets(plan.config) as system:
        asyncio.run(PlanRunner(plan, system, tmp_path, "").run())
    rows = [row for row in compact_journal(tmp_path).rows() if row.kind in (Kind.JOIN, Kind.CRASH, Kind.LEAVE)]
    assert [(row.kind, row.client_id, row.group) for row in rows] == [
        (Kind.JOIN, "c1", "billing"),
        (Kind.CRASH, "c1", "billing"),
        (Kind.JOIN, "c1", "billing"),
        (Kind.LEAVE, "c1", "billing"),
    ]
