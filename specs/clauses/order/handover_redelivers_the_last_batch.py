"""A clean handover redelivers at most the last batch.

Clean: the old owner dropped the lane in good order and gave its lease back (an unlock that was answered or handed to
the network; in a shutdown it may give it back first). The next incarnation of the lane then begins no earlier than with
the old owner's last call: whatever that one had finished in calls before the last, it had to report. The new owner's
first delivery shows when it has not: it is a message that the old owner had finished, in a call before its last one and
before its drop, and above every offset that it had reported when the new owner began. A report that was made and got
lost on its way is nobody's fault, so an old owner that reported an offset beyond the message is not judged, whatever
was stored. What is finished follows the listener's result (auto mode, or a COMMIT that covers it); what only the COMMIT
of the last call covers may come again with it, and messages given up as dead letters don't count. A call of which
nobody saw the result, nor says that it was in auto mode, may have been a manual ROLLBACK: what was taken before it, no
later COMMIT covers. What began before the ADD is of an earlier life. Whoever records ADD records every COMMIT too: an
old owner without an ADD is not judged. A client that takes the lane again before it gave it back hands nothing over:
what it gives back afterwards is its later work, be it that its ADD was seen, or a delivery, or a crash of the client
after the drop. After the unlock it is a new owner like any other. Of two that left the lane before the new owner began,
only the one that gave it back last is asked. A reset clears what is remembered, the ADD too, and an old owner that met
a broker's correction (a commit of the value that a pull was told to go on at, whether or not who recorded it says
`detail=corrected`) is not judged. A commit that was refused reported nothing.
"""

import numpy as np

from specs.clauses.premises import NO_RESET, ORDERLY
from specs.clauses.terms import Finding, Findings, Line, Row, Rows, at, who
from specs.facts.calls import (
    CALL_COLUMNS,
    certainly_acknowledged,
    may_be_by_hand,
    may_put_back_unseen_of,
)
from specs.facts.columns import NEVER, NONE, NOWHERE
from specs.facts.presence import were_leaving
from specs.facts.segments import chosen, dense, first_of_each, positions
from specs.facts.tenures import Tenures
from specs.plan.traits import Stake, Trait
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "ORD-14"
TITLE = "a handover redelivers the last batch at most"
STATEMENT = "A clean handover redelivers at most the last batch, unless a report of the consumed offset was lost."
PARTY = Party.PAIR
KEY = Key.LANE
PREMISE = (ORDERLY, NO_RESET)
SOURCES = ("docs/sources.md#client-leases", "docs/sources.md#offsets")
STAKES = (Stake(Trait.CLEAN_CHANGE, brings=2),)
KINDS = frozenset(
    {Kind.DELIVER, Kind.COMMIT, Kind.ADD, Kind.DROP, Kind.UNLOCK, Kind.RESET, Kind.PULL}
)
NEEDS = frozenset({Kind.DELIVER, Kind.DROP, Kind.UNLOCK})
EXCUSED_BY = frozenset({Kind.CRASH})
COLUMNS = (*CALL_COLUMNS, "detail")


class RedeliveredMore(Finding):
    """done: the old owner's delivery of the message. last: its last call."""

    add: Row
    done: Row
    last: Row
    drop: Row
    unlock: Row
    again: Row


class RedeliveredAfterShutdown(RedeliveredMore):
    """The old owner was shutting down when it dropped the lane."""


