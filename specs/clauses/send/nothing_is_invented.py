"""Every message that is read or delivered was sent before, and lies in no more places than it was sent times.

A copy (a retry, a dead letter) names the message that it was made from, and that one must have been sent. One that
names none (the Java client 4.2.0 does not) and has an id that nobody has sent may be a copy of any message, and nothing
is said of it. Any send that had begun counts, whatever its outcome. A delivery is judged when it begins, a read when it
ends. With the clocks of several hosts a send that another clock times less than the bound later may have come first.

A place is an offset of a queue. An answer names one (but not that of a delayed or a half message, which lies elsewhere
first), and each read or delivery of the message itself in the topic that it was sent to shows one. There may be as many
as tries that may have stored the message: one that was certainly refused stored nothing. Every try up to the last must
be in the history, with a number of its own; of a send whose recorder can't tell how often it was tried nothing is said.
Where frames may come twice nothing is said about places. A delayed message or a half one moves to its place at its
time: a death of the broker in between is where implementations repeat that, so it is a finding of its own. Where
brokers flush later, that death may take back a place that was seen, and the message rightly comes to another one.

Only where the history holds every producer, from its first message on (a closed world, which `run.json` declares): a
log that begins in the middle is of an open one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from specs.clauses.context import FLUSHED_LATER, Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import CLOSED_WORLD, NO_FRAME_TWICE
from specs.clauses.rows import is_copy_topic, over_us
from specs.clauses.stored import is_delayed, is_half, is_refused, lies_at_once
from specs.clauses.words import at, who
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "SND-2"
TITLE = "nothing is invented"
STATEMENT = (
    "Every message that is read or delivered was sent before, and it lies in no more places "
    "than it was sent times."
)
PARTY = Party.BROKER
KEY = Key.MESSAGE
PREMISE = (CLOSED_WORLD, NO_FRAME_TWICE)
SOURCES = ("docs/sources.md#send",)
KINDS = frozenset({Kind.SEND, Kind.DELIVER, Kind.READ})
NEEDS = frozenset({Kind.SEND})
EXCUSED_IF = {Kind.CRASH: lambda config: config.flush == FLUSHED_LATER}
CONCLUDES_FROM_ABSENCE = True

EVIDENCE_MAX = 9
"""Of a message with more sends and places nothing is said: a witness is short."""


@dataclass(frozen=True, slots=True)
class Invented(Finding):
    seen: Row


@dataclass(frozen=True, slots=True)
class StoredTwice(Finding):
    """sends: all of them. seen: the first row that shows it at each place that no answer named."""

    sends: tuple[Row, ...]
    seen: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class StoredAgainAfterCrash(Finding):
    """Likewise, of a message that moves to its place at its time, where the broker died since it was sent."""

    sends: tuple[Row, ...]
    seen: tuple[Row, ...]


Place = tuple[str | None, int | None, int | None]


@dataclass(slots=True)
class Places:
    """Of one message in one topic. named: by answers; shown: by reads and deliveries, each place's first one."""

    sends: list[Row] = field(default_factory=list)
    named: set[Place] = field(default_factory=set)
    shown: dict[Place, Row] = field(default_factory=dict)

    @property
    def is_too_many(self) -> bool:
        tries = sum(not is_refused(row) for row in self.sends)
        attempts = [row.attempt or 0 for row in self.sends]
        told = all(attempts) and max(attempts, default=0) <= len(set(attempts))
        few = len(self.sends) + len(self.shown) <= EVIDENCE_MAX
        places = len(self.named.union(self.shown))
        return told and few and bool(tries) and places > max(tries, 1)


