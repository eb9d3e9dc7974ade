"""Whose incarnation a row names: who is told apart although the names are alike.

An incarnation is one life of one process of one client, in a group. Many who record them number them for each client,
or write the same one for as long as nothing is known of another: so a name means another incarnation

- of another client;
- after its client crashed;
- after its client left the group, and works in it again (it joins, or adds a lane there);
- of another process, where rows name two of them. Only what a client records of itself (level `client`) says of which
  process it is: on the wire a connection stands there. A server's own consumer is handed from one to the other, and is
  one however many processes have it. A row that names no process is of the first one.

A row of an incarnation that was named before keeps the name if it is of the first one of that name; else the name is
made longer, by what `as_recorded` takes away again.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from specs.clauses.context import Context
from specs.clauses.rows import own_process
from specs.history.row import Row
from specs.vocabulary import SERVER_CONSUMER, Lane

_TOLD_APART = "\u2063"
"""Stands in the name of an incarnation that had another owner before, behind the name that was recorded."""

_Life = tuple[str, int, int | None, int | None]
"""A client, how often it had crashed, and when the lives before ended in which it left the group, or all its groups."""


@dataclass(slots=True)
class Identity:
    """Of one run. crashes: by client. first: of a name, who had it first. processes: of a lane, a name and a life, the
    first process."""

    context: Context
    crashes: dict[str, int] = field(default_factory=dict)
    first: dict[str, _Life] = field(default_factory=dict)
    processes: dict[tuple[Lane, str, _Life], str] = field(default_factory=dict)

    def crashed(self, client: str) -> None:
        self.crashes[client] = self.crashes.get(client, 0) + 1

    def named(self, row: Row) -> Row:
        """The row, by a name of its incarnation that no other one has. The context knows the row."""
        name, client = row.incarnation, row.client_id
        if name is None or client is None:
            return row
        old = self.context.old_lives
        life = (
            client,
            self.crashes.get(client, 0),
            old.get((client, row.group)) if old else None,
            old.get((client, None)) if old else None,
        )
        more: tuple[object, ...] = () if self.first.setdefault(name, life) == life else life
        process = None if client == SERVER_CONSUMER else own_process(row)
        if process and self.processes.setdefault((row.lane, name, life), process) != process:
            more = (*life, process)
        return row if not more else row._replace(incarnation=f"{name}{_TOLD_APART}{more}")

    def forget(self) -> None:
        """Another run begins."""
        self.crashes.clear()
        self.first.clear()
        self.processes.clear()


def as_recorded(row: Row) -> Row:
    """The row with the incarnation that it names in the history."""
    name = row.incarnation
    if name is None or _TOLD_APART not in name:
        return row
    return row._replace(incarnation=name.split(_TOLD_APART)[0])
