"""A producer's retry may store a message twice, but not its first copy behind a later message of its key.

The producer numbers the messages of a key and goes on to the next one when the last has ended, well or badly. A message
whose tries were all refused so far is not there; when a further try stores it behind a message with a higher number,
the two lie the wrong way round, and nobody who reads the queue can tell. Decided where every earlier try was certainly
refused (as for SND-3), both were acknowledged in one queue, and that broker did not crash between; a try that was not
answered may have stored the first copy in time, and a second copy may lie anywhere. A producer did not send in turn
where the later message began before any try of the earlier one had ended, or while one was under way; then nothing is
said of the two. Nor is it of messages of two lives of a producer, which numbers its keys anew. Where frames may come
twice, a refusal says nothing. It is the case of SND-4 that does harm, and the one that is left where retries of keyed
messages are allowed.
"""

import numpy as np

from specs.clauses.premises import BROKER_LIVES, NO_FRAME_TWICE, SENT_IN_TURN
from specs.clauses.terms import Finding, Findings, Row, Rows, at, who
from specs.facts.columns import NEVER, NO_TEXT, NONE, Ints, Mask
from specs.facts.segments import by_time, dense, positions
from specs.facts.stored import broker_died, copies, halves
from specs.facts.stored import refused as certainly_refused
from specs.plan.traits import Stake, Trait
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "SND-9"
TITLE = "a retry never reorders"
STATEMENT = "A retry of a send may store a message twice, but never its first copy behind a later message of its key."
PARTY = Party.PAIR
KEY = Key.PRODUCER_KEY
PREMISE = (SENT_IN_TURN, NO_FRAME_TWICE, BROKER_LIVES)
SOURCES = ("docs/sources.md#send",)
REFINES = ("SND-4",)
STAKES = (Stake(Trait.FULL_DISK),)
KINDS = frozenset({Kind.SEND})
NEEDS = frozenset({Kind.SEND})
COLUMNS = (
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
)


class StoredBehind(Finding):
    refused: tuple[Row, ...]
    later: Row
    stored: Row


TRIES_MAX = 8


def judge(rows: Rows, findings: Findings) -> None:
    number = rows.number("key_seq")
    at_once = np.isin(rows.number("delay_level"), (0, NONE))
    named = (rows.text("message_id") != NO_TEXT) & (rows.text("sharding_key") != NO_TEXT)
    sends = rows.are(Kind.SEND) & ~halves(rows) & (number != NONE) & named & at_once & ~copies(rows)
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
    first = int(sends[0])
    client, context = rows.client_of(first), rows.context_of(first)
    if client in context.ended:
        stakes = _one_by_one(rows, findings, sends, refused, stored)
    else:
        stakes = _of_one_process(rows, findings, sends, refused[sends], stored[sends])
    if stakes:
        findings.at_stake_times(first, stakes)


def _of_one_process(
    rows: Rows, findings: Findings, sends: Ints, refused: Mask, stored: Mask
) -> int:
    """The opportunities of a key: each message that waits for a further try is compared with all that follows."""
    message, number = rows.text("message_id")[sends], rows.number("key_seq")[sends]
    begin, end, queue = rows.begin[sends], rows.end[sends], rows.queue[sends]
    at_stake, found = np.zeros(len(sends), np.bool_), 0
    for code in np.unique(message[refused]):
        mine = positions(message == code)
        tries = mine[np.logical_and.accumulate(refused[mine])]
        if not len(tries):
            continue  # nobody knows that it was not there already
        first, last = int(tries[0]), len(sends)
        if len(tries) < len(mine):
            last = int(mine[len(tries)])
            earlier = positions(stored[:last] & (queue[:last] == queue[last]))
            if stored[last] and len(earlier):
                later = sends[earlier[np.argmax(number[earlier])]]
                before = sends[tries].tolist()
                found += _is_found(rows, findings, before, int(later), int(sends[last]))
        after = slice(first + 1, last + 1)
        beside = end[first] >= begin[after]
        for each in tries.tolist():
            known = np.arange(first + 1, first + 1 + len(beside)) > each
            beside |= known & (begin[each] <= begin[after]) & (begin[after] <= end[each])
        at_stake[after] |= stored[after] & (number[first] < number[after]) & ~beside
    return int(at_stake.sum()) + found


def _is_found(rows: Rows, findings: Findings, before: list[int], later: int, place: int) -> bool:
    """Was the message, of which these tries were refused, stored behind the later one in its first copy?"""
    number, attempt = rows.number("key_seq"), int(rows.number("attempt")[place])
    tries = 1 if attempt == NONE else attempt
    now = int(rows.end[place])
    if (
        len(before) == tries - 1
        and len(before) <= TRIES_MAX
        and number[place] < number[later]
        and rows.offset[place] > rows.offset[later]
        and not broker_died(rows, later, now, rows.name_of("broker", place))
        and rows.context_of(place).frames_twice > now
        and not _is_beside(rows, [*before, place], later)
    ):
        findings.shown(StoredBehind, {"refused": before, "later": later, "stored": place})
        return True
    return False


def _is_beside(rows: Rows, tries: list[int], later: int) -> bool:
    """Does the history show that the later message was not sent in turn: beside one of these tries, or before all?"""
    begin, end = rows.begin, rows.end
    at = begin[later]
    return bool(end[tries[0]] >= at) or any(begin[each] <= at <= end[each] for each in tries)


def _one_by_one(rows: Rows, findings: Findings, sends: Ints, refused: Mask, stored: Mask) -> int:
    """Likewise of a client of which a process ended: any of the messages may be of that one."""
    message = rows.text("message_id")
    number, begin, end = rows.number("key_seq"), rows.begin, rows.end
    waiting: dict[int, list[int]] = {}
    unclear: set[int] = set()
    highest: dict[int, int] = {}
    context = rows.context_of(int(sends[0]))
    client = rows.client_of(int(sends[0]))

    def gone(place: int, now: int) -> bool:
        """Was it another process of that name that sent this?"""
        group = rows.name_of("group", place)
        return context.is_of_an_old_life(client, group, int(begin[place]), now)

    stakes = 0
    columns = (rows.queue[sends], message[sends], refused[sends], stored[sends])
    for place, queue, mine, is_refused, is_stored in zip(
        sends.tolist(), *(column.tolist() for column in columns), strict=True
    ):
        if is_refused:
            if mine not in unclear:
                waiting.setdefault(mine, []).append(place)
            continue
        now = int(end[place])
        if is_stored and not gone(place, now):
            stakes += any(
                number[others[0]] < number[place]
                and not _is_beside(rows, others, place)
                and not gone(others[0], now)
                for others in waiting.values()
            )
            later, before = highest.get(queue), waiting.get(mine)
            if later is None or number[place] > number[later] or gone(later, now):
                highest[queue] = place
            elif before and not gone(before[0], now):
                stakes += _is_found(rows, findings, before, later, place)
        unclear.add(mine)
        waiting.pop(mine, None)
    return stakes


def explain(found: StoredBehind) -> str:
    first, later, stored = found.refused[0], found.later, found.stored
    return (
        f"message {stored.message_id}, number {stored.key_seq} of key {stored.sharding_key}, was refused at "
        f"{at(first)}, and attempt {stored.attempt} of {who(stored)} stored it at offset {stored.queue_offset} of "
        f"{stored.queue} at {at(stored)}, behind number {later.key_seq} at offset {later.queue_offset}"
    )
