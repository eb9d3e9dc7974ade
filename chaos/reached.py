"""What a scenario must reach, so that a green run means something: named conditions on the history."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from specs.history.row import Row
from specs.vocabulary import LISTENER_SUSPENDS, Kind, Outcome

Condition = Callable[[Sequence[Row]], str | None]


def _takeover(rows: Sequence[Row]) -> str | None:
    """A lane is delivered by a second client."""
    first: dict[object, str | None] = {}
    for row in rows:
        if row.kind is Kind.DELIVER and first.setdefault(row.lane, row.client_id) != row.client_id:
            return f"{row.client_id} delivered {row.lane} after {first[row.lane]}"
    return None


def _late_commit(rows: Sequence[Row]) -> str | None:
    """A client commits on a lane after another was granted it."""
    owner: dict[object, Row] = {}
    for row in rows:
        if row.kind is Kind.LOCK and row.outcome is Outcome.OK:
            owner[row.lane] = row
        elif (
            row.kind is Kind.COMMIT
            and row.lane in owner
            and owner[row.lane].client_id != row.client_id
        ):
            granted = owner[row.lane].client_id
            return f"{row.client_id} committed {row.value} on {row.lane} after {granted} was granted it"
    return None


def _suspended(rows: Sequence[Row]) -> str | None:
    """A listener suspends its lane."""
    found = next(
        (row for row in rows if row.kind is Kind.DELIVER and row.outcome in LISTENER_SUSPENDS), None
    )
    return f"{found.client_id} suspended {found.lane} at {found.queue_offset}" if found else None


def _dead_letter(rows: Sequence[Row]) -> str | None:
    """A message is given up."""
    found = next(
        (row for row in rows if row.kind is Kind.DEAD_LETTER and row.outcome is Outcome.OK), None
    )
    return f"{found.client_id} gave {found.message_id} up" if found else None


def _caught_up(rows: Sequence[Row]) -> str | None:
    """Every acknowledged message was consumed or given up."""
    sent = {row.message_id for row in rows if row.kind is Kind.SEND and row.outcome is Outcome.OK}
    done = {
        row.message_id
        for row in rows
        if (row.kind is Kind.DELIVER and row.outcome in (Outcome.SUCCESS, Outcome.COMMIT))
        or (row.kind is Kind.DEAD_LETTER and row.outcome is Outcome.OK)
    }
    return f"{len(sent)} messages" if sent and sent <= done else None


CONDITIONS: Mapping[str, Condition] = {
    "takeover": _takeover,
    "late_commit": _late_commit,
    "suspended": _suspended,
    "dead_letter": _dead_letter,
    "caught_up": _caught_up,
}
