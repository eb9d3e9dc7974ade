"""A consumer is stopped (SIGSTOP, or a container paused) past its lease, and goes on when others have its lanes.

Its connections stay open, so nobody hears of it: only its silence takes the lease away, and its membership. It
wakes up with a call half done and commits that are late: nothing fences them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from chaos.faults.base import Fault, during, of_client, takeover
from chaos.live import running_call, taken_over, worked
from chaos.rig import Rig
from specs.history.row import Row
from specs.vocabulary import Kind, Outcome


class PauseConsumer(Fault):
    """client: whom. after_messages: how many it has to finish first. It goes on once its lanes are taken over."""

    NAME: ClassVar[str] = "pause_consumer"

    def __init__(self, client: str, after_messages: int = 10, deadline_s: float = 90.0) -> None:
        self.client = client
        self._after = after_messages
        self._deadline_s = deadline_s
        self._paused_us = 0

    def await_moment(self, rig: Rig) -> None:
        rig.live.wait_for(f"{self.client} at work", worked(self.client, self._after), self._deadline_s)
        rig.live.wait_for(f"{self.client} in its listener", running_call(self.client), self._deadline_s)

    def inject(self, rig: Rig) -> None:
        rig.journal.begin(("pause", self.client), Kind.PAUSE, {"client_id": self.client})
        rig.parties[self.client].pause()
        self._paused_us = rig.now_us()

    def heal(self, rig: Rig) -> None:
        try:
            rig.live.wait_for(
                f"somebody to take over from {self.client}", taken_over(self.client, self._paused_us), self._deadline_s
            )
        finally:
            rig.parties[self.client].resume()
            rig.journal.end(("pause", self.client), Outcome.OK)

    def attest(self, rows: Sequence[Row], fault: Row) -> str | None:
        pause = next(
            (row for row in rows if row.kind is Kind.PAUSE and row.client_id == self.client and during(row, fault)),
            None,
        )
        if pause is None or pause.ended_us is None:
            return None
        own = of_client(rows, self.client)
        # The freezer needs a moment: the pause is attested by the time in which certainly nothing was begun.
        inside = [row for row in own if pause.started_us <= row.started_us <= pause.ended_us]
        frozen_us = max((row.started_us for row in inside if row.started_us < pause.ended_us - 1000), default=0)
        since = max(frozen_us, pause.started_us)
        awake = any(row.started_us >= pause.ended_us for row in own)
        successor = takeover(rows, self.client, since)
        if not awake or successor is None or successor.started_us > pause.ended_us:
            return None
        silence_ms = (pause.ended_us - since) / 1000
        return (
            f"{self.client} was silent for {silence_ms:.0f} ms and went on; meanwhile {successor.client_id} "
            f"delivered {successor.lane}"
        )
