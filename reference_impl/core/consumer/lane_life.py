"""The life of a lane at one client, as one table: which phase may follow which, and what leads from one to the other.

A lane's phase is nothing that the consumer keeps: it follows from where the lane is held and what its process
queue says (`phase_of`). So the table can't drive the code; tests hold the code to it instead. On drawn runs every
change between two inputs is a row of the table, every row is seen, and the function that a row names was called.
The diagram in docs/cores.md is drawn from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple

from reference_impl.core.consumer.orderly import OrderlyConsumer
from specs.vocabulary import Queue


class Phase(Enum):
    """Where a lane stands at one client, between two inputs."""

    ELSEWHERE = "not ours"
    ASKING = "its lease is asked for"
    GRANTED = "its lease is ours, its start is looked for"
    IDLE = "ours, and no message waits"
    IN_LINE = "messages wait, and no thread is free"
    CALLING = "its listener runs"
    WAITING = "its task waits for its time, or for the lease"
    LEAVING = "dropped, its listener still runs"


class Step(NamedTuple):
    """functions: of the consumer's parts, one of which does it. why: when it comes to that."""

    functions: tuple[str, ...]
    why: str


def phase_of(consumer: OrderlyConsumer, queue: Queue) -> Phase:
    """The phase of one lane. To be asked between two inputs."""
    if (candidate := consumer.candidates.get(queue)) is not None:
        return Phase.GRANTED if candidate.locked_ms else Phase.ASKING
    if queue in consumer.leaving:
        return Phase.LEAVING
    if (pq := consumer.lanes.get(queue)) is None:
        return Phase.ELSEWHERE
    if pq.busy:
        return Phase.CALLING
    if pq in consumer.loop.in_line:
        return Phase.IN_LINE
    return Phase.WAITING if pq.consuming else Phase.IDLE


_ELSEWHERE, _ASKING, _GRANTED, _IDLE = Phase.ELSEWHERE, Phase.ASKING, Phase.GRANTED, Phase.IDLE
_IN_LINE, _CALLING, _WAITING, _LEAVING = Phase.IN_LINE, Phase.CALLING, Phase.WAITING, Phase.LEAVING

LIFE: Mapping[tuple[Phase, Phase], Step] = MappingProxyType(
    {
        (_ELSEWHERE, _ASKING): Step(("Leases.acquire",), "a rebalance makes it ours"),
        (_ASKING, _ELSEWHERE): Step(
            ("Rebalance._skip", "ShutdownSequence.release_all"),
            "refused, or no answer: the next rebalance tries again",
        ),
        (_ASKING, _GRANTED): Step(("Rebalance.find_start",), "granted"),
        (_GRANTED, _ELSEWHERE): Step(
            ("Rebalance._skip", "ShutdownSequence.release_all"),
            "no answer about its start, or wanted no more",
        ),
        (_GRANTED, _IDLE): Step(("Rebalance.add",), "its start is known: an incarnation begins"),
        (_IDLE, _ELSEWHERE): Step(("LaneDrop.mark_dropped",), "dropped"),
        (_IDLE, _IN_LINE): Step(
            ("OrderlyLoop.resubmit",), "messages were pulled, and no thread is free"
        ),
        (_IDLE, _CALLING): Step(("Calls.call_listener",), "messages were pulled"),
        (_IDLE, _WAITING): Step(
            ("Leases.relock_later",), "messages were pulled, and the lease is gone"
        ),
        (_IN_LINE, _ELSEWHERE): Step(("LaneDrop.mark_dropped",), "dropped"),
        (_IN_LINE, _IDLE): Step(("OrderlyLoop.turn",), "it gets a thread, and finds no message"),
        (_IN_LINE, _CALLING): Step(("Calls.call_listener",), "it gets a thread"),
        (_IN_LINE, _WAITING): Step(
            ("Leases.relock_later",), "it gets a thread, and the lease is gone"
        ),
        (_CALLING, _ELSEWHERE): Step(
            ("ShutdownSequence.release_all",), "the shutdown waits no longer: the call is cut"
        ),
        (_CALLING, _IDLE): Step(
            ("OrderlyLoop.turn",), "the batch is finished, and no message is left"
        ),
        (_CALLING, _WAITING): Step(
            ("OrderlyLoop.finish",),
            "the batch comes again after its suspend time; or cap or lease ended",
        ),
        (_CALLING, _LEAVING): Step(
            ("LaneDrop.mark_dropped",), "dropped: the lease stays until the call has ended"
        ),
        (_WAITING, _ELSEWHERE): Step(("LaneDrop.mark_dropped",), "dropped"),
        (_WAITING, _IDLE): Step(("OrderlyLoop.turn",), "its time has come, and no message is left"),
        (_WAITING, _IN_LINE): Step(
            ("OrderlyLoop.resubmit",), "its time has come, and no thread is free"
        ),
        (_WAITING, _CALLING): Step(("Calls.call_listener",), "its time has come"),
        (_LEAVING, _ELSEWHERE): Step(
            ("LaneRelease.release", "ShutdownSequence.release_all"),
            "the call has ended: the lease goes back",
        ),
    }
)
"""Every change of a lane's phase that one input can bring. A change that is no row does not happen."""
