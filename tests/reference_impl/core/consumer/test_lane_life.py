"""The phase of a lane is stored, and moves by the table of its life and by nothing else."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

import reference_impl
from reference_impl.core.consumer import ConcurrentConsumer, Consumer, OrderlyConsumer
from reference_impl.core.consumer.candidate import Candidate
from reference_impl.core.consumer.lane_life import (
    LIFE,
    ON_THE_WAY_IN,
    OVER,
    SIDE_BY_SIDE,
    Event,
    Phase,
    UnknownStep,
    with_steps,
)
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.core.io import Effect, Input, Pushed
from reference_impl.mutants import every_mutant, load
from reference_impl.protocol.bodies import encode_reset_offsets
from reference_impl.protocol.codes import RequestCode
from reference_impl.protocol.command import Command
from specs.vocabulary import LISTENER_SUSPENDS, Outcome, Queue

Step = tuple[Phase, Event]
QUEUES = 3
STEPS = 60
STORIES = 300
WITHIN_AN_INPUT = {Phase.CHOOSING, Phase.DROPPED, Phase.ELSEWHERE}
"""No lane that a client tracks is left in one of these when an input has been taken in."""
HELD = (
    RequestCode.LOCK_BATCH_MQ,
    RequestCode.QUERY_CONSUMER_OFFSET,
    RequestCode.SEND_MESSAGE_V2,
    RequestCode.UNREGISTER_CLIENT,
    RequestCode.PULL_MESSAGE,
)
RESULTS = (Outcome.SUCCESS, Outcome.SUCCESS, *sorted(LISTENER_SUSPENDS))


def watched(consumer: type[Consumer], seen: set[Step]) -> type[Consumer]:
    """The consumer, and which steps its lanes have taken."""

    class Watched(consumer):  # type: ignore[misc, valid-type]
        def move(self, lane: Candidate | ProcessQueue, event: Event) -> None:
            seen.add((lane.phase, event))
            super().move(lane, event)

        def handle(self, now_ms: int, input: Input) -> list[Effect]:
            effects: list[Effect] = super().handle(now_ms, input)
            assert not {lane.phase for lane in self.tracked.values()} & WITHIN_AN_INPUT
            return effects

    return Watched


def play(make: Callable[[], Any], seed: int) -> None:
    """A consumer to which much happens: answers that stay out, refusals, resets, lanes that come and go, its end."""
    dice = Random(seed)
    b = make()
    b.start()
    for _ in range(STEPS):
        code = dice.choice(HELD)
        lane = Queue("t", "b0", dice.randrange(QUEUES))
        match dice.randrange(13):
            case 0 | 1:
                b.append(dice.randint(1, 3), lane.queue_id)
            case 2 | 3 | 4 if b.calls:
                which = dice.randrange(len(b.calls))
                b.returns(dice.choice(RESULTS), suspend_ms=10, at=which)
            case 5:
                b.hold.add(code)
            case 6:
                b.answer_held(code)
            case 7:
                b.fail_held(code, dice.choice(("timeout", "closed")))
            case 8:
                b.refused ^= {lane}
            case 9:
                b.members = dice.choice((["c1"], ["a0", "c1"], ["a0", "b0", "c1"]))
                b.notify()
            case 10:
                body = encode_reset_offsets({lane: 0})
                ext = {"topic": "t", "group": "g", "timestamp": "0"}
                told = RequestCode.RESET_CONSUMER_CLIENT_OFFSET
                b.give(Pushed("b0:1", Command(told, ext, body=body, flag=2)))
            case 11 if dice.randrange(8) == 0:
                b.hold |= {RequestCode.UNREGISTER_CLIENT, RequestCode.SEND_MESSAGE_V2}
                b.shut_down()
            case _:
                b.advance(dice.choice((1, 10, 150, 1_000, 3_000)))


def maker(bench: Any, consumer: type[Consumer], seed: int) -> Callable[[], Any]:
    config: dict[str, Any] = {
        "threads": 1 + seed % 2,
        "batch": 1 + seed % 3,
        "max_reconsume_times": 1,
        "continuous_ms": 5,
        "client_lease_ms": 2_000,
        "lock_interval_ms": 1_500,
        "shutdown_wait_ms": 2_000,
        "reset_wait_ms": 1_000,
    }
    return lambda: bench(consumer, queues=QUEUES, **config)


def test_every_step_of_the_table_is_taken_and_no_other_is_asked_for(bench: Any) -> None:
    """Whatever happens to it: an unknown step would raise."""
    seen: set[Step] = set()
    consumer = watched(OrderlyConsumer, seen)
    for seed in range(STORIES):
        play(maker(bench, consumer, seed), seed)
    assert seen == LIFE.keys()


def test_a_lane_of_calls_side_by_side_takes_the_steps_of_their_table(bench: Any) -> None:
    """All but a refusal and its release, for there are no leases that could be out."""
    seen: set[Step] = set()
    consumer = watched(ConcurrentConsumer, seen)
    for seed in range(100):
        play(maker(bench, consumer, seed), seed)
    without_leases = {(Phase.ASKING, Event.SKIP), (Phase.ASKING, Event.RELEASE)}
    assert seen == SIDE_BY_SIDE.keys() - without_leases


OTHER_PHASES_THAT_CHANGE_NOTHING: dict[Step, set[Phase]] = {
    # The lane is gone, and over in each of these.
    (Phase.ELSEWHERE, Event.THREAD): {*OVER},
    (Phase.ELSEWHERE, Event.PAUSE): {*OVER},
    # The consumer has left, and asks no lane any more; only one that is dropped would be unlocked again.
    (Phase.ELSEWHERE, Event.END): {*Phase} - {Phase.DROPPED},
    # In the same moment the shutdown drops the lane or gives its lease back, whatever its phase.
    (Phase.CHOOSING, Event.DROP): {*ON_THE_WAY_IN},
    (Phase.CALLING, Event.CUT): {
        Phase.IN_LINE,
        Phase.CHOOSING,
        Phase.WAITING,
        Phase.FROZEN,
    },
    (Phase.FROZEN_CALLING, Event.CUT): {
        Phase.IDLE,
        Phase.IN_LINE,
        Phase.CHOOSING,
        Phase.WAITING,
    },
}
"""Which wrong entries nobody can tell from the right one."""


@pytest.mark.long
@pytest.mark.parametrize("away", range(1, len(Phase)))
def test_a_wrong_entry_of_the_table_is_noticed(bench: Any, away: int) -> None:
    """Each entry with another phase, so many further down: some story goes otherwise, or raises."""
    phases = list(Phase)
    wrong = {
        step: phases[(phases.index(after) + away) % len(phases)] for step, after in LIFE.items()
    }
    right: list[list[Effect]] = []
    unnoticed = set()
    for step, other in wrong.items():
        variant = type("Variant", (OrderlyConsumer,), {"life": with_steps({step: other})})
        for seed in range(STORIES):
            if seed == len(right):
                right.append(story(bench, OrderlyConsumer, seed))
            if story(bench, variant, seed) != right[seed]:
                break
        else:
            unnoticed.add((step, other))
    assert unnoticed == {
        (step, other)
        for step, other in wrong.items()
        if other in OTHER_PHASES_THAT_CHANGE_NOTHING.get(step, ())
    }


def story(bench: Any, consumer: type[Consumer], seed: int) -> list[Effect]:
    """All that the consumer did; where it raised, as far as it came and no story of the right one."""
    b = maker(bench, consumer, seed)()
    try:
        play(lambda: b, seed)
    except (UnknownStep, LookupError, AttributeError, AssertionError):
        return []
    effects: list[Effect] = b.effects
    return effects


def test_a_step_that_the_table_does_not_have_is_an_error_in_the_code(bench: Any) -> None:
    """It raises, and says how a variant whose bug it is says so."""
    b = bench().start()
    (pq,) = b.consumer.lanes.values()
    with pytest.raises(UnknownStep, match=r"IDLE .* CALL .* `life` \(`with_steps`"):
        b.consumer.move(pq, Event.CALL)
    assert pq.phase is Phase.IDLE


def test_the_phase_is_moved_in_one_place() -> None:
    """`Consumer.move` alone assigns it; a lane's two classes only say how they begin."""
    found = set()
    for path in Path(reference_impl.__file__).parent.rglob("*.py"):
        for function in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(function, ast.FunctionDef) and any(
                isinstance(node, ast.Attribute)
                and node.attr == "phase"
                and isinstance(node.ctx, ast.Store)
                for node in ast.walk(function)
            ):
                found.add((path.name, function.name))
    assert found == {("consumer.py", "move"), ("process_queue.py", "__init__")}


