"""No commit passes a message, at or after the incarnation's start, that nobody of the group has finished.

What *finished* means in each mode, where an incarnation starts, and when an offset is known to hold a message, is said
in `specs.facts.progress`. Of a batch the answer names the place of the first message only: the others are known here
when they are delivered, and a commit that passes one that nobody was ever given is not found. A message below the start
is somebody else's. Where the start was not seen (no ADD and no look-up in the history) only messages that this
incarnation itself delivered count, and nothing is said while a look-up has no answer that anybody saw. A commit of a
broker's correction (of the value that a pull was told to go on at, whether or not who recorded it says
`detail=corrected`), or after a reset, says nothing; after one any commit of an incarnation that nobody saw begin. Below
a correction the broker has passed over what the incarnation had not delivered before, which is not its to finish any
more. Nor does a commit say anything that passes a message which may have been given up where nobody told. Nobody owes
what the broker has removed on purpose: below the minimum that it announced before the commit nothing is unfinished.
A commit that was refused is none.
"""

from __future__ import annotations

from dataclasses import dataclass

from specs.clauses.judging import Finding
from specs.clauses.premises import NO_FILTER, NO_RESET, NOT_REMOVED, ORDERLY
from specs.clauses.words import at, start_of, who
from specs.facts.findings import Findings
from specs.facts.lanes import OP_COLUMNS, LaneItems, Op
from specs.facts.progress import (
    PROGRESS_KINDS,
    Choice,
    Incarnation,
    Progress,
    each_queue,
)
from specs.facts.segments import NO_TEXT, NONE
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Party

ID = "CMT-1"
TITLE = "no commit passes an unfinished message"
STATEMENT = "No commit passes an unfinished message at or after the incarnation's start."
PARTY = Party.CLIENT
KEY = Key.QUEUE
PREMISE = (ORDERLY, NO_RESET, NO_FILTER, NOT_REMOVED)
SOURCES = ("docs/sources.md#orderly-loop", "docs/sources.md#offsets")
KINDS = PROGRESS_KINDS | {Kind.COMMIT, Kind.PULL}
SETTINGS = ("max_reconsume_times",)
NEEDS = frozenset({Kind.COMMIT, Kind.DELIVER})
COLUMNS = (*OP_COLUMNS, "delay_level")


@dataclass(frozen=True, slots=True)
class Passed(Finding):
    """start: why the message is the incarnation's to finish, where it did not deliver it; drop: why it is not
    finished, where its call ended well."""

    start: Row | None
    message: Row
    drop: Row | None
    commit: Row
    offset: int


class Group(Progress):
    """One group on the queue, asked at every commit."""

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        digest = lane.digest
        told = digest.rows.told_ahead.get(int(digest.rows.lane[lane.place]))
        self.ahead = [] if told is None else digest.ops(told)

    def begins(self, op: Op) -> None:
        if op.kind is not Kind.COMMIT:
            super().begins(op)
            return
        self.seen()
        mine = self.incarnations.get(op.incarnation)
        if mine is None or mine.void or op.value == NONE:
            return
        if (
            mine.add is None and self.was_reset
        ):  # nobody saw it begin: it may be older than the reset
            return
        if op.correction:
            mine.moved = max(mine.moved, op.value)
            return
        if mine.asked:
            return
        start = mine.lowest if mine.start is None else mine.start
        if start is None:
            return
        if self.context.trims:
            queue = self.lane.digest.rows.queue_of(self.lane.place)
            start = max(start, self.context.kept_from(queue, op.begin))
        mine.moved = max(mine.moved, self._passed_over(mine, op))
        if not self.holds(max(start, mine.moved), op.value) and not self._began(
            op, start, mine.moved
        ):
            return
        self.stakes += 1
        if self.finished.first_missing(start) < op.value:
            self._passed(start, op)

    def _passed_over(self, mine: Incarnation, commit: Op) -> int:
        """Up to where the broker had told the incarnation's pulls to go on, further ahead than they asked."""
        add, found = mine.add, -1
        if add is not None:
            for pull in self.ahead:
                same = pull.incarnation == commit.incarnation
                own = same if pull.incarnation != NO_TEXT else pull.client == add.client
                if own and add.begin < pull.end < commit.begin:
                    found = max(found, pull.value)
        return found

    def _began(self, commit: Op, start: int, stop: int) -> bool:
        """Did the commit's incarnation deliver anything in start..stop-1 that nobody has finished?"""
        open_ = [offset for offset in self.unfinished if start <= offset < stop]
        return any(
            each.incarnation == commit.incarnation
            for offset in open_
            for each in self.unfinished[offset]
        )

    def _passed(self, start: int, commit: Op) -> None:
        mine = self.incarnations[commit.incarnation]
        choices: list[Choice] = []
        for offset in self.owed(start, commit.value):
            rows = self.unfinished.get(offset, [])
            own = [each for each in rows if each.incarnation == commit.incarnation]
            roles = {"start": None, "commit": commit}
            if own:
                roles |= {"message": own[0], "drop": self.drop_of(own[0])}
                choices.append(Choice(roles, offset))
                break
            if mine.start_row is None or offset < mine.moved:
                continue
            roles["start"] = mine.start_row
            if rows:
                roles |= {"message": rows[-1], "drop": self.drop_of(rows[-1])}
                choices.append(Choice(roles, offset))
                break
            if self.sends.row(self.queue, offset, self.now) is not None:
                choices.append(Choice({**roles, "drop": None}, offset, by_send=True))
                if not self.shared:
                    break
        certain = mine.add is not None or not self.context.info.begins_late
        self.claim(Passed, choices, certain=certain)


judge = each_queue(Group, (*PROGRESS_KINDS, Kind.COMMIT))


def explain(found: Passed) -> str:
    message, commit = found.message, found.commit
    said = f"{who(commit)} committed {commit.value} for {commit.lane} at {at(commit)}, past offset {found.offset}"
    if message.kind is Kind.SEND:
        started = (
            ""
            if found.start is None
            else f" and {who(commit)} had started at {start_of(found.start)}"
        )
        return f"{said}, which was sent at {at(message)} and which nobody of the group had finished{started}"
    return f"{said}, which {who(message)} began at {at(message)} and nobody of the group had finished by then"
