"""Does a candidate still show what comes only now and then? Tried until a sequential test is sure enough.

On real parts the same plan breaks a clause in some runs and not in others, so that one run decides nothing. Wald's
sequential probability ratio test (https://en.wikipedia.org/wiki/Sequential_probability_ratio_test) decides between two
rates, that of what is to be kept and a fifth of it, and stops as soon as one of them is unlikely: what always breaks
is kept after two runs, what never does is dropped after a few. What is undecided after `most` runs is dropped.

It asks how often, not whether: each refutation is one, but a plan that shows it in one run of fifty helps nobody.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from conformance.parts.processes import kill_all
from conformance.reports.rate import Rate
from conformance.waiting import now_s
from specs.documents import json_in
from specs.errors import UsageError

T = TypeVar("T")
R = TypeVar("R")
LEAST_OFTEN, MOST_OFTEN = 0.2, 0.8
"""Between these a rate that was measured by a few runs is believed."""
RARER = 5
ERROR = 0.1
MOST = 12
_LAST_WORDS_S = 2.0


@dataclass(frozen=True, slots=True)
class SequentialTest:
    """often: the rate of what is to be kept. error: how likely a wrong decision may be, of either kind.

    most: so many tries at most.
    """

    often: float = 0.5
    error: float = ERROR
    most: int = MOST

    @classmethod
    def like(cls, rate: Rate) -> SequentialTest:
        """Keeps what breaks about as often as what was tried."""
        share = rate.broken / len(rate.tries) if rate.tries else 0.0
        return cls(min(MOST_OFTEN, max(LEAST_OFTEN, share)))

    @property
    def rare(self) -> float:
        """The rate of what is to be dropped."""
        return self.often / RARER

    def keeps(self, tries: Sequence[bool]) -> bool | None:
        """tries: of each whether it broke. None: too early to say."""
        enough = math.log((1 - self.error) / self.error)
        broken, held = sum(tries), len(tries) - sum(tries)
        for_it = broken * math.log(self.often / self.rare)
        against = held * math.log((1 - self.often) / (1 - self.rare))
        if for_it + against >= enough:
            return True
        if for_it + against <= -enough or len(tries) >= self.most:
            return False
        return None


Once = Callable[[T, int], bool]
"""(candidate, number of the try): make it; did it break?"""


class Tries(Generic[T]):
    """The tries of candidates, each kept as it is made, so that whoever asks again is answered at once.

    once: makes a try; of several each makes one at the same time. text: what a candidate is known by. is_over: whether
    the time is over: then nothing is tried, and nothing more is kept. memory: the file in which the tries stand.
    about: what they are tries of; a memory of something else is forgotten.
    """

    def __init__(
        self,
        once: Sequence[Once[T]],
        text: Callable[[T], str],
        *,
        is_over: Callable[[], bool] = lambda: False,
        memory: Path | None = None,
        about: str = "",
    ) -> None:
        self._once = once
        self._text = text
        self._is_over = is_over
        self._memory = memory
        self._about = about
        self._made = _read(memory, about)
        self.number = sum(len(tries) for tries in self._made.values())

    def of(self, candidate: T) -> tuple[bool, ...]:
        """Those that were made of it."""
        return tuple(self._made.get(self._key(candidate), ()))

    def rate(self, candidate: T, clause: str, times: int) -> Rate:
        """Of that many tries in all; of fewer where the time is over."""
        while len(self.of(candidate)) < times and not self._is_over():
            self._more(candidate, times - len(self.of(candidate)))
        return Rate((clause,), self.of(candidate))

    def show(self, candidate: T, test: SequentialTest) -> bool:
        """Is the candidate to be kept? What the time left undecided is not."""
        while (kept := test.keeps(self.of(candidate))) is None and not self._is_over():
            self._more(candidate, test.most - len(self.of(candidate)))
        return bool(kept)

    def _key(self, candidate: T) -> str:
        return hashlib.sha256(self._text(candidate).encode()).hexdigest()[:16]

    def _more(self, candidate: T, most: int) -> None:
        makers = self._once[: max(1, most)]
        first = self.number + 1
        self.number += len(makers)
        broke = side_by_side(
            [_bound(make, candidate, first + place) for place, make in enumerate(makers)]
        )
        self._made.setdefault(self._key(candidate), []).extend(broke)
        if self._memory is not None:
            _write(self._memory, {"about": self._about, "tries": self._made})


def _bound(make: Once[T], candidate: T, number: int) -> Callable[[], bool]:
    return lambda: make(candidate, number)


def side_by_side(works: Sequence[Callable[[], R]]) -> list[R]:
    """What each comes to, all done at the same time. Raises what one of them raises.

    Interrupted, all processes that were started are killed, and whoever waited for them is given a moment to end.
    """
    if len(works) == 1:
        return [works[0]()]
    made: dict[int, R] = {}
    errors: list[BaseException] = []

    def do(number: int, work: Callable[[], R]) -> None:
        try:
            made[number] = work()
        except BaseException as error:
            errors.append(error)

    threads = [
        threading.Thread(target=do, args=each, name="try", daemon=True) for each in enumerate(works)
    ]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            while thread.is_alive():
                thread.join(_LAST_WORDS_S)
    except BaseException:
        kill_all()
        until_s = now_s() + _LAST_WORDS_S
        for thread in threads:
            thread.join(max(0.0, until_s - now_s()))
        raise
    for error in errors:
        raise error
    return [made[number] for number in range(len(works))]


def _read(memory: Path | None, about: str) -> dict[str, list[bool]]:
    if memory is None or not memory.is_file():
        return {}
    try:
        data: dict[str, Any] = json_in(memory, mend="; delete it to begin anew")
        if data["about"] != about:
            return {}
        return {str(key): [bool(each) for each in tries] for key, tries in data["tries"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{memory} can't be read: {error}; delete it to begin anew") from error


def _write(memory: Path, data: dict[str, Any]) -> None:
    """In one step: a try that was made stays made."""
    memory.parent.mkdir(parents=True, exist_ok=True)
    part = memory.with_name(f".{memory.name}.part")
    part.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    os.replace(part, memory)
