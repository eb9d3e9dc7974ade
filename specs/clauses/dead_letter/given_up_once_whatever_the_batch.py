"""A message that was given up, and whose dead letter was acknowledged, is not given up a second time.

Where a consumer takes several messages per call, some of a batch may have used up their retries while others have not.
The exhausted ones are given up; the batch comes again because of the others, and with it, in most clients, those that
were given up. Then no second dead letter may follow (*given up again*): whoever reads the dead letters would find one
message several times. Where nothing of its batch had to come again, or it did not come again at all, a second dead
letter has no such cause (*given up twice*). Claimed within one incarnation (another may not know), in auto mode (in
manual mode a ROLLBACK takes back what was given up as well), and until the lane is reset. A dead letter that was
refused, or whose answer never came, is sent again, and rightly; one that was stored weakly may be. Where brokers flush
later and one died since, the offset may be that of another message. Where several messages are taken per call and the
deliveries are not in the history, a second dead letter counts as *given up again*. Says nothing of whether the message
is delivered once more with the rest of its batch.
"""

from __future__ import annotations

from dataclasses import dataclass

from specs.clauses.context import FLUSHED_LATER
from specs.clauses.judging import Finding
from specs.clauses.premises import AUTO_MODE, IN_PLACE, NO_RESET
from specs.clauses.words import at, who
from specs.facts.batches import BATCH_KINDS, BatchLane, Work, is_safe
from specs.facts.lanes import OP_COLUMNS, Op, each_lane
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Party

ID = "DLQ-10"
TITLE = "a message is given up once, whatever its batch"
STATEMENT = (
    "A message whose dead letter was acknowledged is not given up again by the same incarnation, even where the rest "
    "of its batch is tried again."
)
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (IN_PLACE, AUTO_MODE, NO_RESET)
SOURCES = ("docs/sources.md#dead-letters",)
KINDS = BATCH_KINDS
SETTINGS = ("batch",)
NEEDS = frozenset({Kind.DEAD_LETTER})
EXCUSED_BY = frozenset({Kind.CRASH})
COLUMNS = OP_COLUMNS


@dataclass(frozen=True, slots=True)
class GivenUpAgain(Finding):
    """Its batch was tried again because of others, or is not known."""

    first: Row
    second: Row


@dataclass(frozen=True, slots=True)
class GivenUpTwice(Finding):
    """Nothing of its batch had to be tried again in between. delivered: its last delivery, where it is known."""

    delivered: Row | None
    first: Row
    second: Row


class Lane(BatchLane):
    """Each dead letter beside the first acknowledged one of its message; whoever was in manual mode is left alone."""

    def given_up(self, work: Work, op: Op) -> None:
        letter = work.letters.get(op.offset)
        if letter is None or work.manual or op.manual:
            return
        if self.config.flush == FLUSHED_LATER and self.broker_died_since(letter):
            return
        self.stakes += not is_safe(op)
        call = work.latest.get(op.offset)
        if self.config.batch > 1 and (call is None or work.back.get(op.offset)):
            self.broken(GivenUpAgain, first=letter, second=op)
        else:
            last = None if call is None else work.calls[call][op.offset]
            self.broken(GivenUpTwice, delivered=last, first=letter, second=op)


judge = each_lane(Lane, KINDS, lease=False)


def explain(found: GivenUpAgain | GivenUpTwice) -> str:
    first, second = found.first, found.second
    why = (
        ", and nothing of its batch had to be tried again"
        if isinstance(found, GivenUpTwice)
        else ""
    )
    return (
        f"{who(second)} gave up offset {second.queue_offset} of {second.lane} again at {at(second)}, although the dead "
        f"letter that it had sent at {at(first)} was acknowledged{why}"
    )
