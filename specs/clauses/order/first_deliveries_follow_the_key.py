"""The messages of one sharding key reach a group for the first time in the order of their numbers.

The end-to-end promise, which a plain consumer log can decide: the producer numbers the messages of a key, and no
matter how many clients share the work, a message that nobody of the group has been given yet must not come after one
with a higher number. Only messages of one queue are compared (a changed queue list moves keys), and where the offsets
are known and lie the other way round, the log itself holds them so: that is the producer's business. Nothing is said
of a lane whose offset an operator has moved: messages that were skipped so may come later. Nor of a message that the
broker had removed on purpose before the higher one was delivered: only who had it already could still be given it.
Where a group is known not to begin with the first message (`consume_from`), who takes a queue over for which no
offset is stored begins behind what others may hold and be given later: only what one incarnation was given is
compared. Where the broker died between the two deliveries, as a crash or a later epoch tells, its log may have been
cut short or made anew, so that the numbers begin again: then a finding is at most possible.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.intervals import Intervals
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import IN_PLACE, NO_RESET, NOT_REMOVED, NOTHING_TAKEN_BACK, SENT_IN_TURN
from specs.clauses.words import at, who
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Party

ID = "ORD-12"
TITLE = "first deliveries follow the key"
STATEMENT = "For each sharding key, first deliveries to a group follow the key's sequence."
PARTY = Party.PAIR
KEY = Key.GROUP_KEY
PREMISE = (IN_PLACE, SENT_IN_TURN, NO_RESET, NOT_REMOVED, NOTHING_TAKEN_BACK)
SOURCES = ("docs/sources.md#orderly-loop", "docs/sources.md#send")
KINDS = frozenset({Kind.DELIVER})
NEEDS = frozenset({Kind.DELIVER})
EXCUSED_BY = frozenset({Kind.CRASH})
CONCLUDES_FROM_ABSENCE = True
LOOKS_BACK = True


@dataclass(frozen=True, slots=True)
class KeyOvertaken(Finding):
    highest: Row
    second: Row


class KeyJudge(Judge):
    """Remembers, for one key and group, the numbers delivered (as ranges) and the highest row of each queue.

    Where a new owner may begin behind what others hold, it is that of each incarnation.
    """

    __slots__ = ("delivered", "highest", "may_skip")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.delivered = Intervals()
        self.highest: dict[tuple[str | int | None, ...], Row] = {}
        self.may_skip = self.config.consume_from != "first"

    def begins(self, row: Row) -> Iterable[Finding]:
        number = row.key_seq
        if number is None or number in self.delivered:
            return NOTHING
        self.delivered.add(number)
        if self.may_skip and row.incarnation is None:
            return NOTHING
        queue = (row.broker, row.queue_id, row.incarnation if self.may_skip else None)
        highest = self.highest.get(queue)
        if highest is None:
            self.highest[queue] = row
            return NOTHING
        self.opportunities += 1
        if number > (highest.key_seq or 0):
            self.highest[queue] = row
            return NOTHING
        if (
            row.queue_offset is not None
            and highest.queue_offset is not None
            and row.queue_offset > highest.queue_offset
        ):
            return NOTHING
        if self.may_skip and self.context.is_of_an_old_life(row.client_id, row.group, highest):
            return NOTHING
        if row.queue_offset is not None and self.context.was_removed(
            row, row.queue_offset, highest
        ):
            return NOTHING
        if row.lane in self.context.resets:
            return NOTHING
        certain = not self.context.broker_died_since(row.broker, highest)
        return (KeyOvertaken(highest, row, certain=certain),)


judge = KeyJudge


def explain(found: KeyOvertaken) -> str:
    first, second = found.highest, found.second
    return (
        f"group {second.group} was given number {second.key_seq} of key {second.sharding_key} for the first time at "
        f"{at(second)} (by {who(second)}), after number {first.key_seq}, which it had been given at {at(first)} "
        f"(by {who(first)})"
    )
