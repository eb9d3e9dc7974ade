"""Every message that is read or delivered was sent before.

A copy (a retry, a dead letter) names the message that it was made from, and that one must have been sent. Any send
that had begun counts, whatever its outcome. Only where the history holds every producer (a closed world, which
`run.json` declares). A delivery is judged when it begins, a read when it ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.base import CLOSED_WORLD, NOTHING, Context, Finding, Judge, at, who
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "SND-2"
TITLE = "nothing is invented"
STATEMENT = "Every message that is read or delivered was sent before."
PARTY = Party.BROKER
KEY = Key.MESSAGE
PREMISE = (CLOSED_WORLD,)
SOURCES = ("docs/sources.md#send",)
KINDS = frozenset({Kind.SEND, Kind.DELIVER, Kind.READ})
NEEDS = frozenset({Kind.SEND})


@dataclass(frozen=True, slots=True)
class Invented(Finding):
    seen: Row


class MessageJudge(Judge):
    """Remembers that a message was sent."""

    __slots__ = ("sent",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.sent = not context.info.closed_world

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.SEND:
            self.sent = True
        elif row.kind is Kind.DELIVER:
            return self._seen(row)
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        return self._seen(row) if row.kind is Kind.READ and row.outcome is Outcome.OK else NOTHING

    def _seen(self, row: Row) -> Iterable[Finding]:
        if self.context.info.closed_world:
            self.opportunities += 1
        return NOTHING if self.sent else (Invented(row),)


judge = MessageJudge


def explain(found: Invented) -> str:
    seen = found.seen
    what = "read" if seen.kind is Kind.READ else "was given"
    copied = f" (a copy of {seen.origin_id})" if seen.origin_id else ""
    return (
        f"{who(seen)} {what} message {seen.message_id}{copied} at offset {seen.queue_offset} of {seen.queue} at "
        f"{at(seen)}, but nobody had sent it"
    )
