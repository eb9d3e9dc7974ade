"""A suspended message does not come again before its suspend time has passed.

The time counts from the end of the call that asked for it (SUSPEND, null, a throw, or a manual ROLLBACK). It is what
the listener asked for, else the consumer's own, clamped to 10..30000 ms. Both sides count in whole milliseconds, so a
redelivery refutes when it comes at least one millisecond early. Every suspended message is remembered until it comes
again, whatever of the lane comes in between: several keys may be suspended at once. One that was given up, or may have
been where nobody saw it, waits for nothing any more: a ROLLBACK may replay it soon. A dead letter that was refused gave
nothing up. Says nothing about another incarnation, nor about coming late."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.calls import may_be_given_up
from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import IN_PLACE
from specs.clauses.rows import asks_again, may_put_back, over_us
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


class LaneJudge(Judge):
    """Remembers, for each incarnation, the suspended messages that have not come again."""

    __slots__ = ("suspended",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.suspended: dict[str, dict[int, Row]] = {}

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.RESET:
            self.suspended.clear()
            return NOTHING
        if row.incarnation is None:
            return NOTHING
        if row.kind is Kind.ADD:
            self.suspended.pop(row.incarnation, None)
            return NOTHING
        mine = self.suspended.get(row.incarnation)
        if not mine or row.queue_offset is None or _is_refused_letter(row):
            return NOTHING
        before = mine.pop(row.queue_offset, None)
        if row.kind is not Kind.DELIVER or before is None or before.ended_us is None:
            return NOTHING
        self.opportunities += 1
        promised = suspend_ms(before, self.config.suspend_ms)
        if row.started_us > before.ended_us + (promised - 1) * MS:
            return NOTHING
        return (TooEarly(before, row, promised),)

    def ends(self, row: Row) -> Iterable[Finding]:
        asks = asks_again(row)
        if (
            row.kind is not Kind.DELIVER
            or not (asks or may_put_back(row))
            or not row.incarnation
            or row.queue_offset is None
        ):
            return NOTHING
        mine = self.suspended.setdefault(row.incarnation, {})
        if row.outcome is Outcome.ROLLBACK:
            for offset in [
                each for each, before in mine.items() if may_be_given_up(before, self.config)
            ]:
                del mine[offset]
        if asks:
            mine[row.queue_offset] = row
        return NOTHING


judge = LaneJudge


def explain(found: TooEarly) -> str:
    before, again = found.suspended, found.again
    waited = again.started_us - over_us(before)
    return (
        f"{who(again)} delivered offset {again.queue_offset} of {again.lane} again at {at(again)}, {ms(waited)} after "
        f"it had ended {before.outcome}; it had to wait {found.promised_ms} ms"
    )
