"""The life of a lane at one client: the phase that it is in, and the one table by which that phase moves.

A lane's phase is stored with what the client holds of it (`Candidate` until it is added, `ProcessQueue` from then on)
and is changed in one place, `Consumer.move`, to `LIFE[phase, event]`. The parts say what happened, and ask the phase
what they may do. An event that the table does not know in that phase is an error in the code, and raises.

Where calls of one lane run side by side there is no task that a phase could tell of: such a lane is idle from the
moment when it is added until it is left, and `SIDE_BY_SIDE` says what of the table it goes through.

A variant whose bug is a step that the table does not have says so: its consumer's `life` is `with_steps` of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from specs.errors import InorderError


class Phase(Enum):
    """Where a lane stands at one client. `CHOOSING` and `DROPPED` end within the input in which they begin."""

    ELSEWHERE = "not ours"
    ASKING = "its lease is asked for"
    GRANTED = "its lease is ours, its start is looked for"
    IDLE = "ours, and without a task"
    IN_LINE = "its task waits for a thread"
    CHOOSING = "its task has a thread, and looks for the next batch"
    CALLING = "its listener runs"
    WAITING = "its task waits for its time, or for the lease"
    FROZEN = "its offset was reset: no further call, and soon it is dropped"
    FROZEN_CALLING = "its offset was reset, and its listener still runs"
    LEAVING = "dropped, its listener still runs"
    DROPPED = "dropped, its lease is still ours"


class Event(Enum):
    """What happens to a lane at one client."""

    WANT = "a rebalance makes it ours"
    GRANT = "its lease is granted"
    SKIP = "refused, no answer, or wanted no more"
    ADD = "its start is known: an incarnation begins"
    LINE_UP = "messages were pulled, or its time has come"
    THREAD = "a thread is free"
    CALL = "there is a batch for the listener"
    PAUSE = "suspended, at its cap, or without its lease"
    REST = "no message is left, or the consumer stops"
    END = "its call has ended, and all that follows from it"
    CUT = "the shutdown waits for its call no longer"
    RESET = "an operator moves its offset"
    DROP = "its incarnation ends"
    RELEASE = "its lease goes back"


_ELSEWHERE, _ASKING, _GRANTED, _IDLE = Phase.ELSEWHERE, Phase.ASKING, Phase.GRANTED, Phase.IDLE
_IN_LINE, _CHOOSING = Phase.IN_LINE, Phase.CHOOSING
_CALLING, _WAITING = Phase.CALLING, Phase.WAITING
_FROZEN, _FROZEN_CALLING = Phase.FROZEN, Phase.FROZEN_CALLING
_LEAVING, _DROPPED = Phase.LEAVING, Phase.DROPPED

ON_THE_WAY_IN = (Phase.ASKING, Phase.GRANTED)
WITH_A_CALL = (Phase.CALLING, Phase.FROZEN_CALLING, Phase.LEAVING)
"""A call runs, or what follows from one."""
LEFT = (Phase.LEAVING, Phase.DROPPED, Phase.ELSEWHERE)
OVER = (Phase.FROZEN, Phase.FROZEN_CALLING, *LEFT)
"""The incarnation has ended, or is about to: no further call, and no result moves its offset."""

Life = Mapping[tuple[Phase, Event], Phase]

LIFE: Life = {
    (_ELSEWHERE, Event.WANT): _ASKING,
    # What a lane leaves behind: its place in the line, and what follows from a call that was cut.
    (_ELSEWHERE, Event.THREAD): _ELSEWHERE,
    (_ELSEWHERE, Event.END): _ELSEWHERE,
    (_ELSEWHERE, Event.PAUSE): _ELSEWHERE,
    (_ASKING, Event.GRANT): _GRANTED,
    (_ASKING, Event.SKIP): _ELSEWHERE,
    (_ASKING, Event.RELEASE): _ELSEWHERE,
    (_GRANTED, Event.ADD): _IDLE,
    (_GRANTED, Event.SKIP): _ELSEWHERE,
    (_GRANTED, Event.RELEASE): _ELSEWHERE,
    (_IDLE, Event.LINE_UP): _IN_LINE,
    (_IDLE, Event.RESET): _FROZEN,
    (_IDLE, Event.DROP): _DROPPED,
    (_IN_LINE, Event.THREAD): _CHOOSING,
    (_IN_LINE, Event.RESET): _FROZEN,
    (_IN_LINE, Event.DROP): _DROPPED,
    (_CHOOSING, Event.CALL): _CALLING,
    (_CHOOSING, Event.PAUSE): _WAITING,
    (_CHOOSING, Event.REST): _IDLE,
    (_CHOOSING, Event.DROP): _DROPPED,  # the shutdown waited for its call, and for no other
    (_CALLING, Event.END): _CHOOSING,
    (_CALLING, Event.CUT): _IDLE,
    (_CALLING, Event.RESET): _FROZEN_CALLING,
    (_CALLING, Event.DROP): _LEAVING,
    (_WAITING, Event.LINE_UP): _IN_LINE,
    (_WAITING, Event.RESET): _FROZEN,
    (_WAITING, Event.DROP): _DROPPED,
    # Its task may still be in the line or wait for its time, and finds that it has nothing to do.
    (_FROZEN, Event.LINE_UP): _FROZEN,
    (_FROZEN, Event.THREAD): _FROZEN,
    (_FROZEN, Event.PAUSE): _FROZEN,
    (_FROZEN, Event.RESET): _FROZEN,
    (_FROZEN, Event.DROP): _DROPPED,
    (_FROZEN_CALLING, Event.END): _FROZEN,
    (_FROZEN_CALLING, Event.CUT): _FROZEN,
    (_FROZEN_CALLING, Event.RESET): _FROZEN_CALLING,
    (_FROZEN_CALLING, Event.DROP): _LEAVING,
    (_LEAVING, Event.END): _DROPPED,
    (_LEAVING, Event.CUT): _DROPPED,
    (_DROPPED, Event.RELEASE): _ELSEWHERE,
}
"""Which phase follows when something happens. What is no entry does not happen."""

_SIDE_BY_SIDE = (_ELSEWHERE, _ASKING, _GRANTED, _IDLE, _FROZEN, _DROPPED)
_OF_A_TASK = (Event.LINE_UP, Event.THREAD, Event.PAUSE, Event.END)
SIDE_BY_SIDE: Life = {
    (phase, event): after
    for (phase, event), after in LIFE.items()
    if phase in _SIDE_BY_SIDE and event not in _OF_A_TASK
}
"""What of the table is left where a lane has no task of its own."""


class UnknownStep(InorderError):
    """Something happened to a lane that can't happen in its phase: the code, or a variant of it, is wrong."""

    def __init__(self, lane: object, phase: Phase, event: Event) -> None:
        super().__init__(
            f"{lane} is {phase.name} ({phase.value}), and there {event.name} ({event.value}) can't come: "
            "the life of a lane has no such step; a variant of the consumer whose bug it is adds it to its `life` "
            "(`with_steps` in reference_impl/core/consumer/lane_life.py)"
        )


def with_steps(steps: Life) -> Life:
    """The table with steps that it does not have, or that lead elsewhere: of a variant whose bug they are."""
    return {**LIFE, **steps}
