"""Judges whole keys: rows of tables that hold them, and rows in memory, brought together as those of files are."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa

from specs.clauses.clause import Clause
from specs.clauses.rows import changed_nothing
from specs.facts.findings import Findings
from specs.facts.groupings import SOURCE
from specs.facts.judges import Judge, grouped, judges_of
from specs.facts.rows import Rows, without_refused_commits
from specs.facts.run_context import RunContext
from specs.facts.together import columns_of, order_of, wanted_of, with_source
from specs.history.arrow import arrow_schema
from specs.history.row import Row
from specs.vocabulary import Kind

_SCHEMA = arrow_schema()


def judged(
    clauses: Iterable[Clause], rows: Sequence[Row], runs: Mapping[str, RunContext]
) -> Iterator[tuple[Clause, Findings, Sequence[Row]]]:
    """Of each clause what it finds, and the rows that positions are of. rows: all of these runs, by run and seq_begin.

    A clause that goes by clients and finds something else besides comes twice.
    """
    rows = [row for row in rows if not changed_nothing(row)]
    present = frozenset(row.kind for row in rows)
    judges = judges_of(clause for clause in clauses if clause.may_matter(present))
    if not judges:
        return
    table = _table(rows, judges)
    for grouping, some in grouped(judges):
        where = order_of(table, grouping, wanted_of(table, some, grouping))
        columns = Rows(table.take(pa.array(where)), runs)
        placed = [rows[at] for at in where.tolist()]
        for judge, findings in zip(some, judge_rows(columns, some), strict=True):
            yield judge.clause, findings, placed


def judge_rows(rows: Rows, judges: Sequence[Judge]) -> Iterator[Findings]:
    """Judge rows of whole keys, of the levels that the clauses look at, by each judge in turn."""
    for judge in judges:
        findings = Findings(rows, judge.id)
        if rows.size:
            judge.find(_shown_to(judge.clause, rows), findings)
        yield findings


def _shown_to(clause: Clause, rows: Rows) -> Rows:
    """The rows as the clause is shown them: most are shown no commit that was refused."""
    if clause.told_of_refused_commits or Kind.COMMIT not in clause.kinds:
        return rows
    return rows.shared(without_refused_commits)


def _table(rows: Sequence[Row], judges: Iterable[Judge]) -> pa.Table:
    """The rows, with every column by which these judges' rows are found, brought together and judged."""
    names = {name for judge in judges for name in columns_of((judge,), judge.grouping)}
    names.update(column for judge in judges for column, _prefix in judge.only.values())
    sourced = SOURCE in names
    if sourced:
        names = names - {SOURCE} | {"message_id", "origin_id"}
    places = {name: number for number, name in enumerate(Row._fields)}
    fields = [_SCHEMA.field(name) for name in sorted(names)]
    table = pa.Table.from_arrays(
        [pa.array([row[places[each.name]] for row in rows], type=each.type) for each in fields],
        schema=pa.schema(fields),
    )
    return with_source(table) if sourced else table
