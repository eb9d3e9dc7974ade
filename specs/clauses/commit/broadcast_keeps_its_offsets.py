"""A broadcast client tells the broker no offset, and goes on where it wrote last.

How far one member is concerns nobody else: an offset at the broker would be overwritten by every member in turn. (a) A
client that was seen to begin with a lane sends no commit for it that is not refused. (b) A process that wrote down an
offset of a lane (a row PERSIST of level client) begins there when it adds the lane again, in the same process or after
a restart: not at what the broker has stored, and not at what another member wrote. A process is known by its name in
the history, since a client's id may be made anew at each start; where not everybody is recorded, a client that nobody
saw may have written for the process in between, so that (b) is at most possible. Says nothing about a process whose
file was lost (the premise), nor about one that never wrote.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import BROADCASTING, NO_RESET, Premise
from specs.clauses.words import at, who
from specs.history.row import Row
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


@dataclass(frozen=True, slots=True)
class ToldTheBroker(Finding):
    add: Row
    commit: Row


@dataclass(frozen=True, slots=True)
class BeganElsewhere(Finding):
    written: Row
    add: Row


class LaneJudge(Judge):
    """Remembers each client's first add, and what each process wrote last."""

    __slots__ = ("adds", "written")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.adds: dict[str, Row] = {}
        self.written: dict[str, Row] = {}

    def begins(self, row: Row) -> Iterable[Finding]:
        client, process = row.client_id, row.process or row.client_id
        if row.kind is Kind.RESET:
            self.written.clear()
        elif row.kind is Kind.PERSIST:
            if process is not None and row.value is not None:
                self.written[process] = row
        elif client is None or process is None:
            pass
        elif row.kind is Kind.COMMIT:
            add = self.adds.get(client)
            return NOTHING if add is None else (ToldTheBroker(add, row),)
        else:
            self.opportunities += 1
            self.adds.setdefault(client, row)
            written = self.written.get(process)
            if written is not None and row.value is not None and row.value != written.value:
                return (BeganElsewhere(written, row, certain=self.context.info.closed_world),)
        return NOTHING


judge = LaneJudge


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
