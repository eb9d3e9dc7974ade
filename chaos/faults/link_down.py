"""The link to the broker goes down for a while: connections end, new ones are refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from chaos.faults.base import REQUESTS, Fault, during
from chaos.live import worked
from chaos.rig import Rig
from conformance.waiting import pass_time
from specs.history.row import Row
from specs.vocabulary import Outcome


class LinkDown(Fault):
    """client: who has to have finished `after_messages` first. for_ms: how long nothing passes."""

    NAME: ClassVar[str] = "link_down"
    NEEDS_PROXY: ClassVar[bool] = True

    def __init__(
        self, client: str, for_ms: int = 3_000, after_messages: int = 10, deadline_s: float = 60.0
    ) -> None:
        self.client = client
        self._for_ms = for_ms
        self._after = after_messages
        self._deadline_s = deadline_s

    def await_moment(self, rig: Rig) -> None:
        rig.live.wait_for(
            f"{self.client} at work", worked(self.client, self._after), self._deadline_s
        )
        rig.check_nobody_bypasses()

    def inject(self, rig: Rig) -> None:
        for proxy in rig.proxies.values():
            proxy.disable()

    def heal(self, rig: Rig) -> None:
        pass_time(self._for_ms / 1000)
        for proxy in rig.proxies.values():
            proxy.enable()

    def attest(self, rows: Sequence[Row], fault: Row) -> str | None:
        asked = [row for row in rows if row.kind in REQUESTS and during(row, fault)]
        lost = [row for row in asked if row.outcome in (Outcome.UNKNOWN, Outcome.REFUSED)]
        if not lost:
            return None
        return f"{len(lost)} of {len(asked)} requests begun while the link was down were not answered with success"
