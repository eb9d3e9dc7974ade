"""A given-up message lies among the dead letters of the group that gave it up, and nowhere else.

Looked at where a message is read: (a) in the dead-letter or retry topic of a group that never gave it up, nor sent
it back, while another group's dead letter of it was acknowledged; (b) in the retry topic of a group that gave it up
with its retries used up: there it would come round again; (c) as a copy in the topic that it came from, unless a
producer sent it there: a send of that copy's id was acknowledged for that place, or one to that queue was not answered.
Needs to know every consumer (closed world). A group whose only dead letters of the message failed may have it there.
That it is found at all is DLQ-1's matter.
"""

from collections.abc import Iterator

import numpy as np

from specs.clauses.premises import CLOSED_WORLD, ORDERLY
from specs.clauses.terms import Finding, Findings, Row, Rows, at, who
from specs.facts.columns import NEVER, NO_TEXT, NONE
from specs.facts.moments import Line
from specs.facts.segments import dense, positions
from specs.facts.stored import STORED_COLUMNS, copies, delayed, refused
from specs.vocabulary import DLQ_PREFIX, RETRY_PREFIX, Key, Kind, Outcome, Party, dead_letter_topic

ID = "DLQ-8"
TITLE = "a dead letter in its place"
STATEMENT = "A given-up message is stored in the dead-letter topic of the group that gave it up, and in no other topic."
PARTY = Party.BROKER
KEY = Key.MESSAGE
PREMISE = (ORDERLY, CLOSED_WORLD)
SOURCES = ("docs/sources.md#dead-letters",)
KINDS = frozenset({Kind.DEAD_LETTER, Kind.SEND, Kind.SEND_BACK, Kind.READ})
SETTINGS = ("max_reconsume_times",)
NEEDS = frozenset({Kind.DEAD_LETTER, Kind.READ})
COLUMNS = (*STORED_COLUMNS, "origin_id", "reconsume_times")


class Misplaced(Finding):
    given_up: Row
    read: Row


GIVES, SENT, READ = 0, 1, 2
"""What happens to a message: a group gives it up or sends it back, its dead letter is acknowledged, a copy is read."""


class _Message:
    """What is known of one message so far. known: groups that may have it among their copies. came_back: in their retry
    topic. sent: of each group the position of its first acknowledged dead letter."""

    __slots__ = ("came_back", "known", "sent")

    def __init__(self) -> None:
        self.known: set[str] = set()
        self.came_back: set[str] = set()
        self.sent: dict[str, int] = {}


def judge(rows: Rows, findings: Findings) -> None:
    """Each copy that is read beside those who had given its message up by then, or sent it back."""
    messages: dict[int, _Message] = {}
    letter = rows.are(Kind.DEAD_LETTER)
    for _when, what, row, message in sorted(_events(rows)):
        mine = messages.setdefault(message, _Message())
        if what == READ:
            _read(rows, findings, mine, row)
            continue
        group = rows.name_of("group", row)
        if what == SENT:
            mine.sent.setdefault(group, row)
            continue
        mine.known.add(group)
        limit, times = rows.config_of(row).max_reconsume_times, rows.number("reconsume_times")[row]
        if not letter[row] or not 0 <= limit <= times:
            mine.came_back.add(group)


def _events(rows: Rows) -> Iterator[tuple[int, int, int, int]]:
    """(when, what, position of the row, number of the message), of messages with an acknowledged dead letter."""
    letter, ok = rows.are(Kind.DEAD_LETTER), rows.ended_as(Outcome.OK)
    copy = copies(rows) | (rows.text("origin_id") != NO_TEXT)
    read = rows.are(Kind.READ) & ok & copy & (rows.offset != NONE) & (rows.end < NEVER)
    gives = letter | rows.are(Kind.SEND_BACK)
    sent = letter & ok & (rows.end < NEVER)
    message, count = dense(rows.run, rows.source)
    given_up = np.zeros(count, np.bool_)
    given_up[message[letter & ok]] = True
    for what, rows_of_it, moment in (
        (GIVES, gives, rows.begin),
        (SENT, sent, rows.end),
        (READ, read, rows.end),
    ):
        where = positions(rows_of_it & given_up[message])
        for row, when, number in zip(
            where.tolist(), moment[where].tolist(), message[where].tolist(), strict=True
        ):
            yield when, what, row, number


def _read(rows: Rows, findings: Findings, message: _Message, row: int) -> None:
    """A copy is read. May it lie there?"""
    sent = message.sent
    if not sent:
        return
    findings.at_stake_times(row, 1)
    topic = rows.name_of("topic", row)
    first: int | None = min(sent.values(), key=lambda each: int(rows.begin[each]))
    if topic.startswith(DLQ_PREFIX):
        wrong = None if topic.removeprefix(DLQ_PREFIX) in message.known else first
    elif topic.startswith(RETRY_PREFIX):
        group = topic.removeprefix(RETRY_PREFIX)
        wrong = first
        if group in message.known:
            wrong = None if group in message.came_back else sent.get(group)
    else:
        of_its_topic = (each for each in sent.values() if rows.name_of("topic", each) == topic)
        wrong = None if _was_sent_there(rows, row) else next(of_its_topic, None)
    if wrong is not None:
        findings.shown(Misplaced, {"given_up": wrong, "read": row})


def _sends(rows: Rows) -> Line:
    """What producers may have stored, by message."""
    return Line(rows.source, rows.begin, positions(rows.are(Kind.SEND) & ~refused(rows)))


def _was_sent_there(rows: Rows, read: int) -> bool:
    """May a producer have sent to that place what was read?"""
    sends = rows.shared(_sends).within(int(rows.source[read]), NONE, int(rows.end[read]))
    for column in (rows.run, rows.text("message_id"), rows.text("topic")):
        sends = sends[column[sends] == column[read]]
    fits = (rows.queue[sends] == rows.queue[read]) | (rows.number("queue_id")[sends] == NONE)
    elsewhere = rows.ended_as(Outcome.OK)[sends] & ~rows.frames_twice(sends)
    elsewhere &= ~np.isin(rows.offset[sends], (NONE, rows.offset[read])) & ~delayed(rows)[sends]
    return bool((fits & ~elsewhere).any())


def explain(found: Misplaced) -> str:
    given_up, read = found.given_up, found.read
    return (
        f"message {given_up.source_id}, which {who(given_up)} gave up at {at(given_up)} for {given_up.group}, lies at "
        f"offset {read.queue_offset} of {read.queue} instead of in {dead_letter_topic(given_up.group or '')}"
    )
