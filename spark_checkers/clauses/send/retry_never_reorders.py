"""SND-9 over columns: only keys of which a message was refused are gone through, by the ends of their sends."""

from __future__ import annotations

from functools import partial

import numpy as np

from spark_checkers.findings import Findings
from spark_checkers.planting import Changes, Mutant, Planted, Trace
from spark_checkers.rows import Rows
from spark_checkers.segments import NEVER, NO_TEXT, NONE, Ints, Mask, by_time, dense, positions
from spark_checkers.stored import broker_died, halves
from spark_checkers.stored import refused as certainly_refused
from spark_checkers.twin import Twin
from specs.history.row import Row
from specs.vocabulary import DLQ_PREFIX, RETRY_PREFIX, Kind, Outcome

TRIES_MAX = 8


def kernel(rows: Rows, findings: Findings) -> None:
    copy = rows.starts_with("topic", RETRY_PREFIX) | rows.starts_with("topic", DLQ_PREFIX)
    number = rows.number("key_seq")
    at_once = np.isin(rows.number("delay_level"), (0, NONE))
    named = (rows.text("message_id") != NO_TEXT) & (rows.text("sharding_key") != NO_TEXT)
    sends = rows.are(Kind.SEND) & ~halves(rows) & (number != NONE) & named & at_once & ~copy
    ended = rows.end < NEVER
    refused = sends & certainly_refused(rows)
    where = positions(sends)
    if not refused.any():
        return
    key, count = dense(
        rows.run[where],
        rows.client[where],
        rows.text("topic")[where],
        rows.text("sharding_key")[where],
    )
    touched = np.zeros(count, np.bool_)
    touched[key[refused[where]]] = True
    where, key = where[touched[key]], key[touched[key]]
    # An open send counts from its begin, every other one from its end.
    time = np.where(ended[where], rows.end[where], rows.begin[where])
    order = by_time(key, time)
    where, key = where[order], key[order]
    stored = rows.ended_as(Outcome.OK) & (rows.offset != NONE) & ended
    for part in np.split(where, positions(np.diff(key) != 0) + 1):
        _one_key(rows, findings, part, refused, stored)


def _one_key(rows: Rows, findings: Findings, sends: Ints, refused: Mask, stored: Mask) -> None:
    message, attempt = rows.text("message_id"), rows.number("attempt")
    number, begin, end = (
        dict(zip(sends.tolist(), column[sends].tolist(), strict=True))
        for column in (rows.number("key_seq"), rows.begin, rows.end)
    )
    waiting: dict[int, list[int]] = {}
    unclear: set[int] = set()
    highest: dict[int, int] = {}
    context = rows.context_of(int(sends[0]))
    client = rows.name_of("client_id", int(sends[0]))

    def gone(place: int, now: int) -> bool:
        """Was it another process of that name that sent this?"""
        if client not in context.ended:  # it is asked for every two messages of a key
            return False
        return context.is_of_an_old_life(client, rows.name_of("group", place), begin[place], now)

    def beside(tries: list[int], later: int) -> bool:
        """Does the history show that the later message was not sent in turn: beside one of these tries, or before
        all?"""
        at = begin[later]
        return end[tries[0]] >= at or any(begin[each] <= at <= end[each] for each in tries)

    stakes = 0
    columns = (rows.queue[sends], message[sends], refused[sends], stored[sends])
    for place, queue, mine, is_refused, is_stored in zip(
        sends.tolist(), *(column.tolist() for column in columns), strict=True
    ):
        if is_refused:
            if mine not in unclear:
                waiting.setdefault(mine, []).append(place)
            continue
        if is_stored:
            now = end[place]
            if gone(place, now):
                unclear.add(mine)
                waiting.pop(mine, None)
                continue
            stakes += any(
                number[others[0]] < number[place]
                and not beside(others, place)
                and not gone(others[0], now)
                for others in waiting.values()
            )
            later = highest.get(queue)
            if later is None or number[place] > number[later] or gone(later, now):
                highest[queue] = place
            else:
                before = waiting.get(mine, [])
                tries = 1 if attempt[place] == NONE else int(attempt[place])
                first_copy = before and len(before) == tries - 1 and len(before) <= TRIES_MAX
                behind = rows.offset[place] > rows.offset[later] and number[place] < number[later]
                died = broker_died(rows, later, now, rows.name_of("broker", place))
                if (
                    first_copy
                    and behind
                    and not died
                    and context.frames_twice > now
                    and not gone(before[0], now)
                    and not beside([*before, place], later)
                ):
                    stakes += 1
                    findings.violation([*before, later, place])
        unclear.add(mine)
        waiting.pop(mine, None)
    if stakes:
        findings.at_stake_times(int(sends[0]), stakes)


TWIN = Twin(
    "SND-9",
    (
        "client_id",
        "message_id",
        "sharding_key",
        "key_seq",
        "queue_offset",
        "attempt",
        "outcome",
        "code",
        "delay_level",
        "detail",
    ),
    kernel,
)
find = TWIN.find


# ---- what breaks the clause, planted


def stored_behind(trace: Trace) -> Changes:
    last: dict[tuple[str | None, ...], Row] = {}
    for send in trace.of(Kind.SEND):
        key = (send.client_id, send.topic, send.sharding_key)
        plain = (
            send.attempt == 1
            and send.outcome is Outcome.OK
            and send.key_seq is not None
            and not send.delay_level
        )
        before = last.get(key) if plain else None
        if before is not None and before.queue == send.queue and send.sharding_key is not None:
            yield partial(_stored_behind, trace, before, send)
        if plain:
            last[key] = send


def _stored_behind(trace: Trace, before: Row, send: Row) -> Planted:
    refused = {"outcome": Outcome.REFUSED, "code": 14, "queue_offset": None}
    again = trace.another(
        before, send, 1, attempt=2, queue_offset=1_000_000 + (send.queue_offset or 0)
    )
    changed = Trace(trace.changed({before.seq_begin: refused}).rows, trace.info)
    return changed.with_more([again], [before.seq_begin, send.seq_begin])


DEFECTS = (
    Mutant(
        "stored-behind", "SND-9", "a refused message is stored behind its successor", stored_behind
    ),
)
