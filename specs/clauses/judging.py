"""What a clause finds: the rows that show a violation, by their roles."""

import re
from dataclasses import dataclass, field, fields
from typing import Any, dataclass_transform

from specs.history.row import Row


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class _IsDataclass:
    """Its subclasses are frozen dataclasses, without a word of theirs."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)


class Finding(_IsDataclass):
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
