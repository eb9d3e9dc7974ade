"""CMT-12 over columns: adds, commits and what clients wrote down, in their order, lane by lane."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from spark_checkers.planting import BROADCASTING, Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.facts.findings import Findings
from specs.facts.rows import Rows
from specs.facts.segments import NO_TEXT, NONE, by_time
from specs.history.row import Row
from specs.vocabulary import Kind, Lane, Outcome


def kernel(rows: Rows, findings: Findings) -> None:
    """Nothing of it takes time: the begins alone count, and those are in order within each lane."""
    where = np.flatnonzero(
        rows.are(Kind.ADD, Kind.COMMIT, Kind.PERSIST, Kind.RESET) & (rows.group != NO_TEXT)
    )
    if not len(where):
        return
    where = where[by_time(rows.lane[where], rows.begin[where])]
    is_add, is_write = rows.are(Kind.ADD), rows.are(Kind.PERSIST)
    is_reset = rows.are(Kind.RESET)
    process = rows.text("process")
    names = rows.words("process")
    clients = rows.words("client_id")
    adds: dict[tuple[int, int], int] = {}
    written: dict[tuple[int, str], int] = {}
    staked = []
    for row in where.tolist():
        lane, client = int(rows.lane[row]), int(rows.client[row])
        if is_reset[row]:
            written = {key: place for key, place in written.items() if key[0] != lane}
            continue
        name = names[process[row]] if process[row] != NO_TEXT else ""
        who = (lane, name or (clients[client] if client != NO_TEXT else ""))
        value: Any = rows.value[row]
        if is_write[row]:
            if who[1] and value != NONE:
                written[who] = row
        elif client == NO_TEXT:
            continue
        elif is_add[row]:
            staked.append(row)
            adds.setdefault((lane, client), row)
            last = written.get(who)
            if last is not None and value != NONE and value != rows.value[last]:
                all_seen = rows.context_of(row).info.closed_world
                findings.violation([last, row], certain=all_seen, name="began-elsewhere")
        elif (lane, client) in adds:
            findings.violation([adds[lane, client], row])
    findings.at_stake(np.asarray(staked, np.int64))


TWIN = Twin("CMT-12", ("client_id", "process", "value"), kernel)
find = TWIN.find


# ---- what breaks the clause, planted


def commit_in_broadcasting(trace: Trace) -> Changes:
    for row in trace.of(Kind.PERSIST):
        commit = {"kind": Kind.COMMIT, "outcome": Outcome.SENT}
        yield partial(
            lambda r, c: trace.with_more([trace.another(r, r, 1, **c)], [r.seq_begin]), row, commit
        )


def own_file_not_read(trace: Trace) -> Changes:
    written: dict[tuple[str | None, Lane], Row] = {}
    for row in trace.of(Kind.PERSIST, Kind.ADD):
        if row.kind is Kind.PERSIST:
            written[row.process, row.lane] = row
        elif (row.process, row.lane) in written and row.value:
            change = {row.seq_begin: {"value": 0}}
            about = (written[row.process, row.lane].seq_begin, row.seq_begin)
            yield partial(trace.changed, change, about)


DEFECTS = (
    Mutant(
        "commit-in-broadcasting",
        "CMT-12",
        "a broadcast client commits",
        commit_in_broadcasting,
        generated=False,
        consumed=BROADCASTING,
    ),
    Mutant(
        "own-file-not-read",
        "CMT-12",
        "a broadcast client begins anew",
        own_file_not_read,
        generated=False,
        consumed=BROADCASTING,
    ),
)
