"""A group that subscribes to some tags is given every message with one of them, and no other message.

Decided where the configuration names tags. A delivery of a message whose tag is none of them, or that has no tag,
breaks the promise; rows of a message show its tags when they have the body's hash. Brokers compare hash codes, which
may be equal for different tags, so that the client has to compare the texts. And a message with a wanted tag that an
incarnation passed over breaks it: the incarnation delivered, for the first time each, a message before it and, as its
next one, a message behind it. Decided for orderly clustering, where first deliveries ascend; a reset forgets what
went before. Sends that are not acknowledged, acknowledged weakly (codes 10 to 12) or delayed are not awaited, nor are
those of a broker that died since, nor what it said to have removed. Copies among the retries are delivered whatever
their tags.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import BROKER_LIVES, FILTERED, NO_RESET, NOT_REMOVED
from specs.clauses.rows import ended_before, is_copy_topic
from specs.clauses.stored import STORED_WEAKLY, is_half
from specs.clauses.words import at, who
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "SND-8"
TITLE = "a filter delivers what it says"
STATEMENT = (
    "A group that subscribes to tags is given the messages with one of these tags, and no others."
)
PARTY = Party.PAIR
KEY = Key.QUEUE
PREMISE = (FILTERED, NO_RESET, BROKER_LIVES, NOT_REMOVED)
SOURCES = ("docs/sources.md#filters",)
KINDS = frozenset({Kind.SEND, Kind.DELIVER, Kind.ADD, Kind.RESET})
SETTINGS = ("message_model", "mode")
NEEDS = frozenset({Kind.DELIVER})


def wants(row: Row) -> bool:
    """Original messages: of the retries every one is wanted."""
    return not is_copy_topic(row.topic)


@dataclass(frozen=True, slots=True)
class Unwanted(Finding):
    given: Row


@dataclass(frozen=True, slots=True)
class PassedOver(Finding):
    before: Row
    sent: Row
    behind: Row


class QueueJudge(Judge):
    """Remembers the acknowledged sends with a wanted tag, and of each incarnation the highest message delivered."""

    __slots__ = ("ascends", "highest", "offsets", "sent", "wanted")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.wanted = tags_of(self.config.subscription)
        self.ascends = self.config.mode == "orderly" and self.config.message_model == "clustering"
        self.sent: dict[int, Row] = {}
        self.offsets: list[int] = []  # of `sent`, ascending
        self.highest: dict[tuple[str | None, str], Row] = {}  # by group and incarnation

    def begins(self, row: Row) -> Iterable[Finding]:
        match row.kind:
            case Kind.ADD if row.incarnation is not None:
                self.highest.pop((row.group, row.incarnation), None)
            case Kind.RESET:
                for place in [place for place in self.highest if place[0] == row.group]:
                    del self.highest[place]
            case Kind.DELIVER:
                return self._given(row)
            case _:
                pass
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        offset = row.queue_offset
        if (
            row.kind is Kind.SEND
            and row.outcome is Outcome.OK
            and offset is not None
            and offset not in self.sent
            and row.body_hash is not None
            and row.tags in self.wanted
            and row.code not in STORED_WEAKLY
            and not row.delay_level
            and not is_half(row)
        ):
            self.sent[offset] = row
            insort(self.offsets, offset)
        return NOTHING

    def _given(self, row: Row) -> Iterable[Finding]:
        found: list[Finding] = []
        if row.body_hash is not None:
            self.opportunities += 1
            if row.tags not in self.wanted:
                found.append(Unwanted(row))
        if row.incarnation is None or row.queue_offset is None or not self.ascends:
            return found
        place = (row.group, row.incarnation)
        before = self.highest.get(place)
        if before is None or (before.queue_offset or 0) < row.queue_offset:
            self.highest[place] = row
            if before is not None:
                found.extend(self._passed_over(before, row))
        return found

    def _passed_over(self, before: Row, behind: Row) -> Iterable[Finding]:
        """The first message between the two that was wanted."""
        for offset in self.offsets[bisect_right(self.offsets, before.queue_offset or 0) :]:
            if offset >= (behind.queue_offset or 0):
                return
            sent = self.sent[offset]
            if not ended_before(sent, behind) or self.context.broker_died_since(
                behind.broker, sent
            ):
                continue
            if not self.context.was_removed(behind, offset):
                self.opportunities += 1
                yield PassedOver(before, sent, behind)
                return


def tags_of(subscription: str) -> frozenset[str]:
    """The tags that a subscription names."""
    return frozenset(tag.strip() for tag in subscription.split("||") if tag.strip())


judge = QueueJudge


def explain(found: Unwanted | PassedOver) -> str:
    if isinstance(found, Unwanted):
        given = found.given
        tag = f"the tag {given.tags}" if given.tags else "no tag"
        return (
            f"{who(given)} was given message {given.message_id} at offset {given.queue_offset} of {given.queue} at "
            f"{at(given)}, which has {tag}, and group {given.group} does not subscribe to that"
        )
    before, sent, behind = found.before, found.sent, found.behind
    return (
        f"{who(behind)} went from offset {before.queue_offset} of {behind.queue} to offset {behind.queue_offset} at "
        f"{at(behind)} and passed over message {sent.message_id} at offset {sent.queue_offset}, whose tag {sent.tags} "
        f"group {behind.group} subscribes to"
    )
