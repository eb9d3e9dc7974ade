"""A broadcast client tells the broker no offset, and goes on where it wrote last.

How far one member is concerns nobody else: an offset at the broker would be overwritten by every member in turn. (a) A
client that was seen to begin with a lane sends no commit for it that is not refused. (b) A process that wrote down an
offset of a lane (a row PERSIST of level client) begins there when it adds the lane again, in the same process or after
a restart: not at what the broker has stored, and not at what another member wrote. A process is known by its name in
the history, since a client's id may be made anew at each start; where not everybody is recorded, a client that nobody
saw may have written for the process in between, so that (b) is at most possible. Says nothing about a process whose
file was lost (the premise), nor about one that never wrote.
"""

from typing import Any

import numpy as np

from specs.clauses.premises import BROADCASTING, NO_RESET, Premise
from specs.clauses.terms import Finding, Findings, Row, Rows, at, who
from specs.facts.columns import NO_TEXT, NONE
from specs.facts.segments import by_time
from specs.vocabulary import Key, Kind, Party

ID = "CMT-12"
TITLE = "broadcast keeps its offsets"
STATEMENT = "A client that consumes every queue for itself keeps its offsets: it commits none, and goes on at its own."
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (
    BROADCASTING,
    NO_RESET,
    Premise("the file is kept", "nobody takes the client's offset file away"),
)
SOURCES = ("docs/sources.md#broadcast",)
KINDS = frozenset({Kind.ADD, Kind.COMMIT, Kind.PERSIST, Kind.RESET})
NEEDS = frozenset({Kind.ADD})
COLUMNS = ("client_id", "process", "value")


class ToldTheBroker(Finding):
    add: Row
    commit: Row


class BeganElsewhere(Finding):
    written: Row
    add: Row


def judge(rows: Rows, findings: Findings) -> None:
    """Nothing of it takes time: the begins alone count, and those are in order within each lane."""
    where = np.flatnonzero(rows.are(*KINDS) & (rows.group != NO_TEXT))
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
                findings.shown(BeganElsewhere, {"written": last, "add": row}, certain=all_seen)
        elif (lane, client) in adds:
            findings.shown(ToldTheBroker, {"add": adds[lane, client], "commit": row})
    findings.at_stake(np.asarray(staked, np.int64))


def explain(found: ToldTheBroker | BeganElsewhere) -> str:
    add = found.add
    if isinstance(found, ToldTheBroker):
        commit = found.commit
        return (
            f"{who(commit)} committed {commit.value} for {commit.lane} at {at(commit)}, though in broadcasting, which "
            f"it began there at {at(add)}, every member keeps its own offsets"
        )
    return (
        f"{who(add)} began {add.lane} at offset {add.value} at {at(add)}, though its process had written down "
        f"{found.written.value} at {at(found.written)}"
    )
