"""Hand-outs of the messages of one lane, and which of their leases certainly live: for clauses about RECEIVE rows.

A message is handed out somewhere between the question and the answer, so its lease lasts at least until the question's
begin plus the lease: `lease_until_us` of the row, moved by each renewal that was answered. It ends sooner by whatever
may have acknowledged or released the message, under whatever lease: a server that does not fence takes a late request
of a former holder for the present one's, also one that is on its way while the message is finished, or handed out. One
that was refused changed nothing. And it may end with the holder's
connection: where the holder died, left or stood still since, or anything was injected, nothing is certain.

A request that names its message by id alone speaks of the offset that was handed out with that id, where that is
certain (`specs.facts.message_names`). Else, and where it names nothing, it may speak of any message of the lane.

Only messages that were handed out more than once are looked at. Of these, few where all is well, the rows are gone
through one by one in their total order: `Message` keeps the last hand-out, until when its lease certainly lives, and
until when requests about the message may still be applied.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from specs.clauses.clause import Relation
from specs.clauses.links import Sending
from specs.facts.findings import Findings
from specs.facts.message_names import may_be_any, offsets
from specs.facts.rows import Rows
from specs.facts.run_context import RunContext
from specs.facts.segments import MS, NEVER, NO_TEXT, NONE, Ints, dense
from specs.vocabulary import Kind, Outcome

LEASE_COLUMNS = ("lease_id", "lease_until_us", "message_id", "queue_offset", "reconsume_times")
OF_LEASES = (Kind.RECEIVE, Kind.ACK, Kind.RELEASE, Kind.RENEW)
FOR_EVER = 1 << 60
_KINDS = tuple(Kind)
_OUTCOMES = tuple(Outcome)


class Request(NamedTuple):
    """A row about a message. Texts are codes, and a number that there is none of is NONE."""

    place: int
    begin: int
    end: int
    kind: Kind
    outcome: Outcome
    client: int
    lease: int
    started: int
    ended: int
    until: int
    times: int
    epoch: int

    @property
    def over_us(self) -> int:
        """When it ended, or began where it did not."""
        return self.started if self.ended == NEVER else self.ended


@dataclass(slots=True)
class OfAny:
    """Requests of a lane that may be about any of its messages: where each began, and until when one of those so far
    may be applied."""

    begins: list[int] = field(default_factory=list)
    applied_until: list[int] = field(default_factory=list)

    def before(self, now: int) -> tuple[int, int]:
        """Where the last one before began, and until when one may be applied; NONE where there is none."""
        at = bisect_left(self.begins, now) - 1
        return (self.begins[at], self.applied_until[at]) if at >= 0 else (NONE, NONE)


def _of_any(rows: Rows) -> dict[int, OfAny]:
    """By lane."""
    found: dict[int, OfAny] = {}
    asked = may_be_any(rows) & rows.are(*OF_LEASES) & ~rows.ended_as(Outcome.REFUSED)
    where = np.flatnonzero(asked & (rows.group != NO_TEXT))
    for row in requests(rows, where[np.argsort(rows.begin[where], kind="stable")]):
        mine = found.setdefault(int(rows.lane[row.place]), OfAny())
        party = rows.name_of("client_id", row.place), rows.name_of("broker", row.place)
        until = applied_until(rows.context_of(row.place), party, row, row.begin)
        mine.begins.append(row.begin)
        mine.applied_until.append(max([until, *mine.applied_until[-1:]]))
    return found


class Message:
    """One message of one lane. last: its last hand-out. alive_until: of that one's lease. ended: something may have
    ended it. applied_until: when the last request that may end a lease had certainly been applied, or was lost. of_any:
    requests of the lane that may be about it."""

    def __init__(self, rows: Rows, findings: Findings, first: int) -> None:
        self.findings = findings
        self.context: RunContext = rows.context_of(first)
        self.clients = rows.words("client_id")
        self.broker = rows.name_of("broker", first)
        self.clocks_us = self.context.info.clock_bound_us
        self.last: Request | None = None
        self.alive_until, self.ended, self.applied_until = 0, False, NONE
        self.of_any = rows.shared(_of_any).get(int(rows.lane[first])) or OfAny()
        self.stakes = 0

    def begins(self, row: Request, now: int) -> None:
        """Whatever may end the lease, or change its time."""
        if row.outcome is Outcome.REFUSED:
            return
        if row.kind in (Kind.ACK, Kind.RELEASE):
            self.ended = True
            until = applied_until(self.context, (self._client(row), self.broker), row, now)
            self.applied_until = max(self.applied_until, until)
        elif row.kind is Kind.RENEW:
            self.alive_until = min(
                self.alive_until, row.started if row.until == NONE else row.until
            )

    def ends(self, row: Request, now: int) -> None:
        if row.outcome is not Outcome.OK:
            return
        if row.kind is Kind.RECEIVE:
            self.handed_out(row, now)
        elif row.kind is Kind.ACK:
            self.last = None
        elif row.until != NONE and self.last is not None and self.last.lease == row.lease:
            self.alive_until = row.until  # renewed

    def handed_out(self, row: Request, now: int) -> None:
        """Remember the hand-out, and judge it by the one before."""
        before, alive_until, ended = self.last, self.alive_until, self.is_over(now)
        until = FOR_EVER if row.until == NONE else row.until
        applied_until = max(self.applied_until, self.of_any.before(now)[1])
        under_way = applied_until != NONE and applied_until + self.clocks_us >= row.started
        self.last, self.alive_until, self.ended = row, until, under_way
        if before is None:
            return
        meets = not ended and self.lives(before, alive_until, row.over_us, now)
        if meets and before.end >= row.begin:
            meets = not under_way and self.lives(row, until, before.over_us, now)
        self.again(before, row, meets)

    def again(self, before: Request, row: Request, meets: bool) -> None:
        """The message was handed out once more. meets: certainly while the lease before it lived."""

    def is_over(self, now: int) -> bool:
        """May something have ended the last lease?"""
        return self.ended or (self.last is not None and self.last.end < self.of_any.before(now)[0])

    def lives(self, handed: Request, until: int, at_us: int, now: int) -> bool:
        """Does the lease certainly live then? until: its end, if nothing else ends it."""
        return at_us + self.clocks_us + MS < until and not self._may_be_cut(handed, now)

    def _may_be_cut(self, handed: Request, now: int) -> bool:
        return may_be_cut(self.context, (self._client(handed), self.broker), handed, now)

    def _client(self, row: Request) -> str:
        return self.clients[row.client] if row.client != NO_TEXT else ""


def applied_until(context: RunContext, party: tuple[str, str], row: Request, now: int) -> int:
    """When a request had certainly been applied, or was lost. party: who asked, and the server."""
    if row.outcome is Outcome.OK and row.ended != NEVER:
        return row.ended
    client, broker = party
    until = row.over_us + context.info.config.delay_bound_ms * MS
    return context.may_arrive_until(Sending(client, broker, row.kind, row.started), until, now)


def may_be_cut(context: RunContext, party: tuple[str, str], handed: Request, now: int) -> bool:
    """May the lease have ended by now with its holder's connection, or with the server? party: these two."""
    client, broker = party
    since = handed.started - context.info.clock_bound_us
    leaves = (row for seq, _, row in context.work.get(client, ()) if seq <= now)
    return (
        context.broker_died_since(broker, handed.begin, handed.epoch, now)
        or context.client_died_between(client, handed.begin, now)
        or context.paused_since(client, since, now)
        or any(
            row.kind is Kind.LEAVE and (row.seq_end is None or row.seq_end > handed.begin)
            for row in leaves
        )
        or context.fault_between(since, NEVER, now, party)
    )


