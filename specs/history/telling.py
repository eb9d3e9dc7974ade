"""What rows must tell, so that a history can be trusted (MET-1).

A row that lacks what makes it one of its kind says nothing, and yet it is there: whoever counts commits or looks for a
delivery would take it for something. So would who follows one incarnation, where some rows of a client's work on its
lanes say which one they are of, and others do not.
"""

from __future__ import annotations

from collections.abc import Mapping

from specs.history.row import Row
from specs.vocabulary import OF_A_CLIENT, Kind, Level, Outcome

CLIENT = "client_id"
MUST_TELL: Mapping[str, frozenset[Kind]] = {
    CLIENT: OF_A_CLIENT,
    "queue_offset": frozenset({Kind.DELIVER, Kind.DEAD_LETTER, Kind.SEND_BACK}),
    "value": frozenset({Kind.COMMIT, Kind.TRIM}),
    "message_id": frozenset({Kind.SEND}),
}
"""By column, the kinds whose rows must have it."""
_REFUSED_OR_RAW = {"outcome": frozenset({Outcome.REFUSED}), "level": frozenset({Level.WIRE})}
MAY_LACK: Mapping[str, Mapping[str, frozenset[str]]] = {
    CLIENT: {"level": frozenset({Level.STORE})},
    "queue_offset": _REFUSED_OR_RAW,
    "value": _REFUSED_OR_RAW,
    "message_id": _REFUSED_OR_RAW,
}
"""By column, which rows need not have it for what another column says. A store need not know which client it was. Of a
request that was refused only who asked must be told, for nothing came of it; and likewise of a raw protocol client's
(level `wire`), which may leave out what it likes, on purpose."""
OF_AN_INCARNATION = frozenset({Kind.ADD, Kind.DROP, Kind.DELIVER, Kind.DEAD_LETTER, Kind.COMMIT})
"""Kinds of which a client's rows in one group name their incarnation all, or none does."""
_COLUMNS = {
    kind: tuple(name for name, kinds in MUST_TELL.items() if kind in kinds) for kind in Kind
}
LAST_CHECK = 99
"""The number of the check of what names an incarnation: of one row's reasons that one is told last."""


def must_tell(row: Row, name: str) -> bool:
    """Is a row of this kind, seen where it was seen, none without that column?"""
    if row.kind not in MUST_TELL.get(name, ()):
        return False
    return all(getattr(row, by) not in values for by, values in MAY_LACK[name].items())


def untold(row: Row) -> tuple[str, ...]:
    """The columns that the row must have and lacks."""
    return tuple(
        name for name in _COLUMNS[row.kind] if getattr(row, name) is None and must_tell(row, name)
    )


def check_of(name: str) -> int:
    """The number of the check that a row has this column: see `specs.verdicts.examine`, which has 0 to 3."""
    return 4 + [*MUST_TELL].index(name)


def why_untold(kind: str, seq: int, name: str) -> str:
    """Why a row of this kind that lacks the column can't be trusted."""
    lacks = "names no client" if name == CLIENT else f"has no {name}"
    return f"seq {seq} is a {kind} that {lacks}"


def why_of_none(seq: int) -> str:
    """Why a row that names no incarnation can't be trusted, where others of its client and group do."""
    return f"seq {seq} names no incarnation, as other rows of its client do"
