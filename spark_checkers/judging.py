"""Judges tables: which rows the clauses' judges need as SQL, whole keys judged, and findings as Arrow rows."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from spark_checkers.balances import Balance
from specs.facts.findings import Findings
from specs.facts.groupings import GROUPINGS
from specs.facts.judged import judge_rows
from specs.facts.judges import Judge
from specs.facts.rows import Rows, keep
from specs.facts.run_context import Runs
from specs.facts.together import kinds_in_part, levels_of, whole_kinds
from specs.vocabulary import Key

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


def judge_table(table: pa.Table, judges: Sequence[Judge], runs: Runs) -> Iterator[Findings]:
    """Judge whole keys; the findings come in the order of the judges.

    table: rows of one key kind, sorted by key and seq_begin. Levels that no clause looks at are left out.
    """
    return judge_rows(Rows(keep(table, "level", levels_of(judges)), runs), judges)


def relevant_where(judges: Iterable[Judge]) -> str:
    """`relevant` as a condition of Spark's SQL."""
    judges = tuple(judges)
    conditions = [f"kind in ({_quoted(whole_kinds(judges))})"] if whole_kinds(judges) else []
    conditions += [
        f"(kind = '{kind.value}' and startswith({column}, '{prefix}'))"
        for kind, (column, prefix) in sorted(kinds_in_part(judges))
    ]
    return f"({' or '.join(conditions)}) and level in ({_quoted(levels_of(judges))})"


def _quoted(words: Iterable[str]) -> str:
    return ", ".join(f"'{word}'" for word in sorted(words))


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
