"""Every message that is read or delivered was sent before, and lies in no more places than it was sent times.

A copy (a retry, a dead letter) names the message that it was made from, and that one must have been sent. One that
names none (the Java client 4.2.0 does not) and has an id that nobody has sent may be a copy of any message, and nothing
is said of it. Any send that had begun counts, whatever its outcome. A delivery is judged when it begins, a read when it
ends. With the clocks of several hosts a send that another clock times less than the bound later may have come first.

A place is an offset of a queue. An answer names one (but not that of a delayed or a half message, which lies elsewhere
first), and each read or delivery of the message itself in the topic that it was sent to shows one. There may be as
many, whenever one is answered, read or delivered, as tries begun until then that may have stored the message: one that
was certainly refused stored nothing. Every try up to the last must be in the history, with a number of its own; of a
send whose recorder can't tell how often it was tried nothing is said. Where frames may come twice nothing is said about
places. A delayed message or a half one moves to its place at its time: a death of the broker in between is where
implementations repeat that, so it is a finding of its own. Where brokers flush later, that death may take back a place
that was seen, and the message rightly comes to another one.

Only where the history holds every producer, from its first message on (a closed world, which `run.json` declares): a
log that begins in the middle is of an open one.
"""

import numpy as np

from specs.clauses.context import FLUSHED_LATER
from specs.clauses.premises import CLOSED_WORLD, NO_FRAME_TWICE
from specs.clauses.terms import Finding, Findings, Row, Rows, at, saw, who
from specs.facts.columns import NEVER, NO_TEXT, NONE, Ints, Mask
from specs.facts.segments import Segments, Timeline, by_time, chosen, dense, is_first, positions
from specs.facts.stored import broker_died, copies, delayed, halves, refused, sightings
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


class Invented(Finding):
    seen: Row


class StoredTwice(Finding):
    """sends: all of them. seen: the first row that shows it at each place that no answer named."""

    sends: tuple[Row, ...]
    seen: tuple[Row, ...]


class StoredAgainAfterCrash(Finding):
    """Likewise, of a message that moves to its place at its time, where the broker died since it was sent."""

    sends: tuple[Row, ...]
    seen: tuple[Row, ...]


EVIDENCE_MAX = 9


def judge(rows: Rows, findings: Findings) -> None:
    """A message that was sent late, or never, was invented. A delivery is judged at its begin, a read at its end."""
    message, count = dense(rows.run, rows.source)
    first_send = np.full(count, NEVER, np.int64)
    sends = rows.of(Kind.SEND)
    np.minimum.at(first_send, message[sends], rows.begin[sends])
    shows, when = sightings(rows)
    where = positions(shows & rows.closed_world(np.arange(rows.size)))
    early = first_send[message[where]] >= when[where]
    told = early & ~_of_any(rows, where)
    findings.at_stake(where[told | ~early])
    invented = where[told]
    certain = ~_may_be_sent_before(rows, invented, message)
    findings.broken(Invented, seen=invented, certain=certain)
    _places(rows, findings, where, when)


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


def _places(rows: Rows, findings: Findings, where: Ints, when: Ints) -> None:
    """Each sighting, and each answer that names a place, is judged by what was sent and seen until then.

    when: that of each row. With several clocks only the last one is, by all. Of messages that have one place nothing is
    asked.
    """
    original = (rows.text("origin_id") == NO_TEXT) & (rows.source != NO_TEXT) & ~copies(rows)
    where = where[(original & (rows.offset != NONE))[where]]
    answers = rows.are(Kind.SEND) & rows.ended_as(Outcome.OK) & (rows.offset != NONE)
    answers = positions(answers & ~delayed(rows) & ~halves(rows))
    shows = np.concatenate([where, answers[rows.closed_world(answers)]])
    message, count = dense(rows.run, rows.source, rows.text("topic"))
    one = np.zeros(count, np.int64)
    one[message[shows]] = shows
    other = one[message[shows]]
    moved = (rows.queue[shows] != rows.queue[other]) | (rows.offset[shows] != rows.offset[other])
    many = np.zeros(count, np.bool_)
    many[message[shows[moved]]] = True
    if not many.any():
        return
    shows, sends = (each[many[message[each]]] for each in (shows, rows.of(Kind.SEND)))
    shows = shows[by_time(message[shows], when[shows])]
    sends = sends[by_time(message[sends], rows.begin[sends])]
    of_message, sent = Segments(message[shows]), Timeline(message[sends], rows.begin[sends])
    several = rows.clocks_us(shows) > 0
    until = np.where(several, NEVER, when[shows])
    is_new = is_first(message[shows], rows.queue[shows], rows.offset[shows])
    places = of_message.count_before(is_new) + is_new
    last = sent.last_before(message[shows], until)
    stored = chosen(_may_be_stored(rows, message, sends), last, NEVER)
    is_last = np.append(np.diff(message[shows]) != 0, True)
    found = positions((stored < places) & (places <= EVIDENCE_MAX) & (is_last | ~several))
    found = found[is_first(message[shows[found]], places[found])]
    findings.at_stake(shows[found][rows.are(Kind.SEND)[shows[found]]])
    first = found - of_message.nth()[found]
    start, stop = sent.between(message[shows[found]], np.zeros(len(found), np.int64), until[found])
    columns = (first, found + 1, start, stop, until[found])
    for low, high, begin, end, now in zip(*(each.tolist() for each in columns), strict=True):
        if end - begin < EVIDENCE_MAX:
            _judge(rows, findings, sends[begin:end].tolist(), shows[low:high].tolist(), now)


def _may_be_stored(rows: Rows, message: Ints, sends: Ints) -> Ints:
    """Of each send, in the order of message and begin: how many up to it may have stored the message.

    NEVER: none, or not every one up to the last is told by its number.
    """
    turn = Segments(message[sends])
    number = rows.number("attempt")[sends]
    number = np.where(number < 1, NEVER, number)
    is_new = is_first(message[sends], number)
    highest = np.maximum(number, chosen(number, turn.highest_before(number), 0))
    stores = ~refused(rows)[sends]
    found = turn.count_before(stores) + stores
    all_told = turn.count_before(is_new) + is_new == highest
    return np.where(all_told & (found > 0), found, NEVER)


def _judge(rows: Rows, findings: Findings, sends: list[int], shows: list[int], now: int) -> None:
    """There are more places than sends. shows: what told of them, by its time."""
    place = {row: (int(rows.queue[row]), int(rows.offset[row])) for row in shows}
    told = {place[row] for row in shows if row in sends}
    seen: dict[tuple[int, int], int] = {}
    for row in shows:
        if place[row] not in told:
            seen.setdefault(place[row], row)
    context = rows.context_of(sends[0])
    if len(sends) + len(seen) > EVIDENCE_MAX or context.frames_twice < now:
        return
    moves = (delayed(rows) | halves(rows))[sends].any()
    died = moves and any(broker_died(rows, send, now) for send in sends)
    roles = {"sends": sends, "seen": list(seen.values())}
    if not died:
        findings.shown(StoredTwice, roles)
    elif context.info.config.flush != "async":
        findings.shown(StoredAgainAfterCrash, roles)


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
    copied = f" (a copy of {seen.origin_id})" if seen.origin_id else ""
    return (
        f"{saw(seen)} message {seen.message_id}{copied} at offset {seen.queue_offset} of {seen.queue} at "
        f"{at(seen)}, but nobody had sent it"
    )
