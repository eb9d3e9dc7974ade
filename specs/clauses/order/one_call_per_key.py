"""In the key-ordered mode, calls of one sharding key never overlap, follow the queue, and hold back no other key.

Within an incarnation, for messages with a sharding key: (a) no call of a key begins while another one of it runs; (b)
none begins with an offset below those of the key's call before; (c) after a call that asks for its messages again
(SUSPEND, null, a throw, or a manual ROLLBACK) none begins beyond the lowest that is owed of them: each stays owed until
it came again, or was given up by a dead letter that began after the call had ended and was acknowledged (one that names
no incarnation speaks for its client). A message whose retries were used up, or whose counter is not told though there
is a limit, is owed only where such a dead letter of it, of its incarnation, had failed when the key's next call began,
and not where one fails later: of a client that is watched from outside none need be told. Messages without a key are
free, and so are different keys, and different lanes.

(d) In an incarnation that was watched from its add, the first call of a key begins no later than the slack of the
schedule after a call that begins with a later message. The later one was pulled no earlier and was given a thread, so
that one was to be had; the key had nothing running and nothing suspended; so it waited for another key. Threads are
taken to be given to keys in turn. A key's further calls are not asked about: when it became free for them is not
recorded.
"""

import numpy as np

from specs.clauses.premises import KEY_ORDERED, NO_RESET
from specs.clauses.terms import Finding, Findings, Line, Row, Rows, at, ms, over_us, who
from specs.facts.calls import CALL_COLUMNS, Calls, may_be_given_up
from specs.facts.columns import MS, NEVER, NO_TEXT, NONE, NOWHERE, Ints, Mask
from specs.facts.segments import chosen, dense, ints, positions
from specs.facts.tenures import Tenures
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "ORD-11"
TITLE = "one call per key, in order"
STATEMENT = "In the key-ordered mode a key has one running call at a time, in order, and holds back no other key."
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (KEY_ORDERED, NO_RESET)
SOURCES = ("docs/sources.md#key-order",)
LOOKS_BACK = True
KINDS = frozenset({Kind.DELIVER, Kind.DEAD_LETTER, Kind.ADD, Kind.DROP, Kind.RESET})
SETTINGS = ("max_reconsume_times",)
NEEDS = frozenset({Kind.DELIVER})
COLUMNS = (*CALL_COLUMNS, "sharding_key")


class OutOfTurn(Finding):
    """before: of the key's call before the new one; running: whether it was not over."""

    before: Row
    new: Row
    running: bool


class HeldBack(Finding):
    """later: a call of a later message that began long before the first call of the key."""

    add: Row
    later: Row
    first: Row


def judge(rows: Rows, findings: Findings) -> None:
    """The calls of each key: the first one beside what lies behind it, the others beside what came before."""
    stay, key = _stays(rows), rows.text("sharding_key")
    calls = Calls(rows, dense(stay, key)[0])
    keyed = key[calls.first] != NO_TEXT
    findings.at_stake(calls.first[keyed])
    _held_back(rows, findings, stay, calls.first[keyed & ~calls.follows])
    second = positions(keyed & calls.follows)
    new, first, last = calls.first[second], calls.first[second - 1], calls.last[second - 1]
    running = rows.end[last] >= rows.begin[new]
    back = ~running & (rows.offset[new] < rows.offset[first])
    owed, beyond = _passed(rows, calls, new[running | back])
    for before, then, runs in (
        (last[running], new[running], True),
        (first[back], new[back], False),
        (owed, beyond, False),
    ):
        findings.broken(OutOfTurn, {"running": runs}, before=before, new=then)


def _stays(rows: Rows) -> Ints:
    """Of each row its part of a tenure in which nobody reset the offset and the client has not dropped the lane."""
    tenures = rows.shared(Tenures)
    drops = Line(rows.incarnation, rows.end, positions(rows.are(Kind.DROP) & tenures.named))
    dropped = drops.count_before(rows.incarnation, rows.begin)
    return dense(tenures.period, dropped)[0]


def _held_back(rows: Rows, findings: Findings, stay: Ints, first: Ints) -> None:
    """Of these calls, the first of their keys, those that a later message came before by more than the slack."""
    add = rows.shared(Tenures).add[first]
    watched = (add != NOWHERE) & (stay[add] == stay[first])
    first, add = first[watched], add[watched]
    slack_us = rows.config("schedule_slack_ms", first) * MS
    calls = Line(stay, rows.started, Calls(rows, stay).first)
    later = calls.highest_before(stay[first], rows.started[first] - slack_us, rows.offset)
    late = (later != NOWHERE) & (rows.offset[later] > rows.offset[first])
    late &= rows.begin[later] < rows.begin[first]
    findings.broken(HeldBack, add=add[late], later=later[late], first=first[late])


