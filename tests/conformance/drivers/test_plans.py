"""Plans for driven clients: what they always hold, and that they vary."""

from __future__ import annotations

from random import Random

import pytest

from conformance.drivers.plans import DRIVEN, drawn_plan
from specs.plan.plan import Plan


def drawn(seed: int, *, plain: bool = False) -> Plan:
    return drawn_plan(DRIVEN, "r-", seed, Random(seed), plain=plain)


@pytest.mark.parametrize("seed", range(20))
def test_somebody_is_always_at_work(seed: int) -> None:
    plan = drawn(seed)
    plan.check()
    consumers = {client.id for client in plan.clients if client.kind == "consumer"}
    at_work: set[str] = set()
    counts = []
    for action in plan.actions:
        client = action.args["client"]
        if client in consumers:
            (at_work.add if action.do in ("start", "restart") else at_work.remove)(client)
            counts.append(len(at_work))
    assert min(counts) >= 1
    assert max(counts) >= 2


def test_a_seed_is_a_plan() -> None:
    assert drawn(7).to_json() == drawn(7).to_json()
    assert drawn(7).to_json() != drawn(8).to_json()


def test_the_plain_round_is_plain() -> None:
    plans = [drawn(seed, plain=True) for seed in range(20)]
    assert {plan.config.batch for plan in plans} == {1}
    assert not any(rule.manual for plan in plans for rule in plan.listener)


def test_what_can_vary_does() -> None:
    plans = [drawn(seed) for seed in range(40)]
    verbs = {action.do for plan in plans for action in plan.actions}
    assert verbs == {"start", "restart", "stop", "crash", "send"}
    assert {plan.config.batch for plan in plans} == {2, 3, 4}
    assert {plan.config.max_reconsume_times for plan in plans} == {0, 1, 2}
    assert {any(rule.manual for rule in plan.listener) for plan in plans} == {True, False}
    assert len({rule.suspend_ms for plan in plans for rule in plan.listener}) >= 5
    assert len({rule.outcome for plan in plans for rule in plan.listener}) == 6
