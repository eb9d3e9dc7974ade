"""Systems that are kept for a whole search: shared, or had alone, and never handed on dead."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from chaos.kept import KeptSystems
from conformance.targets.systems import ReferenceOnSockets
from conformance.wire.runner import SHORT_LEASES
from specs.plan.plan import Plan
from specs.plan.step import Step

TOGETHER_S = 20.0
CUT = Step("cut", {"a": "everybody", "b": "b0"}, for_ms=100)
CRASH = Step("broker_crash", {"broker": "b0"}, for_ms=100, of_broker=True)
OPENED: list[ReferenceOnSockets] = []


@pytest.fixture
def kept() -> Iterator[KeptSystems]:
    def opens(config: object) -> ReferenceOnSockets:
        OPENED.append(ReferenceOnSockets(SHORT_LEASES))
        return OPENED[-1]

    OPENED.clear()
    systems = KeptSystems(opens)
    yield systems
    systems.close()


def plan(*steps: Step) -> Plan:
    return Plan(config=SHORT_LEASES, steps=steps)


def at_once(kept: KeptSystems, plans: Sequence[Plan]) -> tuple[set[str], int]:
    """The name servers of the systems on which runs of these plans were, and how many were on one at most."""
    there: list[str] = []
    most = [0]

    def work(each: Plan) -> None:
        with kept.for_run(each) as system:
            there.append(system.namesrv)
            most[0] = max(most[0], there.count(system.namesrv))
            if not each.steps or each.steps[0].do == "cut":
                together.wait(TOGETHER_S)
            used.add(system.namesrv)
            there.remove(system.namesrv)

    used: set[str] = set()
    together = threading.Barrier(len(plans))
    threads = [threading.Thread(target=work, args=[each]) for each in plans]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TOGETHER_S)
    return used, most[0]


def test_runs_that_spare_the_brokers_are_on_one_system_at_the_same_time(kept: KeptSystems) -> None:
    used, most = at_once(kept, [plan(), plan(CUT), plan(CUT)])
    assert (len(used), most, len(OPENED)) == (1, 3, 1)


def test_a_run_that_kills_a_broker_has_it_alone(kept: KeptSystems) -> None:
    used, most = at_once(kept, [plan(CRASH), plan(CRASH), plan(CRASH)])
    assert (len(used), most, len(OPENED)) == (1, 1, 1)
    with kept.for_run(plan()) as system:
        assert system.namesrv not in used


def test_a_broker_that_a_run_left_dead_is_not_handed_on(kept: KeptSystems) -> None:
    with kept.for_run(plan(CRASH)) as system:
        system.crash_broker("b0")
    with kept.for_run(plan(CRASH)) as another:
        assert another.namesrv != system.namesrv


def test_another_broker_is_taken_where_it_is_to_be_told_something_else(kept: KeptSystems) -> None:
    other = replace(SHORT_LEASES, channel_expiry_ms=2_000)
    with kept.for_run(plan()) as one, kept.for_run(replace(plan(), config=other)) as another:
        assert one.namesrv != another.namesrv
