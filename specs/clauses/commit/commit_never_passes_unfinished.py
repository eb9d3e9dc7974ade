"""No commit passes a message, at or after the incarnation's start, that nobody of the group has finished.

What *finished* means in each mode, where an incarnation starts, and when an offset is known to hold a message, is said
in `specs.clauses.progress`. Of a batch the answer names the place of the first message only: the others are known here
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

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.incarnations import Corrections, goes_ahead
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import NO_FILTER, NO_RESET, NOT_REMOVED, ORDERLY
from specs.clauses.progress import (
    PROGRESS_KINDS,
    GroupProgress,
    Incarnation,
    QueueProgress,
    start_of,
)
from specs.clauses.words import at, who
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


@dataclass(frozen=True, slots=True)
class Passed(Finding):
    """start: why the message is the incarnation's to finish, where it did not deliver it; drop: why it is not
    finished, where its call ended well."""

    start: Row | None
    message: Row
    drop: Row | None
    commit: Row
    offset: int


class QueueJudge(Judge):
    """Keeps the progress of one queue's groups, and what pulls were told."""

    __slots__ = ("corrections", "progress")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.corrections = Corrections()
        self.progress = QueueProgress(self.context)

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.COMMIT:
            return self._committed(row)
        self.progress.begins(row)
        self.corrections.begins(row)
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        self.progress.ends(row)
        self.corrections.ends(row)
        if row.kind is Kind.PULL and goes_ahead(row):
            self._moved(row, row.value or 0)
        return NOTHING

    def _moved(self, pull: Row, value: int) -> None:
        """A pull that names no incarnation speaks for its client."""
        group = self.progress.groups.get(pull.group or "")
        for name, mine in group.incarnations.items() if group is not None else ():
            named, add = pull.incarnation == name, mine.add
            if add is not None and (
                named or (pull.incarnation is None and add.client_id == pull.client_id)
            ):
                mine.moved = max(mine.moved, value)

    def _committed(self, row: Row) -> Iterable[Finding]:
        group = self.progress.group(row)
        mine = group.incarnations.get(row.incarnation or "")
        value = row.value
        is_correction = self.corrections.has(row)
        if mine is None or mine.void or value is None:
            return NOTHING
        if (
            mine.add is None and group.was_reset
        ):  # nobody saw it begin: it may be older than the reset
            return NOTHING
        if is_correction:
            mine.moved = max(mine.moved, value)
            return NOTHING
        if mine.asked:
            return NOTHING
        start = mine.lowest if mine.start is None else mine.start
        if start is None:
            return NOTHING
        start = max(start, self.context.kept_from.get(row.queue, 0))
        if not (group.holds(max(start, mine.moved), value) or _holds_own(group, mine, start)):
            return NOTHING
        self.opportunities += 1
        certain = mine.add is not None or not self.context.info.begins_late
        for offset in group.owed(start, value):
            rows = group.unfinished.get(offset, ())
            for each in rows:
                if each.incarnation == row.incarnation:
                    drop = group.drop_of(each)
                    return (Passed(None, each, drop, row, offset, certain=certain),)
            if mine.start_row is None or offset < mine.moved:
                continue
            if rows:
                drop = group.drop_of(rows[-1])
                return (Passed(mine.start_row, rows[-1], drop, row, offset, certain=certain),)
            sent = self.progress.send_rows.get(offset)
            if sent is not None:
                return (Passed(mine.start_row, sent, None, row, offset, certain=certain),)
        return NOTHING


def _holds_own(group: GroupProgress, mine: Incarnation, start: int) -> bool:
    """Has the incarnation itself delivered, and nobody finished, what a correction has passed over since?"""
    return any(
        start <= offset < mine.moved and any(row.incarnation == mine.name for row in rows)
        for offset, rows in group.unfinished.items()
    )


judge = QueueJudge


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
