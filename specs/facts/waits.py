"""Waits: when a client waited for an answer without which it may do nothing else for its lanes.

One thread of a client may ask for all its lanes, and wait for each answer: for that to a request for a lease, or for an
offset to start from, of whatever lane, and to a pull that never gets one, as long as requests may take.
"""

import numpy as np

from specs.facts.columns import MS, NEVER, Ints
from specs.facts.ready import Lanes
from specs.facts.rows import Rows
from specs.facts.segments import by_time, positions
from specs.vocabulary import Kind, Outcome

ASKED = (Kind.LOCK, Kind.FETCH_OFFSET)
"""What a client asks for before it adds a lane."""


class Waits:
    """What each client asked for and waited for, by begin. of_lanes: of these kinds alone, lane by lane."""

    def __init__(self, rows: Rows, *of_lanes: Kind) -> None:
        self.rows, lanes = rows, rows.shared(Lanes)
        in_vain = rows.are(Kind.PULL) & rows.ended_as(Outcome.UNKNOWN) & (rows.ended < NEVER)
        where = rows.of(*of_lanes) if of_lanes else positions(rows.are(*ASKED) | in_vain)
        self._key = lanes.lane if of_lanes else lanes.client
        self._where = where[by_time(self._key[where], rows.begin[where])]
        self._keys = self._key[self._where]

    def _before(self, place: int) -> Ints:
        """What the client of this row had asked before, in the order of the begins."""
        mine = int(self._key[place])
        start, stop = np.searchsorted(self._keys, [mine, mine + 1]).tolist()
        asks = self._where[start:stop]
        earlier: Ints = asks[self.rows.begin[asks] < self.rows.begin[place]]
        return earlier

    def us(self, place: int, since_us: int) -> int:
        """For how long, from that time until this row, its client waited for answers that came or were given up."""
        rows, info, waited_us = self.rows, self.rows.context_of(place).info, 0
        bound_us = info.config.delay_bound_ms * MS + info.clock_bound_us
        pulls, asks = rows.are(Kind.PULL), self._before(place)
        for ask in asks[rows.ended[asks] < NEVER].tolist():
            until_us = min(int(rows.ended[ask]), int(rows.started[place]))
            if pulls[ask]:
                until_us = min(until_us, int(rows.started[ask]) + bound_us)
            waited_us += max(0, until_us - max(int(rows.started[ask]), since_us))
            since_us = max(since_us, until_us)
        return waited_us

    def last_still(self, place: int) -> bool:
        """Is there a request of the client, in its present life, of which the history has no end?"""
        rows, context, now = self.rows, self.rows.context_of(place), int(self.rows.begin[place])
        client, group = rows.member_of(place)
        asks = self._before(place)
        endless = rows.begin[asks[rows.ended[asks] >= NEVER]].tolist()
        return any(not context.is_of_an_old_life(client, group, seq, now) for seq in endless)
