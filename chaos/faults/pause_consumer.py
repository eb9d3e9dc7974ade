"""A consumer is stopped (SIGSTOP, or a container paused) past its lease, and goes on when others have its lanes.

Its connections stay open, so nobody hears of it: only its silence takes the lease away, and its membership. It
wakes up with a call half done and commits that are late: nothing fences them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
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
        rig.live.wait_for(
            f"{self.client} at work", worked(self.client, self._after), self._deadline_s
        )
        rig.live.wait_for(
            f"{self.client} in its listener", running_call(self.client), self._deadline_s
        )

    def inject(self, rig: Rig) -> None:
        rig.journal.begin(("pause", self.client), Kind.PAUSE, {"client_id": self.client})
        rig.parties[self.client].pause()
        self._paused_us = rig.now_us()

    def heal(self, rig: Rig) -> None:
        try:
            rig.live.wait_for(
                f"somebody to take over from {self.client}",
                taken_over(self.client, self._paused_us),
                self._deadline_s,
            )
        finally:
            rig.parties[self.client].resume()
            rig.journal.end(("pause", self.client), Outcome.OK)

    def attest(self, rows: Sequence[Row], fault: Row) -> str | None:
        pause = next(
            (
                row
                for row in rows
                if row.kind is Kind.PAUSE and row.client_id == self.client and during(row, fault)
            ),
            None,
        )
        if pause is None or pause.ended_us is None:
            return None
        silence = self._longest_silence(rows, pause)
        if silence is None:
            return None
        since, until = silence
        successor = takeover(rows, self.client, since)
        if successor is None or successor.started_us > until:
            return None
        return (
            f"{self.client} was silent for {(until - since) / 1000:.0f} ms and went on; meanwhile "
            f"{successor.client_id} delivered {successor.lane}"
        )

    def _longest_silence(self, rows: Sequence[Row], pause: Row) -> tuple[int, int] | None:
        """The longest time around the pause in which the consumer did nothing, and after which it went on.

        Freezing and thawing take the engine a moment, so the pause itself is wider than what it did.
        """
        moments = [row.started_us for row in of_client(rows, self.client)]
        moments += [
            row.ended_us for row in of_client(rows, self.client) if row.ended_us is not None
        ]
        moments.sort()
        gaps = [
            (since, until)
            for since, until in pairwise(moments)
            if until >= pause.started_us and (pause.ended_us is None or since <= pause.ended_us)
        ]
        return max(gaps, key=lambda gap: gap[1] - gap[0], default=None)
