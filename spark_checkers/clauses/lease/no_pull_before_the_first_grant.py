"""LSE-11 over columns: lock rows are few; of the pulls only the first one of each incarnation matters."""

from __future__ import annotations

from functools import partial

from spark_checkers.planting import Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.facts.findings import Findings
from specs.facts.grants import refuses
from specs.facts.lanes import (
    OP_COLUMNS,
    LaneItems,
    Machine,
    Op,
    Stretch,
    ends_as,
    machine_kernel,
)
from specs.facts.segments import NO_TEXT
from specs.vocabulary import Kind, Outcome


class Client:
    """One client: the grant, refusal or own unlock that came last, and its incarnation (add: while not granted)."""

    __slots__ = ("add", "last", "pulled", "work")

    def __init__(self) -> None:
        self.last: Op | None = None
        self.add: Op | None = None
        self.work = NO_TEXT
        self.pulled = False


class Lane(Machine):
    """The clients of the lane."""

    ENDS = ends_as([Kind.LOCK])

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.clients: dict[int, Client] = {}

    def _client(self, code: int) -> Client:
        return self.clients.setdefault(code, Client())

    def takes(self, stretch: Stretch) -> bool:
        for op in self.inside:  # nothing but pulls begins there
            self.begins(op)
        return True

    def begins(self, op: Op) -> None:
        if op.client == NO_TEXT:
            return
        if op.kind is Kind.UNLOCK:
            self._client(op.client).last = op
        elif op.kind is Kind.ADD and op.incarnation != NO_TEXT:
            client = self._client(op.client)
            client.work, client.pulled, client.add = op.incarnation, False, None
            if not self._may_have_lease(client, op):
                client.add = op
        elif op.kind is Kind.PULL and op.incarnation != NO_TEXT:
            client = self._client(op.client)
            if client.work == op.incarnation and not client.pulled:
                client.pulled = True
                self.stakes += 1
                if client.add is not None:
                    self.found(client.add, op)

    def _may_have_lease(self, client: Client, add: Op) -> bool:
        last = client.last
        if last is None:
            return False
        if self.is_of_an_old_life(add.client, last):
            return not self.is_of_the_process_before(last, add)
        return last.kind is Kind.LOCK and last.outcome is Outcome.OK

    def ends(self, op: Op) -> None:
        if op.kind is not Kind.LOCK or op.client == NO_TEXT:
            return
        client = self._client(op.client)
        if op.outcome is Outcome.OK:
            client.last, client.add = op, None
        elif refuses(op) and (
            client.last is None or client.last.kind is not Kind.LOCK or op.begin > client.last.begin
        ):
            client.last = op


_KINDS = (Kind.LOCK, Kind.UNLOCK, Kind.ADD)
TWIN = Twin(
    "LSE-11",
    (*OP_COLUMNS, "process"),
    machine_kernel(Lane, _KINDS, lease=False, asides=(Kind.PULL,)),
)
find = TWIN.find


# ---- what breaks the clause, planted


def pull_without_lease(trace: Trace) -> Changes:
    for rows in trace.works:
        add = next(row for row in rows if row.kind is Kind.ADD)
        pull = next((row for row in rows if row.kind is Kind.PULL), None)
        asked = [
            row.seq_begin
            for row in trace.lanes[add.lane]
            if row.kind is Kind.LOCK and row.client_id == add.client_id and pull is not None
        ]
        gone = [seq for seq in asked if pull is not None and seq < pull.seq_begin]
        if gone and pull is not None:
            yield partial(
                lambda g, a, p: trace.without(g, [a.seq_begin, p.seq_begin]), gone, add, pull
            )


DEFECTS = (
    Mutant(
        "pull-without-lease", "LSE-11", "the first grant of a client is missing", pull_without_lease
    ),
)