def test_a_variant_has_all_steps_and_some_of_its_own() -> None:
    life = with_steps({(Phase.CALLING, Event.CALL): Phase.CALLING})
    assert life.keys() - LIFE.keys() == {(Phase.CALLING, Event.CALL)}
    assert LIFE.items() <= life.items()


OF_THEIR_OWN = {
    mutant.name: {
        step for step, after in mutant.consumer.life.items() if LIFE.get(step) is not after
    }
    for mutant in every_mutant()
    if mutant.consumer is not None and issubclass(mutant.consumer, OrderlyConsumer)
}


TAKEN_LATE = "two-tasks-per-lane"
"""After hundreds of stories; the others take their steps within a few, and this one is long."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.long if name == TAKEN_LATE else [])
        for name in sorted(name for name, steps in OF_THEIR_OWN.items() if steps)
    ],
)
def test_a_mutant_takes_the_steps_that_it_adds(bench: Any, name: str) -> None:
    """Each step of its own is part of its bug, and not there to be on the safe side."""
    seen: set[Step] = set()
    mutant = load(name).consumer
    assert mutant is not None
    consumer = watched(mutant, seen)
    for seed in range(2_000):
        play(maker(bench, consumer, seed), seed)
        if seen >= OF_THEIR_OWN[name]:
            return
    assert seen >= OF_THEIR_OWN[name]
