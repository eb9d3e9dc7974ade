"""A new owner starts at or before the lowest message that nobody of the group has finished.

Where an offset was stored for the lane, an incarnation's first delivery must not lie beyond an unfinished message at or
above that offset. The stored offset is shown by a look-up that was answered with it or by a commit that was answered; a
crash of the broker may have lost it. It must have been stored before the client's last look-up for this incarnation
began (whether or not it was seen to add the lane), or be what that look-up was answered with; where none was seen,
before the incarnation was added, or else before its first delivery. Of several the highest counts: it claims least. In
a closed world only what somebody committed can be stored: an answer beyond every commit shows that something is stored,
and the highest commit before it says how much (whether such an answer may be given is CMT-9's to say). What *finished*
and *known* mean is said in `specs.facts.finished` and `backlog`: of a batch that was sent the first message is known by
its answer, the others only once they are delivered, so that who skips one of those unseen is not found here. A group
that is seen on the queue only after every other has finished a message is not judged by the SEND of that message.
Nobody owes what the broker has removed on purpose: below the minimum that it announced before the delivery nothing is
unfinished. Nor what its answer to a pull of the incarnation passed over, which told it to go on further ahead than it
had asked for.

Where a server keeps what a consumer held and gives it to the next one, this is half of the promise that redeliveries
come first: the new owner's first message is the lowest of them. That the others follow in their order before anything
new does is ORD-2's, since they are first deliveries of the new owner; that none is left out is LIV-1's. So no clause of
its own says it (docs/decisions/0016-redeliveries-come-first.md).
"""

import numpy as np

from specs.clauses.premises import BROKER_LIVES, NO_FILTER, NO_RESET, NOT_REMOVED, ORDERLY
from specs.clauses.terms import Finding, Findings, Line, Row, Rows, at, who
from specs.facts.backlog import Backlog
from specs.facts.calls import CALL_COLUMNS, CALL_KINDS
from specs.facts.columns import NEVER, NONE, NOWHERE, Ints, Mask
from specs.facts.dead_letters import may_be_untold
from specs.facts.finished import Finished
from specs.facts.gone import kept_from
from specs.facts.presence import brokers_died
from specs.facts.segments import by_time, chosen, dense, is_first, positions
from specs.facts.tenures import Tenures
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "ORD-4"
TITLE = "a new owner starts at or before the lowest unfinished message"
STATEMENT = (
    "Where an offset was stored, a new owner starts at or before the lowest unfinished message."
)
PARTY = Party.PAIR
KEY = Key.QUEUE
PREMISE = (ORDERLY, NO_RESET, NO_FILTER, BROKER_LIVES, NOT_REMOVED)
SOURCES = ("docs/sources.md#start-matrix", "docs/sources.md#offsets")
KINDS = CALL_KINDS | {Kind.COMMIT, Kind.DROP, Kind.FETCH_OFFSET, Kind.SEND}
SETTINGS = ("max_reconsume_times",)
NEEDS = frozenset({Kind.DELIVER})
HEEDED = frozenset({Kind.PULL})
CONCLUDES_FROM_ABSENCE = True
LOOKS_BACK = True
COLUMNS = (*CALL_COLUMNS, "delay_level", "detail")


class StartedBeyond(Finding):
    """stored: what shows that an offset was stored; named: the highest commit, where that is a look-up's answer beyond
    it; message: what shows that `offset` holds a message; drop: why that is not finished, where its call ended well."""

    stored: Row
    named: Row | None
    message: Row
    drop: Row | None
    first: Row
    offset: int


