"""A given-up message lies among the dead letters of the group that gave it up, and nowhere else.

Looked at where a message is read: (a) in the dead-letter or retry topic of a group that never gave it up, nor sent
it back, while another group's dead letter of it was acknowledged; (b) in the retry topic of a group that gave it up
with its retries used up: there it would come round again; (c) as a copy in the topic that it came from. Needs to
know every consumer (closed world). A group whose only dead letters of the message failed may have it there. That it
is found at all is DLQ-1's matter.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import CLOSED_WORLD, ORDERLY
from specs.clauses.rows import is_copy_topic
from specs.clauses.words import at, who
from specs.history.row import Row
from specs.vocabulary import DLQ_PREFIX, RETRY_PREFIX, Key, Kind, Outcome, Party, dead_letter_topic

ID = "DLQ-8"
TITLE = "a dead letter in its place"
STATEMENT = "A given-up message is stored in the dead-letter topic of the group that gave it up, and in no other topic."
PARTY = Party.BROKER
KEY = Key.MESSAGE
PREMISE = (ORDERLY, CLOSED_WORLD)
SOURCES = ("docs/sources.md#dead-letters",)
KINDS = frozenset({Kind.DEAD_LETTER, Kind.SEND_BACK, Kind.READ})
SETTINGS = ("max_reconsume_times",)
NEEDS = frozenset({Kind.DEAD_LETTER, Kind.READ})


def wants(row: Row) -> bool:
    """Of what is read, only copies."""
    return row.kind is not Kind.READ or row.origin_id is not None or is_copy_topic(row.topic)


@dataclass(frozen=True, slots=True)
class Misplaced(Finding):
    given_up: Row
    read: Row


class MessageJudge(Judge):
    """Remembers who gave a message up, or sent it back."""

    __slots__ = ("came_back", "known", "sent")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.known: set[str] = set()  # groups that may have it among their copies
        self.came_back: set[str] = set()  # groups that may have it in their retry topic
        self.sent: dict[str, Row] = {}  # group → its first acknowledged dead letter

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.kind is not Kind.READ:
            group, limit = row.group or "", self.config.max_reconsume_times
            self.known.add(group)
            exhausted = row.reconsume_times is not None and 0 <= limit <= row.reconsume_times
            if row.kind is Kind.SEND_BACK or not exhausted:
                self.came_back.add(group)
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        if row.outcome is not Outcome.OK or row.kind is Kind.SEND_BACK:
            return NOTHING
        if row.kind is Kind.DEAD_LETTER:
            self.sent.setdefault(row.group or "", row)
            return NOTHING
        if not self.sent or row.queue_offset is None:
            return NOTHING
        self.opportunities += 1
        topic = row.topic or ""
        first = min(self.sent.values(), key=lambda each: each.seq_begin)
        if topic.startswith(DLQ_PREFIX):
            return NOTHING if topic[len(DLQ_PREFIX) :] in self.known else (Misplaced(first, row),)
        if topic.startswith(RETRY_PREFIX):
            group = topic[len(RETRY_PREFIX) :]
            if group in self.known:
                mine = self.sent.get(group)
                return (
                    NOTHING if mine is None or group in self.came_back else (Misplaced(mine, row),)
                )
            return (Misplaced(first, row),)
        back = next((each for each in self.sent.values() if each.topic == topic), None)
        return NOTHING if back is None else (Misplaced(back, row),)


judge = MessageJudge


def explain(found: Misplaced) -> str:
    given_up, read = found.given_up, found.read
    return (
        f"message {given_up.source_id}, which {who(given_up)} gave up at {at(given_up)} for {given_up.group}, lies at "
        f"offset {read.queue_offset} of {read.queue} instead of in {dead_letter_topic(given_up.group or '')}"
    )
