"""A witness of progress: a process that is in no group asks the store again and again what it holds of each.

Each new answer is PROGRESS at level `store`; where the clients tell of no commits (`commits`) it is a COMMIT at level
`wire` too: by then it had been committed. So a witness is late, never early, and what it shows to be passed was passed.
"""

from __future__ import annotations

import threading

from conformance.drivers.process import DriverProcess
from conformance.targets.base import Run
from specs.errors import TargetMisbehaved
from specs.history.journal import Journal
from specs.vocabulary import Kind, Lane, Level, Outcome

WITNESS = "witness"
ANSWER_S = 10.0


class Witness:
    """Looks each `every_s` seconds, in a thread of its own, and writes down what is new.

    driver: running and not yet greeted; it is ended here.
    """

    def __init__(self, run: Run, driver: DriverProcess, *, every_s: float, commits: bool) -> None:
        self._driver = driver
        self._journal: Journal = run.journal(WITNESS)
        topology = run.plan.topology
        self._asked = [
            (group, topic.name) for group in topology.groups for topic in topology.topics
        ]
        self._every_s, self._commits = every_s, commits
        self._known: dict[Lane, int] = {}
        self._over = threading.Event()
        self._is_heard = False
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
                    answer = self._driver.ask_anything(asked)
                    # It is refused while the system starts, or has died.
                    self._is_heard = self._is_heard or answer["ok"]
                    for found in answer.get("progress", ()):
                        place = (str(found["topic"]), str(found["broker"]), int(found["queue_id"]))
                        self._saw(Lane(group, *place), int(found["value"]))
        except TargetMisbehaved as error:
            if not self._over.is_set():
                self.failed = error

    def _saw(self, lane: Lane, value: int) -> None:
        if value >= 0 and self._known.get(lane) != value:
            self._known[lane] = value
            told = {**lane._asdict(), "value": value}
            self._journal.note(Kind.PROGRESS, Outcome.OK, {**told, "level": Level.STORE})
            if self._commits:
                self._journal.note(Kind.COMMIT, Outcome.OK, {**told, "level": Level.WIRE})

    def close(self) -> None:
        """Raises TargetMisbehaved where it went blind in the run."""
        self._over.set()
        self._thread.join(ANSWER_S)
        self._driver.kill()
        if self.failed is not None:
            raise self.failed
        if not self._is_heard:
            raise self._driver.process.misbehaved("was never told what is stored")
