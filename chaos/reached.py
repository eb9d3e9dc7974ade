"""What a scenario must reach, so that a green run means something: named conditions on the history."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from conformance.live import FINISHED
from specs.history.row import Row
from specs.plan.ability import Ability
from specs.vocabulary import LISTENER_SUSPENDS, Kind, Outcome, dead_letter_topic


def _takeover(rows: Sequence[Row]) -> str | None:
    """A lane is delivered by a second client, or process where the work is no client's."""
    first: dict[object, str | None] = {}
    for row in rows:
        worker = row.party
        if row.kind is Kind.DELIVER and first.setdefault(row.lane, worker) != worker:
            return f"{worker} delivered {row.lane} after {first[row.lane]}"
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
    return f"{found.party} suspended {found.lane} at {found.queue_offset}" if found else None


def _dead_letter(rows: Sequence[Row]) -> str | None:
    """A message is given up."""
    found = next(
        (row for row in rows if row.kind is Kind.DEAD_LETTER and row.outcome is Outcome.OK), None
    )
    return f"{found.party} gave {found.message_id} up" if found else None


def _caught_up(rows: Sequence[Row]) -> str | None:
    """Every acknowledged message was consumed, or given up: it was told so, or lies among the dead letters."""
    sent = {row.message_id for row in rows if row.kind is Kind.SEND and row.outcome is Outcome.OK}
    done = {
        row.message_id
        for row in rows
        if (row.kind is Kind.DELIVER and row.outcome in FINISHED)
        or (row.kind is Kind.DEAD_LETTER and row.outcome is Outcome.OK)
        or (row.kind is Kind.READ and row.group and row.topic == dead_letter_topic(row.group))
    }
    return f"{len(sent)} messages" if sent and sent <= done else None


@dataclass(frozen=True, slots=True)
class Condition:
    """shown: what in the history shows that it was reached. told_by: the kinds of rows that it is seen by.

    needs: what a target must be able to, for it to happen at all.
    """

    shown: Callable[[Sequence[Row]], str | None]
    told_by: frozenset[Kind]
    needs: Ability | None = None


CONDITIONS: Mapping[str, Condition] = {
    "takeover": Condition(_takeover, frozenset({Kind.DELIVER})),
    "late_commit": Condition(_late_commit, frozenset({Kind.LOCK, Kind.COMMIT})),
    "suspended": Condition(_suspended, frozenset({Kind.DELIVER})),
    "dead_letter": Condition(_dead_letter, frozenset({Kind.DEAD_LETTER}), Ability.GIVE_UP),
    "caught_up": Condition(_caught_up, frozenset({Kind.SEND, Kind.DELIVER})),
}


def expected(
    names: Sequence[str], kinds: Collection[Kind], abilities: Collection[Ability]
) -> tuple[str, ...]:
    """Those that can be reached, and seen, on a target of these abilities that records these kinds."""
    return tuple(
        name
        for name in names
        if CONDITIONS[name].told_by <= set(kinds) and CONDITIONS[name].needs in (None, *abilities)
    )
