"""A thread for two lanes: where a turn ends is the run's own number, for both judges."""

from __future__ import annotations

import pytest
from judging import by_columns, in_memory

from reference_impl.sim.simulate import simulate
from spark_checkers.catalogue import all_judges
from specs.clauses.catalogue import all_clauses
from specs.plan.config import Config
from specs.plan.plan import Action, ClientPlan, ListenerRule, Plan, TopicPlan, Topology
from specs.vocabulary import Kind, Outcome

CALL_MS = 748
GIVEN_UP = 5
"""The number of the message whose dead letter comes when the turn of its lane is nearly over."""


def plan_of(continuous_ms: int) -> Plan:
    def act(at_ms: int, do: str, **args: object) -> Action:
        return Action(at_ms, do, args)

    return Plan(
        seed=1,
        topology=Topology(("b0",), (TopicPlan("orders", 2),), ("billing",)),
        config=Config(
            broker_lease_ms=3_000,
            client_lease_ms=1_500,
            lock_interval_ms=1_000,
            rebalance_ms=2_000,
            max_reconsume_times=0,
            threads=1,
            continuous_ms=continuous_ms,
        ),
        clients=(
            ClientPlan("alice", "consumer", "billing", ("orders",)),
            ClientPlan("shop", "producer", topics=("orders",)),
        ),
        actions=(
            act(0, "start", client="shop"),
            act(0, "start", client="alice"),
            act(50, "send", client="shop", topic="orders", key="k1", count=8),
            act(50, "send", client="shop", topic="orders", key="k2", count=8),
        ),
        listener=(
            ListenerRule(duration_ms=CALL_MS),
            ListenerRule(outcome=Outcome.SUSPEND, suspend_ms=10, duration_ms=10, number=GIVEN_UP),
        ),
        until_ms=2_000,
        settle_ms=200_000,
    )


@pytest.mark.parametrize(("continuous_ms", "other_lane_first"), [(3_000, True), (60_000, False)])
def test_a_turn_that_ends_at_a_give_up_is_held_against_nobody(
    continuous_ms: int, other_lane_first: bool
) -> None:
    """After the dead letter the other lane has its turn where the cap is reached, and only there."""
    info, rows = simulate(plan_of(continuous_ms))
    letter = next(row for row in rows if row.kind is Kind.DEAD_LETTER)
    after = next(
        row for row in rows if row.kind is Kind.DELIVER and row.started_us >= (letter.ended_us or 0)
    )
    assert (after.queue_id != letter.queue_id) is other_lane_first
    found = in_memory(rows, info, all_clauses())
    assert {clause: violations for clause, (_, violations) in found.items() if violations} == {}
    assert by_columns(rows, info, all_judges()) == found
    assert found["DLQ-9"][0] == (0 if other_lane_first else 1)
