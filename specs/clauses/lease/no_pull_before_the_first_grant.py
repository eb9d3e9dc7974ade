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

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.grants import refuses
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import ORDERLY
from specs.clauses.words import at, ms, who
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


@dataclass(frozen=True, slots=True)
class PulledWithoutLease(Finding):
    add: Row
    pull: Row


class _Client:
    """last: the grant, the refusal or the own unlock that is the last word. add: without a grant so far."""

    __slots__ = ("add", "last", "pulled", "work")

    def __init__(self) -> None:
        self.last: Row | None = None
        self.add: Row | None = None
        self.work: str | None = None
        self.pulled = False

    @property
    def has_lease(self) -> bool:
        return (
            self.last is not None
            and self.last.kind is Kind.LOCK
            and self.last.outcome is Outcome.OK
        )


class LaneJudge(Judge):
    """Remembers, for each client, its last word with the broker and the incarnation that it began last."""

    __slots__ = ("clients",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.clients: dict[str, _Client] = {}

    def _client(self, name: str) -> _Client:
        client = self.clients.get(name)
        if client is None:
            client = self.clients[name] = _Client()
        return client

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.client_id is None:
            return NOTHING
        match row.kind:
            case Kind.UNLOCK:
                self._client(row.client_id).last = row
            case Kind.ADD if row.incarnation is not None:
                self._adds(row, self._client(row.client_id))
            case Kind.PULL if row.incarnation is not None:
                client = self._client(row.client_id)
                if client.work == row.incarnation and not client.pulled:
                    client.pulled = True
                    self.opportunities += 1
                    if client.add is not None:
                        return (PulledWithoutLease(client.add, row),)
            case _:
                pass
        return NOTHING

    def _adds(self, row: Row, client: _Client) -> None:
        client.work, client.pulled = row.incarnation, False
        last, context = client.last, self.context
        if last is not None and context.is_of_an_old_life(row.client_id, row.group, last):
            is_gone = context.is_of_the_process_before(last, row)
            client.add = row if is_gone else None
        else:
            client.add = None if client.has_lease else row

    def ends(self, row: Row) -> Iterable[Finding]:
        if row.kind is not Kind.LOCK or row.client_id is None:
            return NOTHING
        client = self._client(row.client_id)
        if row.outcome is Outcome.OK:
            client.last, client.add = row, None
        elif refuses(row):
            last = client.last
            if last is None or last.kind is not Kind.LOCK or row.seq_begin > last.seq_begin:
                client.last = row
        return NOTHING


judge = LaneJudge


def explain(found: PulledWithoutLease) -> str:
    add, pull = found.add, found.pull
    return (
        f"{who(pull)} pulled {pull.lane} from offset {pull.queue_offset} on at {at(pull)}, "
        f"{ms(pull.started_us - add.started_us)} after it had added the lane, and had not been granted its lease"
    )
