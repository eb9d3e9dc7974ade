"""A consumer is killed (SIGKILL) while its listener runs and it holds the lease; it may come back later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from chaos.faults.base import Fault, during, of_client, takeover
from chaos.live import running_call, taken_over, worked
from chaos.rig import Rig
from specs.history.row import Row
from specs.vocabulary import Kind, Outcome


class KillConsumer(Fault):
    """client: whom. after_messages: how many it has to finish first. restart: whether it comes back."""

    NAME: ClassVar[str] = "kill_consumer"

    def __init__(
        self, client: str, after_messages: int = 10, restart: bool = True, deadline_s: float = 60.0
    ) -> None:
        self.client = client
        self._after = after_messages
        self._restart = restart
        self._deadline_s = deadline_s
        self._killed_us = 0

    def await_moment(self, rig: Rig) -> None:
        rig.live.wait_for(
            f"{self.client} at work", worked(self.client, self._after), self._deadline_s
        )
        rig.live.wait_for(
            f"{self.client} in its listener", running_call(self.client), self._deadline_s
        )

    def inject(self, rig: Rig) -> None:
        rig.parties[self.client].kill()
        self._killed_us = rig.now_us()
        rig.journal.note(
            Kind.CRASH, Outcome.OK, {"client_id": self.client, "detail": "killed by the harness"}
        )

    def heal(self, rig: Rig) -> None:
        rig.live.wait_for(
            f"somebody to take over from {self.client}",
            taken_over(self.client, self._killed_us),
            self._deadline_s,
        )
        if self._restart:
            rig.parties[self.client].start()

    def attest(self, rows: Sequence[Row], fault: Row) -> str | None:
        death = next(
            (
                row
                for row in rows
                if row.kind is Kind.CRASH and row.client_id == self.client and during(row, fault)
            ),
            None,
        )
        if death is None:
            return None
        silent = not any(
            during(row, fault) and row.seq_begin > death.seq_begin
            for row in of_client(rows, self.client)
        )
        successor = takeover(rows, self.client, death.started_us)
        if not silent or successor is None:
            return None
        after_ms = (successor.started_us - death.started_us) / 1000
        return f"{self.client} fell silent; {successor.client_id} delivered {successor.lane} {after_ms:.0f} ms later"
