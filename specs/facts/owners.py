"""Who has lanes at settled drains, and what is finished of them: what clauses ask of each message that is found.

A drain is settled where `specs.facts.settled` says so. Somebody *works* on a lane from an ADD on: unless that
incarnation has dropped it, or its client has died, or leaves. Nothing is said of a lane that was reset, of one that a
listener served in manual mode (it may leave messages open), of a group that does not subscribe to every message, nor
while a call of the incarnation runs. A message may be finished where nobody saw how its dead letter was answered, or
how a call of it ended (`unknown`; one that was cut finished nothing), or a call of it ends later, and it was not
delivered since; or where it may have been given up and nobody told.
"""

import numpy as np

from specs.facts.columns import NEVER, NONE, NOWHERE, Ints, Mask
from specs.facts.dead_letters import may_be_untold
from specs.facts.finished import Finished
from specs.facts.moments import Line
from specs.facts.presence import are_filtered, died_since, of_old_lives, were_leaving
from specs.facts.rows import Rows
from specs.facts.segments import chosen, dense, first_of_each, is_first, positions
from specs.facts.settled import SETTLED
from specs.facts.starts import Starts
from specs.facts.stored import copies
from specs.facts.tenures import Tenures
from specs.vocabulary import CommitMode, Kind, Outcome


def _added(rows: Rows) -> Ints:
    """The ADDs of lanes that hold no copies."""
    named = rows.shared(Tenures).named
    return positions(rows.are(Kind.ADD) & named & ~copies(rows))


class Owners:
    """Lanes that somebody has or had, as of moments. Each is named by an ADD, mostly by the last one before."""

    def __init__(self, rows: Rows) -> None:
        self.rows, self.starts = rows, rows.shared(Starts)
        self.finished, lane = rows.shared(Finished, Kind.DEAD_LETTER), rows.lane
        named, calls = rows.shared(Tenures).named, rows.are(Kind.DELIVER)
        adds = rows.shared(_added)
        self._added = Line(lane, rows.begin, adds)
        looks, resets = positions(rows.are(Kind.FETCH_OFFSET) & named), rows.of(Kind.RESET)
        moves = np.concatenate([adds, looks, resets])
        self._changes = Line(lane, rows.begin, moves), Line(lane, rows.end, looks)
        by_hand = rows.text("commit_mode") == rows.code("commit_mode", CommitMode.MANUAL)
        self._silent = Line(lane, rows.begin, np.append(positions(calls & by_hand), resets))
        tenure, mine = self.finished.tenures.number, positions(calls & named)
        self._begun, self._ended = (Line(tenure, each, mine) for each in (rows.begin, rows.end))

    def last(self, add: Ints, moment: Ints) -> Ints:
        """The last ADD of each lane before the moment; NOWHERE without one."""
        return self._added.last_before(self.rows.lane[add], moment)

    def start(self, add: Ints, moment: Ints) -> Ints:
        """Where the incarnation of each ADD begins; 0 where nobody knows."""
        return chosen(self.starts.value, self.starts.row(add, moment), 0)

    def lowest(self, last: Ints, moment: Ints) -> Ints:
        """The ADD with the lowest start of all before, where all are recorded and no message is nobody's; or the last.

        last: the last ADD of a lane. Nothing changes between some moments, and of these one is looked at.
        """
        rows, found, lane = self.rows, last.copy(), self.rows.lane[last]
        changed = [line.count_before(lane, moment) for line in self._changes]
        state, count = dense(lane, *changed)
        for index in first_of_each(state, count).tolist():
            info, now = rows.context_of(int(last[index])).info, int(moment[index])
            if info.closed_world and info.config.consume_from == "first":
                adds = self._added.within(int(lane[index]), NONE, now)
                then = np.full(len(adds) + 1, now)
                known = self.starts.row(adds, then[1:]) != NOWHERE
                known &= ~self.starts.asks(adds, then[1:])
                adds = np.append(last[index], adds[known])
                found[state == state[index]] = adds[self.start(adds, then[: len(adds)]).argmin()]
        return found

    def handed_over(self, last: Ints) -> Mask:
        """Had each of these lanes been added before?"""
        found: Mask = self._added.count_before(self.rows.lane[last], self.rows.begin[last]) > 0
        return found

    def live(self, last: Ints, moment: Ints) -> Mask:
        """Has somebody each lane: was it not dropped, and has its client not died, nor begun to leave?"""
        rows = self.rows
        found: Mask = chosen(rows.begin, self.finished.drop(last), NEVER) > moment
        return found & ~died_since(rows, last, moment) & ~were_leaving(rows, last, moment)

    def idle(self, last: Ints, moment: Ints) -> Mask:
        """Does no call of each incarnation run?"""
        tenure = self.finished.tenures.number[last]
        begun = self._begun.count_before(tenure, moment)
        found: Mask = begun == self._ended.count_before(tenure, moment)
        return found

    def at_rest(self, last: Ints, moment: Ints) -> Mask:
        """Has no listener served each lane in manual mode, has nobody moved it, and does its group take all?"""
        found: Mask = self._silent.count_before(self.rows.lane[last], moment) == 0
        return found & ~are_filtered(self.rows, last, moment)

    def work(self, last: Ints, moment: Ints) -> Mask:
        """Has somebody each lane, in its present life, at rest and idle?"""
        found = self.live(last, moment) & ~of_old_lives(self.rows, last, moment)
        return found & self.at_rest(last, moment) & self.idle(last, moment)

    def worked_on(self, last: Ints, offset: Ints, moment: Ints) -> Mask:
        """Was each message of a lane worked on to its end, though that did not finish it?"""
        message = self.finished.number(self.rows.lane[last], offset)
        return self.finished.worked_on(message, moment)

    def done(self, last: Ints, offset: Ints, moment: Ints) -> tuple[Mask, Mask, Mask]:
        """Was each message of a lane finished; is that in doubt; and may it be, though nobody saw it?"""
        rows, lane, size = self.rows, self.rows.lane[last], self.rows.size
        message = self.finished.number(lane, offset)
        finished = chosen(self.finished.moment, message, NEVER) < moment
        doubt = self.finished.in_doubt(message, moment) & ~finished
        doubt &= may_be_untold(rows, last, moment=moment)
        key = dense(np.append(rows.lane, lane), np.append(rows.offset, offset))[0]
        calls = rows.are(Kind.DELIVER) & (rows.end < NEVER)
        unheard = np.where(
            calls, rows.ended_as(Outcome.UNKNOWN), ~rows.ended_as(Outcome.OK, Outcome.REFUSED)
        )
        answered = np.where(unheard, NEVER, rows.end)
        told = Line(key, rows.begin, positions(calls | rows.are(Kind.DEAD_LETTER)))
        last_told = told.last_before_with(
            key[size:], moment, lambda index, row: answered[row] > moment[index]
        )
        again = self.finished.begun.last_before(message, moment)
        since = chosen(rows.begin, again, NONE + 1)  # what takes no time ends where it begins
        unclear = self.starts.asks(last, moment) | (chosen(rows.begin, last_told, NONE) >= since)
        return finished, doubt, unclear


