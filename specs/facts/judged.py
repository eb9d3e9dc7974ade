"""Judges the rows of one run, in memory, by the clauses that are relations over columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

import pyarrow as pa

from specs.clauses.clause import Clause
from specs.clauses.keys import key_of
from specs.clauses.rows import changed_nothing
from specs.facts.findings import Findings
from specs.facts.rows import Rows, without_refused_commits
from specs.facts.run_context import RunContext
from specs.history.arrow import arrow_schema
from specs.history.row import Row
from specs.vocabulary import Key, Kind

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


def columns_of(used: Iterable[str]) -> tuple[str, ...]:
    """Those that all use, and these, in a fixed order."""
    extra = set(used)
    if "incarnation" in extra:  # whose it is, the process tells as well
        extra.add("process")
    return (*ALWAYS, *sorted(extra.difference(ALWAYS)))


def judged(
    clauses: Iterable[Clause], rows: Sequence[Row], context: RunContext
) -> Iterator[tuple[Clause, Findings, Sequence[Row]]]:
    """Of each clause what it finds, and the rows that positions are of. rows: all of the run, by seq_begin."""
    alike = sorted(clauses, key=_looks_at)
    for _looks, some in groupby(alike, key=_looks_at):
        together = tuple(some)
        first = together[0]
        kinds = frozenset[str]().union(*(clause.kinds for clause in together))
        key = key_of(Key.QUEUE if first.key is Key.LANE else first.key)  # a lane lies in its queue
        mine = [
            row
            for row in rows
            if row.kind in kinds
            and row.level in first.levels
            and key(row) is not None
            and not changed_nothing(row)
        ]
        used = columns_of(name for clause in together for name in clause.columns)
        columns = Rows(_table(mine, used), {row.run: context for row in mine[:1]})
        for clause in together:
            findings = Findings(columns, clause.id)
            if mine and clause.relation is not None:
                clause.relation(shown_to(clause, columns), findings)
            yield clause, findings, mine


def shown_to(clause: Clause, rows: Rows) -> Rows:
    """The rows as the clause is shown them: most are shown no commit that was refused."""
    if clause.told_of_refused_commits or Kind.COMMIT not in clause.kinds:
        return rows
    return rows.shared(without_refused_commits)


def _looks_at(clause: Clause) -> tuple[str, list[str]]:
    return clause.key, sorted(clause.levels)


def _table(rows: Sequence[Row], names: Iterable[str]) -> pa.Table:
    places = {name: number for number, name in enumerate(Row._fields)}
    fields = [_SCHEMA.field(name) for name in names]
    return pa.Table.from_arrays(
        [pa.array([row[places[each.name]] for row in rows], type=each.type) for each in fields],
        schema=pa.schema(fields),
    )
