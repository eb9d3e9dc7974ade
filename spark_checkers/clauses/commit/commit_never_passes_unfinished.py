"""CMT-1 over columns: at a commit, one look at the ranges of finished offsets says that nothing was passed."""

from __future__ import annotations

from spark_checkers.lanes import OP_COLUMNS, Op
from spark_checkers.progress import PROGRESS_KINDS, Progress, queue_kernel
from spark_checkers.rows import NONE
from spark_checkers.twin import Twin
from specs.vocabulary import Kind


class Group(Progress):
    """One group on the queue, asked at every commit."""

    __slots__ = ()

    def begins(self, op: Op) -> None:
        if op.kind is not Kind.COMMIT:
            super().begins(op)
            return
        self.seen()
        mine = self.incarnations.get(op.incarnation)
        if mine is None or mine.void or op.value == NONE or op.correction:
            return
        start = mine.lowest if mine.start is None else mine.start
        if start is None or not self.holds(start, op.value):
            return
        self.stakes += 1
        if self.finished.first_missing(start) < op.value:
            self._passed(start, op)

    def _passed(self, start: int, commit: Op) -> None:
        mine = self.incarnations[commit.incarnation]
        choices: list[tuple[list[int], int | None]] = []
        for offset in self.owed(start, commit.value):
            rows = self.unfinished.get(offset, [])
            own = [each for each in rows if each.incarnation == commit.incarnation]
            if own:
                choices.append(([own[0].place, *self.drop_of(own[0]), commit.place], None))
                break
            if mine.start_row is None:
                continue
            if rows:
                evidence = [mine.start_row.place, rows[-1].place, *self.drop_of(rows[-1]), commit.place]
                choices.append((evidence, None))
                break
            if self.sends.row(self.queue, offset, self.now) is not None:
                choices.append(([mine.start_row.place, commit.place], offset))
                if not self.shared:
                    break
        self.claim(choices)


TWIN = Twin("CMT-1", (*OP_COLUMNS, "delay_level"), queue_kernel(Group, (*PROGRESS_KINDS, Kind.COMMIT)))
find = TWIN.find
