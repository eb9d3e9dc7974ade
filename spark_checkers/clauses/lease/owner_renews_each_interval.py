"""LSE-13 over columns: a stretch is taken whole when all of it lies within the bound since the last request."""

from __future__ import annotations

from functools import partial

from spark_checkers.planting import Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.facts.findings import Findings
from specs.facts.lanes import OP_COLUMNS, LaneItems, Machine, Op, Stretch, machine_kernel
from specs.facts.segments import MS, NO_TEXT
from specs.vocabulary import Kind


class Lane(Machine):
    """The last request of each client at work on the lane."""

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        config = self.config
        self.interval_us = (config.lock_interval_ms + config.schedule_slack_ms) * MS
        self.last: dict[int, Op] = {}

    def takes(self, stretch: Stretch) -> bool:
        if self._is_late(stretch.first, stretch.latest_us):
            return False
        return not any(self._is_late(op, op.started) for op in self.inside)

    def _is_late(self, op: Op, at_us: int) -> bool:
        last = self.last.get(op.client)
        if last is None or last.incarnation != op.incarnation:
            return False
        due_us = last.over_us + self.interval_us
        return at_us > due_us and at_us > due_us + self._round_us(op.client)

    def _round_us(self, client: int) -> int:
        """So long requests to each broker of the client may take, one after the other."""
        asked = self.context.brokers_of(self.lane.name(client), self.now)
        return max(asked, 1) * self.config.delay_bound_ms * MS

    def begins(self, op: Op) -> None:
        if op.client == NO_TEXT:
            return
        if op.kind is Kind.ADD:
            if op.incarnation != NO_TEXT:
                self.last[op.client] = op
        elif op.kind is Kind.DROP:
            self.last.pop(op.client, None)
        else:
            self._works(op)

    def _hindered(self, op: Op, last: Op) -> bool:
        """Did client, broker or link not work as always since the last request?"""
        return (
            self.leaving(op.client)
            or self.is_of_an_old_life(op.client, last)
            or self.broker_died_since(last)
            or self.context.is_disturbed(self.sending(last), op.started, self.now)
        )

    def _works(self, op: Op) -> None:
        last, late = self.last.get(op.client), self._is_late(op, op.started)
        asks = op.kind is Kind.LOCK
        if last is not None and (late or (asks and last.incarnation == op.incarnation)):
            if self._hindered(op, last):
                del self.last[op.client]
            else:
                self.stakes += 1
                if late:
                    del self.last[op.client]
                    self.found(last, op)
        if asks:
            if op.incarnation != NO_TEXT:
                self.last[op.client] = op
            else:
                self.last.pop(op.client, None)


_KINDS = (Kind.ADD, Kind.DROP, Kind.LOCK, Kind.DELIVER, Kind.COMMIT)
TWIN = Twin("LSE-13", OP_COLUMNS, machine_kernel(Lane, _KINDS, lease=True, asides=(Kind.PULL,)))
find = TWIN.find


# ---- what breaks the clause, planted


def renewals_missing(trace: Trace) -> Changes:
    config = trace.info.config
    interval = (config.lock_interval_ms + config.schedule_slack_ms) * MS
    working = (Kind.DELIVER, Kind.PULL, Kind.COMMIT)
    for rows in trace.works:
        add = next(row for row in rows if row.kind is Kind.ADD)
        mine = (row for row in trace.of(Kind.ADD) if row.client_id == add.client_id)
        bound = interval + len({row.broker for row in mine}) * config.delay_bound_ms * MS
        late = next(
            (
                row
                for row in rows
                if row.kind in working and row.started_us - add.started_us > bound
            ),
            None,
        )
        if late is not None:
            asked = [
                row.seq_begin
                for row in rows
                if row.kind is Kind.LOCK and row.seq_begin < late.seq_begin
            ]
            about = (add.seq_begin, late.seq_begin)
            yield partial(trace.without, asked, about)


DEFECTS = (
    Mutant(
        "renewals-missing",
        "LSE-13",
        "a client at work does not renew",
        renewals_missing,
        generated=False,
    ),
)
