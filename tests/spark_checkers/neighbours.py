"""Histories beside one: not drawn, but one after the other whatever is a step away.

Where its answer turns (`turning`), by one clock and by several; without each of its rows; with each other answer and
each other number of each row; with one more row of each kind at each moment; counted from 0; and with a second one of
what it has one of, which does the same or what another history says.

An offset, a value or a moment of 0 is a number like others, and is easily taken for one that is not told.
A judge that keeps what it knows by lane, by client or by incarnation goes wrong only where there are two of them, and
where one does something in the midst of what the other does. So the same is done again, or a part of it, by another
client on the same lanes, by the same one on another queue, in another of its lives, in another group or another run of
its producer's key, so that one row of it comes right before or right behind one of what was there.

Not a test file; the tests of this folder import it by path (`conftest.py` puts it on the path).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from nearby import HAPPENINGS, LOST, NUMBERS, goes_on, happens, is_possible, not_telling
from turning import later, turning

from inorder.evidence.laws import cut_open, put_in_order
from specs.clauses.clause import Clause
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.vocabulary import Kind, Outcome, dead_letter_topic, retry_topic

Rows = list[Row]
_RESULTS = (
    Outcome.SUCCESS,
    Outcome.COMMIT,
    Outcome.SUSPEND,
    Outcome.ROLLBACK,
    Outcome.THREW,
    Outcome.CUT,
    Outcome.UNKNOWN,
)
_ANSWERS = (Outcome.OK, Outcome.REFUSED, Outcome.UNKNOWN, Outcome.SENT)
_BESIDE = 20
"""So many histories with a second one of something that does the same, and so many where it does something else."""
_RUNS = 6
"""So many histories in which a call goes on, and so many in which something happens then."""
_MANY = 66
"""More than is remembered of what is remembered for a while."""
_OTHERWISE = 0.25
"""So many of these also in an open world, or by several clocks."""
_CLOCKS_US = 1000
"""How far clocks are apart where everybody has one."""
_OFFSETS = frozenset(
    {
        Kind.ADD,
        Kind.COMMIT,
        Kind.FETCH_OFFSET,
        Kind.PERSIST,
        Kind.PROGRESS,
        Kind.RESET,
        Kind.TRIM,
    }
)
"""Kinds of rows of which the value is an offset."""
_OF_A_MESSAGE = frozenset(
    {
        Kind.ACK,
        Kind.APPEND,
        Kind.CHECK,
        Kind.DEAD_LETTER,
        Kind.DELIVER,
        Kind.END_TRANSACTION,
        Kind.PULL,
        Kind.READ,
        Kind.RECEIVE,
        Kind.RELEASE,
        Kind.RENEW,
        Kind.SEND,
        Kind.SEND_BACK,
    }
)
_ABOUT = (
    "queue_offset",
    "message_id",
    "origin_id",
    "sharding_key",
    "key_seq",
    "reconsume_times",
    "attempt",
    "lease_id",
    "generation",
)
_WHERE = ("group", "topic", "broker", "queue_id")


def turns(
    info: RunInfo, rows: Sequence[Row], clause: Clause, words: str
) -> Iterator[tuple[RunInfo, Rows]]:
    """Where the clause's answer turns, by one clock and now and then by several. words: decide what is drawn."""
    found = list(turning(info, rows, clause))
    if Random(words).random() < _OTHERWISE:
        found += turning(*by_their_own_clocks(info, rows), clause)
    yield from (each for each in found if is_possible(each[1]))


def steps(
    info: RunInfo, rows: Sequence[Row], clause: Clause, others: Sequence[Sequence[Row]], words: str
) -> Iterator[tuple[RunInfo, Rows]]:
    """All others, with respect to a clause. others: histories, to be put beside it."""
    draw, kinds = Random(words), clause.kinds | clause.excuses
    yield by_their_own_clocks(info, rows)
    found = (
        *from_zero(rows),
        *without_something(rows),
        *told_otherwise(rows),
        *nobody_tells(rows),
        *of_one_call(rows),
        *answered_otherwise(rows),
        *in_the_midst(rows, kinds, draw),
        *something_happens(rows, kinds, draw),
        *for_long(rows, kinds, draw),
        *(many_times(rows, draw) for _ in range(2)),
        *(beside(rows, rows, draw) for _ in range(_BESIDE)),
        *(beside(rows, draw.choice(others), draw) for _ in range(_BESIDE)),
    )
    for begins_late in (False, True):
        yield replace(info, closed_world=False, begins_late=begins_late), [*rows]
    for each in found:
        if not is_possible(each):
            continue
        yield info, each
        if draw.random() < _OTHERWISE:
            yield replace(info, closed_world=False, begins_late=draw.random() < 0.5), each
        if draw.random() < _OTHERWISE:
            yield by_their_own_clocks(info, each)


