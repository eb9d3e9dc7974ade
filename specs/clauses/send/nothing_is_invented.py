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

from dataclasses import dataclass

import numpy as np

from specs.clauses.context import FLUSHED_LATER
from specs.clauses.judging import Finding
from specs.clauses.premises import CLOSED_WORLD, NO_FRAME_TWICE
from specs.clauses.words import at, who
from specs.facts.findings import Findings
from specs.facts.rows import Rows
from specs.facts.segments import NEVER, NO_TEXT, NONE, Ints, Mask, dense
from specs.facts.stored import broker_died, copies, delayed, halves, refused
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
COLUMNS = (
    "message_id",
    "origin_id",
    "outcome",
    "queue_offset",
    "code",
    "delay_level",
    "detail",
    "attempt",
)
EXCUSED_IF = {Kind.CRASH: lambda config: config.flush == FLUSHED_LATER}
CONCLUDES_FROM_ABSENCE = True


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


EVIDENCE_MAX = 9


def seen(rows: Rows) -> Ints:
    """Positions of the deliveries and finished reads of runs that hold every producer."""
    read = rows.are(Kind.READ) & rows.ended_as(Outcome.OK) & (rows.end < NEVER)
    where = np.flatnonzero(rows.are(Kind.DELIVER) | read)
    found: Ints = where[rows.closed_world(where)]
    return found


def seen_at(rows: Rows, where: Ints) -> Ints:
    """When each is judged: a delivery at its begin, a read at its end."""
    return np.where(rows.are(Kind.DELIVER)[where], rows.begin[where], rows.end[where])


def named(rows: Rows) -> Mask:
    """Sends of which the answer names a place."""
    answered = rows.are(Kind.SEND) & rows.ended_as(Outcome.OK) & (rows.offset != NONE)
    found: Mask = answered & ~delayed(rows) & ~halves(rows)
    return found


def judge(rows: Rows, findings: Findings) -> None:
    """A message that was sent late, or never, was invented."""
    message, count = dense(rows.run, rows.source)
    first_send = np.full(count, NEVER, np.int64)
    sends = rows.of(Kind.SEND)
    np.minimum.at(first_send, message[sends], rows.begin[sends])
    where = seen(rows)
    early = first_send[message[where]] >= seen_at(rows, where)
    told = early & ~_of_any(rows, where)
    findings.at_stake(where[told | ~early])
    invented = where[told]
    certain = ~_may_be_sent_before(rows, invented, message)
    findings.broken(Invented, seen=invented, certain=certain)
    _places(rows, findings, where)


def _of_any(rows: Rows, where: Ints) -> Mask:
    """Is this a copy that does not name the message of which it is one?"""
    origin = rows.text("origin_id")[where]
    nameless = (origin == NO_TEXT) | (origin == rows.code("origin_id", ""))
    found: Mask = nameless & copies(rows)[where]
    return found


def _may_be_sent_before(rows: Rows, invented: Ints, message: Ints) -> Mask:
    """Did another clock time a send so soon after that it may have come first? Messages that nobody sent are few."""
    found = np.zeros(len(invented), np.bool_)
    clock, when = rows.text("clock"), np.where(rows.are(Kind.DELIVER), rows.started, rows.ended)
    for index, place in enumerate(invented.tolist()):
        bound_us = rows.context_of(place).info.clock_bound_us
        if bound_us:
            others = rows.are(Kind.SEND) & (message == message[place]) & (clock != clock[place])
            found[index] = bool(np.any(rows.started[others] <= when[place] + bound_us))
    return found


def _places(rows: Rows, findings: Findings, where: Ints) -> None:
    """Only messages are looked at closely that were seen at a place that no answer named, and have another place."""
    original = (
        (rows.offset[where] != NONE)
        & (rows.text("origin_id")[where] == NO_TEXT)
        & ~copies(rows)[where]
    )
    where = where[original & (rows.source[where] != NO_TEXT)]
    answers = np.flatnonzero(named(rows))
    shows = np.concatenate([where, answers])
    if not len(where):
        return
    message, count = dense(rows.run, rows.source, rows.text("topic"))
    one = np.zeros(count, np.int64)
    one[message[shows]] = shows
    other = one[message[shows]]
    moved = (rows.queue[shows] != rows.queue[other]) | (rows.offset[shows] != rows.offset[other])
    many = np.zeros(count, np.bool_)
    many[message[shows[moved]]] = True
    sends = rows.of(Kind.SEND)
    chosen, tried = where[many[message[where]]], sends[many[message[sends]]]
    by_message: dict[int, tuple[list[int], list[int]]] = {}
    for place in tried.tolist():
        by_message.setdefault(int(message[place]), ([], []))[0].append(place)
    for place in chosen[np.argsort(seen_at(rows, chosen), kind="stable")].tolist():
        by_message.setdefault(int(message[place]), ([], []))[1].append(place)
    vain, answered = refused(rows), named(rows)
    for its_sends, its_shows in by_message.values():
        if its_sends and its_shows:
            _Message(rows, findings, its_sends, (vain, answered)).count(its_shows)


class _Message:
    """One message of one topic, of which there are several places."""

    def __init__(
        self, rows: Rows, findings: Findings, sends: list[int], masks: tuple[Mask, Mask]
    ) -> None:
        self.rows, self.findings, self.sends = rows, findings, sends
        self.vain, self.answered = masks
        self.moving = delayed(rows) | halves(rows)

    def _place(self, row: int) -> tuple[int, int]:
        return int(self.rows.queue[row]), int(self.rows.offset[row])

    def count(self, shows: list[int]) -> None:
        """At each place that no answer has named so far; with several clocks once, of all."""
        bound_us = self.rows.context_of(shows[0]).info.clock_bound_us
        whens = seen_at(self.rows, np.asarray(shows, np.int64)).tolist()
        shown: dict[tuple[int, int], int] = {}
        for row, when in zip(shows, whens, strict=True):
            sends = [send for send in self.sends if self.rows.begin[send] < when]
            told = {self._place(send) for send in sends if self.answered[send]}
            shown = {place: first for place, first in shown.items() if place not in told}
            place = self._place(row)
            if place in told or place in shown or len(shown) > EVIDENCE_MAX:
                continue
            shown[place] = row
            if not bound_us:
                self._judge(sends, told, shown, when)
        if bound_us:
            told = {self._place(send) for send in self.sends if self.answered[send]}
            self._judge(
                self.sends, told, {at: row for at, row in shown.items() if at not in told}, NEVER
            )

    def _judge(
        self,
        sends: list[int],
        told: set[tuple[int, int]],
        shown: dict[tuple[int, int], int],
        now: int,
    ) -> None:
        rows = self.rows
        attempts = [int(rows.number("attempt")[send]) for send in sends]
        tries = sum(not self.vain[send] for send in sends)
        if (
            not tries
            or len(sends) + len(shown) > EVIDENCE_MAX
            or min(attempts) < 1
            or max(attempts) > len(set(attempts))
        ):
            return
        context = rows.context_of(sends[0])
        if len(told) + len(shown) <= tries or (
            context.frames_twice < NEVER and context.frames_twice <= now
        ):
            return
        moves = any(self.moving[send] for send in sends)
        died = moves and any(broker_died(rows, send, now) for send in sends)
        roles = {"sends": sends, "seen": list(shown.values())}
        if not died:
            self.findings.shown(StoredTwice, roles)
        elif context.info.config.flush != "async":
            self.findings.shown(StoredAgainAfterCrash, roles)


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
