"""CMT-1 over columns: at a commit, one look at the ranges of finished offsets says that nothing was passed."""

from __future__ import annotations

from functools import partial

from spark_checkers.planting import Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.clauses.rows import acknowledges
from specs.facts.findings import Findings
from specs.facts.lanes import OP_COLUMNS, LaneItems, Op
from specs.facts.progress import PROGRESS_KINDS, Incarnation, Progress, queue_kernel
from specs.facts.segments import NO_TEXT, NONE
from specs.vocabulary import Kind


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
        choices: list[tuple[list[int], int | None]] = []
        for offset in self.owed(start, commit.value):
            rows = self.unfinished.get(offset, [])
            own = [each for each in rows if each.incarnation == commit.incarnation]
            if own:
                choices.append(([own[0].place, *self.drop_of(own[0]), commit.place], None))
                break
            if mine.start_row is None or offset < mine.moved:
                continue
            if rows:
                evidence = [
                    mine.start_row.place,
                    rows[-1].place,
                    *self.drop_of(rows[-1]),
                    commit.place,
                ]
                choices.append((evidence, None))
                break
            if self.sends.row(self.queue, offset, self.now) is not None:
                choices.append(([mine.start_row.place, commit.place], offset))
                if not self.shared:
                    break
        self.claim(choices, certain=mine.add is not None or not self.context.info.begins_late)


TWIN = Twin(
    "CMT-1", (*OP_COLUMNS, "delay_level"), queue_kernel(Group, (*PROGRESS_KINDS, Kind.COMMIT))
)
find = TWIN.find


# ---- what breaks the clause, planted


def commit_past_unfinished(trace: Trace) -> Changes:
    for rows in trace.works:
        commits = [
            row
            for row in rows
            if row.kind is Kind.COMMIT and row.value is not None and row.detail is None
        ]
        finished = {
            row.queue_offset: row.seq_end or 0
            for row in rows
            if row.kind is Kind.DELIVER and acknowledges(row)
        }
        for index, row in enumerate(commits):
            sent = trace.sent.get((row.topic, row.broker, row.queue_id, row.value))
            here = sent is not None and sent.seq_end is not None and sent.seq_end < row.seq_begin
            done = finished.get(row.value)
            running = done is not None and done > row.seq_begin
            later = commits[index + 1].value if index + 1 < len(commits) else None
            if here and running and (later is None or later > (row.value or 0)):
                change = {row.seq_begin: {"value": (row.value or 0) + 1}}
                about = [row.seq_begin, *([sent.seq_begin] if sent is not None else [])]
                yield partial(trace.changed, change, about)


DEFECTS = (
    Mutant(
        "commit-past-unfinished",
        "CMT-1",
        "a commit passes a running message",
        commit_past_unfinished,
    ),
)