def by_their_own_clocks(info: RunInfo, rows: Sequence[Row]) -> tuple[RunInfo, Rows]:
    """Whoever wrote rows has a clock of their own, and no two are far apart."""
    clocks = {row.process or "" for row in rows}
    info = replace(info, clock_bounds_us=dict.fromkeys(sorted(clocks), _CLOCKS_US))
    return info, [row._replace(clock=row.process or "") for row in rows]


def beside(rows: Sequence[Row], besides: Sequence[Row], draw: Random) -> Rows:
    """The history, and another one or a part of it, of something else, at about the same time."""
    if not rows or not besides:
        return [*rows]
    first = draw.randrange(len(besides))
    parts = (besides, besides, besides[: first + 1], besides[first:], besides[first : first + 1])
    names = {row.op_id for row in draw.choice(parts)}
    chosen = [row for row in besides if row.op_id in names]
    other = draw.choice(_OTHERS)([*rows, *besides])
    by_us = _mark(draw.choice(rows), draw) - _mark(draw.choice(chosen), draw)
    by_us += draw.choice((-1, 0, 0, 1))
    by_us = draw.choice((by_us, 0, 0)) if len(chosen) == len(besides) else by_us
    by_us = max(by_us, -min(row.started_us for row in chosen))
    last = max(row.seq_end or row.seq_begin for row in (*rows, *besides))
    op = max(row.op_id for row in rows)
    is_before = draw.random() < 0.5  # where both are at one moment
    copies = []
    for row in chosen:
        seq = row.seq_begin - (last + 1) if is_before else row.seq_begin + last + 1
        copies.append(
            later(other(row), by_us)._replace(
                run=rows[0].run,
                op_id=op + row.op_id,
                seq_begin=seq,
                seq_end=None if row.seq_end is None else seq + (row.seq_end - row.seq_begin),
            )
        )
    return put_in_order([*rows, *copies])


def for_long(rows: Sequence[Row], kinds: frozenset[Kind], draw: Random) -> Iterator[Rows]:
    """The history with one of its calls going on for a run of others; and something happens to somebody in it."""
    happenings = [each for each in HAPPENINGS if each[0] in kinds]
    for _ in range(_RUNS):
        longer = [*rows]
        goes_on(longer, draw)
        yield put_in_order(longer)
        if happenings and longer:
            mark_us = draw.choice(_marks(longer))
            happens(longer, draw.choice(rows), draw.choice(happenings), draw, mark_us)
            yield put_in_order(longer)


def many_times(rows: Sequence[Row], draw: Random) -> Rows:
    """The history with one of its rows so often that whoever remembers the last ones forgets the first ones."""
    if not rows:
        return []
    like, last = draw.choice(rows), max(row.seq_end or row.seq_begin for row in rows)
    by, op = draw.choice((0, 1)), max(row.op_id for row in rows)
    more = []
    for number in range(1, _MANY + 1):
        row = later(like, number)._replace(
            op_id=op + number,
            seq_begin=last + 2 * number,
            seq_end=None if like.seq_end is None else last + 2 * number,
            ended_us=None if like.ended_us is None else like.started_us + number,
        )
        if by and row.queue_offset is not None:
            row = row._replace(
                queue_offset=row.queue_offset + number, message_id=f"{row.message_id}+{number}"
            )
        elif by and row.value is not None:
            row = row._replace(value=row.value + number)
        more.append(row)
    return put_in_order([*rows, *more])


def without_something(rows: Sequence[Row]) -> Iterator[Rows]:
    """The history without each of its rows in turn, and without the end of each."""
    for at, row in enumerate(rows):
        yield [*rows[:at], *rows[at + 1 :]]
        if row.kind is not Kind.READ or row.queue_offset is None:
            yield [*rows[:at], cut_open(row), *rows[at + 1 :]]


def told_otherwise(rows: Sequence[Row]) -> Iterator[Rows]:
    """The history with each number of each of its rows by one, or below 0; and with whatever a row tells not told."""
    for at, row in enumerate(rows):
        for name in NUMBERS:
            number = getattr(row, name)
            for other in () if number is None else {number - 1, number + 1, -1}:
                if other >= 0 or name == "value":
                    yield [*rows[:at], row._replace(**{name: other}), *rows[at + 1 :]]
        for name in LOST:
            untold = not_telling(row, name)
            if untold != row:
                yield [*rows[:at], untold, *rows[at + 1 :]]


def of_one_call(rows: Sequence[Row]) -> Iterator[Rows]:
    """The history with the messages of a call told as of the one before, whether or not the two overlap."""
    last: dict[Hashable, Row] = {}
    for at, row in enumerate(rows):
        name = (row.lane, row.client_id, row.incarnation)
        if row.kind is Kind.DELIVER:
            before = last.get(name)
            if before is not None and before.op_id != row.op_id:
                yield [*rows[:at], row._replace(op_id=before.op_id), *rows[at + 1 :]]
            last[name] = row


