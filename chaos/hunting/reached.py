"""What a run of a search has reached: where its lanes stood, and which faults there were then.

Of a simulated run the lanes themselves tell it (`conformance.machines.abstraction`). Of a run on real parts its rows
do: what was done on a lane, how it ended, at which attempt, how old the client's grant was, and which faults lasted.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import Kind, Outcome

ATTEMPTS_MAX = 3
_OF_LANES = frozenset(
    {Kind.DELIVER, Kind.COMMIT, Kind.LOCK, Kind.UNLOCK, Kind.FETCH_OFFSET, Kind.DEAD_LETTER}
)


def states_of(rows: Sequence[Row], config: Config) -> Iterator[Hashable]:
    """The states that the rows show."""
    faults = [row for row in rows if row.kind is Kind.FAULT]
    granted: dict[tuple[str | None, object], int] = {}
    for row in rows:
        if row.kind not in _OF_LANES:
            continue
        who = (row.party, row.lane)
        age_us = row.started_us - granted[who] if who in granted else None
        during = sorted(
            {
                (fault.detail or "").partition(" ")[0]
                for fault in faults
                if fault.started_us <= row.started_us <= (fault.ended_us or fault.started_us)
            }
        )
        attempt = min(row.attempt or 0, ATTEMPTS_MAX)
        yield row.kind.value, row.outcome.value, attempt, _lease(age_us, config), tuple(during)
        if row.kind is Kind.LOCK and row.outcome is Outcome.OK:
            granted[who] = row.ended_us or row.started_us


def _lease(age_us: int | None, config: Config) -> str:
    if age_us is None:
        return "none"
    if age_us > config.client_lease_ms * 1_000:
        return "expired"
    return "ageing" if age_us > config.lock_interval_ms * 1_000 else "fresh"
