"""While a listener call runs, or its batch waits to be delivered again, nothing beyond that batch is delivered.

(a) An incarnation has one running call at a time. (b) After a call that asks for its batch again (SUSPEND, null, a
throw, or a manual ROLLBACK) no call may start beyond what is owed of that batch: each message of it stays owed until it
came again, or was given up by a dead letter that began after the call had ended and was acknowledged (one that names no
incarnation speaks for its client). A ROLLBACK takes its dead letters back as well. A message whose retries were used
up, or whose counter is not told though there is a limit, is owed only where such a dead letter of it had failed when
the next call began: a client that is watched from outside gives messages up without telling, and whether they
arrived is for DLQ-1 to say. What is owed is forgotten when the incarnation is added anew, and when its client dies.
Says nothing about which message of the batch comes first, nor about other lanes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.calls import may_be_given_up
from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import NO_RESET, ORDERLY
from specs.clauses.rows import asks_again, ended_before, over_us
from specs.clauses.words import at, who
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "ORD-3"
TITLE = "a suspended batch blocks the lane"
STATEMENT = "While a call runs or its batch is suspended, no other call of that incarnation starts beyond that batch."
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (ORDERLY, NO_RESET)
SOURCES = ("docs/sources.md#orderly-loop",)
KINDS = frozenset({Kind.DELIVER, Kind.DEAD_LETTER, Kind.ADD, Kind.RESET})
SETTINGS = ("max_reconsume_times",)
NEEDS = frozenset({Kind.DELIVER})


@dataclass(frozen=True, slots=True)
class Overtaken(Finding):
    """owed: a message of the running call, or of the batch that was suspended. dead_letter: of it, when one failed."""

    owed: Row
    overtaking: Row
    running: bool
    dead_letter: Row | None = None


class _Calls:
    """The calls of one incarnation: the last one, that of all which ends last, and what earlier ones put back."""

    __slots__ = ("failed", "given_up", "last_end", "op", "owed", "rows")

    def __init__(self) -> None:
        self.op = -1
        self.rows: list[Row] = []  # of the call that began last
        self.given_up: set[int] = set()  # its offsets that were given up since it ended
        self.failed: dict[
            int, Row
        ] = {}  # the dead letters of what is owed that were not acknowledged
        self.owed: dict[
            int, Row
        ] = {}  # by offset: put back by calls before the last, and not seen again since
        self.last_end: Row | None = None

    def settled(self, offset: int) -> None:
        """The message came again, or was given up."""
        self.owed.pop(offset, None)
        self.failed.pop(offset, None)


class LaneJudge(Judge):
    """Remembers, for each incarnation, its last call and what is still owed of it."""

    __slots__ = ("calls",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.calls: dict[str, _Calls] = {}

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.DELIVER:
            return self._delivered(row)
        if row.kind is Kind.RESET:
            self.calls.clear()
        elif row.kind is Kind.ADD and row.incarnation is not None:
            self.calls.pop(row.incarnation, None)
        return NOTHING

    def _delivered(self, row: Row) -> Iterable[Finding]:
        if row.incarnation is None or row.queue_offset is None:
            return NOTHING
        calls = self.calls.get(row.incarnation)
        found: Iterable[Finding] = NOTHING
        if calls is None:
            calls = self.calls[row.incarnation] = _Calls()
            calls.op = row.op_id
        elif row.op_id != calls.op:
            self.opportunities += 1
            found = self._new_call(calls, row, row.queue_offset)
            calls.op = row.op_id
            calls.rows.clear()
            calls.given_up.clear()
        calls.settled(row.queue_offset)
        calls.rows.append(row)
        last = calls.last_end
        if (
            last is None
            or row.seq_end is None
            or (last.seq_end is not None and row.seq_end >= last.seq_end)
        ):
            calls.last_end = row
        return found

    def _new_call(self, calls: _Calls, row: Row, offset: int) -> Iterable[Finding]:
        if calls.last_end is not None and not ended_before(calls.last_end, row):
            return (Overtaken(calls.last_end, row, running=True),)
        last = calls.rows[-1]
        if asks_again(last):
            all_of_it = last.outcome is Outcome.ROLLBACK
            calls.owed.update(
                (each.queue_offset or 0, each)
                for each in calls.rows
                if all_of_it or self._is_owed(calls, each)
            )
        highest = max(calls.owed, default=offset)
        if offset <= highest:
            return NOTHING
        found = Overtaken(
            calls.owed[highest], row, running=False, dead_letter=calls.failed.get(highest)
        )
        calls.owed.clear()  # said once
        calls.failed.clear()
        return (found,)

    def _is_owed(self, calls: _Calls, row: Row) -> bool:
        offset = row.queue_offset
        return offset not in calls.given_up and (
            offset in calls.failed or not may_be_given_up(row, self.config)
        )

    def ends(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.DEAD_LETTER and row.queue_offset is not None:
            for calls in self._of(row):
                put_back = calls.owed.get(row.queue_offset)
                if not ended_before(put_back or calls.rows[-1], row):
                    continue
                if row.outcome is not Outcome.OK:
                    calls.failed[row.queue_offset] = row
                    continue
                if put_back is None:
                    calls.given_up.add(row.queue_offset)
                calls.settled(row.queue_offset)
        return NOTHING

    def _of(self, letter: Row) -> list[_Calls]:
        """Whose dead letter it is. One that arrived and names no incarnation speaks for its client."""
        if letter.incarnation is not None:
            return [each for each in (self.calls.get(letter.incarnation),) if each is not None]
        if letter.outcome is not Outcome.OK:
            return []
        return [each for each in self.calls.values() if each.rows[-1].client_id == letter.client_id]


judge = LaneJudge


def explain(found: Overtaken) -> str:
    owed, new = found.owed, found.overtaking
    what = f"{who(new)} started offset {new.queue_offset} of {new.lane} at {at(new)}"
    if found.running:
        return f"{what}, while its call of offset {owed.queue_offset}, begun at {at(owed)}, was still running"
    return (
        f"{what}, although offset {owed.queue_offset} of the same incarnation had ended {owed.outcome} at "
        f"{over_us(owed) / 1_000_000:.3f} s and had to come again first"
    )
