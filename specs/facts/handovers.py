"""Handovers: which call of a lane is the first one after another worker's, and what still ran when it began.

A *worker* is one life of one process of one client. Two processes of one client id are two workers where both are told.
A server's own consumer is handed to several members, and is none.

A worker has *dropped* a lane where the last that was told of it there, by ADD or DROP, is a DROP.
"""

import numpy as np

from specs.facts.columns import NEVER, NO_TEXT, NONE, NOWHERE, Ints
from specs.facts.moments import Line
from specs.facts.rows import Rows
from specs.facts.segments import chosen, dense, positions
from specs.vocabulary import SERVER_CONSUMER, Kind, Outcome

HANDOVER_COLUMNS = ("client_id", "process")


class Handovers:
    """Pairs of deliveries of one lane, equally long arrays of positions.

    second: one that follows another worker's on its lane. first: that one, where it had ended; and whatever of others
    still ran. How a first one ended was said by its listener.
    """

    def __init__(self, rows: Rows) -> None:
        self.rows, self.worker = rows, rows.shared(workers)
        mine = rows.are(Kind.DELIVER) & (rows.client != NO_TEXT) & (rows.group != NO_TEXT)
        at = positions(mine & (rows.client != rows.code("client_id", SERVER_CONSUMER)))
        lane, worker, begin = rows.lane, self.worker, rows.begin
        calls = Line(lane, begin, at)
        before = calls.last_before(lane[at], begin[at])
        follows = (before != NOWHERE) & (worker[before] != worker[at])
        before, second = before[follows], at[follows]
        end = np.where(rows.ended_as(Outcome.UNKNOWN, Outcome.CUT), NONE, rows.end)
        over = (end[before] != NONE) & (end[before] <= begin[second])
        now = begin[second]
        longest = calls.first_reaching(lane[second], now, end, now + 1)
        index, running = calls.between(
            lane[second],
            chosen(begin, longest, NEVER) - 1,
            now,
            lambda index, call: (end[call] > now[index]) & (worker[call] != worker[second[index]]),
        )
        first = np.append(before[over], running)
        second = np.append(second[over], second[index])
        apart = (rows.client[first] != rows.client[second]) | rows.of_two_processes(first, second)
        self.first, self.second = first[apart], second[apart]

    def dropped(self, first: Ints, second: Ints) -> Ints:
        """The DROP by which the first one's worker had dropped its lane when the second call began; else NOWHERE."""
        rows = self.rows
        told = Line(self.worker, rows.begin, rows.of(Kind.ADD, Kind.DROP))
        last = told.last_before(self.worker[first], rows.begin[second])
        return np.where((last != NOWHERE) & rows.are(Kind.DROP)[last], last, NOWHERE)

    def added(self, calls: Ints) -> Ints:
        """The last ADD of each of these calls' lane by its worker, before the call; NOWHERE where nobody saw one."""
        rows = self.rows
        adds = Line(self.worker, rows.begin, rows.of(Kind.ADD))
        return adds.last_before(self.worker[calls], rows.begin[calls])


def workers(rows: Rows) -> Ints:
    """Of each row the number of its lane, client, process and life."""
    return dense(rows.lane, rows.doer)[0] if rows.size else rows.lane
