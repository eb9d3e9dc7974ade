"""Runs both judges on rows in memory and gives what each found in one shape, to be compared."""

from __future__ import annotations

from collections.abc import Sequence

from spark_checkers.keyed import judge_in_memory
from spark_checkers.rows import RunContext
from spark_checkers.twin import Twin
from specs.clauses.base import CONTEXT_KINDS, Clause
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.history.store import rows_to_table
from specs.verdicts.examine import Examiner

Found = tuple[int, list[tuple[tuple[int, ...], bool]]]
"""(opportunities, violations as (seq_begin of the evidence, certain), sorted)."""


def by_python(rows: Sequence[Row], info: RunInfo, clauses: Sequence[Clause]) -> dict[str, Found]:
    """What the Python judges find."""
    examiner = Examiner(info, clauses)
    for bench in examiner.benches:
        bench.kept = []
    examiner.feed(rows)
    tallies = examiner.result().tallies
    found: dict[str, Found] = {clause.id: (0, []) for clause in clauses}
    for bench in examiner.benches:
        found[bench.clause.id] = (
            tallies[bench.clause.id].opportunities,
            sorted((tuple(row.seq_begin for row in each.rows), each.certain) for each in bench.kept or ()),
        )
    return found


def context_of(rows: Sequence[Row], info: RunInfo) -> RunContext:
    return RunContext.of(info, [row for row in rows if row.kind in CONTEXT_KINDS])


def by_twins(rows: Sequence[Row], info: RunInfo, twins: Sequence[Twin], least: int = 1 << 19) -> dict[str, Found]:
    """What the twins find, in this process. least: of how many rows, at least, whole keys are judged together."""
    found: dict[str, Found] = {twin.id: (0, []) for twin in twins}
    chosen = [twin for twin in twins if twin.clause.unmet(info) is None]
    for each in judge_in_memory(rows_to_table(rows), chosen, {info.run: context_of(rows, info)}, least):
        times, violations = found[each.clause]
        violations.extend((seqs, certain) for _run, seqs, certain in each.violations)
        found[each.clause] = (times + sum(each.opportunities.values()), violations)
    return {clause: (times, sorted(violations)) for clause, (times, violations) in found.items()}
