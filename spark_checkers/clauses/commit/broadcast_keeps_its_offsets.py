"""CMT-12 over columns: adds, commits and what clients wrote down, in their order, lane by lane."""

from __future__ import annotations

from typing import Any

import numpy as np

from spark_checkers.rows import NO_TEXT, NONE, Findings, Rows
from spark_checkers.twin import Twin
from specs.vocabulary import Kind


def kernel(rows: Rows, findings: Findings) -> None:
    """Nothing of it takes time: the begins alone count, and those are in order within each lane."""
    where = np.flatnonzero(
        rows.are(Kind.ADD, Kind.COMMIT, Kind.PERSIST, Kind.RESET) & (rows.group != NO_TEXT)
    )
    if not len(where):
        return
    where = where[np.lexsort((rows.begin[where], rows.lane[where]))]
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