def nobody_tells(rows: Sequence[Row]) -> Iterator[Rows]:
    """The history with each thing that any of its rows tells told by none of them."""
    for name in LOST:
        untold = [not_telling(row, name) for row in rows]
        if untold != list(rows):
            yield untold


def answered_otherwise(rows: Sequence[Row]) -> Iterator[Rows]:
    """The history with each other answer of each of its rows in turn, and each other mode of a call."""
    for at, row in enumerate(rows):
        if row.seq_end is None:
            continue
        is_call = row.kind is Kind.DELIVER
        for outcome in _RESULTS if is_call else _ANSWERS:
            for mode in {row.commit_mode: None, "manual": None} if is_call else (row.commit_mode,):
                changed = row._replace(outcome=outcome, commit_mode=mode)
                if changed != row:
                    yield [*rows[:at], changed, *rows[at + 1 :]]


def _mark(row: Row, draw: Random) -> int:
    return draw.choice((row.started_us, row.started_us if row.ended_us is None else row.ended_us))


def in_the_midst(rows: Sequence[Row], kinds: frozenset[Kind], draw: Random) -> Iterator[Rows]:
    """The history with one more row: of each of these kinds, at each moment at which something begins or ends.

    It is like a row of its kind that is there, or of somebody who is there about something that is there.
    """
    for mark_us in _marks(rows):
        for kind in sorted(kinds.difference(kind for kind, _ in HAPPENINGS)):
            yield put_in_order([*rows, _one_more(rows, kind, mark_us, draw)])


def something_happens(rows: Sequence[Row], kinds: frozenset[Kind], draw: Random) -> Iterator[Rows]:
    """Likewise, where it is something that happens to a client, to a broker or to what lies between them."""
    for mark_us in _marks(rows):
        for happening in HAPPENINGS:
            if happening[0] in kinds:
                more = [*rows]
                happens(more, draw.choice(rows), happening, draw, mark_us)
                yield put_in_order(more)
                if draw.random() < _OTHERWISE:  # and then something else
                    later_us = draw.choice([each for each in _marks(rows) if each >= mark_us])
                    happens(more, draw.choice(rows), draw.choice(HAPPENINGS), draw, later_us)
                    yield put_in_order(more)


def _marks(rows: Sequence[Row]) -> list[int]:
    return sorted({mark for row in rows for mark in (row.started_us, row.ended_us or 0)})


def _one_more(rows: Sequence[Row], kind: Kind, at_us: int, draw: Random) -> Row:
    same = [row for row in rows if row.kind is kind]
    like = draw.choice(same if same and draw.random() < 0.6 else rows)
    about = draw.choice([row for row in rows if row.message_id is not None] or [like])
    at_us = max(0, at_us + draw.choice((-1, 0, 0, 1)))
    lasts_us = draw.choice((0, 1, 1000, 1_000_000))
    last, before = max(row.seq_end or row.seq_begin for row in rows), draw.random() < 0.5
    seq = -2 if before else last + 1
    answers = _RESULTS if kind is Kind.DELIVER else _ANSWERS
    columns: dict[str, Any] = {
        "op_id": max(row.op_id for row in rows) + 1,
        "kind": kind,
        "seq_begin": seq,
        "seq_end": seq + (lasts_us > 0),
        "started_us": at_us,
        "ended_us": at_us + lasts_us,
        "outcome": draw.choice((draw.choice(answers), answers[0])),
    }
    if like.kind is not kind:
        known = [row.incarnation for row in rows if row.incarnation is not None]
        of_message = kind in _OF_A_MESSAGE
        columns |= {name: getattr(about, name) if of_message else None for name in _ABOUT}
        columns |= {"value": None, "commit_mode": None, "suspend_ms": None}
        if kind in _OFFSETS:
            columns |= {
                "value": draw.choice((0, about.queue_offset, (about.queue_offset or 0) + 1))
            }
        if like.queue_id is None:
            columns |= {name: getattr(about, name) for name in _WHERE}
        if like.incarnation is None and known:
            columns |= {"incarnation": draw.choice(known)}
        if kind is Kind.DELIVER:
            columns |= {"commit_mode": "auto"}
    if columns["outcome"] is Outcome.UNKNOWN and draw.random() < 0.5:
        columns |= {"seq_end": None, "ended_us": None}
    return like._replace(**columns)


def from_zero(rows: Sequence[Row]) -> Iterator[Rows]:
    """With each queue's first offset 0; and with each of its moments as moment 0, before which nothing took time."""
    least: dict[Hashable, int] = {}
    for row in rows:
        for offset in _offsets(row):
            least[row.queue] = min(offset, least.get(row.queue, offset))
    if any(least.values()):
        yield [_counted_from(row, least.get(row.queue, 0)) for row in rows]
    marks = {mark for row in rows for mark in (row.started_us, row.ended_us) if mark}
    for mark in sorted(marks):
        yield put_in_order([_since(row, mark) for row in rows])