class MessageJudge(Judge):
    """Remembers that a message was sent, and the places that it lies in, as many as a witness can show."""

    __slots__ = ("bound_us", "early", "sent", "topics")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.bound_us = context.info.clock_bound_us
        self.sent = False
        self.early: list[
            tuple[Row, int, bool]
        ] = []  # with several clocks: seen before any send; when; is it certain
        self.topics: dict[str | None, Places] = {}

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.SEND:
            self._sent(row)
        elif row.kind is Kind.DELIVER:
            return self._seen(row, row.started_us)
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        if row.kind is not Kind.READ or row.outcome is not Outcome.OK:
            return NOTHING
        return self._seen(row, over_us(row))

    def _sent(self, row: Row) -> None:
        self.sent = True
        self.early = [
            (seen, us, certain and (seen.clock == row.clock or row.started_us > us + self.bound_us))
            for seen, us, certain in self.early
        ]
        places = self.topics.setdefault(row.topic, Places())
        if len(places.sends) <= EVIDENCE_MAX:
            places.sends.append(row)
        if row.outcome is Outcome.OK and row.queue_offset is not None and lies_at_once(row):
            place = (row.broker, row.queue_id, row.queue_offset)
            places.named.add(place)
            places.shown.pop(place, None)

    def _seen(self, row: Row, seen_us: int) -> Iterable[Finding]:
        if not self.sent and not row.origin_id and is_copy_topic(row.topic):
            return
        self.opportunities += 1
        if not self.sent and not self.bound_us:
            yield Invented(row)
        elif not self.sent:
            self.early.append((row, seen_us, True))
        is_place = (
            row.queue_offset is not None and row.origin_id is None and not is_copy_topic(row.topic)
        )
        places = self.topics.setdefault(row.topic, Places()) if is_place else None
        if places is None or len(places.shown) > EVIDENCE_MAX:
            return
        place = (row.broker, row.queue_id, row.queue_offset)
        if place in places.named or place in places.shown:
            return
        places.shown[place] = row
        if not self.bound_us:
            yield from self._counted(places)

    def _counted(self, places: Places) -> Iterable[Finding]:
        if not places.is_too_many or self.context.frames_twice is not None:
            return NOTHING
        sends, seen = tuple(places.sends), tuple(places.shown.values())
        moves = any(is_delayed(row) or is_half(row) for row in sends)
        if not moves or not any(self.context.broker_died_since(row.broker, row) for row in sends):
            return (StoredTwice(sends, seen),)
        return (
            NOTHING if self.config.flush == FLUSHED_LATER else (StoredAgainAfterCrash(sends, seen),)
        )

    def finish(self) -> Iterable[Finding]:
        """With several clocks a later send may have come first, so the count waits for all of them."""
        found: list[Finding] = [
            Invented(seen, certain=certain) for seen, _us, certain in self.early
        ]
        if self.bound_us:
            for places in self.topics.values():
                found.extend(self._counted(places))
        return found


judge = MessageJudge


def explain(found: Invented | StoredTwice | StoredAgainAfterCrash) -> str:
    if not isinstance(found, Invented):
        first, last = found.sends[0], found.rows[-1]
        times = f"{len(found.sends)} times" if len(found.sends) > 1 else "once"
        shown = " and ".join(f"offset {row.queue_offset} of {row.queue}" for row in found.seen)
        named = [
            f"offset {row.queue_offset} of {row.queue}"
            for row in found.sends
            if row.outcome is Outcome.OK
        ]
        answered = (
            f", acknowledged at {named[0]},"
            if found.sends[0].queue_offset is not None and named
            else ""
        )
        return (
            f"message {first.message_id} was sent {times} (by {who(first)} at {at(first)}){answered} and was found at "
            f"{shown} too, the last time at {at(last)}"
        )
    seen = found.seen
    what = "read" if seen.kind is Kind.READ else "was given"
    copied = f" (a copy of {seen.origin_id})" if seen.origin_id else ""
    return (
        f"{who(seen)} {what} message {seen.message_id}{copied} at offset {seen.queue_offset} of {seen.queue} at "
        f"{at(seen)}, but nobody had sent it"
    )
