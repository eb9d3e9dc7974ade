"""Leases of lanes, as LOCK and UNLOCK rows show them: who was granted a lane, and until when a request may be applied.

A grant is made somewhere between the request's begin and its answer. Its client has given it back once an unlock that
may end it has begun: one after the answer, or one from before that may have been applied since the lane was asked for.
"""

import numpy as np

from specs.facts.columns import MS, NEVER, NO_TEXT, NONE, NOWHERE, Ints, Mask
from specs.facts.moments import Line
from specs.facts.presence import brokers_died, of_old_lives
from specs.facts.requests import applied_until
from specs.facts.rows import Rows
from specs.facts.segments import Segments, chosen, dense, positions
from specs.vocabulary import Kind, Outcome

LEASE_COLUMNS = ("code",)


def named(rows: Rows) -> Mask:
    """Which rows name a client of a group?"""
    found: Mask = (rows.client != NO_TEXT) & (rows.group != NO_TEXT)
    return found


def over_us(rows: Rows, where: Ints) -> Ints:
    """When each of these rows was over; where nobody saw its end, when it began."""
    ended = rows.ended[where]
    return np.where(ended >= NEVER, rows.started[where], ended)


def refusals(rows: Rows) -> Mask:
    """Which LOCKs refuse the lane? An error code says nothing about it."""
    plain = np.isin(rows.number("code"), (0, NONE))
    found: Mask = rows.are(Kind.LOCK) & rows.ended_as(Outcome.REFUSED) & plain
    return found


class LeaseNews:
    """What clients know last of their leases of lanes: grants, refusals, and own unlocks.

    Without the refusals that say nothing: of a request that is older than what was answered last, where no unlock came
    since. And without what came after a grant that was asked for before the end of its process, and answered after it:
    another process of its name may have that grant, and did not hear of the rest.
    moment: of every row when its client knows it (seq). line: all, by lane and client.
    """

    def __init__(self, rows: Rows) -> None:
        self.client = client = rows.lane_client
        locks, refused = rows.are(Kind.LOCK), rows.shared(refusals)
        granted, unlocks = locks & rows.ended_as(Outcome.OK), rows.are(Kind.UNLOCK)
        self.moment = moment = np.where(unlocks, rows.begin, rows.end)
        at = positions((granted | refused | unlocks) & (moment < NEVER) & rows.shared(named))
        at = at[np.lexsort((moment[at], client[at]))]
        since = dense(client[at], np.cumsum(~refused[at]))[0]
        asked = np.where(unlocks[at], NONE, rows.begin[at])
        newest = chosen(asked, Segments(since).highest_before(asked), NONE)
        at = at[~refused[at] | (asked > newest)]
        grant = Line(client, moment, at[granted[at]]).last_before(client[at], moment[at])
        later = positions((grant != NOWHERE) & ~granted[at])
        mine, now = grant[later], moment[at[later]]
        outlived = of_old_lives(rows, mine, now)
        outlived &= ~of_old_lives(rows, mine, now, since=rows.end[mine])
        self.at = np.delete(at, later[outlived])
        self.line = Line(client, moment, self.at)

    def of(self, some: Mask) -> Line:
        """Those of which the mask is true."""
        return Line(self.client, self.moment, self.at[some[self.at]])


class Grants:
    """The grants whose answer was seen, by lane and client, and by their answers. Arrays have a value for each.

    at: their positions. until: when (seq) the client's next grant was answered. given_back: its first unlock of those
    that may have ended the grant; NOWHERE without one. line: by lane and client. unlocks: likewise, by their begins.
    """

    def __init__(self, rows: Rows) -> None:
        self.client = client = rows.lane_client
        granted = rows.are(Kind.LOCK) & rows.ended_as(Outcome.OK) & (rows.end < NEVER)
        at = positions(granted & named(rows))
        self.at = at = at[np.lexsort((rows.end[at], client[at]))]
        self.line = Line(client, rows.end, at)
        self.until = np.full(len(at), NEVER, np.int64)
        more = positions(client[at[1:]] == client[at[:-1]])
        self.until[more] = rows.end[at[more + 1]]
        self.unlocks = Line(client, rows.begin, rows.of(Kind.UNLOCK))
        before = self.undone(rows, at, rows.end[at])
        after = self.unlocks.first_after(client[at], rows.end[at])
        self.given_back = np.where(before == NOWHERE, after, before)

    def undone(self, rows: Rows, lock: Ints, now: Ints) -> Ints:
        """The first unlock of the client, begun by now, that may be applied after the lane was asked for."""
        until, since_us = rows.shared(applied_until), rows.started[lock]
        return self.unlocks.first_reaching(self.client[lock], now, until, since_us)


class Contests:
    """Answers to others while a grant certainly lived, whichever of the two was made first. Arrays, a value for each.

    lease: the grant. asked: the request, by lease and by their answers. Where two requests were under way together
    nobody knows which was granted first; there is no moment between them at which the earlier one was over. A grant
    that turned out to be over, as somebody else was granted the lane, is contested no more.
    """

    def __init__(self, rows: Rows) -> None:
        grants = rows.shared(Grants)
        newest = Segments(grants.client[grants.at]).highest_before(rows.begin[grants.at])
        is_newest = rows.begin[grants.at] > chosen(rows.begin[grants.at], newest, NONE)
        lease, given_back = grants.at[is_newest], grants.given_back[is_newest]
        ends = Line(grants.client, rows.end, lease).first_after(
            grants.client[lease], rows.end[lease]
        )
        ends = np.minimum(chosen(rows.end, ends, NEVER), chosen(rows.begin, given_back, NEVER))
        answered = rows.are(Kind.LOCK) & ~rows.ended_as(Outcome.UNKNOWN) & rows.shared(named)
        asked = positions(answered & (rows.end < NEVER))
        line = Line(rows.lane, rows.end, asked[rows.end[asked] < rows.clock_stepped(asked)])
        clocks_us = rows.clocks_us(lease)
        limit_us = rows.config("broker_lease_ms", lease) * MS - clocks_us
        last = line.last_within(rows.lane[lease], rows.ended, rows.started[lease] + limit_us)
        ends = np.minimum(ends, chosen(rows.end, last, NONE) + 1)
        index, self.asked = line.between(
            rows.lane[lease],
            rows.end[lease],
            ends,
            lambda index, asked: self._both_live(rows, lease[index], asked, limit_us[index]),
        )
        self.lease = lease[index]
        granted = rows.ended_as(Outcome.OK)[self.asked]
        alive = Segments(self.lease).count_before(granted) == 0
        self.lease, self.asked, self.granted = self.lease[alive], self.asked[alive], granted[alive]

    @staticmethod
    def _both_live(rows: Rows, lease: Ints, asked: Ints, limit_us: Ints) -> Mask:
        """Was each of these grants certainly alive when the other request was answered, and the other way round?"""
        now = rows.end[asked]
        first_us = np.minimum(rows.started[lease], rows.started[asked])
        last_us = np.maximum(rows.ended[lease], rows.ended[asked])
        found: Mask = (rows.client[lease] != rows.client[asked]) & (last_us - first_us <= limit_us)
        found[found] = ~brokers_died(rows, lease[found], now[found])
        together = positions(found & (rows.end[lease] >= rows.begin[asked]))
        mine, other = lease[together], asked[together]
        found[together] = rows.shared(Grants).undone(rows, other, rows.end[mine]) == NOWHERE
        found[together] &= ~brokers_died(rows, other, now[together])
        return found
