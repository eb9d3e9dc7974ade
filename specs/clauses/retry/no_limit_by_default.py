"""An orderly consumer that nobody gave a limit of retries (-1, the default) never gives a message up.

Its lane waits for as long as the listener suspends. A dead letter of a message that it has delivered, in its last call
or in one that did not finish the message, is one too many then, answered or not. Not finished is what asked to come
again, and what ended in SUCCESS in manual mode, until a COMMIT covers it: a ROLLBACK puts that back too. How often a
message was delivered is not counted. Of what an earlier call has finished nothing is said. The default of concurrent
consumers, 16, is kept by the broker, which counts for them: it is no matter of this clause."""

from __future__ import annotations

from dataclasses import dataclass

from specs.clauses.judging import Finding
from specs.clauses.premises import ORDERLY, Premise
from specs.clauses.words import at, who
from specs.facts.findings import Findings
from specs.facts.lanes import (
    OP_COLUMNS,
    LaneItems,
    Machine,
    Op,
    Stretch,
    asks_again,
    each_lane,
    ends_as,
)
from specs.facts.segments import NEVER, NO_TEXT
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
COLUMNS = OP_COLUMNS


@dataclass(frozen=True, slots=True)
class GivenUp(Finding):
    """last: the incarnation's last delivery of the message."""

    last: Row
    dead_letter: Row


class Lane(Machine):
    """Of each incarnation the messages of its last call, and those that are not finished."""

    ENDS = ends_as([Kind.DELIVER], LISTENER_SUSPENDS)

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.known: dict[int, dict[int, Op]] = {}
        self.call: dict[int, int] = {}
        # What is given up may be any message of a stretch; where nothing is, nobody asks what was delivered.
        self.no_letters = Kind.DEAD_LETTER not in lane.kinds

    def takes(self, stretch: Stretch) -> bool:
        return self.no_letters

    def _deliver(self, op: Op) -> None:
        known = self.known.setdefault(op.incarnation, {})
        if self.call.get(op.incarnation) != op.op:
            self.call[op.incarnation] = op.op
            ended = any(_finishes(before) for before in known.values())
            known = self.known[op.incarnation] = {
                offset: before
                for offset, before in known.items()
                if asks_again(before) or (_is_taken(before) and not ended)
            }
        known[op.offset] = op

    def begins(self, op: Op) -> None:
        if op.incarnation == NO_TEXT:
            return
        if op.kind is Kind.ADD:
            self.known.pop(op.incarnation, None)
        elif op.offset < 0:
            return
        elif op.kind is Kind.DELIVER:
            self._deliver(op)
        else:
            last = self.known.get(op.incarnation, {}).get(op.offset)
            if last is not None:
                # One that asked to come again is counted at its end.
                self.stakes += last.outcome not in LISTENER_SUSPENDS or last.end >= NEVER
                self.broken(GivenUp, last=last, dead_letter=op)

    def ends(self, op: Op) -> None:
        if (
            op.kind is Kind.DELIVER
            and op.incarnation != NO_TEXT
            and op.outcome in LISTENER_SUSPENDS
        ):
            self.stakes += 1


def _finishes(op: Op) -> bool:
    """Does the call finish its message, and with it whatever was taken before?"""
    by_itself = op.outcome in (Outcome.SUCCESS, Outcome.ROLLBACK) and not op.manual
    return op.outcome is Outcome.COMMIT or by_itself


def _is_taken(op: Op) -> bool:
    """Did the call end well in manual mode, without a COMMIT?"""
    return op.manual and op.outcome is Outcome.SUCCESS


judge = each_lane(Lane, KINDS, lease=False)


def explain(found: GivenUp) -> str:
    last, letter = found.last, found.dead_letter
    return (
        f"{who(letter)} gave up offset {letter.queue_offset} of {letter.lane} at {at(letter)}, after its delivery at "
        f"{at(last)}, although its retries have no limit (-1)"
    )
