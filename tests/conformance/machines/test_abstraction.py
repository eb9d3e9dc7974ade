"""What a search has seen of a cluster: abstract states, counted over all runs, and told in a verdict."""

from __future__ import annotations

from dataclasses import replace

import jsonschema
import pytest

from conformance.machines.abstraction import LaneState, fault_at, lane_states
from conformance.machines.cluster import Collector
from conformance.reports.text import coverage_lines
from conformance.reports.view import view
from conformance.runner import conform_simulated, run_machine
from reference_impl.sim.cluster import Cluster
from specs.plan.config import Config
from specs.plan.plan import ClientPlan, ListenerRule, Plan, TopicPlan, Topology
from specs.profiles import load as load_profile
from specs.verdicts.schema import verdict_schema
from specs.verdicts.verdict import Coverage, coverage_of
from specs.vocabulary import Outcome


def cluster(*rules: ListenerRule, **config: int) -> Cluster:
    """Alice works on one queue, in which two messages lie."""
    plan = Plan(
        topology=Topology(("b0",), (TopicPlan("orders", 1),), ("billing",)),
        clients=(
            ClientPlan("alice", "consumer", "billing", ("orders",)),
            ClientPlan("p", "producer", topics=("orders",)),
        ),
        config=replace(Config(), consume_from="first", **config),  # type: ignore[arg-type]
        listener=rules,
    )
    world = Cluster(plan)
    world.perform("start", {"client": "p"})
    world.perform("start", {"client": "alice"})
    world.run_until(500)
    world.perform("send", {"client": "p", "topic": "orders", "count": 2})
    world.run_until(600)
    return world


def of_orders(world: Cluster) -> LaneState:
    """The state of alice's lane with work; her retry topic's is idle."""
    return max(
        lane_states(world),
        key=lambda state: (state.flight != "idle", state.gap != "even", state.attempts),
    )


def test_a_call_that_runs() -> None:
    state = of_orders(cluster(ListenerRule(duration_ms=5_000)))
    assert state == LaneState("fresh", "running", 0, False, "even", "")


def test_a_message_on_its_third_try_while_the_link_is_slow() -> None:
    world = cluster(ListenerRule(outcome=Outcome.SUSPEND, suspend_ms=100))
    world.run_until(800)
    world.perform("delay", {"a": "alice", "b": "b0", "ms": 10})
    world.run_until(850)
    state = of_orders(world)
    assert (state.flight, state.attempts, state.fault) == ("waiting", 3, "delay")


def test_what_is_finished_but_not_stored_is_a_gap() -> None:
    world = cluster(ListenerRule(duration_ms=1))
    assert of_orders(world).gap == "few"


@pytest.mark.parametrize(
    ("verb", "args", "words"),
    [
        ("pause", {"node": "alice"}, "client paused"),
        ("pause", {"node": "b0"}, "broker paused"),
        ("broker_crash", {"broker": "b0"}, "broker down"),
        ("clock_step", {"node": "b0", "ms": 5}, "clock"),
        ("duplicate", {"a": "alice", "b": "b0", "percent": 50}, "duplicate"),
    ],
)
def test_a_fault_has_a_name(verb: str, args: dict[str, object], words: str) -> None:
    world = cluster()
    assert fault_at(world, "alice", "b0") == ""
    world.perform(verb, args)
    assert fault_at(world, "alice", "b0") == words


def test_a_lease_ages_and_ends() -> None:
    world = cluster(client_lease_ms=3_000, lock_interval_ms=1_000)
    world.perform("cut", {"a": "alice", "b": "b0"})
    seen = []
    for _ in range(8):
        world.run_until(world.now_ms + 500)
        seen.append({state.lease for state in lane_states(world)})
    assert {"ageing"} in seen
    assert {"expired"} in seen


def test_the_search_counts_what_it_reached_and_says_whether_it_still_grows() -> None:
    collector = Collector(lambda refuted: ())
    run_machine(collector, 3, 5)
    assert len(collector.reached) == collector.coverage.runs == collector.runs
    assert collector.coverage.states == len(collector.states) > 20
    assert sum(map(len, collector.reached)) == len(collector.states)


def test_what_is_new_in_the_last_tenth_is_counted_once_over_several_searches() -> None:
    first = [{1, 2}, *[set[int]()] * 18]
    ended, grows = coverage_of([*first, set()]), coverage_of([*first, {2, 3, 4}])
    assert replace(ended, growth=()) == Coverage(2, 20, 0)
    assert replace(grows, growth=()) == Coverage(4, 20, 2)
    assert (ended.growth[-1], grows.growth[-1]) == ((20, 2), (20, 4))


def test_a_verdict_of_a_search_tells_its_coverage() -> None:
    verdict = conform_simulated(None, 7, load_profile("reference"), examples=3, floor=0).verdict
    assert verdict.coverage is not None
    data = verdict.to_json()
    jsonschema.validate(data, verdict_schema())
    seen = view(verdict)
    assert seen.coverage == verdict.coverage
    (line,) = coverage_lines(seen)
    assert (
        f"reached: {verdict.coverage.states} abstract states in {verdict.coverage.runs} runs"
        in line.plain
    )
    plain = replace(verdict, coverage=None)
    assert "coverage" not in plain.to_json()
    assert coverage_lines(view(plain)) == []
