"""What several clauses remember of each incarnation of a lane that was watched from its add."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from specs.clauses.base import NOTHING, Context, Finding, Judge
from specs.history.row import Row
from specs.vocabulary import Kind

CORRECTED = "corrected"
"""The detail of a commit whose value a broker's correction or a filter made."""

Known = TypeVar("Known")


class IncarnationsJudge(Judge, Generic[Known]):
    """Remembers something of each incarnation, from its add until a reset of the offset.

    added: makes of an add what is known when an incarnation begins. A subclass says what it makes of the begins of
    other rows (`begun`).
    """

    __slots__ = ("added", "incarnations")

    def __init__(self, context: Context, added: Callable[[Row], Known]) -> None:
        super().__init__(context)
        self.added = added
        self.incarnations: dict[str, Known] = {}

    def begun(self, known: Known, row: Row) -> Iterable[Finding]:
        """An operation of a known incarnation begins."""
        return NOTHING

    def known(self, row: Row) -> Known | None:
        """What is known of the row's incarnation, if that was watched from its add."""
        return self.incarnations.get(row.incarnation or "")

    def begins(self, row: Row) -> Iterable[Finding]:
        name = row.incarnation
        if row.kind is Kind.RESET:
            self.incarnations.clear()
        elif name is None:
            return NOTHING
        elif row.kind is Kind.ADD:
            self.incarnations[name] = self.added(row)
        elif (known := self.incarnations.get(name)) is not None:
            return self.begun(known, row)
        return NOTHING
