"""A suspended message does not come again before its suspend time has passed.

The time counts from the end of the call that asked for it (SUSPEND, null, a throw, or a manual ROLLBACK). It is what
the listener asked for, else the consumer's own, clamped to 10..30000 ms. Both sides count in whole milliseconds, so a
redelivery refutes when it comes at least one millisecond early. Every suspended message is remembered until it comes
again, whatever of the lane comes in between: several keys may be suspended at once. One that was given up waits for
nothing any more: a ROLLBACK may replay it soon. One that had used up its retries, and may have been given up where
nobody saw it, waits until a call has ended in what may be a manual ROLLBACK, or has begun of which nobody knows how it
ended, nor that it was in auto mode. A dead letter that was refused gave nothing up, and alone excuses nothing. Nothing
is remembered across an ADD or a reset: a call that began before is of an earlier life, and asks for nothing when it
ends. Says nothing about another incarnation, nor about coming late."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.calls import may_be_given_up
from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import IN_PLACE
from specs.clauses.rows import asks_again, may_put_back, may_put_back_unseen, over_us
from specs.clauses.words import MS, at, ms, who
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "RTY-1"
TITLE = "no redelivery before the suspend time"
STATEMENT = "An incarnation does not redeliver a suspended message before its suspend time (10..30000 ms) has passed."
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (IN_PLACE,)
SOURCES = ("docs/sources.md#orderly-loop",)
KINDS = frozenset({Kind.DELIVER, Kind.DEAD_LETTER, Kind.ADD, Kind.RESET})
SETTINGS = ("max_reconsume_times", "suspend_ms")
NEEDS = frozenset({Kind.DELIVER})

SUSPEND_MS_MIN = 10
SUSPEND_MS_MAX = 30_000


def suspend_ms(row: Row, default_ms: int) -> int:
    """The pause that the ended call asks for, in ms; -1 and none at all mean the consumer's own."""
    asked = default_ms if row.suspend_ms is None or row.suspend_ms < 0 else row.suspend_ms
    return min(max(asked, SUSPEND_MS_MIN), SUSPEND_MS_MAX)


def _is_refused_letter(row: Row) -> bool:
    return row.kind is Kind.DEAD_LETTER and row.outcome is Outcome.REFUSED


@dataclass(frozen=True, slots=True)
class TooEarly(Finding):
    suspended: Row
    again: Row
    promised_ms: int


class _Life:
    """An incarnation. since: what began earlier is not of it. suspended: by offset, what has not come again.

    unsure: has a call begun that may have been a manual ROLLBACK, as nobody knows how it ended?
    """

    __slots__ = ("since", "suspended", "unsure")

    def __init__(self, since: int) -> None:
        self.since = since
        self.suspended: dict[int, Row] = {}
        self.unsure = False


class LaneJudge(Judge):
    """Remembers, for each incarnation, the suspended messages that have not come again."""

    __slots__ = ("lives",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.lives: dict[str, _Life] = {}

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.RESET:
            self.lives.clear()
            return NOTHING
        if row.incarnation is None:
            return NOTHING
        life = self.lives.get(row.incarnation)
        if row.kind is Kind.ADD or life is None:
            life = self.lives[row.incarnation] = _Life(row.seq_begin)
        if row.queue_offset is None or row.kind is Kind.ADD or _is_refused_letter(row):
            return NOTHING
        before = life.suspended.pop(row.queue_offset, None)
        if row.kind is not Kind.DELIVER:
            return NOTHING
        found = NOTHING if before is None else self._again(life, before, row)
        life.unsure |= may_put_back_unseen(row)
        return found

    def _again(self, life: _Life, before: Row, row: Row) -> Iterable[Finding]:
        if before.ended_us is None or (life.unsure and may_be_given_up(before, self.config)):
            return NOTHING
        self.opportunities += 1
        promised = suspend_ms(before, self.config.suspend_ms)
        if row.started_us > before.ended_us + (promised - 1) * MS:
            return NOTHING
        return (TooEarly(before, row, promised),)

    def ends(self, row: Row) -> Iterable[Finding]:
        life = self.lives.get(row.incarnation or "")
        if (
            life is None
            or row.seq_begin < life.since
            or row.kind is not Kind.DELIVER
            or row.queue_offset is None
        ):
            return NOTHING
        if may_put_back(row):
            for offset, before in list(life.suspended.items()):
                if may_be_given_up(before, self.config):
                    del life.suspended[offset]
        if asks_again(row):
            life.suspended[row.queue_offset] = row
        return NOTHING


judge = LaneJudge


def explain(found: TooEarly) -> str:
    before, again = found.suspended, found.again
    waited = again.started_us - over_us(before)
    return (
        f"{who(again)} delivered offset {again.queue_offset} of {again.lane} again at {at(again)}, {ms(waited)} after "
        f"it had ended {before.outcome}; it had to wait {found.promised_ms} ms"
    )
