"""A history that becomes a CSV with other names, and is imported again, is judged as it was."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.importing.job import Job, Wanted
from conformance.importing.mapping import LISTENER_RESULTS, MAPPED, NEEDED, parse_map
from specs.clauses.catalogue import all_clauses, get
from specs.clauses.rows import is_copy_topic
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.history.store import open_history
from specs.history.text import parse_history
from specs.verdicts.examine import examine
from specs.vocabulary import Kind

LATER_US = 1_700_000_000_000_000
"""A log's times are after 1970, and not in its first minute."""
SAME = (
    "kind",
    "level",
    "queue_offset",
    "client_id",
    "outcome",
    "value",
    "incarnation",
    "started_us",
    "ended_us",
)
OPEN, MOMENT, BEGIN, END = "open", "moment", "begin", "end"
AT = {OPEN: "begin", MOMENT: "moment", BEGIN: "begin", END: "end"}


def as_logged(row: Row) -> Row:
    """As one clock would have timed it today: the time of day of all but what is read, which has its store's."""
    wall_us = row.started_us if row.wall_us is None and row.kind is not Kind.READ else row.wall_us
    times = {
        name: value + LATER_US
        for name in ("started_us", "ended_us", "wall_us", "lease_until_us")
        if (value := getattr(row._replace(wall_us=wall_us), name)) is not None
    }
    return row._replace(**times, clock="log")


def mark(row: Row) -> str:
    if row.seq_end is None:
        return OPEN
    return MOMENT if row.seq_begin == row.seq_end else BEGIN


def tellable(rows: Sequence[Row]) -> bool:
    """Can lines of a CSV say all of it? Not that messages share a call, nor rows that lack what an import asks for, nor
    that a text is there and empty, or a number below -1 (which stands for none)."""
    if len({row.op_id for row in rows}) < len(rows):
        return False
    if any(row.kind is Kind.ADD for row in rows) and all(row.incarnation is None for row in rows):
        return False  # the import would number them
    for row in rows:
        if any(getattr(row, name) is None for name in NEEDED.get(row.kind, ())):
            return False
        told = [value for name in MAPPED if (value := getattr(row, name)) is not None]
        if any(value < -1 if isinstance(value, int) else not value for value in told):
            return False
        is_copy = row.kind is Kind.READ and row.message_id and is_copy_topic(row.topic)
        if is_copy and row.origin_id is None:
            return False
        if row.kind is Kind.DELIVER and (row.outcome in LISTENER_RESULTS) != (mark(row) != OPEN):
            return False
    moments = sorted(moments_of(rows))
    return [at for _seq, at in moments] == sorted(at for _seq, at in moments)


def moments_of(rows: Sequence[Row]) -> Iterator[tuple[int, int]]:
    for row in rows:
        yield row.seq_begin, row.started_us
        if row.seq_end is not None and row.ended_us is not None:
            yield row.seq_end, row.ended_us


def export(path: Path, rows: Sequence[Row], names: Mapping[str, str], turned: int) -> None:
    """A line for each moment, and for each begin and each end; `op` is the same in both."""
    lines = []
    for row in rows:
        columns = {names[name]: value for name, value in row._asdict().items() if name in MAPPED}
        line = {
            **columns,
            "op": row.seq_begin,
            "what": f"{row.kind}-{mark(row)}",
            "at": row.started_us,
        }
        lines.append((row.seq_begin, line))
        if mark(row) == BEGIN:
            lines.append((row.seq_end, {**line, "what": f"{row.kind}-{END}", "at": row.ended_us}))
    head = list(lines[0][1])
    head = head[turned % len(head) :] + head[: turned % len(head)]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, head, delimiter=";")
        writer.writeheader()
        writer.writerows(line for _seq, line in sorted(lines, key=lambda each: each[0]))


def map_of(rows: Sequence[Row], names: Mapping[str, str], info: RunInfo) -> str:
    """The map that such an export needs."""
    kinds = sorted({row.kind for row in rows})
    told = {kind.value for kind in kinds}
    if info.records is not None:
        told = {kind for of_level in info.records.values() for kind in of_level}
    here = [kind.value for kind in kinds]
    if info.closed_world:
        told -= {Kind.SEND} - set(kinds)  # a map must not say that nobody sent what was delivered
    lines = [
        'profile = "reference"\nconfig = { system = "kafka" }\norder = "lines"\nclock_bound_ms = 0',
        'time = "at"\ntime_format = "epoch_us"\ndelimiter = ";"',
        f"records = {[kind for kind in here if kind in told]}",
        f"did_not_happen = {sorted(told - set(here))}",
        f"closed_world = {str(info.closed_world).lower()}",
        f"begins_late = {str(info.begins_late).lower()}",
    ]
    for kind in kinds:
        mine = [row for row in rows if row.kind is kind]
        marks = {mark(row) for row in mine}
        for sign in sorted(marks | ({END} if BEGIN in marks else set())):
            begins_a_call = kind is Kind.DELIVER and sign in (OPEN, BEGIN)
            used = [
                name
                for name in MAPPED
                if any(getattr(row, name) is not None for row in mine)
                and not (begins_a_call and name == "outcome")
            ]
            columns = ", ".join(f'{name} = "{names[name]}"' for name in used)
            pair = '\npair = ["op"]' if BEGIN in marks and sign != MOMENT else ""
            lines.append(
                f'[[event]]\nkind = "{kind}"\nat = "{AT[sign]}"{pair}\n'
                f'when = {{ what = "{kind}-{sign}" }}\ncolumns = {{ {columns} }}'
            )
    return "\n".join(lines)


EXAMPLES = [
    (clause.id, number)
    for clause in all_clauses()
    for number, example in enumerate(clause.examples)
    if tellable([as_logged(row) for row in parse_history(example.text)[1]])
]


def test_most_examples_can_be_told_by_a_csv() -> None:
    """Else what follows would say little; of nearly every clause there is one."""
    assert len(EXAMPLES) > 250
    assert len({clause for clause, _number in EXAMPLES}) > 60


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(EXAMPLES), st.integers(0, 60), st.sampled_from(["{}", "Kafka {} (raw)", "x.{}"])
)
def test_the_same_is_found(
    tmp_path_factory: pytest.TempPathFactory, chosen: tuple[str, int], turned: int, called: str
) -> None:
    """Of every clause, in its own examples, whatever the columns are called and in whatever order they stand."""
    clause = get(chosen[0])
    info, rows = parse_history(clause.examples[chosen[1]].text)
    rows = [as_logged(row) for row in rows]
    folder = tmp_path_factory.mktemp("exported")
    names = {name: called.format(name[::-1]) for name in MAPPED}
    export(folder / "log.csv", rows, names, turned)
    mapping = parse_map(map_of(rows, names, info), "csv")
    Job(Wanted("csv", [str(folder / "log.csv")], mapping, folder / "history")).run()
    again = open_history(folder / "history")
    imported = list(again.rows())
    assert [[getattr(row, name) for name in SAME] for row in imported] == [
        [getattr(row, name) for name in SAME] for row in rows
    ]
    declared = replace(info, records=again.info.records, clock_bounds_us=again.info.clock_bounds_us)
    found = [
        examine(each, declared if info.records is not None else info, (clause,)).tallies[clause.id]
        for each in (rows, imported)
    ]
    assert found[0].opportunities == found[1].opportunities
    assert found[0].names() == found[1].names()