def _passed(rows: Rows, calls: Calls, out_of_turn: Ints) -> tuple[Ints, Ints]:
    """What is owed of calls when one of their key begins beyond it: the lowest of it, and the first row of that call.

    out_of_turn: the first rows of calls that are so anyway.
    """
    begin, offset, key = rows.begin, rows.offset, calls.stands
    row, until = _owed(rows, calls, out_of_turn)
    new = Line(key, begin, calls.first).first_after_with(
        key[row],
        begin[row],
        lambda index, later: (offset[later] > offset[row[index]]) | (begin[later] >= until[index]),
    )
    passed = (new != NOWHERE) & (begin[new] < until)
    row, new = row[passed], new[passed]
    order = np.lexsort((offset[row], begin[new], key[row]))
    found: list[tuple[int, int]] = []
    # Of the key that was broken last: what it had put back before that is owed no more.
    broken, since = NOWHERE, NONE
    for owed, beyond in zip(row[order].tolist(), new[order].tolist(), strict=True):
        if key[owed] != broken or begin[owed] >= since:
            broken, since = int(key[owed]), int(begin[beyond])
            found.append((owed, beyond))
    before, then = ints(found).reshape(-1, 2).T
    return before, then


def _owed(rows: Rows, calls: Calls, out_of_turn: Ints) -> tuple[Ints, Ints]:
    """Messages that calls put back, and are owed from the next call of their key on: their rows, and until when."""
    begin, message, key = rows.begin, calls.message, calls.stands
    keyed = rows.text("sharding_key")[calls.first] != NO_TEXT
    batch = keyed & calls.puts_back[calls.last] & (calls.then != NOWHERE)
    row, call = (each[batch[calls.number]] for each in (calls.at, calls.number))
    letters = rows.are(Kind.DEAD_LETTER) & (rows.end < NEVER)
    arrived = rows.ended_as(Outcome.OK)
    failing = letters & ~arrived & rows.shared(Tenures).named
    failed = _first_letter(rows, calls, row, failing) < begin[calls.then[call]]
    row = row[failed | ~may_be_given_up(rows)[row]]
    again = Line(message, begin, calls.at).first_after(message[row], begin[row])
    cut = Line(key, begin, out_of_turn).first_after(key[row], begin[row])
    until = np.minimum(chosen(begin, again, NEVER), chosen(begin, cut, NEVER))
    return row, np.minimum(until, _first_letter(rows, calls, row, letters & arrived) + 1)


def _first_letter(rows: Rows, calls: Calls, row: Ints, letters: Mask) -> Ints:
    """When the first of these dead letters of each row's message had ended, that began once its call had; or NEVER.

    A letter may name neither the key nor the incarnation: then it is of the client. Until the key's next call begins
    the call has ended when the last of its rows so far has, and then when that of the message has.
    """
    key, named = rows.text("sharding_key"), rows.shared(Tenures).named
    message = dense(rows.lane, rows.offset)[0]
    deliveries = Line(calls.stands, rows.begin, calls.at)

    def fits(index: Ints, letter: Ints) -> Mask:
        mine = row[index]
        newest = deliveries.last_before(calls.stands[mine], rows.end[letter])
        is_of_call = calls.call_of[newest] == calls.call_of[mine]
        own = rows.incarnation[letter] == rows.incarnation[mine]
        found: Mask = np.where(named[letter], own, rows.client[letter] == rows.client[mine])
        found &= (key[letter] == NO_TEXT) | (key[letter] == key[mine])
        return found & (rows.begin[letter] > rows.end[np.where(is_of_call, newest, mine)])

    ended = Line(message, rows.end, positions(letters))
    return chosen(rows.end, ended.first_after_with(message[row], rows.begin[row], fits), NEVER)


def explain(found: OutOfTurn | HeldBack) -> str:
    if isinstance(found, HeldBack):
        first, later = found.first, found.later
        return (
            f"{who(first)} started offset {first.queue_offset} of {first.lane}, the first of key "
            f"{first.sharding_key}, at {at(first)}, {ms(first.started_us - later.started_us)} after it had started the "
            f"later offset {later.queue_offset}: another key held it back"
        )
    before, new = found.before, found.new
    what = f"{who(new)} started offset {new.queue_offset} (key {new.sharding_key}) of {new.lane} at {at(new)}"
    if found.running:
        return f"{what}, while its call of offset {before.queue_offset} of that key, begun at {at(before)}, still ran"
    if (new.queue_offset or 0) < (before.queue_offset or 0):
        return f"{what}, after offset {before.queue_offset} of that key, which it had started at {at(before)}"
    return (
        f"{what}, although offset {before.queue_offset} of that key had ended {before.outcome} at "
        f"{over_us(before) / 1_000_000:.3f} s and had to come again first"
    )