def each_message(message: Callable[[Rows, Findings, int], Message]) -> Relation:
    """The judge of a clause about messages that were handed out more than once; a lease ends by clocks."""
    return partial(_run, message=message)


def _run(rows: Rows, findings: Findings, message: Callable[[Rows, Findings, int], Message]) -> None:
    for places in redelivered(rows):
        state = message(rows, findings, places[0])
        until = state.context.clock_stepped
        for now, row, begins in events(rows, places):
            if now >= until:
                break
            (state.begins if begins else state.ends)(row, now)
        if state.stakes:
            findings.at_stake_times(places[0], state.stakes)


def redelivered(rows: Rows) -> Iterator[list[int]]:
    """The rows of each message of a lane that was handed out more than once."""
    offset = rows.shared(offsets)
    about = np.flatnonzero(rows.are(*OF_LEASES) & (offset != NONE) & (rows.group != NO_TEXT))
    if not len(about):
        return
    message, count = dense(rows.lane[about], offset[about])
    handed = (rows.are(Kind.RECEIVE) & rows.ended_as(Outcome.OK))[about]
    times = np.bincount(message[handed], minlength=count)
    many = times[message] > 1
    about, message = about[many], message[many]
    order = np.argsort(message, kind="stable")
    cuts = np.flatnonzero(np.diff(message[order])) + 1
    yield from (places.tolist() for places in np.split(about[order], cuts) if len(places))


def events(rows: Rows, places: list[int]) -> list[tuple[int, Request, bool]]:
    """The begins and ends of these rows, in the total order."""
    found = []
    for row in requests(rows, np.asarray(places, np.int64)):
        found.append((row.begin, row, True))
        if row.end < NEVER:
            found.append((row.end, row, False))
    return sorted(found, key=lambda event: (event[0], not event[2]))


def requests(rows: Rows, where: Ints) -> list[Request]:
    numbers = [rows.begin, rows.end]
    texts = [rows.client, rows.text("lease_id")]
    more = [
        rows.started,
        rows.ended,
        rows.number("lease_until_us"),
        rows.number("reconsume_times"),
        rows.number("broker_epoch"),
    ]
    kinds = [_KINDS[kind] for kind in rows.kind[where].tolist()]
    outcomes = [_OUTCOMES[outcome] for outcome in rows.outcome[where].tolist()]
    columns = [
        where.tolist(),
        *(column[where].tolist() for column in numbers),
        kinds,
        outcomes,
        *(column[where].tolist() for column in (*texts, *more)),
    ]
    return [Request(*each) for each in zip(*columns, strict=True)]
