"""DLQ-2 over columns: only messages that were given up are looked at, message by message."""

from __future__ import annotations

from functools import partial

import numpy as np

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.facts.calls import may_be_by_hand
from specs.facts.dead_letters import dead_reads, group_of
from specs.facts.findings import Findings
from specs.facts.rows import Rows
from specs.facts.segments import NEVER, NONE, Ints, dense
from specs.facts.stored import STORED_WEAKLY
from specs.vocabulary import Kind, Outcome


class Message:
    """One message and group: its dead letters and the places where it was read, two of each at most."""

    __slots__ = ("letters", "origin", "places", "reads", "spoiled")

    def __init__(self) -> None:
        self.letters: list[int] = []
        self.origin: tuple[int, ...] = ()  # who gave it up, and where it lies
        self.reads: list[int] = []
        self.places: set[tuple[int, int, int]] = set()
        self.spoiled = False


def of_interest(rows: Rows) -> Ints:
    """Dead letters, reads of dead letters, and deliveries of what was given up that may be manual ones."""
    letter, read = rows.are(Kind.DEAD_LETTER), dead_reads(rows)
    manual = rows.are(Kind.DELIVER) & may_be_by_hand(rows)
    message, count = dense(rows.run, rows.source)
    given_up = np.zeros(count, np.bool_)
    given_up[message[letter]] = True
    return np.flatnonzero((letter | read | manual) & given_up[message])


def kernel(rows: Rows, findings: Findings) -> None:
    """A message given up once is found once."""
    where = of_interest(rows)
    if not len(where):
        return
    number, _ = dense(rows.run[where], rows.source[where], group_of(rows, where))
    # Letters count when they begin and reads when they end; the first two of either are kept.
    when = np.where(rows.are(Kind.READ)[where], rows.end[where], rows.begin[where])
    order = np.argsort(when, kind="stable")
    messages: dict[int, Message] = {}
    manual = may_be_by_hand(rows)
    read, ok = rows.are(Kind.READ), rows.ended_as(Outcome.OK)
    origins = [
        rows.text("client_id"),
        rows.text("process"),
        rows.incarnation,
        rows.text("topic"),
        rows.text("broker"),
        rows.number("queue_id"),
        rows.offset,
    ]
    first_try = np.isin(rows.number("attempt"), (NONE, 1)) & ~np.isin(
        rows.number("code"), STORED_WEAKLY
    )
    for index in order.tolist():
        row = int(where[index])
        message = messages.get(int(number[index]))
        if message is None:
            message = messages[int(number[index])] = Message()
        if read[row]:
            if ok[row] and rows.end[row] < NEVER:
                place = (
                    int(rows.text("broker")[row]),
                    int(rows.number("queue_id")[row]),
                    int(rows.offset[row]),
                )
                if len(message.reads) < 2 and place not in message.places:
                    message.places.add(place)
                    message.reads.append(row)
        elif manual[row]:
            message.spoiled = True
        else:
            origin = tuple(int(column[row]) for column in origins)
            other = message.letters and (origin != message.origin or _anew(rows, message, row))
            if not ok[row] or not first_try[row] or other:
                message.spoiled = True
            elif len(message.letters) < 2:
                message.letters.append(row)
                message.origin = origin
    for message in messages.values():
        _conclude(message, rows, findings)


def _anew(rows: Rows, message: Message, row: int) -> bool:
    """Is this of the next process of the client, which may number its incarnations as the one before did?"""
    client, group = (rows.name_of(column, row) for column in ("client_id", "group"))
    first, now = int(rows.begin[message.letters[0]]), int(rows.begin[row])
    return rows.context_of(row).is_of_an_old_life(client, group, first, now)


def _conclude(message: Message, rows: Rows, findings: Findings) -> None:
    letters, reads = message.letters, message.reads
    if message.spoiled or not letters or not (reads or len(letters) > 1):
        return
    if len(letters) > 1 and rows.config_of(letters[0]).batch > 1:
        return
    findings.at_stake(np.asarray(letters[:1]))
    if len(letters) > 1:
        findings.violation(letters)
    elif len(reads) > 1 and rows.context_of(letters[0]).frames_twice == NEVER:
        findings.violation([*letters, *reads])


TWIN = Twin(
    "DLQ-2",
    (
        *("client_id", "process", "message_id", "origin_id", "incarnation", "queue_offset"),
        *("outcome", "code", "attempt", "commit_mode"),
    ),
    kernel,
)
find = TWIN.find


# ---- what breaks the clause, planted


def dead_letter_twice(trace: Trace) -> Changes:
    if trace.info.config.batch != 1:
        return
    for _marker, row in planting.dead_reads(trace):
        yield partial(
            lambda r: trace.with_more(
                [
                    trace.another(
                        r,
                        r,
                        1,
                        queue_offset=1_000_000 + (r.queue_offset or 0),
                        message_id=f"{r.message_id}-again",
                    )
                ],
                [r.seq_begin],
            ),
            row,
        )


DEFECTS = (
    Mutant(
        "dead-letter-twice",
        "DLQ-2",
        "a dead letter is there twice",
        dead_letter_twice,
        dead_letters=True,
    ),
)
