"""What a question to a system comes to: a value, none, or not told.

Silence is no answer: a broker that says nothing within the time of a request has not said that a queue is empty. So
whatever the harness asks a system returns a `Told`, and who uses it has to say what becomes of a `NotTold`: mypy takes
no `or 0` for it, and at run time it has no truth. A question that was not answered is asked again for a while
(`ask_again`); then what rests on it is unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from conformance.waiting import POLL_S, now_s, pass_time, wait_until

ASK_AGAIN_S = 30.0
"""So long a question is asked again at the end of a run: a broker that stood still for as long is told from a dead
one."""
SLOW_S = 1.0
"""Who took longer than this to answer, or to ask again, stood still meanwhile: no deadline runs on for it."""
SLOWEST_S = 3.0
"""At most so long where the wait is a long one; no lease of a system ends by a stop of a tenth of it."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class NotTold:
    """why: a sentence without its full stop, that names who was asked for what and what came of it."""

    why: str

    def __bool__(self) -> bool:
        raise TypeError(f"{self.why}: that is neither a value nor none")


Told: TypeAlias = T | NotTold | None
"""None: there is none, as the system itself says."""


def ask_again(question: Callable[[], Told[T]], within_s: float = ASK_AGAIN_S) -> Told[T]:
    """Ask until it is told, at most so long; at least once."""
    last: list[Told[T]] = []

    def is_told() -> bool:
        last[:] = [question()]
        return not isinstance(last[0], NotTold)

    wait_until(is_told, within_s)
    return last[0]


class Quiet:
    """For how long nothing has happened while everybody was there: who stands still is not at rest.

    Whoever waits for something looks again and again, and asks a party on the way. A look that comes too late after
    the one before shows that a party, or this process itself, stood still; the time begins anew. A busy machine alone
    is late by a second now and then, so a wait of minutes allows a look to be late by a tenth of it: what stood still
    for so short a time has lost no lease, and is given the rest of the wait to go on.

    wait_s: how long it is to be quiet.
    """

    def __init__(self, wait_s: float = 0.0) -> None:
        self._slow_s = max(SLOW_S, min(SLOWEST_S, wait_s / 10))
        self._since_s = self._looked_s = now_s()

    def look(self, *, is_quiet: bool) -> float:
        """For how many seconds by now. is_quiet: since the last look nothing happened, and who was asked answered."""
        before_s, self._looked_s = self._looked_s, now_s()
        if not is_quiet or self._looked_s - before_s > self._slow_s:
            self._since_s = self._looked_s
        return self._looked_s - self._since_s


def ask_until(
    is_right: Callable[[T | None], bool], question: Callable[[], Told[T]], within_s: float
) -> Told[T]:
    """Ask again until the answer is right, at most so long; the last answer.

    A broker that stood still has all of the time before it once it answers; after `ASK_AGAIN_S` more it is not asked
    any more.
    """
    until_s, quiet = now_s() + ASK_AGAIN_S + within_s, Quiet()
    while True:
        answer = question()
        is_told = not isinstance(answer, NotTold)
        passed_s = quiet.look(is_quiet=is_told)
        if not isinstance(answer, NotTold) and (is_right(answer) or passed_s >= within_s):
            return answer
        if now_s() >= until_s:
            return NotTold("its answers took too long") if is_told else answer
        pass_time(POLL_S)
