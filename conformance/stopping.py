"""When a search ends before it has made all that it was asked for: its time is over, or somebody has pressed Ctrl-C.

The first Ctrl-C ends the search: what was searched until then is judged and kept. A second one ends the program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

from conformance.parts.processes import ctrl_c_goes_to, is_heard
from conformance.waiting import now_s
from specs.verdicts.tally import Check
from specs.verdicts.verdict import Ended, Search


@dataclass(frozen=True, slots=True)
class Bounds:
    """How a search is told to go on, beside its number of runs.

    budget_s: after so many seconds it begins no further run; without a number of runs it goes on until then. workers:
    how many searches, each with a seed of its own, do it at the same time. keep_going: a refutation does not end it.
    keeps: then each refuted clause gets a run of its own.
    """

    budget_s: float | None = None
    workers: int = 1
    keep_going: bool = False
    keeps: bool = True


UNBOUND = Bounds()
"""One search, as long as it takes, to its first refutation."""

TO_THE_END = Bounds(keep_going=True, keeps=False)
"""For who looks at all that was found: all runs that were asked for, whatever they refute."""


class Stop:
    """Whether a search is over, and why. Its time begins with it.

    breaks_in: whether a Ctrl-C raises KeyboardInterrupt at once, for who waits in real time; else the search is to ask
    `why` after each run. again: a second Ctrl-C came.
    """

    def __init__(self, bounds: Bounds = UNBOUND) -> None:
        self.bounds = bounds
        self.interrupted = False
        self.again = False
        self.breaks_in = False
        self._began_s = now_s()

    @property
    def passed_s(self) -> float:
        """Seconds since the search began."""
        return now_s() - self._began_s

    @property
    def why(self) -> Ended | None:
        """Why no further run is to begin; None as long as one may."""
        if self.interrupted:
            return Ended.INTERRUPTED
        budget_s = self.bounds.budget_s
        return Ended.BUDGET if budget_s is not None and self.passed_s >= budget_s else None

    def checks(self, runs: int) -> tuple[Check, ...]:
        """For the verdict: a search that was cut short has not come to its end."""
        if not self.interrupted:
            return ()
        return (Check("MET-9", "the search was not cut short", False, f"Ctrl-C after {runs} runs"),)

    def record(
        self, runs: int, most: int | None, *, refuted: bool, kept: dict[str, str] | None = None
    ) -> Search | None:
        """For the verdict: what the search did. None for one that was told nothing of all this, and was left alone.

        refuted: it ended since a claimed clause was refuted.
        """
        if self.bounds in (UNBOUND, TO_THE_END) and not self.interrupted:
            return None
        ended = Ended.REFUTED if refuted else Ended.FINISHED
        if self.interrupted or (not refuted and (most is None or runs < most)):
            ended = self.why or ended
        bounds = self.bounds
        return Search(runs, most, ended, bounds.budget_s, bounds.workers, kept or {})


@contextmanager
def listening(stop: Stop, told: Callable[[str], Any]) -> Iterator[None]:
    """While it lasts the first Ctrl-C ends the search, and a second one raises KeyboardInterrupt.

    told: takes the sentence for who pressed it. Only where `ctrl_c_goes_to` hears of it.
    """

    def on_ctrl_c(number: int, frame: FrameType | None) -> None:
        first = not stop.interrupted
        if (stop.breaks_in or not first) and not is_heard(number, frame):
            return  # where nothing can be raised: it comes again
        stop.interrupted, stop.again = True, not first
        if first:
            told("Ctrl-C: what was searched until now is judged; once more ends at once")
        if stop.breaks_in or not first:
            raise KeyboardInterrupt

    with ctrl_c_goes_to(on_ctrl_c):
        yield
