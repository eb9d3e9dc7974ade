"""Which rows judges need, with which columns, and in which order: of rows in memory as of files and on Spark."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from specs.facts.columns import NONE, Ints, Mask
from specs.facts.groupings import SOURCE, Grouping
from specs.facts.judges import Judge
from specs.facts.rows import coded, encoded
from specs.facts.segments import positions
from specs.vocabulary import Kind

ALWAYS = (
    "run",
    "seq_begin",
    "seq_end",
    "started_us",
    "ended_us",
    "clock",
    "kind",
    "level",
    "outcome",
    "client_id",
    "group",
    "topic",
    "broker",
    "broker_epoch",
    "queue_id",
)
"""Columns that every judge may use, and that the rules for all clauses do."""


def columns_of(judges: Iterable[Judge], grouping: Grouping) -> list[str]:
    """The columns that these judges need of rows that are brought together, in a fixed order."""
    names = [*needed(judges), *grouping.columns, *grouping.must_have]
    if "origin_id" in names:
        names.append(SOURCE)
    return list(dict.fromkeys(names))


def needed(judges: Iterable[Judge]) -> tuple[str, ...]:
    """The columns that these judges use, in a fixed order."""
    used = {name for judge in judges for name in judge.columns}
    if "incarnation" in used:  # whose it is, the process tells as well
        used.add("process")
    return (*ALWAYS, *sorted(used.difference(ALWAYS)))


def levels_of(judges: Iterable[Judge]) -> frozenset[str]:
    """The levels that the clauses look at; clauses of one pass look at the same ones."""
    (levels,) = {judge.clause.levels for judge in judges}
    return frozenset(levels)


def relevant(table: pa.Table, judges: Iterable[Judge]) -> Mask:
    """Which rows do these judges need?"""
    by_levels: dict[frozenset[str], list[Judge]] = {}
    for judge in judges:
        by_levels.setdefault(levels_of((judge,)), []).append(judge)
    found = np.zeros(table.num_rows, np.bool_)
    for some in by_levels.values():
        found |= _relevant(table, some)
    return found


def _relevant(table: pa.Table, judges: Sequence[Judge]) -> Mask:
    """Likewise, of judges that look at the same levels."""
    codes, words = coded(table.column("kind"))
    found = _among(codes, words, whole_kinds(judges))
    for kind, (column, prefix) in sorted(kinds_in_part(judges)):
        texts, spelt = coded(table.column(column))
        begins = np.asarray([*(text.startswith(prefix) for text in spelt), False], np.bool_)
        found |= _among(codes, words, {kind}) & begins[texts]
    levels, names = coded(table.column("level"))
    return found & _among(levels, names, levels_of(judges))


def whole_kinds(judges: Iterable[Judge]) -> set[str]:
    """The kinds of which all rows are needed."""
    return {kind.value for judge in judges for kind in judge.kinds.difference(judge.only)}


def kinds_in_part(judges: Sequence[Judge]) -> set[tuple[Kind, tuple[str, str]]]:
    """(kind, (column, prefix)) of the kinds of which only rows are needed where the column's text begins so."""
    found = {each for judge in judges for each in judge.only.items()}
    return {each for each in found if each[0].value not in whole_kinds(judges)}


def _among(codes: Ints, words: Sequence[str], wanted: Collection[str]) -> Mask:
    found: Mask = np.asarray([*(word in wanted for word in words), False], np.bool_)[codes]
    return found


def with_source(table: pa.Table) -> pa.Table:
    """The table with the column `SOURCE`."""
    if SOURCE in table.column_names:
        return table
    origin, message = table.column("origin_id"), table.column("message_id")
    if origin.null_count == len(origin):
        return table.append_column(SOURCE, message)
    named = pc.if_else(pc.not_equal(origin, ""), origin, None)
    return table.append_column(SOURCE, pc.coalesce(named, message, origin))


def wanted_of(
    table: pa.Table, judges: Sequence[Judge], grouping: Grouping, *, whole: bool = True
) -> Ints:
    """Where in a table the rows are that these judges need; not whole: those without a key as well."""
    found = relevant(table, judges)
    for name in grouping.must_have if whole else ():
        if table.column(name).null_count:
            found &= np.asarray(table.column(name).is_valid())
    return positions(found)


def order_of(table: pa.Table, grouping: Grouping, where: Ints | None = None) -> Ints:
    """The positions of a table's rows, or of those at these positions, key by key and by seq_begin."""
    columns = [*codes_of(table, grouping.columns), table.column("seq_begin").to_numpy()]
    if where is not None:
        columns = [column[where] for column in columns]
    *keys, seq = columns
    keys = [codes for codes in keys if (codes != codes[:1]).any()]
    order: Ints = np.lexsort((seq, *reversed(keys)))
    return order if where is None else where[order]


def codes_of(table: pa.Table, columns: Sequence[str]) -> list[Ints]:
    """The columns as numbers: equal values have equal numbers."""
    return [
        numbers_of(table.column(name))
        if pa.types.is_integer(table.schema.field(name).type)
        else encoded(table.column(name))[0]
        for name in columns
    ]


def numbers_of(column: Any) -> Ints:
    """A column of whole numbers; what is missing is NONE."""
    found: Ints = (column.fill_null(NONE) if column.null_count else column).to_numpy()
    return found
