"""A client gives no lease back while its listener call of the lane runs.

Whoever comes next would start beside it (LSE-2). The exception is a shutdown whose waiting time has run out (a
millisecond less counts as well): then the call is left to itself, or cut. A shutdown that is over before that, while
the call runs, is no exception. A call that was cut is over only for the client's book-keeping, whether or not a
shutdown is told; an unlock of the same incarnation counts against it, unless a shutdown has waited long enough. What a
dead process left open says nothing about the next process of that name, nor does what one left to itself that shut
down. Of several calls of a process the one that ends last is looked at: a cut one is passed over once another has ended
after it.

Two findings are told apart from the rest, for clients are built so. *Dropped while running*: the client has dropped the
incarnation whose call runs (some tell that only once they have given the lane back, a timer's slack later at most).
*Late unlock*: it had dropped an earlier incarnation, and was granted the lane anew since.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import ORDERLY, Premise
from specs.clauses.rows import ended_before
from specs.clauses.words import MS, at, ms, who
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "LSE-15"
TITLE = "no unlock while a call runs"
STATEMENT = (
    "A client does not give a lane's lease back while its listener call runs, save in a shutdown whose waiting time "
    "ran out."
)
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (
    ORDERLY,
    Premise(
        "waiting time",
        "a shutdown waits as long as the configuration says; after that it may unlock",
        told_by=frozenset({Kind.CRASH, Kind.LEAVE}),
    ),
)
SOURCES = ("docs/sources.md#client-leases",)
KINDS = frozenset({Kind.UNLOCK, Kind.DELIVER, Kind.DROP, Kind.LOCK})
SETTINGS = ("shutdown_wait_ms",)
NEEDS = frozenset({Kind.DELIVER, Kind.UNLOCK})


@dataclass(frozen=True, slots=True)
class UnlockedTooSoon(Finding):
    running: Row
    unlock: Row


@dataclass(frozen=True, slots=True)
class DroppedWhileRunning(UnlockedTooSoon):
    """drop: of the incarnation whose call runs."""

    drop: Row


@dataclass(frozen=True, slots=True)
class LateUnlock(UnlockedTooSoon):
    """drop: of an earlier incarnation. grant: after it."""

    drop: Row
    grant: Row


class LaneJudge(Judge):
    """Remembers, for each client, the call that may still run: of all its process's calls the one that ends last.

    And its last drop, with the grant that followed it; and a finding that waits for a drop.
    """

    __slots__ = ("calls", "drops", "grants", "slack_us", "wait_us", "waiting")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.calls: dict[str, Row] = {}
        self.drops: dict[str, Row] = {}
        self.grants: dict[str, Row] = {}  # since the drop
        self.waiting: dict[str, UnlockedTooSoon] = {}
        self.slack_us = self.config.schedule_slack_ms * MS
        self.wait_us = (self.config.shutdown_wait_ms - 1) * MS

    def begins(self, row: Row) -> Iterable[Finding]:
        client = row.client_id
        if client is None:
            return NOTHING
        found = self._decided(client, row)
        if row.kind is Kind.DROP:
            self.drops[client] = row
            self.grants.pop(client, None)
        elif row.kind is Kind.DELIVER:
            last = self.calls.get(client)
            if (
                last is None
                or row.seq_end is None
                or (last.seq_end is not None and row.seq_end >= last.seq_end)
                or self.context.is_of_an_old_life(client, row.group, last)
            ):
                self.calls[client] = row
        elif row.kind is Kind.UNLOCK:
            return (*found, *self._unlocks(client, row))
        return found

    def _decided(self, client: str, row: Row) -> tuple[Finding, ...]:
        """The finding that waited for the client's next row, by its name."""
        found = self.waiting.pop(client, None)
        if found is None:
            return NOTHING
        drop = row if row.kind is Kind.DROP and row.incarnation is not None else None
        soon = row.started_us - found.unlock.started_us <= self.slack_us
        if drop is not None and soon and drop.incarnation == found.running.incarnation:
            return (DroppedWhileRunning(found.running, found.unlock, drop),)
        return (found,)

    def finish(self) -> Iterable[Finding]:
        return tuple(self.waiting.values())

    def _unlocks(self, client: str, row: Row) -> tuple[Finding, ...]:
        last = self.calls.get(client)
        if last is None or self.context.is_of_an_old_life(client, row.group, last):
            return NOTHING
        self.opportunities += 1
        was_cut = (
            last.outcome is Outcome.CUT
            and last.incarnation is not None
            and last.incarnation == row.incarnation
        )
        if ended_before(last, row) and not was_cut:
            return NOTHING
        leave = self.context.is_leaving(client, row.group)
        if leave is not None and row.started_us - leave.started_us >= self.wait_us:
            return NOTHING
        drop, grant = self.drops.get(client), self.grants.get(client)
        if (
            drop is not None
            and drop.incarnation is not None
            and drop.incarnation == last.incarnation
        ):
            return (DroppedWhileRunning(last, row, drop),)
        if drop is not None and grant is not None:
            return (LateUnlock(last, row, drop, grant),)
        self.waiting[client] = UnlockedTooSoon(last, row)
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.LOCK and row.outcome is Outcome.OK and row.client_id in self.drops:
            self.grants[row.client_id] = row
        return NOTHING


judge = LaneJudge


def explain(found: UnlockedTooSoon) -> str:
    running, unlock = found.running, found.unlock
    why = ""
    if isinstance(found, DroppedWhileRunning):
        why = f"; it dropped the lane at {at(found.drop)}"
    elif isinstance(found, LateUnlock):
        why = f"; it had dropped it at {at(found.drop)}, and been granted it anew at {at(found.grant)}"
    return (
        f"{who(unlock)} gave {unlock.lane} back at {at(unlock)}, {ms(unlock.started_us - running.started_us)} after it "
        f"had begun offset {running.queue_offset}, whose listener call was still running{why}"
    )
