"""The judge of one clause for one key, and what it finds.

A judge sees the begins and the ends of operations in their total order (`begins(row)`, `ends(row)`); the row it
gets is whole in both, so at a begin it must not use how the operation ends unless the clause is about that. It
holds constant memory per key. It concludes from rows that are present, rooted in a row that shows that the
incarnation (or the grant) was watched from its start; so a slice of a history is judged like a history.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any

from specs.clauses.context import Context
from specs.history.row import Row

NOTHING: tuple[()] = ()
"""What a judge mostly finds."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A violation: a subclass names its rows, and other facts, as fields.

    Its public name, by which a profile may allow it, is that of the subclass. certain: False when something that the
    history can't tell leaves it open; what holds for all clauses (`specs.clauses.certainty`) is not the judge's to ask.
    """

    certain: bool = field(default=True, kw_only=True)

    @property
    def name(self) -> str:
        """Its public name."""
        return name_of(type(self))

    @property
    def rows(self) -> tuple[Row, ...]:
        """The evidence, by seq_begin, each row once."""
        found: dict[int, Row] = {}
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, Row):
                found[value.seq_begin] = value
            elif (
                isinstance(value, tuple) and value and all(isinstance(item, Row) for item in value)
            ):
                found.update((item.seq_begin, item) for item in value)
        return tuple(found[seq] for seq in sorted(found))

    @property
    def timed(self) -> tuple[Row, ...]:
        """Those of the evidence whose times it rests on: all but what only shows that something is told at all."""
        return self.rows

    @property
    def place(self) -> tuple[Any, ...]:
        """Findings are ordered by their last evidence, then by all of it: the first is the witness."""
        rows = self.rows
        return (
            (rows[-1].run, rows[-1].seq_begin, tuple(row.seq_begin for row in rows))
            if rows
            else ("", -1, ())
        )


def name_of(finding: type[Finding]) -> str:
    """The public name of a kind of finding: `two-owners` of TwoOwners."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", finding.__name__.lstrip("_")).lower()


class Judge:
    """The judge of one clause for one key. Counts in `opportunities` how often the clause was at stake."""

    __slots__ = ("config", "context", "opportunities")

    def __init__(self, context: Context) -> None:
        self.context = context
        self.config = context.info.config
        self.opportunities = 0

    def begins(self, row: Row) -> Iterable[Finding]:
        """An operation begins."""
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        """An operation ends."""
        return NOTHING

    def finish(self) -> Iterable[Finding]:
        """The history is over."""
        return NOTHING
