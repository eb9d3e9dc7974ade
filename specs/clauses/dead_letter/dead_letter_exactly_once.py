"""A message given up by one incarnation, with a send that was answered at once, is dead-lettered exactly once.

Claimed where every dead letter of the message in its group belongs to one incarnation, was acknowledged (and not
stored weakly, with a code that says that it may be lost with its broker), and was its first try; where the message was
not consumed in manual mode, nor in a mode of which nobody tells (a ROLLBACK replays dead-lettered messages as well),
and where it lies at one place only (a send that reached the log twice made two messages, and each is given up).
Otherwise it is *at least* once. Where frames may come twice, so may a dead letter in its topic. Two dead letters of one
message are too many, and so are two places in the dead-letter topic that hold it. Where the consumer takes several
messages per call, only what was given up once is looked at: that a batch which is tried again is not given up again is
DLQ-10's matter. Needs to know every consumer: in an open world what is found is at most possible. Decided when the
history is over."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specs.clauses.judging import Finding
from specs.clauses.premises import AUTO_MODE, DEAD_LETTER_SENT, IN_PLACE, NO_FRAME_TWICE, Premise
from specs.clauses.words import at, who
from specs.facts.calls import may_be_by_hand
from specs.facts.dead_letters import dead_reads, group_of
from specs.facts.findings import Findings
from specs.facts.rows import Rows
from specs.facts.segments import NEVER, NONE, Ints, dense, positions
from specs.facts.stored import STORED_WEAKLY
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "DLQ-2"
TITLE = "a dead letter exactly once"
STATEMENT = "A message that one incarnation gives up reaches the dead letters exactly once."
PARTY = Party.PAIR
KEY = Key.MESSAGE
PREMISE = (
    IN_PLACE,
    AUTO_MODE,
    DEAD_LETTER_SENT,
    Premise(
        "one incarnation",
        "no other incarnation gave the message up, and each send was its first try",
    ),
    Premise("one place", "the message was given up at one offset of one queue only"),
    NO_FRAME_TWICE,
)
SOURCES = ("docs/sources.md#dead-letters",)
KINDS = frozenset({Kind.DEAD_LETTER, Kind.READ, Kind.DELIVER})
SETTINGS = ("batch",)
NEEDS = frozenset({Kind.DEAD_LETTER})
CONCLUDES_FROM_ABSENCE = True
COLUMNS = (
    "attempt",
    "client_id",
    "code",
    "commit_mode",
    "incarnation",
    "message_id",
    "origin_id",
    "outcome",
    "process",
    "queue_offset",
)


@dataclass(frozen=True, slots=True)
class TwiceDead(Finding):
    """evidence: two dead letters, or the only one and two places where it was read."""

    evidence: tuple[Row, ...]


class _Message:
    """One message of a group: its dead letters and the places where it was read, two of each at most.

    letters, reads: positions of rows. origin: who gave it up, and where it lies. spoiled: nothing is claimed of it.
    """

    __slots__ = ("letters", "origin", "places", "reads", "spoiled")

    def __init__(self) -> None:
        self.letters: list[int] = []
        self.origin: tuple[int, ...] = ()
        self.reads: list[int] = []
        self.places: set[tuple[int, ...]] = set()
        self.spoiled = False

    def read(self, row: int, place: tuple[int, ...]) -> None:
        if len(self.reads) < 2 and place not in self.places:
            self.places.add(place)
            self.reads.append(row)


def judge(rows: Rows, findings: Findings) -> None:
    """Each message that was given up, in each group: how often that was, and where it was read."""
    where = _of_what_was_given_up(rows)
    if not len(where):
        return
    of_group, _ = dense(rows.run[where], rows.source[where], group_of(rows, where))
    # Dead letters count when they begin and reads when they end.
    read = rows.are(Kind.READ)
    order = np.argsort(np.where(read, rows.end, rows.begin)[where], kind="stable")
    place = (rows.text("broker"), rows.number("queue_id"), rows.offset)
    origin = (
        rows.client,
        rows.text("process"),
        rows.incarnation,
        rows.text("topic"),
        *place,
    )
    arrived, manual = rows.ended_as(Outcome.OK), may_be_by_hand(rows)
    as_promised = arrived & ~manual & np.isin(rows.number("attempt"), (NONE, 1))
    as_promised &= ~np.isin(rows.number("code"), STORED_WEAKLY)
    messages: dict[int, _Message] = {}
    for row, number in zip(where[order].tolist(), of_group[order].tolist(), strict=True):
        message = messages.setdefault(number, _Message())
        if read[row]:
            if arrived[row] and rows.end[row] < NEVER:
                message.read(row, tuple(int(column[row]) for column in place))
            continue
        mine = tuple(int(column[row]) for column in origin)
        if not as_promised[row] or (message.letters and not _is_of_one(rows, message, row, mine)):
            message.spoiled = True
        elif len(message.letters) < 2:
            message.letters.append(row)
            message.origin = mine
    for message in messages.values():
        _conclude(message, rows, findings)


def _of_what_was_given_up(rows: Rows) -> Ints:
    """Dead letters, reads of dead letters, and deliveries of what was given up that may be manual ones."""
    letter, read = rows.are(Kind.DEAD_LETTER), dead_reads(rows)
    manual = rows.are(Kind.DELIVER) & may_be_by_hand(rows)
    message, count = dense(rows.run, rows.source)
    given_up = np.zeros(count, np.bool_)
    given_up[message[letter]] = True
    return positions((letter | read | manual) & given_up[message])


def _is_of_one(rows: Rows, message: _Message, row: int, origin: tuple[int, ...]) -> bool:
    """Did the incarnation send this that gave the message up first? The next process of its client may number its
    incarnations anew."""
    client, group = rows.name_of("client_id", row), rows.name_of("group", row)
    first, now = int(rows.begin[message.letters[0]]), int(rows.begin[row])
    anew = rows.context_of(row).is_of_an_old_life(client, group, first, now)
    return origin == message.origin and not anew


def _conclude(message: _Message, rows: Rows, findings: Findings) -> None:
    letters, reads = message.letters, message.reads
    if message.spoiled or not letters or not (reads or len(letters) > 1):
        return
    if len(letters) > 1 and rows.config_of(letters[0]).batch > 1:
        return
    findings.at_stake_times(letters[0], 1)
    if len(letters) > 1:
        findings.shown(TwiceDead, {"evidence": letters})
    elif len(reads) > 1 and rows.context_of(letters[0]).frames_twice == NEVER:
        findings.shown(TwiceDead, {"evidence": [*letters, *reads]})


def explain(found: TwiceDead) -> str:
    first = found.evidence[0]
    if len(found.evidence) > 2:
        places = " and ".join(
            f"offset {row.queue_offset} of {row.queue}" for row in found.evidence[1:]
        )
        return f"{who(first)} gave up message {first.source_id} once, at {at(first)}, but it lies at {places}"
    second = found.evidence[1]
    return (
        f"{who(second)} gave up message {second.source_id} again at {at(second)}, though the dead letter that the same "
        f"incarnation had sent at {at(first)} was acknowledged"
    )
