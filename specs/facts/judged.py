"""Judges rows in memory: brings together, for each clause, those of a key, as is done with files and on Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from specs.clauses.clause import Clause
from specs.clauses.rows import changed_nothing
from specs.facts.findings import Findings
from specs.facts.groupings import SOURCE, Grouping
from specs.facts.judges import Judge, judges_of
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
    clauses: Iterable[Clause], rows: Sequence[Row], runs: Mapping[str, RunContext]
) -> Iterator[tuple[Clause, Findings, Sequence[Row]]]:
    """Of each clause what it finds, and the rows that positions are of. rows: all of these runs, by run and seq_begin.

    A clause that goes by clients and finds something else besides comes twice.
    """
    rows = [row for row in rows if not changed_nothing(row)]
    present = {row.kind for row in rows}
    judges = judges_of(clause for clause in clauses if clause.kinds & present)
    if not judges:
        return
    table = _table(rows, together_of(judges))
    numbers = (
        np.asarray([_KINDS[row.kind] for row in rows]),
        np.asarray([_LEVELS[row.level] for row in rows]),
    )
    for (grouping, levels), some in groupby(sorted(judges, key=_looks_at), key=_looks_at):
        together = tuple(some)
        kinds = {kind for judge in together for kind in judge.kinds}
        mine = np.isin(numbers[0], [_KINDS[kind] for kind in kinds])
        mine &= np.isin(numbers[1], [_LEVELS[level] for level in levels])
        where = _in_order(table, grouping, mine)
        columns = Rows(table.take(pa.array(where)), runs)
        placed = [rows[at] for at in where.tolist()]
        for judge in together:
            findings = Findings(columns, judge.id)
            if placed:
                judge.find(shown_to(judge.clause, columns), findings)
            yield judge.clause, findings, placed


def together_of(judges: Iterable[Judge]) -> tuple[str, ...]:
    """The columns that these use, and by which their rows are brought together."""
    names = {name for judge in judges for name in judge.columns}
    for judge in judges:
        names.update(judge.grouping.columns, judge.grouping.must_have)
    if SOURCE in names:
        names = names - {SOURCE} | {"message_id", "origin_id"}
    return columns_of(names)


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


def _looks_at(judge: Judge) -> tuple[Grouping, tuple[Level, ...]]:
    return judge.grouping, tuple(sorted(judge.clause.levels))


def _table(rows: Sequence[Row], names: Iterable[str]) -> pa.Table:
    places = {name: number for number, name in enumerate(Row._fields)}
    fields = [_SCHEMA.field(name) for name in names]
    return pa.Table.from_arrays(
        [pa.array([row[places[each.name]] for row in rows], type=each.type) for each in fields],
        schema=pa.schema(fields),
    )
