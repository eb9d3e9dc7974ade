"""Runs both judges on rows in memory and gives what each found in one shape, to be compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spark_checkers.facts import OF_CONTEXT
from spark_checkers.keyed import judge_in_memory
from spark_checkers.twin import Twin
from specs.clauses.certainty import told_of
from specs.clauses.clause import Clause
from specs.clauses.context import CONTEXT_KINDS
from specs.clauses.rows import is_unsure
from specs.facts.run_context import RunContext
from specs.history.columns import NAMES
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.history.store import rows_to_table
from specs.verdicts.examine import Examiner

Found = tuple[int, list[tuple[tuple[int, ...], bool, str]]]
"""(opportunities, violations as (seq_begin of the evidence, certain, name), sorted)."""


def by_python(rows: Sequence[Row], info: RunInfo, clauses: Sequence[Clause]) -> dict[str, Found]:
    """What the Python judges find."""
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
            row._replace(**untold) if row.kind in CONTEXT_KINDS or is_unsure(row) else row
            for row in rows
        ],
    )


def together_by_twins(
    histories: Sequence[tuple[RunInfo, Sequence[Row]]], twins: Sequence[Twin]
) -> list[dict[str, Found]]:
    """What the twins find in each of some histories, each as a run of its own, all of them judged at once."""
    named = {str(number): history for number, history in enumerate(histories)}
    infos = {name: replace(info, run=name) for name, (info, _) in named.items()}
    of_run = {name: [row._replace(run=name) for row in rows] for name, (_, rows) in named.items()}
    contexts = {name: context_of(of_run[name], info) for name, info in infos.items()}
    found: dict[str, dict[str, Found]] = {
        name: {twin.id: (0, []) for twin in twins} for name in named
    }
    for twin in twins:
        runs = [name for name, info in infos.items() if _applies(twin, info)]
        rows = [row for name in runs for row in of_run[name]]
        times = dict.fromkeys(runs, 0)
        for each in judge_in_memory(rows_to_table(rows), [twin], contexts) if rows else ():
            for run, seqs, certain, name in each.violations:
                found[run][twin.id][1].append((seqs, certain, name))
            for run, count in each.opportunities.items():
                times[run] += count
        for run, count in times.items():
            found[run][twin.id] = (count, sorted(found[run][twin.id][1]))
    return [found[name] for name in named]


def _applies(twin: Twin, info: RunInfo) -> bool:
    known = told_of(info)
    return twin.clause.unmet(info) is None and not (
        known is not None and twin.clause.missing(known)
    )


def by_twins(
    rows: Sequence[Row], info: RunInfo, twins: Sequence[Twin], least: int = 1 << 19
) -> dict[str, Found]:
    """What the twins find, in this process. least: of how many rows, at least, whole keys are judged together."""
    found: dict[str, Found] = {twin.id: (0, []) for twin in twins}
    chosen = [twin for twin in twins if _applies(twin, info)]
    for each in judge_in_memory(
        rows_to_table(rows), chosen, {info.run: context_of(rows, info)}, least
    ):
        times, violations = found[each.clause]
        violations.extend((seqs, certain, name) for _run, seqs, certain, name in each.violations)
        found[each.clause] = (times + sum(each.opportunities.values()), violations)
    return {clause: (times, sorted(violations)) for clause, (times, violations) in found.items()}
