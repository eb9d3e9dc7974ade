"""What a twin is made of: the same clause as in `specs.clauses`, said over columns instead of row by row.

A twin has a *kernel*: a function of the rows of whole keys (`Rows`) that writes down what it finds (`Findings`).
It never runs the Python judge: it says the same rule a second time, in whole-array arithmetic, and goes row by row
only over the few rows that such arithmetic has picked out. `Twin.find` makes `DataFrame -> DataFrame` of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from spark_checkers.balances import Balance
from specs.clauses import catalogue
from specs.clauses.clause import Clause
from specs.facts.findings import Findings
from specs.facts.groupings import GROUPINGS, Grouping
from specs.facts.judged import columns_of, shown_to
from specs.facts.rows import Rows, coded, keep
from specs.facts.run_context import Runs
from specs.facts.segments import Ints, Mask
from specs.vocabulary import Key, Kind

Kernel = Callable[[Rows, Findings], None]
Pick = Callable[[Rows], Ints]

FINDINGS = (
    "run string, clause string, finding string, seqs array<bigint>, certain boolean, opportunities bigint, "
    "group string, topic string, broker string, queue_id bigint, at_us bigint"
)
"""A violation has a finding's name, seqs (of its evidence, ascending) and certain; a tally only opportunities.

group, topic, broker and queue_id: of the last row of the evidence that has them; at_us: when its last row began.
"""
FINDINGS_ARROW = pa.schema(
    [
        ("run", pa.string()),
        ("clause", pa.string()),
        ("finding", pa.string()),
        ("seqs", pa.list_(pa.int64())),
        ("certain", pa.bool_()),
        ("opportunities", pa.int64()),
        ("group", pa.string()),
        ("topic", pa.string()),
        ("broker", pa.string()),
        ("queue_id", pa.int64()),
        ("at_us", pa.int64()),
    ]
)
AT_HOME = tuple(
    GROUPINGS[key] for key in (Key.MESSAGE, Key.GROUP_KEY, Key.PRODUCER_KEY, Key.TOPIC_KEY)
)
"""Keys of which nearly all lie in one queue: see `spark_checkers.homes`.

Their kernels look for rows by their kinds, and need them in the order of seq_begin within a key alone.
"""
Only = Mapping[Kind, tuple[str, str]]
"""Of these kinds only rows of which the text of a column begins so: kind → (column, how it begins)."""


@dataclass(frozen=True, slots=True)
class Twin:
    """The twin of the clause `id`. columns: what its kernel uses besides `specs.facts.judged.ALWAYS`.

    What grows with the number of messages is never brought together by group or by run, so a twin says what it can do
    without. by: under which other key its kernel finds the same. kinds, only: which rows it needs, where these are
    fewer than those that its clause looks at. pick: which rows of whole queues it needs, where a queue can tell.
    also: kernels that find the rest under another key.
    """

    id: str
    columns: tuple[str, ...]
    kernel: Kernel
    by: Grouping | None = None
    kinds: frozenset[Kind] = frozenset()
    only: Only = field(default_factory=dict)
    pick: Pick | None = None
    also: tuple[Twin, ...] = ()

    @property
    def clause(self) -> Clause:
        return catalogue.get(self.id)

    @property
    def grouping(self) -> Grouping:
        """Under which key the kernel needs its rows whole."""
        return self.by or GROUPINGS[self.clause.key]

    @property
    def looks_at(self) -> frozenset[Kind]:
        return self.kinds or frozenset(self.clause.kinds)

    def find(self, rows: Any, runs: Runs) -> Any:
        """A DataFrame of history rows → a DataFrame of `FINDINGS`; one shuffle for each of its keys."""
        from spark_checkers.keyed import by_key

        found = by_key(rows, (replace(self, also=()),), runs)
        for other in self.also:
            found = found.unionByName(by_key(rows, (other,), runs))
        return found


def needed(twins: Iterable[Twin]) -> tuple[str, ...]:
    """The columns that these twins use, in a fixed order."""
    return columns_of(name for twin in twins for name in twin.columns)


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
            twin.kernel(shown_to(twin.clause, rows), findings)
        yield findings


def relevant(table: pa.Table, twins: Iterable[Twin]) -> Mask:
    """Which rows do these twins need?"""
    by_levels: dict[frozenset[str], list[Twin]] = {}
    for twin in twins:
        by_levels.setdefault(levels_of((twin,)), []).append(twin)
    found = np.zeros(table.num_rows, np.bool_)
    for some in by_levels.values():
        found |= _relevant(table, some)
    return found


def _relevant(table: pa.Table, twins: Sequence[Twin]) -> Mask:
    """Likewise, of twins that look at the same levels."""
    codes, words = coded(table.column("kind"))
    found = _among(codes, words, _whole(twins))
    for kind, (column, prefix) in sorted(_parts(twins)):
        texts, spelt = coded(table.column(column))
        begins = np.asarray([*(text.startswith(prefix) for text in spelt), False], np.bool_)
        found |= _among(codes, words, {kind}) & begins[texts]
    levels, names = coded(table.column("level"))
    return found & _among(levels, names, levels_of(twins))


def relevant_where(twins: Iterable[Twin]) -> str:
    """The same as a condition of Spark's SQL."""
    twins = tuple(twins)
    conditions = [f"kind in ({_quoted(_whole(twins))})"] if _whole(twins) else []
    conditions += [
        f"(kind = '{kind.value}' and startswith({column}, '{prefix}'))"
        for kind, (column, prefix) in sorted(_parts(twins))
    ]
    return f"({' or '.join(conditions)}) and level in ({_quoted(levels_of(twins))})"


def _whole(twins: Sequence[Twin]) -> set[str]:
    """The kinds of which all rows are needed."""
    return {kind.value for twin in twins for kind in twin.looks_at.difference(twin.only)}


def _parts(twins: Sequence[Twin]) -> set[tuple[Kind, tuple[str, str]]]:
    found = {each for twin in twins for each in twin.only.items()}
    return {each for each in found if each[0].value not in _whole(twins)}


def _quoted(words: Iterable[str]) -> str:
    return ", ".join(f"'{word}'" for word in sorted(words))


def _among(codes: Ints, words: Sequence[str], wanted: Collection[str]) -> Mask:
    found: Mask = np.asarray([*(word in wanted for word in words), False], np.bool_)[codes]
    return found


def to_batch(findings: Iterable[Findings | Balance]) -> pa.RecordBatch:
    """Findings as Arrow rows of `FINDINGS`."""
    rows: list[tuple[Any, ...]] = []
    for each in findings:
        rows.extend(
            (run, each.clause, None, None, None, n, None, None, None, None, None)
            for run, n in each.opportunities.items()
            if n
        )
        rows.extend(
            (run, each.clause, name, list(seqs), certain, 0, *place)
            for (run, seqs, certain, name), place in zip(each.violations, each.places, strict=True)
        )
    columns: list[Any] = list(zip(*rows, strict=True)) or [[] for _ in FINDINGS_ARROW]
    return pa.RecordBatch.from_arrays(
        [
            pa.array(list(column), field.type)
            for column, field in zip(columns, FINDINGS_ARROW, strict=True)
        ],
        schema=FINDINGS_ARROW,
    )
