"""Everything between the clients and the broker takes longer for a while."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import ClassVar

from chaos.faults.base import Fault, during
from chaos.live import worked
from chaos.rig import Rig
from chaos.toxiproxy.toxics import Latency, Stream
from conformance.waiting import pass_time
from specs.history.row import Row
from specs.vocabulary import Kind

QUICK = frozenset({Kind.LOCK, Kind.FETCH_OFFSET, Kind.SEND})
"""Requests that a broker answers at once."""


class LinkLatency(Fault):
    """client: who has to have finished `after_messages` first. ms: each way. for_ms: how long it lasts."""

    NAME: ClassVar[str] = "latency"
    NEEDS_PROXY: ClassVar[bool] = True

    def __init__(
        self,
        client: str,
        ms: int = 150,
        for_ms: int = 3_000,
        after_messages: int = 10,
        deadline_s: float = 60.0,
    ) -> None:
        self.client = client
        self._ms = ms
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
            proxy.add(Latency(latency_ms=self._ms, stream=Stream.UPSTREAM), "later_up")
            proxy.add(Latency(latency_ms=self._ms, stream=Stream.DOWNSTREAM), "later_down")

    def heal(self, rig: Rig) -> None:
        pass_time(self._for_ms / 1000)
        for proxy in rig.proxies.values():
            proxy.remove("later_up")
            proxy.remove("later_down")

    def attest(self, rows: Sequence[Row], fault: Row) -> str | None:
        answered = [row for row in rows if row.kind in QUICK and row.ended_us is not None]
        slow = [
            row.ended_us - row.started_us for row in answered if during(row, fault) and row.ended_us
        ]
        usual = [
            row.ended_us - row.started_us
            for row in answered
            if row.ended_us and row.ended_us < fault.started_us
        ]
        if not slow or not usual or median(slow) - median(usual) < self._ms * 1000:
            return None
        return f"the median request took {median(slow) / 1000:.0f} ms instead of {median(usual) / 1000:.1f} ms"
