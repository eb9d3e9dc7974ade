"""What every fault has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from chaos.rig import Rig
from specs.history.row import Row
from specs.vocabulary import Kind

BACKENDS = ("process", "docker")
CONSUMER_KINDS = frozenset(
    {
        Kind.LOCK,
        Kind.UNLOCK,
        Kind.PULL,
        Kind.DELIVER,
        Kind.COMMIT,
        Kind.FETCH_OFFSET,
        Kind.DEAD_LETTER,
    }
)
REQUESTS = frozenset({Kind.LOCK, Kind.PULL, Kind.FETCH_OFFSET, Kind.SEND, Kind.DEAD_LETTER})


class Fault(ABC):
    """One disaster. Its constructor takes the arguments of a scenario's [[fault]] table."""

    NAME: ClassVar[str]
    NEEDS_PROXY: ClassVar[bool] = False
    BACKENDS: ClassVar[tuple[str, ...]] = BACKENDS

    def applies_to(self, backend: str, proxied: bool) -> str | None:
        """Why the fault can't be injected here; None when it can."""
        if backend not in self.BACKENDS:
            return f"{self.NAME} needs the backend {' or '.join(self.BACKENDS)}"
        if self.NEEDS_PROXY and not proxied:
            return f"{self.NAME} needs a proxy before the broker, which this target can't have"
        return None

    @abstractmethod
    def await_moment(self, rig: Rig) -> None:
        """Wait for the fault's moment."""

    @abstractmethod
    def inject(self, rig: Rig) -> None:
        """Break something."""

    @abstractmethod
    def heal(self, rig: Rig) -> None:
        """Wait for the end of the fault and mend it."""

    @abstractmethod
    def attest(self, rows: Sequence[Row], fault: Row) -> str | None:
        """What shows in the history that the fault had its effect; None when nothing does.

        fault: the FAULT row, from injection to healing.
        """


def during(row: Row, fault: Row) -> bool:
    """Did the operation begin while the fault lasted?"""
    end = fault.ended_us if fault.ended_us is not None else row.started_us
    return fault.started_us <= row.started_us <= end


def of_client(rows: Sequence[Row], client: str) -> list[Row]:
    """What a consumer itself did."""
    return [row for row in rows if row.client_id == client and row.kind in CONSUMER_KINDS]


def takeover(rows: Sequence[Row], client: str, since_us: int) -> Row | None:
    """The first delivery by another client on a lane on which `client` worked before `since_us`."""
    lanes = {
        row.lane
        for row in rows
        if row.kind is Kind.DELIVER and row.client_id == client and row.started_us < since_us
    }
    for row in rows:
        if (
            row.kind is Kind.DELIVER
            and row.client_id != client
            and row.started_us >= since_us
            and row.lane in lanes
        ):
            return row
    return None
