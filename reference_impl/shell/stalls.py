"""When the process that our clients live in stood still: a PAUSE of each of them, in the history.

A host that is busy, or a disk that is, may keep a process from running for as long as a lease. Its clients can't do
anything about it, and clauses with a limit in time have as a premise that nobody was paused: so it is written down. A
task of the event loop looks at the clock all the time; when it comes too late, nothing else has run either.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path

from specs.history.clock import RecorderClock, host_clock
from specs.history.journal import Journal
from specs.vocabulary import STOOD_STILL, Kind, Outcome

LOOK_S = 0.02
LONG_US = 100_000
"""Beyond what a busy event loop takes for one turn, and far below every limit that is judged."""


class Stalls:
    """Writes into a journal of its own in the folder. clients: who lives in this process at the moment.

    process: the journal's. Of a process that may be killed it begins with the client's name and a dot, so that the
    journal may end as the client's own may.
    """

    def __init__(
        self, folder: Path, clients: Callable[[], Iterable[str]], process: str = "stalls"
    ) -> None:
        self._host = host_clock()
        self._clients = clients
        self._at_us = 0  # what the journal's clock says: a pause began before it was noticed
        clock = RecorderClock(self._host.name, lambda: self._at_us, self._host.wall_us)
        self._journal = Journal(folder, process, clock=clock)

    async def watch(self) -> None:
        """Until it is cancelled."""
        try:
            looked_us = self._host.monotonic_us()
            while True:
                await asyncio.sleep(LOOK_S)  # what is measured is how much longer it takes
                now_us = self._host.monotonic_us()
                if now_us - looked_us > LONG_US:
                    self._write(looked_us, now_us)
                looked_us = now_us
        finally:
            self._journal.close()

    def _write(self, from_us: int, to_us: int) -> None:
        names = sorted(self._clients())
        self._at_us = from_us
        for name in names:
            self._journal.begin(name, Kind.PAUSE, {"client_id": name, "detail": STOOD_STILL})
        self._at_us = to_us
        for name in names:
            self._journal.end(name, Outcome.OK)
