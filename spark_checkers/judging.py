"""Judges columns: which rows the clauses' judges need, tables of whole keys judged, and findings as Arrow rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from spark_checkers.balances import Balance
from specs.facts.findings import Findings
from specs.facts.groupings import GROUPINGS
from specs.facts.judged import columns_of, shown_to
from specs.facts.judges import Judge
from specs.facts.rows import Rows, coded, keep
from specs.facts.run_context import Runs
from specs.facts.segments import Ints, Mask
from specs.vocabulary import Key, Kind

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

Their judges look for rows by their kinds, and need them in the order of seq_begin within a key alone.
"""


def needed(judges: Iterable[Judge]) -> tuple[str, ...]:
    """The columns that these judges use, in a fixed order."""
    return columns_of(name for judge in judges for name in judge.columns)


def judge_table(table: pa.Table, judges: Sequence[Judge], runs: Runs) -> Iterator[Findings]:
    """Judge whole keys; the findings come in the order of the judges.

    table: rows of one key kind, sorted by key and seq_begin. Levels that no clause looks at are left out.
    """
    return judge_rows(Rows(keep(table, "level", levels_of(judges)), runs), judges)


def levels_of(judges: Iterable[Judge]) -> frozenset[str]:
    """The levels that the clauses look at; clauses of one pass look at the same ones."""
    (levels,) = {judge.clause.levels for judge in judges}
    return frozenset(levels)


def judge_rows(rows: Rows, judges: Sequence[Judge]) -> Iterator[Findings]:
    """Judge rows of whole keys, of the levels that the clauses look at."""
    for judge in judges:
        findings = Findings(rows, judge.id)
        if rows.size:
            judge.find(shown_to(judge.clause, rows), findings)
        yield findings


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
    found = _among(codes, words, _whole(judges))
    for kind, (column, prefix) in sorted(_parts(judges)):
        texts, spelt = coded(table.column(column))
        begins = np.asarray([*(text.startswith(prefix) for text in spelt), False], np.bool_)
        found |= _among(codes, words, {kind}) & begins[texts]
    levels, names = coded(table.column("level"))
    return found & _among(levels, names, levels_of(judges))


def relevant_where(judges: Iterable[Judge]) -> str:
    """The same as a condition of Spark's SQL."""
    judges = tuple(judges)
    conditions = [f"kind in ({_quoted(_whole(judges))})"] if _whole(judges) else []
    conditions += [
        f"(kind = '{kind.value}' and startswith({column}, '{prefix}'))"
        for kind, (column, prefix) in sorted(_parts(judges))
    ]
    return f"({' or '.join(conditions)}) and level in ({_quoted(levels_of(judges))})"


def _whole(judges: Sequence[Judge]) -> set[str]:
    """The kinds of which all rows are needed."""
    return {kind.value for judge in judges for kind in judge.kinds.difference(judge.only)}


def _parts(judges: Sequence[Judge]) -> set[tuple[Kind, tuple[str, str]]]:
    found = {each for judge in judges for each in judge.only.items()}
    return {each for each in found if each[0].value not in _whole(judges)}


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
