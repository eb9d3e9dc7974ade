"""A message is found in no other queue of its topic than those that its producer sent it to.

Wherever it is read or delivered in the topic, the queue must be one that a try named: the producer chose it by the
message's key. A delayed message and a half one wait elsewhere, but the queue that they name is the one that they come
to. A try that was refused counts as well: its frame may have come twice, and been stored the second time. (That a
message of which every try was refused is not seen is SND-3's business.) Every try up to the last must be in the
history, with its number and its queue; where a broker chose the queue and did not answer, nothing is said. Copies
among the retries and dead letters lie elsewhere. Of a message that lies in more queues, or was sent more often, than a
witness can show, nothing is said either. Another producer might send it too, and so might its own before a history that
begins late: there, and in an open world, it is possible at most.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.rows import is_copy_topic
from specs.clauses.stored import is_refused
from specs.clauses.words import at, who
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "SND-12"
TITLE = "a message lies where it was sent"
STATEMENT = (
    "A message is found in no other queue of its topic than those that its producer sent it to."
)
PARTY = Party.BROKER
KEY = Key.MESSAGE
PREMISE = ()
SOURCES = ("docs/sources.md#send", "docs/sources.md#delay", "docs/sources.md#transactions")
KINDS = frozenset({Kind.SEND, Kind.DELIVER, Kind.READ})
NEEDS = frozenset({Kind.SEND})
CONCLUDES_FROM_ABSENCE = True
LOOKS_BACK = True

EVIDENCE_MAX = 9


def wants(row: Row) -> bool:
    """Original messages, in a queue."""
    return row.origin_id is None and row.message_id is not None and not is_copy_topic(row.topic)


@dataclass(frozen=True, slots=True)
class Elsewhere(Finding):
    sends: tuple[Row, ...]
    seen: Row


@dataclass(slots=True)
class _Topic:
    sends: list[Row] = field(default_factory=list)
    seen: dict[tuple[str | None, int], Row] = field(
        default_factory=dict
    )  # the first time in each queue


class MessageJudge(Judge):
    """Remembers the tries, and the queues in which the message was seen, as many as a witness can show."""

    __slots__ = ("topics",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.topics: dict[str | None, _Topic] = {}

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.SEND:
            sends = self.topics.setdefault(row.topic, _Topic()).sends
            if len(sends) < EVIDENCE_MAX:
                sends.append(row)
        elif row.kind is Kind.DELIVER:
            self._seen(row)
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.READ and row.outcome is Outcome.OK:
            self._seen(row)
        return NOTHING

    def _seen(self, row: Row) -> None:
        if row.queue_id is not None and row.queue_offset is not None:
            seen = self.topics.setdefault(row.topic, _Topic()).seen
            if len(seen) < EVIDENCE_MAX:
                seen.setdefault((row.broker, row.queue_id), row)

    def finish(self) -> Iterable[Finding]:
        found: list[Finding] = []
        for each in self.topics.values():
            attempts = [row.attempt or 0 for row in each.sends]
            told = all(attempts) and max(attempts, default=0) <= len(each.sends) < EVIDENCE_MAX
            queues = {(row.broker, row.queue_id) for row in each.sends}
            named = all(
                broker is not None and queue_id is not None and queue_id >= 0
                for broker, queue_id in queues
            )
            if not told or not named or all(is_refused(row) for row in each.sends):
                continue
            self.opportunities += len(each.seen)
            found.extend(
                Elsewhere(tuple(each.sends), row)
                for queue, row in each.seen.items()
                if queue not in queues
            )
        return found


judge = MessageJudge


def explain(found: Elsewhere) -> str:
    last, seen = found.sends[-1], found.seen
    where = ", ".join(dict.fromkeys(str(row.queue) for row in found.sends))
    what = "read" if seen.kind is Kind.READ else "was given"
    return (
        f"{who(last)} sent message {last.message_id} to {where} (at {at(last)}), but {who(seen)} {what} it at offset "
        f"{seen.queue_offset} of {seen.queue} at {at(seen)}"
    )