def _offsets(row: Row) -> list[int]:
    value = row.value if row.kind in _OFFSETS else None
    return [each for each in (row.queue_offset, value) if each is not None and each >= 0]


def _counted_from(row: Row, first: int) -> Row:
    if row.queue_offset is not None:
        row = row._replace(queue_offset=max(0, row.queue_offset - first))
    if row.kind in _OFFSETS and row.value is not None and row.value >= 0:
        row = row._replace(value=max(0, row.value - first))
    return row


def _since(row: Row, mark_us: int) -> Row:
    return row._replace(
        started_us=max(0, row.started_us - mark_us),
        ended_us=None if row.ended_us is None else max(0, row.ended_us - mark_us),
    )


# ------------------------------------------------------------------------------------------ of what else


def _of_another_client(rows: Sequence[Row]) -> Callable[[Row], Row]:
    clients = {row.client_id for row in rows} - {row.broker for row in rows} - {None}
    names = {client: f"{client}-too" for client in clients}

    def other(row: Row) -> Row:
        return row._replace(
            client_id=names.get(row.client_id or "", row.client_id),
            process=names.get(row.process or "", row.process),
            incarnation=None if row.incarnation is None else f"{row.incarnation}-too",
            lease_id=None if row.lease_id is None else f"{row.lease_id}-too",
        )

    return other


def _of_another_client_and_message(rows: Sequence[Row]) -> Callable[[Row], Row]:
    client, message = _of_another_client(rows), _of_another_message(rows)
    return lambda row: message(client(row))


def _of_another_message(rows: Sequence[Row]) -> Callable[[Row], Row]:
    """On the same queues, behind all that is there."""
    known = [row.queue_offset for row in rows if row.queue_offset is not None]
    by = max(known) - min(known) + 1 if known else 0

    def other(row: Row) -> Row:
        return _renamed(row)._replace(
            queue_offset=None if row.queue_offset is None else row.queue_offset + by
        )

    return other


def _of_another_queue(rows: Sequence[Row]) -> Callable[[Row], Row]:
    by = max((row.queue_id for row in rows if row.queue_id is not None), default=0) + 1

    def other(row: Row) -> Row:
        return _renamed(row)._replace(
            queue_id=None if row.queue_id is None else row.queue_id + by,
            incarnation=None if row.incarnation is None else f"{row.incarnation}-too",
        )

    return other


def _renamed(row: Row) -> Row:
    return row._replace(
        message_id=None if row.message_id is None else f"{row.message_id}-too",
        origin_id=None if row.origin_id is None else f"{row.origin_id}-too",
        lease_id=None if row.lease_id is None else f"{row.lease_id}-too",
    )


def _of_another_broker(rows: Sequence[Row]) -> Callable[[Row], Row]:
    brokers = {row.broker for row in rows} - {None}

    def other(row: Row) -> Row:
        names = {name: f"{name}-too" for name in brokers}
        return _renamed(row)._replace(
            broker=names.get(row.broker or "", row.broker),
            process=names.get(row.process or "", row.process),
            client_id=names.get(row.client_id or "", row.client_id),
            incarnation=None if row.incarnation is None else f"{row.incarnation}-too",
        )

    return other


def _of_another_life(rows: Sequence[Row]) -> Callable[[Row], Row]:
    def other(row: Row) -> Row:
        return row._replace(
            incarnation=None if row.incarnation is None else f"{row.incarnation}-too"
        )

    return other


def _of_another_key(rows: Sequence[Row]) -> Callable[[Row], Row]:
    message = _of_another_message(rows)

    def other(row: Row) -> Row:
        key = row.sharding_key
        return message(row)._replace(sharding_key=None if key is None else f"{key}-too")

    return other


def _of_another_group(rows: Sequence[Row]) -> Callable[[Row], Row]:
    client = _of_another_client(rows)
    groups = {row.group for row in rows if row.group is not None}
    topics = {
        name(group): name(f"{group}-too")
        for group in groups
        for name in (retry_topic, dead_letter_topic)
    }

    def other(row: Row) -> Row:
        if row.group is None and row.topic not in topics:
            return client(row)
        return client(row)._replace(
            group=None if row.group is None else f"{row.group}-too",
            topic=topics.get(row.topic or "", row.topic),
        )

    return other


_OTHERS: Sequence[Callable[[Sequence[Row]], Callable[[Row], Row]]] = (
    _of_another_client,
    _of_another_client_and_message,
    _of_another_message,
    _of_another_queue,
    _of_another_broker,
    _of_another_life,
    _of_another_key,
    _of_another_group,
)
