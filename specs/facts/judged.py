"""Judges the rows of one run, in memory, by the clauses that are relations over columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from specs.clauses.clause import Clause, Relation
from specs.clauses.rows import changed_nothing
from specs.facts.findings import Findings
from specs.facts.groupings import CLIENTS, GROUPINGS, SOURCE, Grouping
from specs.facts.rows import Rows, coded, without_refused_commits
from specs.facts.run_context import RunContext
from specs.facts.segments import NONE, Ints, Mask, positions
from specs.history.arrow import arrow_schema
from specs.history.row import Row
from specs.vocabulary import Kind, Level

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
"""Columns that every relation may use, and that the rules for all clauses do."""
_SCHEMA = arrow_schema()
_KINDS = {kind: number for number, kind in enumerate(Kind)}
_LEVELS = {level: number for number, level in enumerate(Level)}


def columns_of(used: Iterable[str]) -> tuple[str, ...]:
    """Those that all use, and these, in a fixed order."""
    extra = set(used)
    if "incarnation" in extra:  # whose it is, the process tells as well
        extra.add("process")
    return (*ALWAYS, *sorted(extra.difference(ALWAYS)))


def judged(
    clauses: Iterable[Clause], rows: Sequence[Row], context: RunContext
) -> Iterator[tuple[Clause, Findings, Sequence[Row]]]:
    """Of each clause what it finds, and the rows that positions are of. rows: all of the run, by seq_begin.

    A clause that goes by clients and finds something else besides comes twice.
    """
    parts = [part for clause in clauses for part in _parts(clause)]
    rows = [row for row in rows if not changed_nothing(row)]
    if not rows:
        return
    names = {name for clause, *_ in parts for name in clause.columns}
    names.update(*((*grouping.columns, *grouping.must_have) for _, grouping, _ in parts))
    if SOURCE in names:
        names = names - {SOURCE} | {"message_id", "origin_id"}
    table = _table(rows, columns_of(names))
    numbers = (
        np.asarray([_KINDS[row.kind] for row in rows]),
        np.asarray([_LEVELS[row.level] for row in rows]),
    )
    for (grouping, levels), some in groupby(sorted(parts, key=_looks_at), key=_looks_at):
        together = tuple(some)
        kinds = {kind for clause, *_ in together for kind in clause.kinds}
        mine = np.isin(numbers[0], [_KINDS[kind] for kind in kinds])
        mine &= np.isin(numbers[1], [_LEVELS[level] for level in levels])
        where = _in_order(table, grouping, mine)
        columns = Rows(table.take(pa.array(where)), {rows[0].run: context})
        placed = [rows[at] for at in where.tolist()]
        for clause, _, relation in together:
            findings = Findings(columns, clause.id)
            if placed:
                relation(shown_to(clause, columns), findings)
            yield clause, findings, placed


def _parts(clause: Clause) -> Iterator[tuple[Clause, Grouping, Relation]]:
    assert clause.relation is not None, clause.id
    own = GROUPINGS[clause.key]
    yield clause, CLIENTS if clause.by_clients else own, clause.relation
    if clause.apart is not None:
        yield clause, own, clause.apart.judge


def _in_order(table: pa.Table, grouping: Grouping, mine: Mask) -> Ints:
    """The positions of those of these rows that have the key, key by key and by seq_begin."""
    keys = []
    for name in grouping.columns:
        column = source_of(table) if name == SOURCE else table.column(name)
        codes = (
            column.fill_null(NONE).to_numpy()
            if pa.types.is_integer(column.type)
            else coded(column)[0]
        )
        if name in grouping.must_have:
            mine = mine & (codes >= 0)
        keys.append(codes)
    for name in set(grouping.must_have).difference(grouping.columns):
        mine = mine & np.asarray(table.column(name).is_valid())
    where = positions(mine)
    return where[np.lexsort([key[where] for key in reversed(keys)])]  # as stable as they came


def source_of(table: pa.Table) -> Any:
    """The ids of the messages as they were first sent, a column."""
    message, origin = table.column("message_id"), table.column("origin_id")
    named = pc.if_else(pc.not_equal(origin, ""), origin, None)
    return pc.coalesce(named, message, origin)


def shown_to(clause: Clause, rows: Rows) -> Rows:
    """The rows as the clause is shown them: most are shown no commit that was refused."""
    if clause.told_of_refused_commits or Kind.COMMIT not in clause.kinds:
        return rows
    return rows.shared(without_refused_commits)


def _looks_at(part: tuple[Clause, Grouping, Relation]) -> tuple[Grouping, tuple[Level, ...]]:
    clause, grouping, _ = part
    return grouping, tuple(sorted(clause.levels))


def _table(rows: Sequence[Row], names: Iterable[str]) -> pa.Table:
    places = {name: number for number, name in enumerate(Row._fields)}
    fields = [_SCHEMA.field(name) for name in names]
    return pa.Table.from_arrays(
        [pa.array([row[places[each.name]] for row in rows], type=each.type) for each in fields],
        schema=pa.schema(fields),
    )
