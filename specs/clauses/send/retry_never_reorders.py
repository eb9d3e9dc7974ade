"""A producer's retry may store a message twice, but not its first copy behind a later message of its key.

The producer numbers the messages of a key and goes on to the next one when the last has ended, well or badly. A message
whose tries were all refused so far is not there; when a further try stores it behind a message with a higher number,
the two lie the wrong way round, and nobody who reads the queue can tell. Decided where every earlier try was certainly
refused (as for SND-3), both were acknowledged in one queue, and that broker did not crash between; a try that was not
answered may have stored the first copy in time, and a second copy may lie anywhere. A producer did not send in turn
where the later message began before any try of the earlier one had ended, or while one was under way; then nothing is
said of the two. A producer is one process of a client, in one life: the next one numbers its keys anew. A life ends
with a crash, and where the client joins again after it left (a send names no group, so it may be any); one that joins
again without a word of leaving may have begun anew, and what is found across that is at most possible. Nothing is said
of messages of two producers, nor where the other one may have stored the message in time. Where frames may come twice,
a refusal says nothing. It is the case of SND-4 that does harm, and the one that is left where retries of keyed messages
are allowed.
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
EXCUSED_BY = frozenset({Kind.JOIN})
COLUMNS = (
    "client_id",
    "process",
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
        stakes = _one_key(rows, findings, part, refused[part], stored[part])
        findings.at_stake_times(int(part[0]), stakes)


def _one_key(rows: Rows, findings: Findings, sends: Ints, refused: Mask, stored: Mask) -> int:
    """The opportunities of a key: each message that waits for a further try is compared with all that follows.

    What another process or life of the client has sent tells only that the message may be there already.
    """
    message, number, doer = (
        each[sends] for each in (rows.text("message_id"), rows.number("key_seq"), rows.doer)
    )
    begin, end, queue = rows.begin[sends], rows.end[sends], rows.queue[sends]
    at_stake, found = np.zeros(len(sends), np.bool_), 0
    for code in np.unique(message[refused]):
        mine = positions(message == code)
        tries = mine[np.logical_and.accumulate(refused[mine])]
        if not len(tries):
            continue  # nobody knows that it was not there already
        first, last = int(tries[0]), len(sends)
        its = doer == doer[first]
        if len(tries) < len(mine):
            last = int(mine[len(tries)])
            earlier = positions((stored & its)[:last] & (queue[:last] == queue[last]))
            if stored[last] and its[last] and len(earlier):
                later = sends[earlier[np.argmax(number[earlier])]]
                before = sends[tries[its[tries]]].tolist()
                found += _is_found(rows, findings, before, int(later), int(sends[last]))
        after = slice(first + 1, last + 1)
        beside = end[first] >= begin[after]
        for each in tries.tolist():
            known = np.arange(first + 1, first + 1 + len(beside)) > each
            beside |= known & (begin[each] <= begin[after]) & (begin[after] <= end[each])
        at_stake[after] |= (stored & its)[after] & (number[first] < number[after]) & ~beside
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
        joined = rows.context_of(place).latest(rows.client_of(place), Kind.JOIN, now)
        certain = joined is None or joined < rows.begin[before[0]]
        findings.shown(
            StoredBehind, {"refused": before, "later": later, "stored": place}, certain=certain
        )
        return True
    return False


def _is_beside(rows: Rows, tries: list[int], later: int) -> bool:
    """Does the history show that the later message was not sent in turn: beside one of these tries, or before all?"""
    begin, end = rows.begin, rows.end
    at = begin[later]
    return bool(end[tries[0]] >= at) or any(begin[each] <= at <= end[each] for each in tries)


def explain(found: StoredBehind) -> str:
    first, later, stored = found.refused[0], found.later, found.stored
    return (
        f"message {stored.message_id}, number {stored.key_seq} of key {stored.sharding_key}, was refused at "
        f"{at(first)}, and attempt {stored.attempt} of {who(stored)} stored it at offset {stored.queue_offset} of "
        f"{stored.queue} at {at(stored)}, behind number {later.key_seq} at offset {later.queue_offset}"
    )
