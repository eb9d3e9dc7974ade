"""DLQ-8 over columns: only copies of messages that were given up are looked at, message by message."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.clauses.rows import is_copy_topic
from specs.facts.findings import Findings
from specs.facts.rows import Rows
from specs.facts.segments import NEVER, NO_TEXT, NONE, Ints, dense
from specs.history.row import Row
from specs.vocabulary import DLQ_PREFIX, RETRY_PREFIX, Kind, Outcome

GIVES, SENT, READ = 0, 1, 2


class Message:
    """What is known of one message so far. Groups are names; rows are positions."""

    __slots__ = ("came_back", "known", "sent")

    def __init__(self) -> None:
        self.known: set[str] = set()
        self.came_back: set[str] = set()
        self.sent: dict[str, int] = {}


def of_interest(rows: Rows) -> tuple[Ints, Ints]:
    """(positions of the rows about messages of which a dead letter was acknowledged, their messages)."""
    letter, back = rows.are(Kind.DEAD_LETTER), rows.are(Kind.SEND_BACK)
    copy = rows.starts_with("topic", DLQ_PREFIX) | rows.starts_with("topic", RETRY_PREFIX)
    read = (
        rows.are(Kind.READ)
        & rows.ended_as(Outcome.OK)
        & (copy | (rows.text("origin_id") != NO_TEXT))
    )
    read &= (rows.offset != NONE) & (rows.end < NEVER)
    message, count = dense(rows.run, rows.source)
    given_up = np.zeros(count, np.bool_)
    given_up[message[letter & rows.ended_as(Outcome.OK)]] = True
    where = np.flatnonzero((letter | back | read) & given_up[message])
    return where, message[where]


def kernel(rows: Rows, findings: Findings) -> None:
    """A copy lies where a group that gave its message up may have it."""
    where, message = of_interest(rows)
    words, topics = rows.words("group"), rows.words("topic")
    topic_of, letter, ok = rows.text("topic"), rows.are(Kind.DEAD_LETTER), rows.ended_as(Outcome.OK)
    read = rows.are(Kind.READ)
    events: list[tuple[int, int, int, int]] = []  # when, what, row, message
    for row, number in zip(where.tolist(), message.tolist(), strict=True):
        if read[row]:
            events.append((int(rows.end[row]), READ, row, number))
            continue
        events.append((int(rows.begin[row]), GIVES, row, number))
        if letter[row] and ok[row] and rows.end[row] < NEVER:
            events.append((int(rows.end[row]), SENT, row, number))
    messages: dict[int, Message] = {}
    for _when, what, row, number in sorted(events):
        known = messages.setdefault(number, Message())
        topic = topics[topic_of[row]] if topic_of[row] != NO_TEXT else ""
        if what == READ:
            _judge(rows, findings, known, row, topic)
            continue
        group = words[rows.group[row]] if rows.group[row] != NO_TEXT else ""
        if what == SENT:
            known.sent.setdefault(group, row)
            continue
        known.known.add(group)
        if not (
            letter[row]
            and 0 <= rows.config_of(row).max_reconsume_times <= rows.number("reconsume_times")[row]
        ):
            known.came_back.add(group)


def _judge(rows: Rows, findings: Findings, known: Message, row: int, topic: str) -> None:
    if not known.sent:
        return
    findings.at_stake(np.asarray([row]))
    first = min(known.sent.values(), key=lambda each: int(rows.begin[each]))
    if topic.startswith(DLQ_PREFIX):
        if topic.removeprefix(DLQ_PREFIX) not in known.known:
            findings.violation([first, row])
    elif topic.startswith(RETRY_PREFIX):
        group = topic.removeprefix(RETRY_PREFIX)
        if group not in known.known:
            findings.violation([first, row])
        elif group in known.sent and group not in known.came_back:
            findings.violation([known.sent[group], row])
    else:
        for letter in known.sent.values():
            if rows.text("topic")[letter] == rows.text("topic")[row]:
                findings.violation([letter, row])
                break


TWIN = Twin(
    "DLQ-8", ("message_id", "origin_id", "queue_offset", "outcome", "reconsume_times"), kernel
)
find = TWIN.find


# ---- what breaks the clause, planted


def copy_in_its_own_topic(trace: Trace) -> Changes:
    """Before the end of the queue is read, a copy of a given-up message lies there."""
    last: dict[Any, Row] = {}
    for row in trace.of(Kind.READ):
        if row.queue_offset is not None and not is_copy_topic(row.topic):
            last[row.queue] = row
    for _last, letter, _after in planting.given_up(trace):
        read = last.get(letter.queue)
        if read is not None and read.seq_begin > (letter.seq_end or 0):
            columns = {
                "message_id": f"{letter.message_id}-copy",
                "origin_id": letter.message_id,
                "body_hash": None,
            }
            place = {"queue_offset": (read.queue_offset or 0) + 1, "key_seq": None}
            yield partial(
                lambda r, c: trace.with_more([trace.another(r, r, 1, **c)], [r.seq_begin]),
                read,
                {**columns, **place},
            )


DEFECTS = (
    Mutant(
        "copy-in-its-topic",
        "DLQ-8",
        "a copy of a given-up message lies in its topic",
        copy_in_its_own_topic,
    ),
)
