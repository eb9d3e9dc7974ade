"""A client pulls no message of a lane before it was granted its lease.

Each incarnation needs a grant of its own. It counts when its answer came before the pull began, and when it is the
client's last word with the broker at the ADD (newer than any refusal and than any unlock of its own before the
ADD), or came after the ADD. What happens to the lease later, its loss included, is no matter of this clause. A
refusal is newer only when its request is (a late answer to an older request says nothing), and an error code says
nothing either. What a process was told before it died, or had shut down, is nothing to the next one of its name: where
the rows of its death or shutdown, of the grant and of the ADD name one process, and the shutdown was over when the
client came again. Where they do not, it may be a process that goes on, and nothing is claimed of the incarnation.
Rooted in the ADD: who is seen to pull only was perhaps granted the lane earlier. A shutdown after the ADD excuses
nothing here: who pulls while it shuts down needs a lease as well.
"""

from __future__ import annotations

from dataclasses import dataclass

from specs.clauses.judging import Finding
from specs.clauses.premises import ORDERLY
from specs.clauses.words import at, ms, who
from specs.facts.findings import Findings
from specs.facts.grants import takes_away
from specs.facts.lanes import OP_COLUMNS, LaneItems, Machine, Op, Stretch, each_lane, ends_as
from specs.facts.segments import NO_TEXT
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "LSE-11"
TITLE = "no pull before the first grant"
STATEMENT = "A client pulls a lane only after it was granted its lease."
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (ORDERLY,)
SOURCES = ("docs/sources.md#client-leases",)
KINDS = frozenset({Kind.LOCK, Kind.UNLOCK, Kind.ADD, Kind.PULL})
NEEDS = frozenset({Kind.ADD, Kind.LOCK, Kind.PULL})
LOOKS_BACK = True
COLUMNS = (*OP_COLUMNS, "process")


@dataclass(frozen=True, slots=True)
class PulledWithoutLease(Finding):
    add: Row
    pull: Row


class Client:
    """One client: the grant, refusal or own unlock that is its last word, and the incarnation that it began last.

    add: of that incarnation, without a grant so far. pulled: whether it has pulled.
    """

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
            client.work, client.pulled = op.incarnation, False
            client.add = None if self._may_have_lease(client, op) else op
        elif op.kind is Kind.PULL and op.incarnation != NO_TEXT:
            client = self._client(op.client)
            if client.work == op.incarnation and not client.pulled:
                client.pulled = True
                self.stakes += 1
                if client.add is not None:
                    self.broken(PulledWithoutLease, add=client.add, pull=op)

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
        elif takes_away(op, client.last):
            client.last = op


judge = each_lane(Lane, KINDS - {Kind.PULL}, lease=False, asides=(Kind.PULL,))


def explain(found: PulledWithoutLease) -> str:
    add, pull = found.add, found.pull
    return (
        f"{who(pull)} pulled {pull.lane} from offset {pull.queue_offset} on at {at(pull)}, "
        f"{ms(pull.started_us - add.started_us)} after it had added the lane, and had not been granted its lease"
    )