class _Stored:
    """What shows of each lane that an offset was stored: commits that were answered, and look-ups that were told one.

    offset: of each row how high it can be at most; named: the commit that says so, where that is a look-up's answer
    beyond every commit before it, in a closed world.
    """

    def __init__(self, rows: Rows) -> None:
        self.rows, self._client = rows, rows.lane_client
        looks, commits = rows.are(Kind.FETCH_OFFSET), rows.are(Kind.COMMIT)
        told = rows.ended_as(Outcome.OK) & (rows.value >= 0) & (rows.end < NEVER)
        self._looks, self._told = looks, told & (looks | commits)
        self._line = Line(rows.lane, rows.end, positions(self._told))
        look = positions(looks & told & rows.closed_world(np.arange(rows.size)))
        begun = Line(rows.lane, rows.begin, positions(commits & (rows.value != NONE)))
        highest = begun.highest_before(rows.lane[look], rows.end[look], rows.value)
        beyond = chosen(rows.value, highest, NEVER) < rows.value[look]
        look, highest = look[beyond], highest[beyond]
        self.offset, self.named = rows.value.copy(), np.full(rows.size, NOWHERE, np.int64)
        self.offset[look], self.named[look] = rows.value[highest], highest

    def best(self, first: Ints) -> Ints:
        """What shows the highest offset that was stored for each of these first deliveries; NOWHERE without any."""
        rows, begin = self.rows, self.rows.begin
        add, look, now = rows.shared(Tenures).add[first], self._look_up(first), begin[first]
        until = np.where(add == NOWHERE, now, begin[add])
        until = np.where(look == NOWHERE, until, begin[look])
        found = self._line.highest_before(rows.lane[first], until, self.offset)
        for index in positions(brokers_died(rows, found, now) & (found != NOWHERE)).tolist():
            known = self._line.within(int(rows.lane[first[index]]), NONE, int(until[index]))
            known = known[~brokers_died(rows, known, np.full(len(known), now[index]))]
            found[index] = known[self.offset[known].argmax()] if len(known) else NOWHERE
        own = (look != NOWHERE) & self._told[look] & (rows.end[look] < now)
        own &= ~brokers_died(rows, look, now)
        own &= self.offset[look] > chosen(self.offset, found, NONE)
        return np.where(own, look, found)

    def _look_up(self, first: Ints) -> Ints:
        """The last look-up of each one's client for its incarnation, or for none by name; NOWHERE without one."""
        rows, now = self.rows, self.rows.begin[first]
        named, mine = rows.shared(Tenures).named, dense(rows.incarnation, rows.client)[0]
        own = Line(mine, rows.begin, positions(self._looks & named)).last_before(mine[first], now)
        nobodys = Line(self._client, rows.begin, positions(self._looks & ~named))
        other = nobodys.last_before(self._client[first], now)
        return np.where(chosen(rows.begin, own, NONE) > chosen(rows.begin, other, NONE), own, other)

    def passed_over(self, first: Ints) -> dict[int, Ints]:
        """The pulls of each one's incarnation, or of its client, that the broker told to go on further ahead."""
        rows, tenures = self.rows, self.rows.shared(Tenures)
        ahead = rows.told_ahead
        named = tenures.named[ahead]
        own = Line(rows.incarnation, rows.end, ahead[named])
        nobodys = Line(self._client, rows.end, ahead[~named])
        adds = Line(self._client, rows.begin, positions(rows.are(Kind.ADD) & tenures.named))
        added = adds.last_before(self._client[first], rows.begin[first])
        since, since_last = (
            chosen(rows.begin, add, NONE).tolist() for add in (tenures.add[first], added)
        )
        found: dict[int, Ints] = {}
        for index in positions(np.isin(rows.lane[first], rows.lane[ahead])).tolist():
            row, now = int(first[index]), int(rows.begin[first[index]])
            mine = own.within(int(rows.incarnation[row]), since[index], now)
            others = nobodys.within(int(self._client[row]), since_last[index], now)
            found[index] = np.append(mine, others)
        return found


def judge(rows: Rows, findings: Findings) -> None:
    """Each tenure's first delivery beside the first unfinished message from what was stored on and below it."""
    finished, tenures = rows.shared(Finished, Kind.DEAD_LETTER), rows.shared(Tenures)
    calls, stored = positions(finished.calls), _Stored(rows)
    first = calls[is_first(tenures.number[calls])]
    first = first[tenures.reset[first] == NOWHERE]
    first = first[by_time(rows.lane[first], rows.begin[first])]
    best = stored.best(first)
    first, best = first[best != NOWHERE], best[best != NOWHERE]
    findings.at_stake(first)
    if not len(first):
        return
    now, low = rows.begin[first], np.maximum(stored.offset[best], kept_from(rows, first))
    backlog = Backlog(finished, rows.lane[first], low, rows.offset[first])
    untold, ahead = may_be_untold(rows, first), stored.passed_over(first)

    def is_owed(index: Ints, place: Ints) -> Mask:
        owed: Mask = backlog.shown(place, now[index]) != NOWHERE
        some = positions(owed & untold[index])
        owed[some] = ~finished.in_doubt(backlog.message[place[some]], now[index[some]])
        for each in positions(np.isin(index, list(ahead)) & owed).tolist():
            pulls, offset = ahead[int(index[each])], backlog.offset[place[each]]
            owed[each] = not ((rows.offset[pulls] <= offset) & (offset < rows.value[pulls])).any()
        return owed

    place = backlog.first(now, is_owed)
    index = positions(place != NOWHERE)
    place, now = place[index], now[index]
    message = backlog.shown(place, now)
    findings.broken(
        StartedBeyond,
        {"offset": backlog.offset[place]},
        stored=best[index],
        named=stored.named[best[index]],
        message=message,
        drop=finished.drop_of(message, now),
        first=first[index],
    )


def explain(found: StartedBeyond) -> str:
    stored, message, first = found.stored, found.message, found.first
    known = (
        f"sent at {at(message)}"
        if message.kind is Kind.SEND
        else f"begun by {who(message)} at {at(message)}"
    )
    seen = f"{stored.value} had been stored (seen at {at(stored)})"
    if found.named is not None:
        seen = f"no more than {found.named.value} had ever been committed ({stored.value} was told at {at(stored)})"
    return (
        f"{who(first)} began {first.lane} at offset {first.queue_offset} at {at(first)}, although nobody of the group "
        f"had finished offset {found.offset} ({known}) and {seen}"
    )
