"""Judges rows as they lie in memory, and brought together as files are, and gives what was found in one shape."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from spark_checkers.facts import OF_CONTEXT
from spark_checkers.judging import judge_table
from spark_checkers.keyed import CHUNK_ROWS, in_order, whole_or_long
from specs.clauses.certainty import told_of
from specs.clauses.clause import Clause
from specs.clauses.context import CONTEXT_KINDS
from specs.clauses.rows import is_astray, is_unsure
from specs.facts.findings import Findings
from specs.facts.judges import Judge, grouped
from specs.facts.run_context import RunContext, Runs
from specs.facts.together import columns_of, wanted_of, with_source
from specs.history.columns import NAMES
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.history.store import rows_to_table
from specs.verdicts.examine import Examiner

Found = tuple[int, list[tuple[tuple[int, ...], bool, str]]]
"""(opportunities, violations as (seq_begin of the evidence, certain, name), sorted)."""


def in_memory(rows: Sequence[Row], info: RunInfo, clauses: Sequence[Clause]) -> dict[str, Found]:
    """What is found in them as they lie."""
    examiner = Examiner(info, clauses)
    for bench in examiner.benches:
        bench.kept = []
    examiner.feed(rows)
    tallies = examiner.result().tallies
    found: dict[str, Found] = {clause.id: (0, []) for clause in clauses}
    for bench in examiner.benches:
        tally, kept = tallies[bench.clause.id], bench.kept
        certain = sum(each.certain for each in kept)
        assert (tally.violations, tally.possible) == (certain, len(kept) - certain), "miscounted"
        found[bench.clause.id] = (
            tally.opportunities,
            sorted(
                (tuple(row.seq_begin for row in each.rows), each.certain, each.name)
                for each in kept
            ),
        )
    return found


def context_of(rows: Sequence[Row], info: RunInfo) -> RunContext:
    """From rows of the context that tell nothing but what a first look at files keeps of them."""
    untold = dict.fromkeys(set(NAMES) - OF_CONTEXT - {"broker_epoch"})
    return RunContext.of_rows(
        info,
        [
            row._replace(**untold)
            if row.kind in CONTEXT_KINDS or is_unsure(row) or is_astray(row)
            else row
            for row in rows
        ],
    )


def brought_together(
    rows: Sequence[Row], judges: Sequence[Judge], least: int = CHUNK_ROWS
) -> Iterator[tuple[pa.Table, tuple[Judge, ...]]]:
    """Tables of whole keys and who judges them, with the keys, cuts and order of a job."""
    table = with_source(rows_to_table(rows))
    for grouping, chosen in grouped(judges):
        mine = table.take(pa.array(wanted_of(table, chosen, grouping)))
        batches = in_order(mine.select(columns_of(chosen, grouping)), grouping, max(1, least // 4))
        for part in whole_or_long(batches, grouping.columns, None, least):
            yield part, tuple(chosen)


def _judged(
    rows: Sequence[Row], judges: Sequence[Judge], runs: Runs, least: int = CHUNK_ROWS
) -> Iterator[Findings]:
    for part, chosen in brought_together(rows, judges, least):
        yield from judge_table(part, chosen, runs)


def together_by_columns(
    histories: Sequence[tuple[RunInfo, Sequence[Row]]], judges: Sequence[Judge]
) -> list[dict[str, Found]]:
    """What is found in each of some histories, each as a run of its own, all of them judged at once."""
    named = {str(number): history for number, history in enumerate(histories)}
    infos = {name: replace(info, run=name) for name, (info, _) in named.items()}
    of_run = {name: [row._replace(run=name) for row in rows] for name, (_, rows) in named.items()}
    contexts = {name: context_of(of_run[name], info) for name, info in infos.items()}
    found: dict[str, dict[str, Found]] = {
        name: {judge.id: (0, []) for judge in judges} for name in named
    }
    for judge in judges:
        runs = [name for name, info in infos.items() if _applies(judge, info)]
        rows = [row for name in runs for row in of_run[name]]
        times = dict.fromkeys(runs, 0)
        for each in _judged(rows, [judge], contexts) if rows else ():
            for run, seqs, certain, name in each.violations:
                found[run][judge.id][1].append((seqs, certain, name))
            for run, count in each.opportunities.items():
                times[run] += count
        for run, count in times.items():
            before, violations = found[run][judge.id]
            found[run][judge.id] = (before + count, sorted(violations))
    return [found[name] for name in named]


def _applies(judge: Judge, info: RunInfo) -> bool:
    known = told_of(info)
    return judge.clause.unmet(info) is None and not (
        known is not None and judge.clause.missing(known)
    )


def by_columns(
    rows: Sequence[Row], info: RunInfo, judges: Sequence[Judge], least: int = CHUNK_ROWS
) -> dict[str, Found]:
    """What is found when they are brought together. least: so many rows, at least, are judged together."""
    found: dict[str, Found] = {judge.id: (0, []) for judge in judges}
    chosen = [judge for judge in judges if _applies(judge, info)]
    for each in _judged(rows, chosen, {info.run: context_of(rows, info)}, least):
        times, violations = found[each.clause]
        violations.extend((seqs, certain, name) for _run, seqs, certain, name in each.violations)
        found[each.clause] = (times + sum(each.opportunities.values()), violations)
    return {clause: (times, sorted(violations)) for clause, (times, violations) in found.items()}
