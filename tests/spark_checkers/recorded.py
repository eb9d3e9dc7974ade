"""A history recorded from the simulated reference: handovers, suspended messages, rollbacks, dead letters, a drain."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from random import Random
from typing import Any

from reference_impl.sim.leased import leased_info, simulate_leased
from reference_impl.sim.leased_plans import drawn_plan
from reference_impl.sim.simulate import simulate
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.plan.config import Config
from specs.plan.plan import Action, ClientPlan, ListenerRule, Plan, TopicPlan, Topology
from specs.vocabulary import Outcome

_CONFIG = Config(
    broker_lease_ms=3000,
    client_lease_ms=1500,
    lock_interval_ms=1000,
    rebalance_ms=1000,
    max_reconsume_times=1,
    suspend_ms=50,
    continuous_ms=1000,
    persist_ms=500,
    persist_first_ms=1000,
    dead_letter_bound_ms=500,
    schedule_slack_ms=500,
)

LEASED, LEASED_SEED = "leased", 5

_LEVELS = {"orderly": _CONFIG.delay_levels, "concurrent": "1s 1s 1s 2s", "key_ordered": "1s"}


def _act(at_ms: int, do: str, **args: Any) -> Action:
    return Action(at_ms, do, args)


TAGS = ("red", "blue", "green")


def _tag(tagged: bool, turn: int) -> dict[str, str]:
    return {"tags": TAGS[turn % 3]} if tagged else {}


@cache
def recorded(
    mode: str = "orderly", message_model: str = "clustering", *, tagged: bool = False
) -> tuple[RunInfo, tuple[Row, ...]]:
    """(its description, rows by seq_begin): about 4000 rows, all promises kept.

    mode, message_model: of the group. tagged: messages have tags, of which the group subscribes to two, and some come
    in batches. The mode `leased` is a system that leases messages one by one.
    """
    if mode == LEASED:
        plan = drawn_plan(Random(LEASED_SEED), LEASED_SEED)
        return leased_info(plan), tuple(simulate_leased(plan))
    actions = [_act(0, "start", client="alice"), _act(0, "start", client="shop")]
    actions += [
        _act(
            100 + 250 * n,
            "send",
            client="shop",
            topic="orders",
            key=f"k{n % 3}",
            count=10,
            **_tag(tagged, n),
        )
        for n in range(60)
    ]
    if tagged:
        actions += [
            _act(
                150 + 250 * turn,
                "send",
                client="shop",
                topic="orders",
                batch=True,
                count=4,
                tags=TAGS[turn % 3],
            )
            for turn in range(0, 60, 4)
        ]
    actions += [
        _act(4000, "start", client="bob"),
        _act(9000, "stop", client="alice"),
        _act(11000, "restart", client="alice"),
        _act(14000, "stop", client="bob"),
    ]
    once = [
        ListenerRule(outcome=Outcome.SUSPEND, number=number, delivery_max=1)
        for number in range(5, 600, 9)
    ]
    always = [ListenerRule(outcome=Outcome.SUSPEND, number=number) for number in range(7, 600, 50)]
    taken = [ListenerRule(manual=True, number=number) for number in range(28, 600, 90)]
    rolled_back = [
        ListenerRule(outcome=Outcome.ROLLBACK, manual=True, number=number, delivery_max=1)
        for number in range(29, 600, 90)
    ]
    plan = Plan(
        seed=3,
        topology=Topology(("b0",), (TopicPlan("orders", 2),), ("billing",)),
        config=replace(
            _CONFIG,
            mode=mode,
            message_model=message_model,
            delay_levels=_LEVELS[mode],
            subscription="red || blue" if tagged else "*",
        ),
        clients=(
            ClientPlan("alice", "consumer", "billing", ("orders",)),
            ClientPlan("bob", "consumer", "billing", ("orders",)),
            ClientPlan("shop", "producer", topics=("orders",)),
        ),
        actions=tuple(sorted(actions, key=lambda action: action.at_ms)),
        listener=(ListenerRule(duration_ms=15), *once, *always, *taken, *rolled_back),
        until_ms=20000,
        settle_ms=20000,
    )
    info, rows = simulate(plan)
    return info, tuple(rows)
