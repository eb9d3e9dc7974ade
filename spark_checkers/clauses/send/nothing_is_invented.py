"""SND-2 over columns: per message, the first send's begin against every delivery's begin and every read's end; and its
places against its sends, where there are more than one that no answer named."""

from __future__ import annotations

from functools import partial

import numpy as np

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.facts.findings import Findings
from specs.facts.rows import Rows
from specs.facts.segments import NEVER, NO_TEXT, NONE, Ints, Mask, dense
from specs.facts.stored import broker_died, copies, delayed, halves, refused
from specs.vocabulary import Kind, Outcome

EVIDENCE_MAX = 9
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


def kernel(rows: Rows, findings: Findings) -> None:
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
    findings.violated(invented, certain=~_may_be_sent_before(rows, invented, message))
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
        if not died:
            self.findings.violation([*sends, *shown.values()], name="stored-twice")
        elif context.info.config.flush != "async":
            self.findings.violation([*sends, *shown.values()], name="stored-again-after-crash")


TWIN = Twin("SND-2", COLUMNS, kernel)
find = TWIN.find


# ---- what breaks the clause, planted


def invented_message(trace: Trace) -> Changes:
    for send, read in planting.reads(trace):
        if send.message_id == read.message_id:
            yield partial(lambda s, r: trace.without([s.seq_begin], [r.seq_begin]), send, read)


DEFECTS = (Mutant("invented-message", "SND-2", "a message was never sent", invented_message),)