class SettledReads:
    """What settled drains find, beside each lane of its queue that somebody had: by lane and begin, equally long.

    read: the message; marker: the reading; add: an ADD of the lane.
    """

    def __init__(self, rows: Rows) -> None:
        self.rows, begin, adds = rows, rows.begin, rows.shared(_added)
        reads = rows.are(Kind.READ) & rows.ended_as(Outcome.OK)
        settled = rows.text("detail") == rows.code("detail", SETTLED)
        self._markers = Line(rows.queue, begin, positions(reads & settled & (rows.offset == NONE)))
        read = positions(reads & (rows.offset != NONE))
        marker = self._markers.last_before(rows.queue[read], begin[read])
        within = chosen(rows.end, marker, NONE) > begin[read]
        read, marker = read[within], marker[within]
        one = adds[is_first(rows.lane[adds])]
        index, add = Line(rows.queue, begin, one).all_of(rows.queue[read])
        order = np.lexsort((begin[read[index]], rows.lane[add]))
        self.read, self.marker, self.add = read[index[order]], marker[index[order]], add[order]

    def first(self, which: Ints) -> Ints:
        """Of these the first one of each lane and reading, where that is over before the next one begins."""
        rows, marker = self.rows, self.marker[which]
        then = self._markers.first_after(rows.queue[marker], rows.begin[marker])
        over = (rows.end[marker] < NEVER) & (chosen(rows.begin, then, NEVER) > rows.end[marker])
        found: Ints = which[over & is_first(rows.lane[self.add[which]], marker)]
        return found
