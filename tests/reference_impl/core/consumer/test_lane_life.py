"""The table of a lane's life says what the consumer does, no more and no less."""

from __future__ import annotations

import sys
from collections import defaultdict
from types import FrameType

from conformance.machines.cluster import Collector
from conformance.runner import run_machine
from reference_impl.core.consumer import ConsumerConfig, OrderlyConsumer
from reference_impl.core.consumer.lane_life import LIFE, Phase, phase_of
from reference_impl.core.consumer.part import Part
from reference_impl.core.io import Effect, Input
from reference_impl.sim.cluster import Cluster, Cores
from specs.plan.plan import Plan
from specs.verdicts.tally import Examination
from specs.vocabulary import Queue

PLANS = 60
Change = tuple[Phase, Phase]
SEEN: dict[Change, list[set[str]]] = defaultdict(list)
"""For each change of a lane's phase: the consumer's functions that were called between the two."""


class Watched(OrderlyConsumer):
    """The reference's consumer, and a look at all its lanes before and after each input."""

    def handle(self, now_ms: int, input: Input) -> list[Effect]:
        before = {queue: phase_of(self, queue) for queue in self._mine()}
        called: set[str] = set()

        def note(frame: FrameType, event: str, arg: object) -> None:
            if event == "call":
                called.add(frame.f_code.co_qualname)

        outer = sys.getprofile()
        sys.setprofile(note)
        try:
            return super().handle(now_ms, input)
        finally:
            sys.setprofile(outer)
            for queue in sorted(self._mine() | before.keys()):
                change = (before.get(queue, Phase.ELSEWHERE), phase_of(self, queue))
                if change[0] is not change[1]:
                    SEEN[change].append(called)

    def _mine(self) -> set[Queue]:
        return {*self.candidates, *self.leaving, *self.lanes}


def play(plan: Plan) -> None:
    cluster = Cluster(plan, Cores(consumer=Watched))
    for action in plan.actions:
        if action.at_ms > cluster.now_ms:
            cluster.run_until(action.at_ms)
        cluster.perform(action.do, action.args)
    cluster.run_until(plan.until_ms)
    cluster.settle(plan.settle_ms)


def test_every_change_is_a_row_and_every_row_is_seen() -> None:
    """On drawn runs; and the function that the row names was called."""
    SEEN.clear()
    plans: list[Plan] = []
    drawn = Collector(
        lambda refuted: (),
        on_run=lambda run: plans.append(run.plan),
        judge=lambda rows, info: Examination(),
    )
    run_machine(drawn, 2, PLANS)
    for plan in plans:
        play(plan)
    assert SEEN.keys() == LIFE.keys()
    undone = {
        (before.name, after.name)
        for (before, after), calls in SEEN.items()
        if not all(called & set(LIFE[before, after].functions) for called in calls)
    }
    assert undone == set()


def test_each_function_is_a_parts() -> None:
    """A function that was renamed is no name in the table any more."""
    consumer = OrderlyConsumer(ConsumerConfig("c", "g", {}, ("ns",)))
    parts = [type(each) for each in vars(consumer).values() if isinstance(each, Part)]
    known = {
        f"{owner.__name__}.{name}"
        for part in parts
        for owner in part.__mro__
        for name in vars(owner)
    }
    assert {function for step in LIFE.values() for function in step.functions} <= known
