"""A message is handed out again, to whomever, only when its lease has ended.

By its time, by whatever may have acknowledged or released it, or with its holder's connection. Judged whenever a
message is handed out that was handed out before, and refuted as in one_holder_of_a_message, which is this for two
members. Says nothing about a message that comes again after it was acknowledged.
"""

from __future__ import annotations

from dataclasses import dataclass

from specs.clauses.judging import Finding
from specs.clauses.premises import BROKER_LIVES, CONNECTED, NO_WALL_CLOCK_STEP, NOT_MOVED
from specs.clauses.rows import over_us
from specs.clauses.words import at, ms, who
from specs.facts.message_leases import LEASE_COLUMNS, OF_LEASES, Message, Request, each_message
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Party

ID = "PML-2"
TITLE = "no redelivery before the lease ended"
STATEMENT = (
    "A message that was handed out is not handed out again before its lease has ended: by its time, by an "
    "acknowledgement or a release, or with its holder's connection."
)
PARTY = Party.BROKER
KEY = Key.LANE
PREMISE = (NO_WALL_CLOCK_STEP, BROKER_LIVES, CONNECTED, NOT_MOVED)
SOURCES = ("docs/sources.md#leases-of-messages",)
KINDS = OF_LEASES
NEEDS = frozenset({Kind.RECEIVE})
COLUMNS = LEASE_COLUMNS


@dataclass(frozen=True, slots=True)
class HandedOutAgain(Finding):
    first: Row
    second: Row


class Redelivered(Message):
    """At stake whenever the message is handed out again."""

    def again(self, before: Request, row: Request, meets: bool) -> None:
        self.stakes += 1
        if meets:
            self.findings.shown(HandedOutAgain, {"first": before.place, "second": row.place})


judge = each_message(Redelivered)


def explain(found: HandedOutAgain) -> str:
    first, second = sorted((found.first, found.second), key=lambda row: row.seq_begin)
    later = ms(over_us(second) - first.started_us)
    return (
        f"offset {second.queue_offset} of {second.lane} was handed to {who(second)} at {at(second)}, at most {later} "
        f"after {who(first)} had been handed it at {at(first)}; nothing had ended that lease"
    )
