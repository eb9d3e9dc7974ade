"""A lane that is free, the asker's own, or held by an expired grant, is granted when asked for.

A refusal refutes where the lane's last certain grant shows that nobody could hold it against the asker: it was the
asker's own; or its owner gave it back, which certainly arrived (see LSE-6); or it is strictly older than the broker's
limit (in whole milliseconds of the broker's clock). Anybody else's request since then that was not refused, answered
or not, may hold the lane, and then nothing is claimed. A refusal with an error code says nothing about the lane.

A broker begins with an empty table. So where everybody is recorded the lane is free as well for who asks first after
a crash of the broker (or in an epoch later than that of the last grant). So it is at the begin of the run: for who was
seen to join the group, where nobody turns out to have been at work on the lane before; and for everybody once a
lease that was granted before the lane's first request would have run out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.grants import UNHINDERED, Free, LastGrantJudge, refuses
from specs.clauses.judging import NOTHING, Finding
from specs.clauses.premises import BROKER_LIVES, NO_FRAME_TWICE, NO_WALL_CLOCK_STEP
from specs.clauses.rows import over_us
from specs.clauses.words import at, ms
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "LSE-4"
TITLE = "a free lane is granted"
STATEMENT = (
    "A lane that is free, the asker's own or expired is granted when asked for; a broker "
    "begins with all lanes free."
)
PARTY = Party.BROKER
KEY = Key.LANE
PREMISE = (NO_WALL_CLOCK_STEP, BROKER_LIVES, NO_FRAME_TWICE, UNHINDERED)
SOURCES = ("docs/sources.md#lock-table",)
RULES = ("WIR-2",)
KINDS = frozenset({Kind.LOCK, Kind.UNLOCK})
SETTINGS = ("broker_lease_ms",)
NEEDS = frozenset({Kind.LOCK})
CONCLUDES_FROM_ABSENCE = True


@dataclass(frozen=True, slots=True)
class Refused(Finding):
    """unlock: the owner's, where that freed the lane; else None."""

    grant: Row
    unlock: Row | None
    refused: Row


@dataclass(frozen=True, slots=True)
class NeverGranted(Finding):
    """since: the crash of the broker, the last grant before its new epoch, the asker's join, or the first request."""

    since: Row
    refused: Row


class LaneJudge(LastGrantJudge):
    """Wants every lane granted that is free for the asker.

    first: the first refusal of a lane that nobody had asked for since the run began. It counts at the end only: who
    was at work on the lane before the history begins shows that sooner or later.
    """

    __slots__ = ("first", "first_times", "from_the_begin")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.from_the_begin = True
        self.first: NeverGranted | None = None
        self.first_times = 0

    def begins(self, row: Row) -> Iterable[Finding]:
        is_member = row.client_id in self.context.members.get(row.group or "", {})
        if not is_member and not (row.kind is Kind.LOCK and refuses(row)):
            self.from_the_begin = False  # it may have held the lane before
        return super().begins(row)

    def empty(self, row: Row, since: Row) -> Iterable[Finding]:
        found = None if row.outcome is Outcome.OK else NeverGranted(since, row)
        if since.kind is Kind.JOIN:
            self.first_times += 1
            self.first = self.first or found
            return NOTHING
        self.opportunities += 1
        return NOTHING if found is None else (found,)

    def finish(self) -> Iterable[Finding]:
        if not self.from_the_begin:
            return NOTHING
        self.opportunities += self.first_times
        return NOTHING if self.first is None else (self.first,)

    def free(self, row: Row, grant: Row, why: Free) -> Iterable[Finding]:
        self.opportunities += 1
        if row.outcome is Outcome.OK:
            return NOTHING
        return (Refused(grant, self.last.freed_by if why is Free.RELEASED else None, row),)


judge = LaneJudge


def explain(found: Refused | NeverGranted) -> str:
    refused = found.refused
    asked = f"{refused.client_id} was refused {refused.lane} at {at(refused)}"
    if isinstance(found, NeverGranted):
        since = found.since
        begun = f"{since.client_id} joined the group"
        if since.kind is Kind.CRASH:
            begun = "the broker crashed"
        elif since.kind is Kind.LOCK:
            granted = since.outcome is Outcome.OK
            begun = f"{since.client_id} {'was granted it, before a restart,' if granted else 'asked for it, in vain,'}"
        return f"{asked}, although nobody else can hold a lease of it since {begun} at {at(since)}"
    grant, unlock = found.grant, found.unlock
    if grant.client_id == refused.client_id:
        return f"{asked}, although it had been granted it at {at(grant)} and nobody else since"
    if unlock is not None:
        return (
            f"{asked}, although {grant.client_id}, who was granted it at {at(grant)}, had given it back at "
            f"{at(unlock)} and nobody else had been granted it since"
        )
    age = ms(refused.started_us - over_us(grant))
    return f"{asked}, although the last grant ({grant.client_id}'s of {at(grant)}) was {age} old"