class _Works:
    """The work of tenures between resets: with which row each begins, and what it finished.

    begun: of each work its first ADD or delivery. left: what ends a handing back in good order, an unlock, or a drop
    after it; drop, unlock: of each of them both.
    """

    def __init__(self, rows: Rows) -> None:
        self.rows, tenures = rows, rows.shared(Tenures)
        begin, end = rows.begin, rows.end
        self.work = tenures.period
        calls = rows.are(Kind.DELIVER) & tenures.named & (rows.offset != NONE)
        self.adds = rows.are(Kind.ADD) & tenures.named
        events = positions(calls | self.adds)
        self.begun = first_of_each(self.work[events], int(self.work.max()) + 1)
        self.begun = chosen(events, self.begun, NOWHERE)
        self.calls = Line(self.work, begin, positions(calls))
        started = chosen(begin, self.begun[self.work], NEVER) < begin
        drops = rows.are(Kind.DROP) & tenures.named & started
        self.drops = Line(self.work, begin, positions(drops))
        told = rows.are(Kind.COMMIT) & tenures.named & (rows.value != NONE)
        self.commits = Line(self.work, begin, positions(told))
        client, unlocks = rows.lane_client, rows.are(Kind.UNLOCK)
        firsts, own = self.begun[self.begun != NOWHERE], np.arange(rows.size)
        ends, last = positions(drops | unlocks), np.full(rows.size, NOWHERE)
        did = Line(client, begin, np.concatenate([ends, firsts]))
        last[ends] = did.last_before(client[ends], begin[ends])
        given_back = unlocks & rows.ended_as(Outcome.OK, Outcome.SENT)
        at_its_end = drops & given_back[last] & (last != NOWHERE)
        at_its_end[at_its_end] = were_leaving(rows, last[at_its_end], begin[last[at_its_end]])
        clean = (given_back & drops[last] & (last != NOWHERE)) | at_its_end
        self.drop, self.unlock = (np.where(drops, *each) for each in ((own, last), (last, own)))
        clean &= self.adds[self.begun[self.work[self.drop]]] & (
            tenures.reset == tenures.reset[last]
        )
        self.left = [each for each in positions(clean).tolist() if self._lives(each)]
        both = np.concatenate([firsts, np.asarray(self.left, np.int64)])
        before = Line(rows.lane, begin, both).last_before(rows.lane[firsts], begin[firsts])
        given = np.isin(before, self.left) & (tenures.reset[before] == tenures.reset[firsts])
        self.taken_over = np.stack([before[given], firsts[given]], axis=1)
        calls &= np.isin(self.work, self.work[self.drop[before[given]]])
        self.message = np.full(rows.size, NOWHERE, np.int64)
        self.message[calls] = dense(self.work[calls], rows.offset[calls])[0]
        over, certain = calls & (end < NEVER), certainly_acknowledged(rows)
        by_hand, rolled = may_be_by_hand(rows), rows.ended_as(Outcome.ROLLBACK)
        self.certain, taken = certain, over & ~certain & rows.ended_as(Outcome.SUCCESS)
        self.done = Line(self.message, end, positions((over & certain) | taken))
        self.covers = Line(self.work, end, positions(over & certain))
        self.rolled = Line(self.work, end, positions(over & rolled & by_hand))
        self.unseen = Line(self.work, begin, positions(calls & may_put_back_unseen_of(rows)))

    def _lives(self, left: int) -> bool:
        """Did its client not die since the drop, nor the work meet a correction?"""
        rows, now = self.rows, int(self.rows.begin[left])
        drop = int(self.drop[left])
        told = self.commits.within(int(self.work[drop]), NONE, now)
        died = rows.context_of(left).client_died_between(
            rows.client_of(left), int(rows.begin[drop]), now
        )
        return not (died or rows.correction[told].any())

    def finished(self, work: int, again: int, last: int) -> int:
        """The work's delivery of what comes again that had finished it last, before its first drop; or NOWHERE.
        What only its last call covers is none."""
        rows, op = self.rows, self.rows.number("op_id")
        until = int(rows.begin[self.drops.within(work, NONE, NEVER)[0]])
        same = self.calls.within(work, NONE, NEVER)
        same = same[rows.offset[same] == rows.offset[again]][:1]
        found: list[tuple[int, bool, int, int]] = []
        for each in self.done.within(int(self.message[same[0]]), NONE, until) if len(same) else ():
            since = int(rows.end[each])
            covers = self.covers.within(work, since - 1, until)[:1]
            if len(covers) and op[covers[0]] != op[last]:
                by = int(rows.end[covers[0]])
                if self.certain[each] or not (
                    len(self.rolled.within(work, since, by))
                    or len(self.unseen.within(work, since, by))
                ):
                    found.append((by, not self.certain[each], since, int(each)))
        return max(found)[-1] if found else NOWHERE


def judge(rows: Rows, findings: Findings) -> None:
    """The first delivery of each work that follows a lane left in good order, beside what the old one had finished."""
    if not len(rows.of(Kind.UNLOCK)):
        return
    works, begin, offset = _Works(rows), rows.begin, rows.offset
    for left, first in works.taken_over.tolist():
        drop, unlock, now = int(works.drop[left]), int(works.unlock[left]), int(begin[first])
        old, new = int(works.work[drop]), int(works.work[first])
        calls = works.calls.within(new, now - 1, NEVER)
        if not len(calls):
            continue
        again = int(calls[0])
        findings.at_stake_times(again, 1)
        told = works.commits.within(old, NONE, now)
        mine = works.calls.within(old, NONE, now)
        starts = mine[np.diff(rows.number("op_id")[mine], prepend=NONE) != 0]
        last = int(starts[-1]) if len(starts) else NOWHERE
        done = works.finished(old, again, last)
        if (
            done == NOWHERE
            or rows.value[told].max(initial=NONE) > offset[again]
            or rows.correction[told].any()
        ):
            continue
        if offset[again] < offset[last]:
            client, group = rows.member_of(unlock)
            leaving = rows.context_of(unlock).leaving_at(client, group, int(begin[unlock]))
            roles = {"add": int(works.begun[old]), "done": done, "last": last, "drop": drop}
            kind = RedeliveredAfterShutdown if leaving else RedeliveredMore
            findings.shown(kind, {**roles, "unlock": unlock, "again": again})


def explain(found: RedeliveredMore) -> str:
    done, last, again = found.done, found.last, found.again
    return (
        f"{who(again)} began {again.lane} with offset {again.queue_offset} at {at(again)}, although {who(done)} had "
        f"finished it in a call of {at(done)} and dropped the lane in good order at {at(found.drop)}; all that may "
        f"come again is its last call, of offset {last.queue_offset}, but it had not reported that far"
    )
