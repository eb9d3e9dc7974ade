"""Free lanes: of each request for a lease that was granted or refused, is it certain that nobody else has the lane?

By the last certain grant: it was the asker's own; its owner gave it back, and that certainly arrived; or it is strictly
older than the broker's limit, in whole milliseconds of its clock. And nobody else's request since then that was not
refused, answered or not, may hold the lane. An unlock that is sent one way has certainly arrived where everybody is
recorded, the time that a request may take is over, its client did not crash since, and nothing stood in its way.
"""

import numpy as np

from specs.clauses.links import Sending
from specs.facts.columns import MS, NEVER, NO_TEXT, NONE, NOWHERE, Ints, Mask
from specs.facts.leases import Grants, named, over_us, refusals
from specs.facts.moments import Line
from specs.facts.presence import brokers_died, died_since
from specs.facts.requests import applied_until
from specs.facts.rows import Rows
from specs.facts.segments import chosen, positions
from specs.vocabulary import Kind, Outcome


class FreeLanes:
    """Arrays with a value for each request that was answered.

    asked: its position. granted: was it? grant: the lane's last when it began; NOWHERE without one. arrived: the last
    unlock of that grant's owner that had certainly arrived. own, released, expired: why the lane must be granted, False
    everywhere where that is not certain. clocks_us: how much clocks may differ. limit_us: what is so old is over.
    """

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        granted = rows.are(Kind.LOCK) & rows.ended_as(Outcome.OK)
        answered = (granted | rows.shared(refusals)) & rows.shared(named) & (rows.end < NEVER)
        asked = positions(answered)
        self.asked = asked = asked[rows.end[asked] < rows.clock_stepped(asked)]
        self.granted, self.now, begin = granted[asked], rows.end[asked], rows.begin[asked]
        self.clocks_us = rows.clocks_us(asked)
        self.limit_us = (rows.config("broker_lease_ms", asked) + 1) * MS
        self.frames_twice = rows.of_runs(lambda context: context.frames_twice, asked) <= self.now
        grants = Line(rows.lane, rows.end, rows.shared(Grants).at)
        self.grant = grant = grants.last_before(rows.lane[asked], begin)
        self.lives = grant != NOWHERE
        self.lives[self.lives] = ~brokers_died(rows, grant[self.lives], self.now[self.lives])
        known = self.lives & ~self.frames_twice
        own = known & (rows.client[grant] == rows.client[asked])
        self.arrived = np.where(known, self._arrived(), NOWHERE)
        released = ~own & (self.arrived != NOWHERE)
        age_us = rows.started[asked] - over_us(rows, grant) - self.clocks_us
        since = np.where(known, rows.started[grant], NONE)
        owner_since = np.where(released, rows.started[self.arrived], since)
        free = known & (own | released | (age_us >= self.limit_us))
        free &= self.nobody_else(since, owner_since, grant)
        self.own, self.released, self.expired = own & free, released & free, free & ~own & ~released

    def _arrived(self) -> Ints:
        rows, grant, asked = self.rows, self.grant, self.asked
        client, end = rows.lane_client, rows.end
        sent = positions(rows.are(Kind.UNLOCK) & rows.ended_as(Outcome.OK, Outcome.SENT))
        granted = chosen(end, grant, NEVER)
        found = Line(client, end, sent[end[sent] < NEVER]).last_before_with(
            chosen(client, grant, NOWHERE),
            rows.begin[asked],
            lambda index, unlock: (
                (end[unlock] < granted[index])
                | ((rows.begin[unlock] > granted[index]) & self._has_arrived(index, unlock))
            ),
        )
        return np.where(chosen(rows.begin, found, NONE) > granted, found, NOWHERE)

    def _has_arrived(self, index: Ints, unlock: Ints) -> Mask:
        """Had the unlock certainly arrived when each of these requests began?"""
        rows, asked = self.rows, self.asked[index]
        until_us = over_us(rows, unlock) + rows.config("delay_bound_ms", unlock) * MS
        found = rows.ended_as(Outcome.OK)[unlock]
        one_way = ~found & rows.closed_world(asked)
        one_way &= rows.started[asked] - self.clocks_us[index] > until_us
        one_way &= ~died_since(rows, unlock, self.now[index])
        for each in positions(one_way).tolist():
            place, now = int(unlock[each]), int(self.now[index[each]])
            client, broker = rows.party_of(place)
            sending = Sending(client, broker, Kind.UNLOCK, int(rows.started[place]))
            found[each] = not rows.context_of(place).is_disturbed(sending, int(until_us[each]), now)
        return found

    def nobody_else(self, since: Ints, owner_since: Ints, owner: Ints) -> Mask:
        """Of each request: may nobody else have the lane by a request that was applied since then?

        owner_since: of requests of the client of `owner`, a grant that is none of them.
        """
        rows, found = self.rows, np.ones(len(self.asked), np.bool_)
        index, other = self._reaching(rows.started[self.asked] - self.limit_us + 1)
        of_owner = rows.client[other] == chosen(rows.client, owner[index], NO_TEXT)
        until = rows.shared(applied_until)[other] + self.clocks_us[index]
        blocks = until >= np.where(of_owner, owner_since[index], since[index])
        blocks &= rows.client[other] != rows.client[self.asked[index]]
        found[index[blocks & (other != owner[index])]] = False
        return found

    def may_be_askers(self, since: Ints) -> Mask:
        """Of each request: may another one of who asks have been granted since?"""
        rows, found = self.rows, np.zeros(len(self.asked), np.bool_)
        index, other = self._reaching(since)
        mine = rows.client[other] == rows.client[self.asked[index]]
        found[index[mine & (other != self.grant[index])]] = True
        return found

    def _reaching(self, since: Ints) -> tuple[Ints, Ints]:
        """Each request, by its index, beside those of its lane that may have been granted from then to its answer."""
        rows, until, least = self.rows, self.rows.shared(applied_until), since - self.clocks_us
        locks = positions(rows.are(Kind.LOCK) & ~rows.shared(refusals))
        line, lane = Line(rows.lane, rows.begin, locks), rows.lane[self.asked]
        first = line.first_reaching(lane, self.now, until, least)
        return line.between(
            lane,
            chosen(rows.begin, first, NEVER) - 1,
            self.now,
            lambda index, other: (until[other] >= least[index]) & (other != self.asked[index]),
        )
