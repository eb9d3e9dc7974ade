"""A witness of progress: a process that is in no group asks the store again and again what it holds of each.

Each new answer is PROGRESS at level `store`, from the question to the answer; where the clients tell of no commits
(`commits`) it is a COMMIT at level `wire` too: by then it had been committed. So a witness is late, never early, and
what it shows to be passed was passed.

An answer that stays the same is told again, so that a floor is seen that stays where it must not: at first each
`AGAIN_US`, then ever more seldom, each time when it has stayed for a quarter longer. What a run holds of a floor
grows by its changes, and else by the logarithm of the run's length.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conformance.drivers.process import DriverProcess
from conformance.targets.base import Run
from specs.errors import DriverFailed, TargetMisbehaved
from specs.history.clock import RecorderClock, host_clock
from specs.vocabulary import Kind, Lane, Level, Outcome

WITNESS = "witness"
ANSWER_S = 10.0
AGAIN_US = 500_000
AGAIN_PART = 4
"""An answer is told again once it has stayed for so manieth a part longer than when it was told."""


@dataclass(slots=True)
class _Told:
    """An answer: since when it is the same, and when it is to be told again, in µs."""

    value: int
    since_us: int
    again_us: int


class Floors:
    """Which answers are told."""

    __slots__ = ("_told",)

    def __init__(self) -> None:
        self._told: dict[Lane, _Told] = {}

    def is_new(self, lane: Lane, value: int) -> bool:
        known = self._told.get(lane)
        return known is None or known.value != value

    def is_told(self, lane: Lane, value: int, at_us: int) -> bool:
        """Is the answer to be told, which came at that time?"""
        if self.is_new(lane, value):
            self._told[lane] = _Told(value, at_us, at_us + AGAIN_US)
            return True
        told = self._told[lane]
        if at_us < told.again_us:
            return False
        told.again_us = at_us + max(AGAIN_US, (at_us - told.since_us) // AGAIN_PART)
        return True


class Witness:
    """Looks each `every_s` seconds, in a thread of its own, and writes down what is to be told.

    driver: running and not yet greeted; it is ended here.
    """

    def __init__(self, run: Run, driver: DriverProcess, *, every_s: float, commits: bool) -> None:
        self._driver = driver
        # Only an answer says whether it is told, and then it is told since the question.
        self._host = host_clock()
        self._now_us = self._host.monotonic_us()
        clock = RecorderClock(
            self._host.name,
            lambda: self._now_us,
            lambda: self._host.wall_us() - self._host.monotonic_us() + self._now_us,
        )
        self._journal = run.journal(WITNESS, clock=clock)
        topology = run.plan.topology
        self._asked = [
            (group, topic.name) for group in topology.groups for topic in topology.topics
        ]
        self._every_s, self._commits = every_s, commits
        self._floors = Floors()
        self._over = threading.Event()
        self._is_heard = False
        self._why = "there was no time to ask"
        self.failed: TargetMisbehaved | None = None
        driver.hello()
        self._thread = threading.Thread(target=self._look, name=WITNESS, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        try:
            while not self._over.wait(self._every_s):
                for group, topic in self._asked:
                    number = self._driver.next_number()
                    asked = {"verb": "progress", "id": number, "group": group, "topic": topic}
                    asked_us = self._host.monotonic_us()
                    answer = self._driver.ask_anything(asked)
                    # It is refused while the system starts, or has died.
                    self._is_heard = self._is_heard or answer["ok"]
                    self._why = answer.get("error", self._why)
                    self._saw(group, answer.get("progress", ()), asked_us)
        except TargetMisbehaved as error:
            if not self._over.is_set():
                self.failed = error

    def _saw(self, group: str, found: Sequence[Mapping[str, Any]], asked_us: int) -> None:
        answered_us = self._host.monotonic_us()
        told: dict[Lane, int] = {}
        changed: list[Lane] = []
        for each in found:
            lane = Lane(group, str(each["topic"]), str(each["broker"]), int(each["queue_id"]))
            value = int(each["value"])
            if value < 0:
                continue
            if self._floors.is_new(lane, value):
                changed.append(lane)
            if self._floors.is_told(lane, value, answered_us):
                told[lane] = value
        self._now_us = asked_us
        for lane in told:
            columns = {**lane._asdict(), "level": Level.STORE}
            self._journal.begin(lane, Kind.PROGRESS, columns)
        self._now_us = answered_us
        for lane, value in told.items():
            self._journal.end(lane, Outcome.OK, {"value": value})
        for lane in changed if self._commits else ():
            columns = {**lane._asdict(), "value": told[lane], "level": Level.WIRE}
            self._journal.note(Kind.COMMIT, Outcome.OK, columns)

    def close(self) -> None:
        """Raises DriverFailed where it went blind in the run, or never saw anything."""
        self._over.set()
        self._thread.join(ANSWER_S)
        self._driver.kill()
        if self.failed is not None:
            raise self.failed
        if not self._is_heard:
            why = f"was never told what is stored: {self._why}"
            raise DriverFailed(str(self._driver.process.misbehaved(why)))
