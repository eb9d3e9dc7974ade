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

from dataclasses import dataclass

from specs.clauses.judging import Finding
from specs.clauses.premises import BROKER_LIVES, NO_FRAME_TWICE, NO_WALL_CLOCK_STEP, UNHINDERED
from specs.clauses.rows import over_us
from specs.clauses.words import at, ms
from specs.facts.findings import Findings
from specs.facts.grants import RELEASED, LastGrantLane, Since, answers, refuses
from specs.facts.lanes import OP_COLUMNS, LaneItems, Op, each_lane
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
COLUMNS = OP_COLUMNS


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


class Lane(LastGrantLane):
    """Wants every lane granted that is free for the asker.

    early: answers to members before any grant of the run was seen; refused: the first refusal among them, with what
    shows that the lane was empty. They count at the end only: who was at work on the lane before the history begins
    shows that sooner or later.
    """

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.early = 0
        self.refused: tuple[Op, Since] | None = None
        self.from_the_begin = True

    def begins(self, op: Op) -> None:
        if not (op.kind is Kind.LOCK and refuses(op)):
            name = self.lane.name(op.client)
            joined = self.context.member_since(self.lane.group, name, self.now)
            self.from_the_begin = self.from_the_begin and joined is not None
        super().begins(op)

    def free(self, op: Op, grant: Op, why: str) -> None:
        if self.is_wrong(op, granted=True):
            unlock = self.last.released if why == RELEASED else None
            self.broken(Refused, grant=grant, unlock=unlock, refused=op)

    def asked(self, op: Op) -> None:
        super().asked(op)
        since = self.last.empty_since(op) if answers(op) else None
        if since is None:
            return
        if since.kind is Kind.JOIN:
            self.early += 1
            if op.outcome is not Outcome.OK and self.refused is None:
                self.refused = op, since
        elif self.is_wrong(op, granted=True):
            self._never_granted(op, since)

    def finish(self) -> None:
        if not self.from_the_begin:
            return
        self.stakes += self.early
        if self.refused is not None:
            self._never_granted(*self.refused)

    def _never_granted(self, op: Op, since: Since) -> None:
        if since.request is None:
            self.broken(NeverGranted, of_context={"since": since.seq}, refused=op)
        else:
            self.broken(NeverGranted, since=since.request, refused=op)


judge = each_lane(Lane, KINDS, lease=True)


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
