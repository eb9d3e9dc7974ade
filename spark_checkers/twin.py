"""What a twin is made of: the same clause as in `specs.clauses`, said over columns instead of row by row.

A twin has a *kernel*: a function of the rows of whole keys (`Rows`) that writes down what it finds (`Findings`).
It never runs the Python judge: it says the same rule a second time, in whole-array arithmetic, and goes row by row
only over the few rows that such arithmetic has picked out. `Twin.find` makes `DataFrame -> DataFrame` of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from spark_checkers.rows import Findings, Rows, Runs, keep
from specs.clauses import catalogue
from specs.clauses.clause import Clause
from specs.vocabulary import Key

Kernel = Callable[[Rows, Findings], None]

FINDINGS = "run string, clause string, finding string, seqs array<bigint>, certain boolean, opportunities bigint"
"""A violation has a finding's name, seqs (of its evidence, ascending) and certain; a tally only opportunities."""
FINDINGS_ARROW = pa.schema(
    [
        ("run", pa.string()),
        ("clause", pa.string()),
        ("finding", pa.string()),
        ("seqs", pa.list_(pa.int64())),
        ("certain", pa.bool_()),
        ("opportunities", pa.int64()),
    ]
)
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
"""Columns that every kernel may use, and that the rules for all clauses do."""


@dataclass(frozen=True, slots=True)
class Twin:
    """The twin of the clause `id`. columns: what its kernel uses besides `ALWAYS`."""

    id: str
    columns: tuple[str, ...]
    kernel: Kernel

    @property
    def clause(self) -> Clause:
        return catalogue.get(self.id)

    @property
    def key(self) -> Key:
        """Under which key the kernel needs its rows whole: a lane lies within its queue."""
        return Key.QUEUE if self.clause.key is Key.LANE else self.clause.key

    def find(self, rows: Any, runs: Runs) -> Any:
        """A DataFrame of history rows → a DataFrame of `FINDINGS`; one shuffle by the clause's key."""
        from spark_checkers.keyed import by_key

        return by_key(rows, (self,), runs)


def needed(twins: Iterable[Twin]) -> tuple[str, ...]:
    """The columns that these twins use, in a fixed order."""
    extra = {name for twin in twins for name in twin.columns}
    return (*ALWAYS, *sorted(extra.difference(ALWAYS)))


def judge_table(table: pa.Table, twins: Sequence[Twin], runs: Runs) -> Iterator[Findings]:
    """Run the kernels on whole keys; the findings come in the order of the twins.

    table: rows of one key kind, sorted by key and seq_begin. Levels that no clause looks at are left out.
    """
    return judge_rows(Rows(keep(table, "level", levels_of(twins)), runs), twins)


def levels_of(twins: Iterable[Twin]) -> frozenset[str]:
    """The levels that the clauses look at; clauses of one pass look at the same ones."""
    (levels,) = {twin.clause.levels for twin in twins}
    return frozenset(levels)


def judge_rows(rows: Rows, twins: Sequence[Twin]) -> Iterator[Findings]:
    """Run the kernels on rows of whole keys, of the levels that the clauses look at."""
    for twin in twins:
        findings = Findings(rows, twin.id)
        if rows.size:
            twin.kernel(rows, findings)
        yield findings


def to_batch(findings: Iterable[Findings]) -> pa.RecordBatch:
    """Findings as Arrow rows of `FINDINGS`."""
    rows: list[tuple[Any, ...]] = []
    for each in findings:
        rows.extend(
            (run, each.clause, None, None, None, n) for run, n in each.opportunities.items() if n
        )
        rows.extend(
            (run, each.clause, name, list(seqs), certain, 0)
            for run, seqs, certain, name in each.violations
        )
    columns: list[Any] = list(zip(*rows, strict=True)) or [[] for _ in FINDINGS_ARROW]
    return pa.RecordBatch.from_arrays(
        [
            pa.array(list(column), field.type)
            for column, field in zip(columns, FINDINGS_ARROW, strict=True)
        ],
        schema=FINDINGS_ARROW,
    )
