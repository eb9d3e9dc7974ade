"""Once its dead letter was acknowledged, the same incarnation does not deliver a message again, now or later.

Where a call held several messages, one of them that was given up may come again as long as another one of them has to,
since a batch is put back as a whole: not once all of them were given up, nor after the others have come again without
it, nor after the batch succeeded: one row of a call tells how all of it ended, and where none does it may have been
put back. Where it comes again and is given up in vain, it has to come as well. Claimed in auto mode (in manual mode a
ROLLBACK replays what was given up as well): where nobody says the mode, until any manual call, or one that may have
been a manual ROLLBACK, since it ended so or nobody knows how. Another incarnation may deliver it: it may not know. Says
nothing where the dead letter was stored weakly (it may be lost, and sent again), nor of a message of several whose
batch is not in the history. Nothing is remembered across an ADD or a reset: what began before is of an earlier life,
and does not count when it ends.
"""

from __future__ import annotations

from dataclasses import dataclass

from specs.clauses.judging import Finding
from specs.clauses.premises import AUTO_MODE, IN_PLACE, NO_RESET
from specs.clauses.words import at, who
from specs.facts.batches import BATCH_KINDS, BatchLane, Work
from specs.facts.lanes import OP_COLUMNS, Op, each_lane
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Party

ID = "DLQ-3"
TITLE = "a given-up message is not delivered again"
STATEMENT = (
    "After its dead letter was acknowledged, a message is not delivered again by the same incarnation, unless with "
    "others of its batch that have to come again."
)
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (IN_PLACE, AUTO_MODE, NO_RESET)
SOURCES = ("docs/sources.md#dead-letters",)
KINDS = BATCH_KINDS
SETTINGS = ("batch",)
NEEDS = frozenset({Kind.DEAD_LETTER, Kind.DELIVER})
COLUMNS = OP_COLUMNS


@dataclass(frozen=True, slots=True)
class CameBack(Finding):
    """batch: the call that held it before, and what was given up of that; of calls of one message nothing."""

    given_up: Row
    again: Row
    batch: tuple[Row, ...] = ()


class Lane(BatchLane):
    """What was given up comes again with others that have to, or not at all; manual mode is left alone.

    A stretch that holds nothing that was given up is passed over.
    """

    def delivered(self, work: Work, op: Op) -> None:
        letter = work.letters.get(op.offset)
        if letter is None:
            work.deliver(op)
            return
        told = work.back.get(op.offset) is False
        rightly = work.rightly(op.offset, op.op)
        wrong = rightly is False or (rightly is None and self.config.batch == 1)
        held = work.calls.get(work.latest.get(op.offset, -1), {}) if self.config.batch > 1 else {}
        batch = [*held.values(), *(work.letters[each] for each in held if each in work.letters)]
        wrong = wrong and not work.manual
        work.deliver(op)
        if wrong:
            work.back[op.offset] = False
            if not told:
                self.broken(CameBack, given_up=letter, again=op, batch=batch)


judge = each_lane(Lane, KINDS, lease=False)


def explain(found: CameBack) -> str:
    before, again = found.given_up, found.again
    return (
        f"{who(again)} delivered offset {again.queue_offset} of {again.lane} again at {at(again)}, although the dead "
        f"letter that it had sent at {at(before)} was acknowledged"
    )
