"""Groups of every mode in the simulated cluster."""

from __future__ import annotations

import pytest

from reference_impl.sim.simulate import simulate
from specs.plan.config import Config
from specs.plan.plan import Action, ClientPlan, ListenerRule, Plan, TopicPlan, Topology
from specs.vocabulary import Kind, Outcome


@pytest.mark.parametrize(
    ("mode", "model"),
    [("concurrent", "clustering"), ("key_ordered", "clustering"), ("concurrent", "broadcasting")],
)
def test_a_group_of_any_mode_is_given_every_message(mode: str, model: str) -> None:
    """With a restart in the middle: the offsets of a broadcast client outlive its process as well."""
    config = Config(
        mode=mode,
        message_model=model,
        max_reconsume_times=1,
        persist_first_ms=500,
        persist_ms=500,
        rebalance_ms=1_000,
        suspend_ms=100,
        delay_levels="1s",
    )
    consumers = tuple(ClientPlan(name, "consumer", "billing", ("orders",)) for name in ("c1", "c2"))
    plan = Plan(
        topology=Topology(("b0",), (TopicPlan("orders", 2),), ("billing",)),
        config=config,
        clients=(ClientPlan("p1", "producer"), *consumers),
        actions=(
            *(Action(0, "start", {"client": name}) for name in ("p1", "c1", "c2")),
            Action(1_000, "send", {"client": "p1", "topic": "orders", "count": 30}),
            Action(3_000, "stop", {"client": "c1"}),
            Action(4_000, "restart", {"client": "c1"}),
            Action(5_000, "send", {"client": "p1", "topic": "orders", "count": 30, "key": "k"}),
        ),
        listener=(
            ListenerRule(Outcome.SUSPEND, number=3, delivery_max=1),
            ListenerRule(Outcome.SUSPEND, number=33, delivery_max=1),
        ),
        until_ms=6_000,
    )
    _, rows = simulate(plan)
    given = [row for row in rows if row.kind is Kind.DELIVER and row.outcome is Outcome.SUCCESS]
    again = {
        row.message_id for row in rows if row.kind is Kind.DELIVER and row.reconsume_times == 1
    }
    if model == "broadcasting":
        assert sorted({row.process for row in given}) == ["c1", "c2"]
        assert {row.kind for row in rows} & {Kind.LOCK, Kind.COMMIT, Kind.FETCH_OFFSET} == set()
        assert again == set()
        # No message was delivered twice to one process: the restarted one went on where its file said.
        assert len({(row.process, row.message_id) for row in given}) == len(given) == 2 * 58
    else:
        assert {row.message_id for row in given} == {f"m{n}" for n in range(1, 61)}
        assert again == {"m3", "m33"}
        assert {row.kind for row in rows} & {Kind.LOCK, Kind.UNLOCK} == set()
        assert {
            row.topic for row in rows if row.reconsume_times == 1 and row.kind is Kind.DELIVER
        } == {"%RETRY%billing" if mode == "concurrent" else "orders"}
