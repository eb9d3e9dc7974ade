"""An orderly consumer that nobody gave a limit of retries (-1, the default) never gives a message up.

Its lane waits for as long as the listener suspends. A dead letter of a message that it has delivered, in its last call
or in one that did not finish the message, is one too many then, answered or not. Not finished is what asked to come
again, and what ended in SUCCESS in manual mode, until a COMMIT covers it: a ROLLBACK puts that back too. How often a
message was delivered is not counted. Of what an earlier call has finished nothing is said. The default of concurrent
consumers, 16, is kept by the broker, which counts for them: it is no matter of this clause."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import ORDERLY, Premise
from specs.clauses.rows import acknowledges, asks_again, is_manual
from specs.clauses.words import at, who
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.vocabulary import LISTENER_SUSPENDS, Key, Kind, Outcome, Party


def _has_no_limit(info: RunInfo) -> bool:
    return info.config.max_reconsume_times == -1


ID = "RTY-8"
TITLE = "without a limit nothing is given up"
STATEMENT = (
    "An orderly consumer without a limit of retries, as it is by default, never gives a message up."
)
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (
    ORDERLY,
    Premise(
        "no limit",
        "the limit of retries is -1, the default (configuration)",
        _has_no_limit,
        settings=frozenset({"max_reconsume_times"}),
    ),
)
SOURCES = ("docs/sources.md#orderly-loop",)
KINDS = frozenset({Kind.DELIVER, Kind.DEAD_LETTER, Kind.ADD})
SETTINGS = ("batch",)
NEEDS = frozenset({Kind.DELIVER})


@dataclass(frozen=True, slots=True)
class GivenUp(Finding):
    """last: the incarnation's last delivery of the message."""

    last: Row
    dead_letter: Row


class LaneJudge(Judge):
    """Remembers, of each incarnation, the messages of its last call and those that are not finished."""

    __slots__ = ("last", "op")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.last: dict[str, dict[int, Row]] = {}
        self.op: dict[str, int] = {}

    def begins(self, row: Row) -> Iterable[Finding]:
        name, offset = row.incarnation, row.queue_offset
        if name is None:
            return NOTHING
        if row.kind is Kind.ADD:
            self.last.pop(name, None)
        elif offset is None:
            return NOTHING
        elif row.kind is Kind.DELIVER:
            known = self.last.setdefault(name, {})
            if self.op.get(name) != row.op_id:
                self.op[name] = row.op_id
                known = self.last[name] = _unfinished(known)
            known[offset] = row
        else:
            last = self.last.get(name, {}).get(offset)
            if last is not None:
                counted = last.outcome in LISTENER_SUSPENDS and last.seq_end is not None
                self.opportunities += not counted  # others are at their end
                return (GivenUp(last, row),)
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        if (
            row.kind is Kind.DELIVER
            and row.incarnation is not None
            and row.outcome in LISTENER_SUSPENDS
        ):
            self.opportunities += 1
        return NOTHING


def _unfinished(known: dict[int, Row]) -> dict[int, Row]:
    """Of the last call and what was not finished before it: what is not finished after it."""
    # What a call has finished is forgotten with the next one: whatever acknowledges here is of the last call.
    committed = any(acknowledges(row) for row in known.values())
    return {
        offset: row
        for offset, row in known.items()
        if asks_again(row) or (_is_taken(row) and not committed)
    }


def _is_taken(row: Row) -> bool:
    """Did the call end well in manual mode, without a COMMIT?"""
    return is_manual(row) and row.outcome is Outcome.SUCCESS


judge = LaneJudge


def explain(found: GivenUp) -> str:
    last, letter = found.last, found.dead_letter
    return (
        f"{who(letter)} gave up offset {letter.queue_offset} of {letter.lane} at {at(letter)}, after its delivery at "
        f"{at(last)}, although its retries have no limit (-1)"
    )
