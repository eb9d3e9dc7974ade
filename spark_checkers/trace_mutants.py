"""Defects planted into a history that was valid: rows in, rows out.

A *defect* changes as little as it can so that one clause, which it names, is broken (now and then another one is
broken with it: whoever skips a message also commits past it). A *lookalike* changes as much, and breaks nothing.
Both work on generated and on recorded histories; what they need (a suspended call, a handover) must be there.
Rows that are added take seq numbers between those of their neighbours: `spread` makes room in a recorded history.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

from specs.clauses.base import REQUEST_LEVELS, acknowledges, is_copy_topic, is_manual
from specs.errors import UsageError
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.vocabulary import DLQ_PREFIX, LISTENER_SUSPENDS, Kind, Lane, Level, Outcome, Queue

MS = 1000
ROOM = 8
_MESSAGE = (
    "queue_offset",
    "message_id",
    "origin_id",
    "sharding_key",
    "key_seq",
    "body_hash",
    "tags",
)
"""The columns that say which message a delivery is about."""
_OWNER = ("client_id", "process", "incarnation")
"""The columns that say whose delivery it is."""
STRANGER = "stranger"
ANOTHER = "another-stranger"


def spread(rows: Iterable[Row], room: int = ROOM) -> list[Row]:
    """The same history with room for `room` - 1 seq numbers after each."""
    return [
        row._replace(
            seq_begin=row.seq_begin * room,
            seq_end=None if row.seq_end is None else row.seq_end * room,
        )
        for row in rows
    ]


@dataclass(frozen=True, slots=True)
class Planted:
    """The changed rows, by seq_begin, and the seq_begin of rows that the change is about (to cut files there)."""

    rows: list[Row]
    about: tuple[int, ...]


class Trace:
    """The rows of one run (or of one queue of it), by seq_begin, with what the changes ask about them."""

    def __init__(self, rows: Sequence[Row], info: RunInfo) -> None:
        self.rows = list(rows)
        self.info = info
        self._ops = max((row.op_id for row in self.rows), default=0)

    # ---- questions

    @cached_property
    def lanes(self) -> dict[Lane, list[Row]]:
        """The requests of each lane of an original topic."""
        found: dict[Lane, list[Row]] = {}
        for row in self.rows:
            if (
                row.level in REQUEST_LEVELS
                and row.group
                and row.queue_id is not None
                and not is_copy_topic(row.topic)
            ):
                found.setdefault(row.lane, []).append(row)
        return found

    def of(self, *kinds: Kind) -> Iterator[Row]:
        return (row for row in self.rows if row.kind in kinds and row.level in REQUEST_LEVELS)

    @cached_property
    def works(self) -> list[list[Row]]:
        """The rows of each incarnation that began once, with an ADD."""
        found: dict[tuple[Lane, str], list[Row]] = {}
        for lane, rows in self.lanes.items():
            for row in rows:
                if row.incarnation is not None:
                    found.setdefault((lane, row.incarnation), []).append(row)
        return [rows for rows in found.values() if sum(row.kind is Kind.ADD for row in rows) == 1]

    @cached_property
    def calls(self) -> list[list[Row]]:
        """The deliveries of each such incarnation."""
        return [[row for row in rows if row.kind is Kind.DELIVER] for rows in self.works]

    @cached_property
    def sent(self) -> dict[tuple[str | None, str | None, int | None, int | None], Row]:
        """Acknowledged sends by their place."""
        return {
            (row.topic, row.broker, row.queue_id, row.queue_offset): row
            for row in self.of(Kind.SEND)
            if row.outcome is Outcome.OK and row.queue_offset is not None
        }

    @cached_property
    def first_calls(self) -> dict[tuple[str | None, str | None, int | None, int | None], Row]:
        """The first delivery to anybody of each place, while no broker has crashed."""
        found: dict[tuple[str | None, str | None, int | None, int | None], Row] = {}
        if not any(row.broker for row in self.of(Kind.CRASH)):
            for row in self.of(Kind.DELIVER):
                found.setdefault((row.topic, row.broker, row.queue_id, row.queue_offset), row)
        return found

    def locks(self, lane: Lane) -> list[Row]:
        """The lane's granted locks that were answered, in the order of their answers."""
        found = [
            row for row in self.lanes[lane] if row.kind is Kind.LOCK and row.outcome is Outcome.OK
        ]
        return sorted(
            (row for row in found if row.seq_end is not None), key=lambda row: row.seq_end or 0
        )

    # ---- changes

    def changed(
        self, changes: Mapping[int, Mapping[str, Any]], about: Iterable[int] | None = None
    ) -> Planted:
        rows = [
            row._replace(**changes[row.seq_begin]) if row.seq_begin in changes else row
            for row in self.rows
        ]
        return Planted(rows, tuple(sorted(changes if about is None else about)))

    def without(self, gone: Iterable[int], about: Iterable[int]) -> Planted:
        left = set(gone)
        return Planted(
            [row for row in self.rows if row.seq_begin not in left], tuple(sorted(about))
        )

    def with_more(self, new: Sequence[Row], about: Iterable[int] = ()) -> Planted:
        rows = sorted([*self.rows, *new], key=lambda row: row.seq_begin)
        return Planted(rows, tuple(sorted({*about, *(row.seq_begin for row in new)})))

    def another(
        self, like: Row, after: Row, step: int, *, at_end: bool = True, **columns: Any
    ) -> Row:
        """A row like another one, right after the end (or the begin) of a row; step: its turn among such rows."""
        anchor = after.seq_end if at_end and after.seq_end is not None else after.seq_begin
        time = after.ended_us if at_end and after.ended_us is not None else after.started_us
        self._ops += 1
        base = {
            "seq_begin": anchor + 2 * step - 1,
            "seq_end": anchor + 2 * step,
            "op_id": self._ops,
            "started_us": time,
            "ended_us": time,
            "wall_us": None if like.wall_us is None else like.wall_us + (time - like.started_us),
            "clock": after.clock,
        }
        return like._replace(**{**base, **columns})


Changes = Iterator[Callable[[], Planted]]
"""Every place where a change can be made, as a function that makes it."""
Site = Callable[[Trace], Changes]
"""Finds every place where a change can be made, as a function that makes it."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change. clause: what it breaks; None for a lookalike.

    generated: whether generated histories have a place for it; recorded ones have. dead_letters: planted into the
    dead-letter queues. by_hand: into the lanes of a group in manual mode. consumed: the mode and the model of the
    histories that have a place for it. config: what the run's configuration is said to have been. tagged: into a run
    whose groups subscribe to some tags, and in which batches are sent.
    """

    name: str
    clause: str | None
    why: str
    sites: Site
    dead_letters: bool = False
    generated: bool = True
    by_hand: bool = False
    consumed: tuple[str, str] = ("orderly", "clustering")
    config: Mapping[str, Any] = field(default_factory=dict)
    tagged: bool = False

    def under(self, info: RunInfo) -> RunInfo:
        """The run's description as the changed history has it."""
        return replace(info, config=replace(info.config, **self.config)) if self.config else info


def plant(
    mutant: Mutant, rows: Sequence[Row], info: RunInfo, *, seed: int = 0, first: bool = False
) -> Planted:
    """Make the change somewhere (first: at the first place where it can be made).

    rows: by seq_begin, with room between their seq numbers (see `spread`). Raises UsageError where the history has
    no place for it.
    """
    sites = mutant.sites(Trace(rows, info))
    if first:
        site = next(sites, None)
    else:
        all_sites = list(sites)
        site = random.Random(seed).choice(all_sites) if all_sites else None
    if site is None:
        raise UsageError(f"this history has no place for the defect {mutant.name}: {mutant.why}")
    return site()


# ---------------------------------------------------------------- order


def _neighbours(trace: Trace) -> Iterator[tuple[Row, Row]]:
    """First deliveries that follow each other in one incarnation, finished at once, no commit between."""
    for rows in trace.works:
        highest, before = -1, None
        for row in rows:
            if row.kind is Kind.COMMIT:
                before = None
            elif row.kind is Kind.DELIVER and row.queue_offset is not None:
                plain = (
                    row.outcome is Outcome.SUCCESS
                    and not row.reconsume_times
                    and row.queue_offset > highest
                )
                sent = trace.sent.get((row.topic, row.broker, row.queue_id, row.queue_offset))
                there = before is not None and (sent is None or sent.seq_begin < before.seq_begin)
                if plain and there and before is not None and before.op_id != row.op_id:
                    yield before, row
                before = row if plain else None
                highest = max(highest, row.queue_offset)


def _swapped(trace: Trace, first: Row, second: Row) -> Planted:
    ours, theirs = first._asdict(), second._asdict()
    return trace.changed(
        {
            first.seq_begin: {name: theirs[name] for name in _MESSAGE},
            second.seq_begin: {name: ours[name] for name in _MESSAGE},
        }
    )


def swap_deliveries(trace: Trace) -> Changes:
    for first, second in _neighbours(trace):
        if first.sharding_key != second.sharding_key or first.sharding_key is None:
            yield partial(_swapped, trace, first, second)


def swap_key(trace: Trace) -> Changes:
    for first, second in _neighbours(trace):
        same = first.sharding_key is not None and first.sharding_key == second.sharding_key
        if (
            same
            and first.key_seq is not None
            and second.key_seq is not None
            and first.key_seq < second.key_seq
        ):
            yield partial(_swapped, trace, first, second)


def overtake_suspended(trace: Trace) -> Changes:
    for calls in trace.calls:
        for index, row in enumerate(calls):
            if (
                row.outcome not in LISTENER_SUSPENDS
                or row.seq_end is None
                or row.queue_offset is None
            ):
                continue
            again = calls[index + 1] if index + 1 < len(calls) else None
            if (
                again is None
                or again.queue_offset != row.queue_offset
                or again.started_us <= (row.ended_us or 0)
            ):
                continue
            later = next(
                (c for c in calls[index + 1 :] if (c.queue_offset or 0) > (row.queue_offset or 0)),
                None,
            )
            if later is not None and not later.reconsume_times:
                yield partial(_overtaken, trace, row, later)


def _overtaken(trace: Trace, suspended: Row, later: Row) -> Planted:
    columns: dict[str, Any] = {
        "outcome": Outcome.SUCCESS,
        "suspend_ms": None,
        "reconsume_times": later.reconsume_times,
    }
    early = trace.another(later, suspended, 1, **columns)
    return trace.with_more([early], [suspended.seq_begin])


def skip_at_handover(trace: Trace) -> Changes:
    for rows in trace.works:
        add = next(row for row in rows if row.kind is Kind.ADD)
        calls = [row for row in rows if row.kind is Kind.DELIVER]
        lane = trace.lanes[add.lane]
        looked = [r for r in lane if r.kind is Kind.FETCH_OFFSET and r.seq_begin < add.seq_begin]
        known = looked and looked[-1].outcome is Outcome.OK and looked[-1].value == add.value
        if (
            not calls
            or not known
            or looked[-1].client_id != add.client_id
            or calls[0].queue_offset != add.value
        ):
            continue
        if (add.topic, add.broker, add.queue_id, add.value) not in trace.sent:
            continue
        if any(
            r.kind is Kind.DELIVER and r.queue_offset == add.value and r.seq_begin < add.seq_begin
            for r in lane
        ):
            continue
        gone = {
            r.seq_begin
            for r in rows
            if r.kind in (Kind.DELIVER, Kind.DEAD_LETTER) and r.queue_offset == add.value
        }
        next_call = next((row for row in calls if row.seq_begin not in gone), None)
        if next_call is not None:
            about = (looked[-1].seq_begin, next_call.seq_begin)
            yield partial(trace.without, gone, about)


def delivered_below_start(trace: Trace) -> Changes:
    for rows in trace.works:
        add = next(row for row in rows if row.kind is Kind.ADD)
        calls = [row for row in rows if row.kind is Kind.DELIVER]
        said = [row for row in rows if row.kind is Kind.FETCH_OFFSET or row.detail == "corrected"]
        if calls and add.value and all(row.value == add.value for row in said):
            below = {
                "queue_offset": add.value - 1,
                "message_id": f"{calls[0].message_id}-below",
                "key_seq": None,
            }
            about = (add.seq_begin, calls[0].seq_begin)
            yield partial(trace.changed, {calls[0].seq_begin: below}, about)


def finished_comes_again(trace: Trace) -> Changes:
    for calls in trace.calls:
        for before, row in itertools.pairwise(calls):
            done = (
                before.outcome is Outcome.SUCCESS
                and before.seq_end is not None
                and not is_manual(before)
            )
            if done and (before.seq_end or 0) < row.seq_begin and before.op_id != row.op_id:
                again = trace.another(before, before, 1, attempt=2)
                yield partial(lambda a, b: trace.with_more([a], [b.seq_begin]), again, before)


def another_message_there(trace: Trace) -> Changes:
    for send, read in _reads(trace):
        call = trace.first_calls.get((read.topic, read.broker, read.queue_id, read.queue_offset))
        if call is not None and send.message_id == read.message_id == call.message_id:
            change = {call.seq_begin: {"message_id": f"{read.message_id}-other"}}
            about = (call.seq_begin, read.seq_begin)
            yield partial(trace.changed, change, about)


def hole_between(trace: Trace) -> Changes:
    found: dict[Any, list[Row]] = {}
    for row in trace.of(Kind.READ):
        if not is_copy_topic(row.topic):
            found.setdefault(row.queue, []).append(row)
    died = {row.broker for row in trace.of(Kind.CRASH)}
    for rows in found.values():
        marker, *reads = rows
        if (
            marker.queue_offset is None
            and marker.outcome is Outcome.OK
            and marker.broker not in died
        ):
            for below, gone, above in zip(reads, reads[1:], reads[2:], strict=False):
                about = (below.seq_begin, above.seq_begin)
                yield partial(lambda g, a: trace.without([g], a), gone.seq_begin, about)


def sends_swapped(trace: Trace) -> Changes:
    last: dict[Any, Row] = {}
    for row in trace.sent.values():
        before = last.get(row.queue)
        usual = not row.delay_level and not is_copy_topic(row.topic)
        if (
            usual
            and before is not None
            and before.seq_end is not None
            and before.seq_end < row.seq_begin
        ):
            change = {
                before.seq_begin: {"queue_offset": row.queue_offset},
                row.seq_begin: {"queue_offset": before.queue_offset},
            }
            yield partial(trace.changed, change)
        if usual:
            last[row.queue] = row


def _keyed(trace: Trace) -> Iterator[tuple[Row, Row]]:
    """Two sends of one producer and key, chosen alike; the first was over before the second began."""
    last: dict[Any, Row] = {}
    for row in trace.sent.values():
        if row.view is None or row.delay_level:
            continue
        choice = (row.client_id, row.topic, row.sharding_key, row.view)
        before = last.get(choice)
        if before is not None and before.seq_end is not None and before.seq_end < row.seq_begin:
            yield before, row
        last[choice] = row


def _moved(trace: Trace, before: Row, row: Row, **columns: Any) -> Planted:
    place = {"queue_id": (row.queue_id or 0) + 1, "queue_offset": 10_000_000 + row.seq_begin}
    return trace.changed({row.seq_begin: {**place, **columns}}, (before.seq_begin, row.seq_begin))


def key_strays(trace: Trace) -> Changes:
    for before, row in _keyed(trace):
        yield partial(_moved, trace, before, row)


def producers_disagree(trace: Trace) -> Changes:
    for before, row in _keyed(trace):
        yield partial(
            lambda b, r: _moved(trace, b, r, client_id=STRANGER, process=STRANGER), before, row
        )


def queues_changed(trace: Trace) -> Changes:
    """The list of queues is another one for a moment, and the key has another queue in it."""
    for send, read in _reads(trace):
        if send.view is not None and send.message_id == read.message_id:
            more: dict[str, Any] = {
                "view": f"{send.view} z/9",
                "broker": "z",
                "queue_id": 9,
                "queue_offset": 0,
                "message_id": f"{send.message_id}-moved",
            }
            yield partial(
                lambda s, m: trace.with_more([trace.another(s, s, 1, **m)], [s.seq_begin]),
                send,
                more,
            )


def handover_without_report(trace: Trace) -> Changes:
    """The old owner reports nothing, and the new one begins with the first of what the old one had finished."""
    for rows in trace.works:
        drop = next((row for row in rows if row.kind is Kind.DROP), None)
        lane = trace.lanes[rows[0].lane]
        if drop is None:
            continue
        calls = [row for row in rows if row.kind is Kind.DELIVER and row.seq_begin < drop.seq_begin]
        done = [row for row in calls if row.outcome is Outcome.SUCCESS and not is_manual(row)]
        unlock = next(
            (r for r in lane if r.kind is Kind.UNLOCK and r.seq_begin > drop.seq_begin), None
        )
        add = next(
            (row for row in lane if row.kind is Kind.ADD and row.seq_begin > drop.seq_begin), None
        )
        if len(done) < 2 or unlock is None or unlock.client_id != drop.client_id or add is None:
            continue
        theirs = [
            row
            for row in lane
            if row.incarnation == add.incarnation and row.seq_begin > add.seq_begin
        ]
        first = next((row for row in theirs if row.kind is Kind.DELIVER), None)
        early = (done[0].queue_offset or 0) < (calls[-1].queue_offset or 0) and done[
            0
        ].seq_begin != calls[-1].seq_begin
        if first is None or not early or unlock.seq_begin > add.seq_begin:
            continue
        commits = [row.seq_begin for row in rows if row.kind is Kind.COMMIT]
        again = trace.another(done[0], first, 1, **{name: getattr(first, name) for name in _OWNER})
        again = again._replace(seq_begin=first.seq_begin - 2, seq_end=first.seq_begin - 1)
        yield partial(
            lambda g, a, d: Trace(trace.without(g, ()).rows, trace.info).with_more(
                [a], [d.seq_begin]
            ),
            commits,
            again,
            drop,
        )


def call_after_drop(trace: Trace) -> Changes:
    for rows in trace.works:
        calls = [row for row in rows if row.kind is Kind.DELIVER and row.outcome is Outcome.SUCCESS]
        drops = [row for row in rows if row.kind is Kind.DROP]
        if calls and drops:
            yield partial(
                lambda c, d: trace.with_more([trace.another(c, d, 1)], [d.seq_begin]),
                calls[-1],
                drops[-1],
            )


# ---------------------------------------------------------------- leases


def _held(trace: Trace) -> Iterator[Row]:
    """Granted locks after which the owner keeps the lane for a while."""
    for lane in trace.lanes:
        locks = trace.locks(lane)
        for index, lock in enumerate(locks[:-1]):
            after = locks[index + 1]
            if (
                after.client_id == lock.client_id
                and after.started_us > (lock.ended_us or 0) + 10 * MS
            ):
                undone = any(
                    row.kind is Kind.UNLOCK
                    and row.client_id == lock.client_id
                    and row.seq_begin < after.seq_begin
                    and row.seq_begin > lock.seq_begin - 1
                    for row in trace.lanes[lane]
                )
                if not undone:
                    yield lock


def second_owner(trace: Trace) -> Changes:
    for lock in _held(trace):
        yield partial(
            lambda a: trace.with_more([_lock(trace, a, 1, STRANGER, Outcome.OK)], [a.seq_begin]),
            lock,
        )


def _lock(trace: Trace, lock: Row, step: int, client: str, outcome: Outcome) -> Row:
    return trace.another(lock, lock, step, client_id=client, process=client, outcome=outcome)


def stranger_unlock(trace: Trace) -> Changes:
    for lock in _held(trace):
        yield partial(_freed, trace, lock)


def _freed(trace: Trace, lock: Row) -> Planted:
    unlock = _lock(trace, lock, 1, STRANGER, Outcome.OK)._replace(kind=Kind.UNLOCK)
    return trace.with_more([unlock, _lock(trace, lock, 2, ANOTHER, Outcome.OK)], [lock.seq_begin])


def two_processors(trace: Trace) -> Changes:
    lease = min(trace.info.config.broker_lease_ms, trace.info.config.client_lease_ms) * MS
    for calls in trace.calls:
        if not calls:
            continue
        locks = [
            lock for lock in trace.locks(calls[0].lane) if lock.client_id == calls[0].client_id
        ]
        for row in calls:
            if (
                row.outcome is not Outcome.SUCCESS
                or row.seq_end is None
                or row.reconsume_times
                or is_manual(row)
            ):
                continue
            before = [lock for lock in locks if (lock.seq_end or 0) < row.seq_begin]
            if (
                before
                and row.started_us - before[-1].started_us < lease // 2
                and row.seq_end > row.seq_begin
            ):
                yield partial(_processed, trace, row)


def _processed(trace: Trace, row: Row) -> Planted:
    columns = {"client_id": STRANGER, "process": STRANGER, "incarnation": f"{STRANGER}#1"}
    return trace.with_more([trace.another(row, row, 1, at_end=False, **columns)], [row.seq_begin])


def stale_lease(trace: Trace) -> Changes:
    limit = (trace.info.config.client_lease_ms + 2) * MS
    for calls in trace.calls:
        if not calls:
            continue
        locks = [
            lock for lock in trace.locks(calls[0].lane) if lock.client_id == calls[0].client_id
        ]
        mine = [lock for lock in locks if lock.seq_begin > calls[0].seq_begin]
        before = [lock for lock in locks if lock.seq_begin < calls[0].seq_begin]
        for index, call in enumerate(calls):
            if index and before and call.started_us - (before[-1].ended_us or 0) > limit:
                gone = [lock.seq_begin for lock in mine if (lock.seq_end or 0) < call.seq_begin]
                if gone:
                    about = (before[-1].seq_begin, call.seq_begin)
                    yield partial(trace.without, gone, about)
                break


def refused_free_lane(trace: Trace) -> Changes:
    for rows in trace.lanes.values():
        last: Row | None = None
        for index, row in enumerate(rows):
            if row.kind is Kind.LOCK and row.outcome is not Outcome.REFUSED:
                last = row if row.outcome is Outcome.OK else None
            if (
                row.kind is not Kind.UNLOCK
                or last is None
                or last.client_id != row.client_id
                or row.seq_end is None
            ):
                continue
            after = next((each for each in rows[index + 1 :] if each.kind is Kind.LOCK), None)
            alone = after is None or after.seq_begin > row.seq_end
            if alone and (last.seq_end or 0) < row.seq_begin:
                yield partial(_refused, trace, last, row)


def _refused(trace: Trace, lock: Row, unlock: Row) -> Planted:
    # Only an answered unlock has certainly freed the lane for others; the owner itself is granted in any case.
    asker = STRANGER if unlock.outcome is Outcome.OK else lock.client_id
    refused = trace.another(
        lock,
        unlock,
        1,
        client_id=asker,
        process=asker,
        outcome=Outcome.REFUSED,
        lease_until_us=None,
        code=None,
    )
    return trace.with_more([refused], [lock.seq_begin, unlock.seq_begin])


def unlock_in_vain(trace: Trace) -> Changes:
    for lock in _held(trace):
        yield partial(
            lambda a: trace.with_more(
                [
                    _lock(trace, a, 1, str(a.client_id), Outcome.OK)._replace(kind=Kind.UNLOCK),
                    _lock(trace, a, 2, STRANGER, Outcome.REFUSED),
                ],
                [a.seq_begin],
            ),
            lock,
        )


def _elsewhere(trace: Trace, lock: Row, after: Row, client: str, outcome: Outcome) -> Row:
    """A stranger asks for the lane that another group has of the same queue."""
    asked = trace.another(lock, after, 1, client_id=client, process=client, outcome=outcome)
    return asked._replace(group="strangers", incarnation=None, code=None, lease_until_us=None)


def _later(trace: Trace, row: Row, after_us: int) -> Row | None:
    """The first row that begins so long after the end of another."""
    since = (row.ended_us or row.started_us) + after_us
    return next(
        (each for each in trace.rows if each.seq_begin > row.seq_begin and each.started_us > since),
        None,
    )


def outlived_lease(trace: Trace) -> Changes:
    limit = (trace.info.config.broker_lease_ms + 1) * MS
    for lock in trace.of(Kind.LOCK):
        late = _later(trace, lock, limit)
        if late is not None:
            yield partial(
                lambda a, b: trace.with_more(
                    [
                        _elsewhere(trace, a, a, STRANGER, Outcome.OK),
                        _elsewhere(trace, a, b, ANOTHER, Outcome.REFUSED),
                    ]
                ),
                lock,
                late,
            )


def prolonged_by_a_refusal(trace: Trace) -> Changes:
    limit = (trace.info.config.broker_lease_ms + 1) * MS
    for lock in trace.of(Kind.LOCK):
        early, late = _later(trace, lock, limit // 2), _later(trace, lock, limit)
        if early is not None and late is not None and early.seq_begin < late.seq_begin:
            yield partial(
                lambda a, b, c: trace.with_more(
                    [
                        _elsewhere(trace, a, a, STRANGER, Outcome.OK),
                        _elsewhere(trace, a, b, ANOTHER, Outcome.REFUSED),
                        _elsewhere(trace, a, c, ANOTHER, Outcome.REFUSED),
                    ]
                ),
                lock,
                early,
                late,
            )


def pull_without_lease(trace: Trace) -> Changes:
    for rows in trace.works:
        add = next(row for row in rows if row.kind is Kind.ADD)
        pull = next((row for row in rows if row.kind is Kind.PULL), None)
        asked = [
            row.seq_begin
            for row in trace.lanes[add.lane]
            if row.kind is Kind.LOCK and row.client_id == add.client_id and pull is not None
        ]
        gone = [seq for seq in asked if pull is not None and seq < pull.seq_begin]
        if gone and pull is not None:
            yield partial(
                lambda g, a, p: trace.without(g, [a.seq_begin, p.seq_begin]), gone, add, pull
            )


def renewals_missing(trace: Trace) -> Changes:
    config = trace.info.config
    bound = (config.lock_interval_ms + config.schedule_slack_ms + config.delay_bound_ms) * MS
    working = (Kind.DELIVER, Kind.PULL, Kind.COMMIT)
    for rows in trace.works:
        add = next(row for row in rows if row.kind is Kind.ADD)
        late = next(
            (
                row
                for row in rows
                if row.kind in working and row.started_us - add.started_us > bound
            ),
            None,
        )
        if late is not None:
            asked = [
                row.seq_begin
                for row in rows
                if row.kind is Kind.LOCK and row.seq_begin < late.seq_begin
            ]
            about = (add.seq_begin, late.seq_begin)
            yield partial(trace.without, asked, about)


def unlock_during_a_call(trace: Trace) -> Changes:
    unsaid: dict[str, Any] = dict.fromkeys(
        (*_MESSAGE, "reconsume_times", "commit_mode", "attempt", "suspend_ms")
    )
    for calls in trace.calls:
        for row in calls:
            if row.seq_end is not None and row.outcome is Outcome.SUCCESS:
                columns = {**unsaid, "kind": Kind.UNLOCK, "outcome": Outcome.SENT}
                yield partial(
                    lambda r, c: trace.with_more(
                        [trace.another(r, r, 1, at_end=False, **c)], [r.seq_begin]
                    ),
                    row,
                    columns,
                )


def lease_kept(trace: Trace) -> Changes:
    config = trace.info.config
    for lock in trace.of(Kind.LOCK):
        late = _later(trace, lock, config.schedule_slack_ms * MS)
        asked = 0 if late is None else (late.ended_us or late.started_us) - (lock.ended_us or 0)
        if late is not None and asked < (config.broker_lease_ms // 2) * MS:
            yield partial(_kept, trace, lock, late)


def _kept(trace: Trace, lock: Row, late: Row) -> Planted:
    granted = _elsewhere(trace, lock, lock, STRANGER, Outcome.OK)
    drop = _elsewhere(trace, lock, lock, STRANGER, Outcome.OK)
    drop = drop._replace(
        kind=Kind.DROP,
        seq_begin=granted.seq_begin + 2,
        seq_end=granted.seq_begin + 2,
        incarnation=f"{STRANGER}#1",
    )
    return trace.with_more([granted, drop, _elsewhere(trace, lock, late, ANOTHER, Outcome.REFUSED)])


def orphan_forgotten(trace: Trace) -> Changes:
    for lock in trace.of(Kind.LOCK):
        if lock.outcome is Outcome.OK and lock.queue_id is not None:
            yield partial(_orphaned, trace, lock)


def _orphaned(trace: Trace, lock: Row) -> Planted:
    """After everything else, a stranger is granted a lane and dies; the one to whom it is assigned never adds it."""
    config = trace.info.config
    times = (
        config.broker_lease_ms,
        config.rebalance_ms,
        config.delay_bound_ms,
        config.schedule_slack_ms,
    )
    last = max(trace.rows, key=lambda row: max(row.seq_begin, row.seq_end or 0))
    granted = _elsewhere(trace, lock, last, STRANGER, Outcome.OK)
    end = max(granted.started_us, *(max(row.started_us, row.ended_us or 0) for row in trace.rows))
    bare = granted._replace(queue_id=None, broker=None)
    share = f"{lock.broker}/{lock.queue_id}"
    made = (
        (0, granted),
        (1, bare._replace(kind=Kind.CRASH, group=None, topic=None)),
        (2, bare._replace(kind=Kind.ASSIGN, client_id=ANOTHER, detail=share)),
        (
            sum(times) * MS + 3,
            granted._replace(client_id=ANOTHER, queue_id=(lock.queue_id or 0) + 1),
        ),
    )
    return trace.with_more(
        [
            row._replace(
                seq_begin=granted.seq_begin + 2 * step,
                seq_end=granted.seq_begin + 2 * step,
                op_id=granted.op_id + step,
                started_us=end + late_us,
                ended_us=end + late_us,
            )
            for step, (late_us, row) in enumerate(made)
        ]
    )


# ---------------------------------------------------------------- retries and dead letters


def _redelivered(trace: Trace) -> Iterator[tuple[Row, Row]]:
    """A suspended delivery and the next one of the same message."""
    for calls in trace.calls:
        if any(row.outcome is Outcome.ROLLBACK for row in calls):
            continue
        for before, row in itertools.pairwise(calls):
            if (
                before.outcome in LISTENER_SUSPENDS
                and before.queue_offset == row.queue_offset
                and before.seq_end
            ):
                yield before, row


def early_redelivery(trace: Trace) -> Changes:
    for before, row in _redelivered(trace):
        waited_ms = (row.started_us - (before.ended_us or 0)) // MS
        if waited_ms < 29_000:
            change = {before.seq_begin: {"suspend_ms": max(10, waited_ms + 50)}}
            about = (before.seq_begin, row.seq_begin)
            yield partial(trace.changed, change, about)


def counter_reset(trace: Trace) -> Changes:
    if trace.info.config.batch != 1:
        return
    for before, row in _redelivered(trace):
        counted = row.reconsume_times == (before.reconsume_times or 0) + 1
        if counted and before.reconsume_times is not None and acknowledges(row):
            change = {row.seq_begin: {"reconsume_times": 0}}
            about = (before.seq_begin, row.seq_begin)
            yield partial(trace.changed, change, about)


def given_up_too_soon(trace: Trace) -> Changes:
    limit = trace.info.config.max_reconsume_times
    if trace.info.config.batch != 1 or limit < 1:
        return
    for rows in trace.works:
        calls = [row for row in rows if row.kind in (Kind.DELIVER, Kind.DEAD_LETTER)]
        if any(row.outcome is Outcome.ROLLBACK for row in calls):
            continue
        for index in range(2, len(calls)):
            first, last, letter = calls[index - 2 : index + 1]
            same = first.queue_offset == last.queue_offset == letter.queue_offset
            kinds = (first.kind, last.kind, letter.kind) == (
                Kind.DELIVER,
                Kind.DELIVER,
                Kind.DEAD_LETTER,
            )
            counted = first.reconsume_times == limit - 1 and last.reconsume_times == limit
            if same and kinds and counted and letter.outcome is Outcome.OK:
                about = (first.seq_begin, letter.seq_begin)
                yield partial(lambda g, a: trace.without([g], a), last.seq_begin, about)


def start_before_suspended(trace: Trace) -> Changes:
    """A message that was finished comes in the place of the suspended one that follows it."""
    for calls in trace.calls:
        if any(row.outcome is Outcome.ROLLBACK for row in calls):
            continue
        for before, suspended, again in zip(calls, calls[1:], calls[2:], strict=False):
            gone = (
                before.queue_offset is not None
                and before.queue_offset + 1 == suspended.queue_offset
            )
            fine = (
                acknowledges(before)
                and suspended.outcome in LISTENER_SUSPENDS
                and suspended.seq_end is not None
            )
            if gone and fine and again.queue_offset == suspended.queue_offset:
                yield partial(
                    lambda b, s: trace.with_more([trace.another(b, s, 1)], [s.seq_begin]),
                    before,
                    suspended,
                )


def throw_taken_for_success(trace: Trace) -> Changes:
    """The first of two neighbours ends with a throw, and nothing follows from it."""
    for first, second in _neighbours(trace):
        if not is_manual(first):
            change = {
                first.seq_begin: {
                    "outcome": Outcome.THREW,
                    "suspend_ms": trace.info.config.suspend_ms,
                }
            }
            about = (first.seq_begin, second.seq_begin)
            yield partial(trace.changed, change, about)


def rollback_counted(trace: Trace) -> Changes:
    for calls in trace.calls:
        for index, row in enumerate(calls):
            again = calls[index + 1] if index + 1 < len(calls) else None
            if (
                row.outcome is not Outcome.ROLLBACK
                or not is_manual(row)
                or again is None
                or row.seq_end is None
            ):
                continue
            if again.reconsume_times is not None and (again.queue_offset or 0) <= (
                row.queue_offset or 0
            ):
                change = {again.seq_begin: {"reconsume_times": again.reconsume_times + 1}}
                about = (row.seq_begin, again.seq_begin)
                yield partial(trace.changed, change, about)


def counted_on(trace: Trace) -> Changes:
    """The old owner's last call suspends the message with which the new owner begins, as its first retry."""
    by_lane: dict[Lane, list[list[Row]]] = {}
    for calls in trace.calls:
        if calls:
            by_lane.setdefault(calls[0].lane, []).append(calls)
    for works in by_lane.values():
        for old, new in itertools.pairwise(sorted(works, key=lambda calls: calls[0].seq_begin)):
            last, first = old[-1], new[0]
            ended = (
                last.seq_end is not None and last.seq_end < first.seq_begin and acknowledges(last)
            )
            follows = last.queue_offset is not None and last.queue_offset + 1 == first.queue_offset
            if ended and follows and not is_manual(last) and first.reconsume_times == 0:
                yield partial(_counted_on, trace, last, first)


def _counted_on(trace: Trace, last: Row, first: Row) -> Planted:
    whose: dict[str, Any] = {
        name: getattr(last, name) for name in ("process", "client_id", "incarnation")
    }
    tried = trace.another(
        first, last, 1, outcome=Outcome.SUSPEND, suspend_ms=trace.info.config.suspend_ms, **whose
    )
    planted = trace.changed({first.seq_begin: {"reconsume_times": 1}})
    return Trace(planted.rows, trace.info).with_more([tried], [first.seq_begin])


def _given_up(trace: Trace) -> Iterator[tuple[Row, Row, Row]]:
    """(the last delivery, its dead letter, the incarnation's next call): given up at the first try, in auto mode."""
    for rows in trace.works:
        rows = [row for row in rows if row.kind in (Kind.DELIVER, Kind.DEAD_LETTER)]
        if any(is_manual(row) for row in rows):
            continue
        for last, letter, after in zip(rows, rows[1:], rows[2:], strict=False):
            kinds = (last.kind, letter.kind, after.kind) == (
                Kind.DELIVER,
                Kind.DEAD_LETTER,
                Kind.DELIVER,
            )
            same = last.queue_offset == letter.queue_offset and letter.outcome is Outcome.OK
            if (
                kinds
                and same
                and letter.attempt in (None, 1)
                and (after.queue_offset or 0) > (last.queue_offset or 0)
            ):
                yield last, letter, after


def given_up_comes_back(trace: Trace) -> Changes:
    if trace.info.config.batch != 1:
        return
    for last, letter, _after in _given_up(trace):
        columns = {
            "outcome": Outcome.SUCCESS,
            "suspend_ms": None,
            "reconsume_times": (last.reconsume_times or 0) + 1,
        }
        yield partial(
            lambda r, a, c: trace.with_more([trace.another(r, a, 1, **c)], [a.seq_begin]),
            last,
            letter,
            columns,
        )


def given_up_again(trace: Trace) -> Changes:
    for _last, letter, _after in _given_up(trace):
        yield partial(lambda a: trace.with_more([trace.another(a, a, 1)], [a.seq_begin]), letter)


def failed_dead_letter_skipped(trace: Trace) -> Changes:
    for _last, letter, after in _given_up(trace):
        change = {letter.seq_begin: {"outcome": Outcome.REFUSED, "code": 1}}
        about = (letter.seq_begin, after.seq_begin)
        yield partial(trace.changed, change, about)


def _grant(trace: Trace, like: Row, answered_us: int, until_us: int) -> Row | None:
    """The last grant of a row's client that was answered by then, if it is fresh until then and nothing undid it."""
    lane = [row for row in trace.lanes[like.lane] if row.client_id == like.client_id]
    found = [row for row in trace.locks(like.lane) if row.client_id == like.client_id]
    found = [row for row in found if row.ended_us is not None and row.ended_us <= answered_us]
    if not found or found[-1].started_us + trace.info.config.client_lease_ms * MS < until_us:
        return None
    undone = (row for row in lane if row.kind is Kind.UNLOCK or row.outcome is Outcome.REFUSED)
    return (
        found[-1]
        if all(row.started_us > until_us or row.seq_begin < found[-1].seq_begin for row in undone)
        else None
    )


def _until_drop(rows: Sequence[Row]) -> float:
    """When an incarnation was dropped."""
    return next((row.seq_begin for row in rows if row.kind is Kind.DROP), float("inf"))


def suspended_for_ever(trace: Trace) -> Changes:
    """No call follows a suspended one until the lease is renewed, long after."""
    config = trace.info.config
    for rows in trace.works:
        calls = [row for row in rows if row.kind in (Kind.DELIVER, Kind.DEAD_LETTER)]
        for row in calls:
            used_up = 0 <= config.max_reconsume_times <= (row.reconsume_times or 0)
            if (
                row.outcome not in LISTENER_SUSPENDS
                or row.suspend_ms is None
                or used_up
                or row.ended_us is None
            ):
                continue
            due_us = row.ended_us + row.suspend_ms * MS
            until_us = due_us + config.schedule_slack_ms * MS
            lock = _grant(trace, row, due_us - MS, until_us + MS)
            later = [
                r
                for r in trace.locks(row.lane)
                if r.client_id == row.client_id and r.started_us > until_us
            ]
            if lock is not None and later and later[0].seq_begin < _until_drop(rows):
                gone = [
                    r.seq_begin for r in calls if row.seq_begin < r.seq_begin < later[0].seq_begin
                ]
                about = (row.seq_begin, later[0].seq_begin)
                yield partial(trace.without, gone, about)


def held_back(trace: Trace) -> Changes:
    """No call of a lane follows one that went well until the bound is over, and another lane was busy all the time."""
    config = trace.info.config
    slack_us = config.schedule_slack_ms * MS
    for rows in trace.works:
        for before, after in itertools.pairwise(row for row in rows if row.kind is Kind.DELIVER):
            went_well = (
                before.outcome is Outcome.SUCCESS
                and before.ended_us is not None
                and not before.reconsume_times
            )
            if not went_well or after.queue_offset != (before.queue_offset or 0) + 1:
                continue
            other = _call_of_another_lane(trace, before)
            pull = _fetched(rows, before, after.queue_offset)
            if other is None or other.ended_us is None or pull is None:
                continue
            until_us = max(before.ended_us or 0, other.started_us) + slack_us
            lock = _grant(trace, before, before.ended_us or 0, until_us)
            late = next(
                (
                    row
                    for row in trace.rows
                    if row.ended_us is not None and row.started_us > until_us
                ),
                None,
            )
            if lock is not None and late is not None and late.seq_begin < _until_drop(rows):
                gone = [
                    row.seq_begin
                    for row in rows
                    if row.kind is Kind.DELIVER and row.seq_begin > before.seq_begin
                ]
                yield partial(_held_back, trace, gone, other, after, late)


def _call_of_another_lane(trace: Trace, row: Row) -> Row | None:
    """The last one of its client that ended before the row did, and may have been suspended."""
    found = [
        other
        for other in trace.of(Kind.DELIVER)
        if other.client_id == row.client_id and other.group == row.group and other.lane != row.lane
        if other.seq_end is not None
        and other.seq_end < (row.seq_end or 0)
        and not other.reconsume_times
    ]
    return found[-1] if found and found[-1].started_us > row.started_us - MS * 500 else None


def _fetched(rows: Iterable[Row], before: Row, offset: int | None) -> Row | None:
    """A pull that fetched the message, and the one before it."""
    for row in rows:
        ended = row.kind is Kind.PULL and row.outcome is Outcome.OK and row.seq_end is not None
        holds = (row.queue_offset or 0) < (offset or 0) < (row.value or 0)
        if ended and holds and (row.seq_end or 0) < before.seq_begin:
            return row
    return None


def _held_back(trace: Trace, gone: Sequence[int], other: Row, after: Row, late: Row) -> Planted:
    again = trace.another(after, late, 1)
    rested = other._replace(outcome=Outcome.SUSPEND, suspend_ms=30_000)
    left = set(gone)
    rows = [rested if row is other else row for row in trace.rows if row.seq_begin not in left]
    about = (other.seq_begin, again.seq_begin)
    return Planted(sorted([*rows, again], key=lambda row: row.seq_begin), tuple(sorted(about)))


def called_late(trace: Trace) -> Changes:
    """No call of a lane follows one that went well until the bound is over, though the next message was there."""
    slack_us = trace.info.config.schedule_slack_ms * MS
    for rows in trace.works:
        for before, after in itertools.pairwise(row for row in rows if row.kind is Kind.DELIVER):
            went_well = (
                before.outcome is Outcome.SUCCESS
                and before.ended_us is not None
                and not before.reconsume_times
            )
            if not went_well or after.queue_offset != (before.queue_offset or 0) + 1:
                continue
            until_us = (before.ended_us or 0) + slack_us
            lock = _grant(trace, before, before.ended_us or 0, until_us)
            late = next(
                (
                    row
                    for row in trace.rows
                    if row.ended_us is not None and row.started_us > until_us
                ),
                None,
            )
            fetched = _fetched(rows, before, after.queue_offset) is not None
            if (
                fetched
                and lock is not None
                and late is not None
                and late.seq_begin < _until_drop(rows)
            ):
                gone = [
                    row.seq_begin
                    for row in rows
                    if row.kind is Kind.DELIVER and row.seq_begin > before.seq_begin
                ]
                yield partial(
                    lambda g, a, e: Trace(trace.without(g, ()).rows, trace.info).with_more(
                        [trace.another(a, e, 1)]
                    ),
                    gone,
                    after,
                    late,
                )


def lane_stands_still(trace: Trace) -> Changes:
    """No call follows a dead letter for longer than the bound, though (as is said now) the messages were there."""
    works = {(rows[0].lane, rows[0].incarnation): rows for rows in trace.works}
    for last, letter, _after in _given_up(trace):
        rows = works[letter.lane, letter.incarnation]
        until_us = (letter.ended_us or 0) + trace.info.config.schedule_slack_ms * MS
        calls = [
            r
            for r in rows
            if r.kind in (Kind.DELIVER, Kind.DEAD_LETTER) and r.seq_begin > letter.seq_begin
        ]
        late = next((r for r in calls if r.kind is Kind.DELIVER and r.started_us > until_us), None)
        answered = [
            r
            for r in rows
            if r.kind is Kind.PULL and r.seq_end is not None and r.outcome is Outcome.OK
        ]
        pulls = [
            r for r in answered if r.value is not None and (r.seq_end or 0) < (letter.seq_end or 0)
        ]
        lock = _grant(trace, letter, (letter.ended_us or 0) - MS, until_us)
        if late is None or not pulls or lock is None or not last.reconsume_times:
            continue
        change = {pulls[-1].seq_begin: {"value": (late.queue_offset or 0) + 1}}
        gone = [r.seq_begin for r in calls if r.seq_begin < late.seq_begin]
        about = (letter.seq_begin, late.seq_begin)
        yield partial(
            lambda c, g, a: Trace(trace.changed(c).rows, trace.info).without(g, a),
            change,
            gone,
            about,
        )


def second_try_arrives(trace: Trace) -> Changes:
    for last, letter, _after in _given_up(trace):
        failed = {"outcome": Outcome.REFUSED, "code": 1, "attempt": 1}
        yield partial(
            lambda r, a, f: Trace(
                trace.changed({a.seq_begin: {"attempt": 2}}).rows, trace.info
            ).with_more([trace.another(a, r, 1, **f)], [a.seq_begin]),
            last,
            letter,
            failed,
        )


def _dead_reads(trace: Trace) -> list[tuple[Row, Row]]:
    """(marker, row) for every dead letter that was read, once, under a marker of its queue."""
    rows = [row for row in trace.of(Kind.READ) if (row.topic or "").startswith(DLQ_PREFIX)]
    markers = [
        row
        for row in rows
        if row.queue_offset is None and row.source_id is None and row.outcome is Outcome.OK
    ]
    letters = list(trace.of(Kind.DEAD_LETTER))
    sent: dict[str | None, list[Row]] = {}
    for letter in letters:
        sent.setdefault(letter.source_id, []).append(letter)
    reads: dict[str | None, list[Row]] = {}
    for row in rows:
        if row.source_id is not None:
            reads.setdefault(row.source_id, []).append(row)
    found: list[tuple[Row, Row]] = []
    for source, its in reads.items():
        of = sent.get(source, [])
        # With the dead letters in sight: given up once, at the first try, in auto mode, long enough before.
        fine = not letters or (
            len(of) == 1 and of[0].outcome is Outcome.OK and of[0].attempt in (None, 1)
        )
        over = [
            m
            for m in markers
            if m.queue == its[0].queue and m.seq_begin < its[0].seq_begin < (m.seq_end or 0)
        ]
        if len(its) == 1 and fine and over and its[0].outcome is Outcome.OK:
            found.append((over[0], its[0]))
    return found


def lost_dead_letter(trace: Trace) -> Changes:
    for marker, row in _dead_reads(trace):
        yield partial(lambda m, r: trace.without([r.seq_begin], [m.seq_begin]), marker, row)


def dead_letter_twice(trace: Trace) -> Changes:
    if trace.info.config.batch != 1:
        return
    for _marker, row in _dead_reads(trace):
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


def changed_dead_letter(trace: Trace) -> Changes:
    for _marker, row in _dead_reads(trace):
        if row.body_hash is not None:
            change = {row.seq_begin: {"body_hash": row.body_hash + 1}}
            yield partial(trace.changed, change)


def another_origin(trace: Trace) -> Changes:
    for _marker, row in _dead_reads(trace):
        if row.body_hash is not None:
            change = {row.seq_begin: {"view": f"{trace.info.run}-topic"}}
            yield partial(trace.changed, change)


def dead_letters_reversed(trace: Trace) -> Changes:
    """All of them, so that those of one lane are among them."""
    queues: dict[Any, list[Row]] = {}
    for _marker, row in _dead_reads(trace):
        queues.setdefault(row.queue, []).append(row)
    kept = (
        "message_id",
        "origin_id",
        "sharding_key",
        "body_hash",
        "tags",
        "reconsume_times",
        "wall_us",
        "view",
    )
    for rows in queues.values():
        if len(rows) > 3:
            there = reversed([{name: getattr(row, name) for name in kept} for row in rows])
            changes = {row.seq_begin: columns for row, columns in zip(rows, there, strict=True)}
            about = (rows[0].seq_begin, rows[-1].seq_begin)
            yield partial(trace.changed, changes, about)


def copy_in_its_own_topic(trace: Trace) -> Changes:
    """Before the end of the queue is read, a copy of a given-up message lies there."""
    last: dict[Any, Row] = {}
    for row in trace.of(Kind.READ):
        if row.queue_offset is not None and not is_copy_topic(row.topic):
            last[row.queue] = row
    for _last, letter, _after in _given_up(trace):
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


def given_up_without_limit(trace: Trace) -> Changes:
    for _last, letter, after in _given_up(trace):
        about = (letter.seq_begin, after.seq_begin)
        yield partial(lambda a: Planted(trace.rows, a), about)


def slow_dead_letter(trace: Trace) -> Changes:
    late_us = (trace.info.config.dead_letter_bound_ms + 5_000) * MS
    for _marker, row in _dead_reads(trace):
        if row.wall_us is not None:
            change = {row.seq_begin: {"wall_us": row.wall_us + late_us}}
            yield partial(trace.changed, change)


# ---------------------------------------------------------------- commits


def commit_past_unfinished(trace: Trace) -> Changes:
    for rows in trace.works:
        commits = [
            row
            for row in rows
            if row.kind is Kind.COMMIT and row.value is not None and row.detail is None
        ]
        finished = {
            row.queue_offset: row.seq_end or 0
            for row in rows
            if row.kind is Kind.DELIVER and acknowledges(row)
        }
        for index, row in enumerate(commits):
            sent = trace.sent.get((row.topic, row.broker, row.queue_id, row.value))
            here = sent is not None and sent.seq_end is not None and sent.seq_end < row.seq_begin
            done = finished.get(row.value)
            running = done is not None and done > row.seq_begin
            later = commits[index + 1].value if index + 1 < len(commits) else None
            if here and running and (later is None or later > (row.value or 0)):
                change = {row.seq_begin: {"value": (row.value or 0) + 1}}
                about = [row.seq_begin, *([sent.seq_begin] if sent is not None else [])]
                yield partial(trace.changed, change, about)


def lost_commits(trace: Trace) -> Changes:
    config = trace.info.config
    bound = (config.persist_first_ms + config.persist_ms + config.schedule_slack_ms + 1) * MS
    for rows in trace.works:
        add = next(row for row in rows if row.kind is Kind.ADD)
        done = next(
            (row for row in rows if row.kind is Kind.DELIVER and acknowledges(row) and row.seq_end),
            None,
        )
        work = [row for row in rows if row.kind in (Kind.DELIVER, Kind.PULL)]
        commits = [row.seq_begin for row in rows if row.kind is Kind.COMMIT]
        late = [
            row
            for row in work
            if done is not None and row.started_us > (done.ended_us or 0) + bound
        ]
        if done is not None and late and commits:
            about = (add.seq_begin, done.seq_begin, late[0].seq_begin)
            yield partial(trace.without, commits, about)


def commit_rewinds(trace: Trace) -> Changes:
    for rows in trace.works:
        add = next(row for row in rows if row.kind is Kind.ADD)
        ends = {
            (row.queue_offset or 0) + 1
            for row in rows
            if row.kind is Kind.DELIVER and acknowledges(row)
        }
        commits = [
            row
            for row in rows
            if row.kind is Kind.COMMIT and row.value is not None and row.detail is None
        ]
        for before, row in itertools.pairwise(commits):
            lower = max((end for end in ends if end < (before.value or 0)), default=None)
            apart = before.seq_end is not None and before.seq_end < row.seq_begin
            if apart and lower is not None and lower > (add.value or 0):
                change = {row.seq_begin: {"value": lower}}
                about = (before.seq_begin, row.seq_begin)
                yield partial(trace.changed, change, about)


def late_commit(trace: Trace) -> Changes:
    lease = trace.info.config.broker_lease_ms * MS
    for lane, rows in trace.lanes.items():
        locks = trace.locks(lane)
        unlocks = [row for row in rows if row.kind is Kind.UNLOCK]
        commits = [row for row in rows if row.kind is Kind.COMMIT and row.incarnation is not None]
        for lock, other in itertools.pairwise(locks):
            between = [
                u
                for u in unlocks
                if u.client_id == lock.client_id and u.seq_begin > (lock.seq_end or 0)
            ]
            given_back = [u for u in between if u.seq_begin < (other.seq_end or 0)]
            mine = [
                c
                for c in commits
                if c.client_id == lock.client_id and c.seq_begin < other.seq_begin
            ]
            in_time = (other.ended_us or 0) <= lock.started_us + lease
            if lock.client_id != other.client_id and given_back and mine and in_time:
                yield partial(
                    lambda c, o: trace.with_more([trace.another(c, o, 1)], [o.seq_begin]),
                    mine[-1],
                    other,
                )


def _finished(rows: Sequence[Row]) -> list[Row]:
    """The calls of one incarnation that ended in success in auto mode, one message each, before its drop."""
    drop = next((row.seq_begin for row in rows if row.kind is Kind.DROP), None)
    calls: dict[int, int] = {}
    for row in rows:
        if row.kind is Kind.DELIVER:
            calls[row.op_id] = calls.get(row.op_id, 0) + 1
    return [
        row
        for row in rows
        if row.kind is Kind.DELIVER
        and row.outcome is Outcome.SUCCESS
        and not is_manual(row)
        and calls[row.op_id] == 1
        and row.seq_end is not None
        and (drop is None or row.seq_end < drop)
    ]


def committed_in_manual_mode(trace: Trace) -> Changes:
    for rows in trace.works:
        commit = next(
            (row for row in rows if row.kind is Kind.COMMIT and row.value is not None), None
        )
        if commit is not None:
            for row in _finished(rows):
                yield partial(_committed_after, trace, row, commit)


def _committed_after(trace: Trace, row: Row, like: Row) -> Planted:
    value = (row.queue_offset or 0) + 1
    columns: dict[str, Any] = {
        "value": value,
        "outcome": Outcome.SENT,
        "view": None,
        "code": None,
        "detail": None,
    }
    commit = trace.another(like, row, 1, **columns)
    manual = Trace(trace.changed({row.seq_begin: {"commit_mode": "manual"}}).rows, trace.info)
    return manual.with_more([commit], [row.seq_begin])


def _dropped(trace: Trace) -> Iterator[tuple[Row, Row]]:
    """(the drop of an incarnation, the highest commit before it)."""
    for rows in trace.works:
        drop = next((row for row in rows if row.kind is Kind.DROP), None)
        commits = [
            row for row in rows if row.kind is Kind.COMMIT and row.value and row.detail is None
        ]
        before = [row for row in commits if drop is not None and row.seq_begin < drop.seq_begin]
        if drop is not None and before and rows[0].kind is Kind.ADD:
            yield drop, max(before, key=lambda row: (row.value or 0, row.seq_begin))


def _commit_at(trace: Trace, drop: Row, like: Row, value: int) -> Planted:
    columns: dict[str, Any] = {"value": value, "outcome": Outcome.SENT, "view": None, "code": None}
    return trace.with_more([trace.another(like, drop, 1, **columns)], [drop.seq_begin])


def progress_after_the_drop(trace: Trace) -> Changes:
    for drop, commit in _dropped(trace):
        done = [row for row in trace.lanes[drop.lane] if row.incarnation == drop.incarnation]
        if all(row.detail is None for row in done if row.kind is Kind.COMMIT):
            yield partial(lambda d, c: _commit_at(trace, d, c, (c.value or 0) + 1), drop, commit)


def told_again_after_the_drop(trace: Trace) -> Changes:
    for drop, commit in _dropped(trace):
        yield partial(lambda d, c: _commit_at(trace, d, c, c.value or 0), drop, commit)


def released_without_a_commit(trace: Trace) -> Changes:
    for rows in trace.works:
        unlock = next((row for row in rows if row.kind is Kind.UNLOCK), None)
        finished = _finished(rows)
        if (
            unlock is None
            or not finished
            or any(row.detail for row in rows if row.kind is Kind.COMMIT)
        ):
            continue
        last = max(finished, key=lambda row: row.queue_offset or 0)
        told = [
            row
            for row in rows
            if row.kind is Kind.COMMIT and (row.value or 0) > (last.queue_offset or 0)
        ]
        if told and all(row.seq_begin < unlock.seq_begin for row in told):
            gone, about = [row.seq_begin for row in told], (last.seq_begin, unlock.seq_begin)
            yield partial(trace.without, gone, about)


def _acknowledged(trace: Trace) -> Iterator[Row]:
    """Commits that were answered, of a lane where no offset was reset."""
    for rows in trace.lanes.values():
        if any(row.kind is Kind.RESET for row in rows):
            continue
        yield from (
            row
            for row in rows
            if row.kind is Kind.COMMIT and row.outcome is Outcome.OK and row.value
        )


def _looked_up(trace: Trace, commit: Row, after: Row, step: int, value: int) -> Row:
    """A stranger asks for the offset of the commit's lane, at once after a row."""
    who: dict[str, Any] = {"client_id": STRANGER, "process": STRANGER, "incarnation": None}
    row = trace.another(commit, after, step, **who, outcome=Outcome.OK, value=value)
    return row._replace(kind=Kind.FETCH_OFFSET, view=None, detail=None)


def commit_forgotten(trace: Trace) -> Changes:
    for commit in _acknowledged(trace):
        nobodys = (
            max(row.value or 0 for row in trace.lanes[commit.lane] if row.kind is Kind.COMMIT)
            + 1_000
        )
        yield partial(
            lambda c, v: trace.with_more([_looked_up(trace, c, c, 1, v)], [c.seq_begin]),
            commit,
            nobodys,
        )


def reset_overwritten(trace: Trace) -> Changes:
    """In a group of its own an operator resets, somebody commits, and a look-up answers the commit."""
    for commit in _acknowledged(trace):
        yield partial(lambda c: _reset_of_strangers(trace, c, won=False), commit)


def reset_in_flight(trace: Trace) -> Changes:
    for commit in _acknowledged(trace):
        yield partial(lambda c: _reset_of_strangers(trace, c, won=True), commit)


def _reset_of_strangers(trace: Trace, commit: Row, *, won: bool) -> Planted:
    value = commit.value or 0
    nobodys: dict[str, Any] = {"group": STRANGER, "client_id": STRANGER, "process": STRANGER}
    reset = _looked_up(trace, commit, commit, 1, value + 1)._replace(kind=Kind.RESET, **nobodys)
    again = _looked_up(trace, commit, commit, 2, value)._replace(kind=Kind.COMMIT, **nobodys)
    asked = _looked_up(trace, commit, commit, 3, value + 1 if won else value)._replace(**nobodys)
    return trace.with_more([reset, again, asked])


def wrong_start(trace: Trace) -> Changes:
    """A stranger hears an offset and adds the lane elsewhere; it takes nothing, and commits nothing."""
    for commit in _acknowledged(trace):
        if not any(row.client_id == STRANGER for row in trace.lanes[commit.lane]):
            yield partial(lambda c: _started_elsewhere(trace, c, 1), commit)


def right_start(trace: Trace) -> Changes:
    for commit in _acknowledged(trace):
        yield partial(lambda c: _started_elsewhere(trace, c, 0), commit)


def _started_elsewhere(trace: Trace, commit: Row, beyond: int) -> Planted:
    told = commit.value or 0
    add = _looked_up(trace, commit, commit, 2, told + beyond)._replace(
        kind=Kind.ADD, incarnation=f"{STRANGER}#1"
    )
    return trace.with_more([_looked_up(trace, commit, commit, 1, told), add], [commit.seq_begin])


def _last_works(trace: Trace) -> Iterator[tuple[list[Row], list[int]]]:
    """The incarnations that work to the end, each with the deliveries of the last message of its lane."""
    dead = {row.client_id for row in trace.rows if row.kind in (Kind.CRASH, Kind.LEAVE)}
    for lane, every in trace.lanes.items():
        adds = [row for row in every if row.kind is Kind.ADD]
        mine = [row for row in every if adds and row.incarnation == adds[-1].incarnation]
        calls = [row for row in every if row.kind is Kind.DELIVER and row.queue_offset is not None]
        over = not adds or adds[-1].client_id in dead or any(row.kind is Kind.DROP for row in mine)
        if over or not calls or any(row.kind is Kind.RESET or is_manual(row) for row in every):
            continue
        last = max(row.queue_offset or 0 for row in calls)
        if last >= (adds[-1].value or 0) and lane.queue in _settled_queues(trace):
            yield mine, [row.seq_begin for row in calls if row.queue_offset == last]


def _settled_queues(trace: Trace) -> set[Queue]:
    return {
        row.queue
        for row in trace.of(Kind.READ)
        if row.queue_offset is None and row.detail == "settled"
    }


def never_delivered(trace: Trace) -> Changes:
    for mine, gone in _last_works(trace):
        yield partial(lambda g, a: trace.without(g, [a.seq_begin]), gone, mine[0])


def nobodys_lane(trace: Trace) -> Changes:
    for mine, gone in _last_works(trace):
        drop = trace.another(mine[0], mine[-1], 1, value=None)._replace(kind=Kind.DROP)
        rows = Trace(trace.without(gone, ()).rows, trace.info)
        yield partial(lambda r, d: r.with_more([d]), rows, drop)


def starved_lane(trace: Trace) -> Changes:
    cap = (trace.info.config.continuous_ms + trace.info.config.schedule_slack_ms) * MS
    lease = trace.info.config.client_lease_ms * MS
    for rows in trace.works:
        pull = next(
            (
                row
                for row in rows
                if row.kind is Kind.PULL and (row.value or 0) > (row.queue_offset or 0)
            ),
            None,
        )
        gone = [row.seq_begin for row in rows if row.kind is Kind.DELIVER]
        if pull is None or pull.outcome is not Outcome.OK or pull.seq_end is None or not gone:
            continue
        until = (pull.ended_us or 0) + cap + min(cap, lease)
        others = [
            row
            for row in trace.of(Kind.DELIVER)
            if row.client_id == pull.client_id and row.group == pull.group and row.lane != pull.lane
            if row.seq_begin > pull.seq_end and row.started_us < until
        ]
        same = [row for row in others if row.incarnation == others[0].incarnation]
        if same and same[-1].started_us > same[0].started_us + cap:
            yield partial(
                lambda g, p, o: trace.without(g, [p.seq_begin, o.seq_begin]), gone, pull, same[0]
            )


def woken_by_nobody(trace: Trace) -> Changes:
    """A message is acknowledged where a pull waits, which is answered only long after."""
    slack_us = (trace.info.config.schedule_slack_ms + 1) * MS
    sent = {
        row.queue: row for row in trace.sent.values() if row.detail is None and not row.delay_level
    }
    for pull in trace.of(Kind.PULL):
        like = sent.get(pull.queue)
        if like is None or pull.queue_offset is None or pull.seq_end is not None:
            continue
        came = _later(trace, pull, slack_us)
        answered = None if came is None else _later(trace, came, slack_us)
        if came is not None and answered is not None:
            yield partial(_woken_late, trace, pull, like, came, answered)


def _woken_late(trace: Trace, pull: Row, like: Row, came: Row, answered: Row) -> Planted:
    new = {"message_id": f"{like.message_id}-planted", "sharding_key": None, "key_seq": None}
    sent = trace.another(like, came, 1, at_end=False, queue_offset=pull.queue_offset, **new)
    found = {"outcome": Outcome.OK, "code": 0, "value": (pull.queue_offset or 0) + 1, "detail": "1"}
    end = {"seq_end": answered.seq_begin + 1, "ended_us": answered.started_us}
    return Trace(trace.changed({pull.seq_begin: {**found, **end}}).rows, trace.info).with_more(
        [sent], [pull.seq_begin]
    )


def written_commit_lost(trace: Trace) -> Changes:
    config = trace.info.config
    interval = (max(config.persist_first_ms, config.persist_ms) + config.schedule_slack_ms) * MS
    for commit in _acknowledged(trace):
        late = _later(trace, commit, interval)
        if late is not None:
            yield partial(_crashed, trace, commit, late)


def _crashed(trace: Trace, commit: Row, after: Row) -> Planted:
    names = ("client_id", "incarnation", "group", "topic", "queue_id", "value", "view", "code")
    nothing: dict[str, Any] = dict.fromkeys(names)
    crash = trace.another(commit, after, 1, **nothing, outcome=Outcome.OK)._replace(
        kind=Kind.CRASH, process=commit.broker, detail=None
    )
    return trace.with_more([crash, _looked_up(trace, commit, after, 2, 0)], [commit.seq_begin])


# ---------------------------------------------------------------- sends


def _reads(trace: Trace) -> Iterator[tuple[Row, Row]]:
    """(the acknowledged send, the read that found it), for messages that were read once and under a marker."""
    seen: dict[tuple[Any, ...], list[Row]] = {}
    marked = set()
    for row in trace.of(Kind.READ):
        if is_copy_topic(row.topic):
            continue
        if row.queue_offset is None:
            marked.add(row.queue)
        else:
            seen.setdefault((row.topic, row.broker, row.queue_id, row.queue_offset), []).append(row)
    for place, rows in seen.items():
        send = trace.sent.get(place)
        usual = send is not None and send.code in (None, 0) and not send.delay_level
        if (
            send is not None
            and usual
            and len(rows) == 1
            and rows[0].queue in marked
            and send.seq_end is not None
        ):
            yield send, rows[0]


def lost_message(trace: Trace) -> Changes:
    for send, read in _reads(trace):
        yield partial(lambda s, r: trace.without([r.seq_begin], [s.seq_begin]), send, read)


def removed_above_the_minimum(trace: Trace) -> Changes:
    """The broker says that it removed what lies below a message, and the message is missing as well."""
    for send, read in _reads(trace):
        yield partial(lambda s, r: _removed(trace, s, r, s.queue_offset), send, read)


def removed_on_purpose(trace: Trace) -> Changes:
    """It says that the message is among what it removed; only that of a queue's first message leaves no hole."""
    lowest: dict[Queue, int] = {}
    for send, _ in _reads(trace):
        lowest[send.queue] = min(
            send.queue_offset or 0, lowest.get(send.queue, send.queue_offset or 0)
        )
    for send, read in _reads(trace):
        if send.queue_offset == lowest[send.queue]:
            yield partial(lambda s, r: _removed(trace, s, r, (s.queue_offset or 0) + 1), send, read)


def _removed(trace: Trace, send: Row, read: Row, kept_from: int | None) -> Planted:
    planted = trace.without([read.seq_begin], [send.seq_begin])
    bare: dict[str, Any] = dict.fromkeys(send._fields)
    said = {
        name: getattr(send, name) for name in ("run", "topic", "broker", "queue_id", "broker_epoch")
    }
    said |= {
        "kind": Kind.TRIM,
        "level": Level.STORE,
        "process": send.broker,
        "outcome": Outcome.OK,
        "value": kept_from,
    }
    trim = trace.another(send._replace(**{**bare, **said}), send, 1)
    return Trace(planted.rows, trace.info).with_more([trim], planted.about)


def replaced_message(trace: Trace) -> Changes:
    for send, read in _reads(trace):
        change = {read.seq_begin: {"message_id": f"{read.message_id}-other"}}
        about = (send.seq_begin, read.seq_begin)
        yield partial(trace.changed, change, about)


def invented_message(trace: Trace) -> Changes:
    for send, read in _reads(trace):
        if send.message_id == read.message_id:
            yield partial(lambda s, r: trace.without([s.seq_begin], [r.seq_begin]), send, read)


def seen_though_refused(trace: Trace) -> Changes:
    for send, read in _reads(trace):
        if send.message_id == read.message_id and send.attempt in (None, 1):
            change = {
                send.seq_begin: {"outcome": Outcome.REFUSED, "code": 14, "queue_offset": None}
            }
            about = (send.seq_begin, read.seq_begin)
            yield partial(trace.changed, change, about)


def keyed_send_again(trace: Trace) -> Changes:
    for send, _read in _reads(trace):
        if send.sharding_key is not None and send.attempt == 1:
            yield partial(_sent_again, trace, send)


def _sent_again(trace: Trace, send: Row) -> Planted:
    unknown = {"outcome": Outcome.UNKNOWN, "code": None, "queue_offset": None}
    again = trace.another(send, send, 1, attempt=2)
    return Trace(trace.changed({send.seq_begin: unknown}).rows, trace.info).with_more(
        [again], [send.seq_begin]
    )


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


def changed_body(trace: Trace) -> Changes:
    for send, read in _reads(trace):
        if send.message_id == read.message_id and None not in (send.body_hash, read.body_hash):
            change = {read.seq_begin: {"body_hash": (read.body_hash or 0) ^ 1}}
            about = (send.seq_begin, read.seq_begin)
            yield partial(trace.changed, change, about)


def seen_before_its_level(trace: Trace) -> Changes:
    last = len(trace.info.config.delay_levels.split())
    for send, read in _reads(trace):
        change = {send.seq_begin: {"delay_level": last}}
        about = (send.seq_begin, read.seq_begin)
        yield partial(trace.changed, change, about)


def _missed(trace: Trace, wait_us: int) -> Iterator[tuple[Row, Row]]:
    """Sends that nothing disturbed, with their reads, by a reading that began that long after, and the slack."""
    config = trace.info.config
    slack_us = (2 * config.delay_bound_ms + config.schedule_slack_ms) * MS
    markers = {
        row.queue: row
        for row in trace.of(Kind.READ)
        if row.queue_offset is None and row.message_id is None
    }
    trouble = {Kind.FAULT, Kind.CRASH, Kind.LEAVE, Kind.PAUSE, Kind.CLOCK_STEP, Kind.TRIM}
    times = [row.started_us for row in trace.rows if row.kind in trouble]
    for send, read in _reads(trace):
        marker, ended_us = markers.get(send.queue), send.ended_us
        if (
            marker is None
            or ended_us is None
            or send.message_id != read.message_id
            or send.value is not None
        ):
            continue
        late = ended_us + wait_us + slack_us <= marker.started_us
        if late and not any(at_us <= ended_us + slack_us for at_us in times):
            yield send, read


def delayed_message_missing(trace: Trace) -> Changes:
    for send, read in _missed(trace, 1_000 * MS):
        yield partial(_delayed, trace, send, read)


def _delayed(trace: Trace, send: Row, read: Row) -> Planted:
    about = (send.seq_begin,)
    gone = trace.without([read.seq_begin], about)
    change = {send.seq_begin: {"delay_level": 1, "key_seq": None}}
    return Trace(gone.rows, trace.info).changed(change, about)


def read_in_another_queue(trace: Trace) -> Changes:
    for send, read in _reads(trace):
        if send.message_id == read.message_id:
            change = {send.seq_begin: {"queue_id": (send.queue_id or 0) + 90, "attempt": 1}}
            about = (send.seq_begin, read.seq_begin)
            yield partial(trace.changed, change, about)


def committed_half_missing(trace: Trace) -> Changes:
    for send, read in _missed(trace, 0):
        yield partial(_half_committed, trace, send, read)


def _half_committed(trace: Trace, send: Row, read: Row) -> Planted:
    halved = _as_half(trace, send)
    gone = Trace(halved.rows, trace.info).without([read.seq_begin], [send.seq_begin])
    bare: dict[str, Any] = dict.fromkeys(
        ("queue_offset", "body_hash", "tags", "key_seq", "attempt", "view", "detail")
    )
    said = {**bare, "kind": Kind.END_TRANSACTION, "outcome": Outcome.SENT, "value": 8, "code": None}
    commit = trace.another(send, send, 1, **said)
    return Trace(gone.rows, trace.info).with_more([commit], gone.about)


def batch_interrupted(trace: Trace) -> Changes:
    found = {read.message_id: read for _send, read in _reads(trace)}
    found |= {row.message_id: row for row in trace.of(Kind.READ) if row.queue_offset is not None}
    parts = [
        row for row in trace.of(Kind.SEND) if row.value is not None and not is_copy_topic(row.topic)
    ]
    for part, after in itertools.pairwise(parts):
        read, other = found.get(part.message_id), found.get(after.message_id)
        if part.op_id == after.op_id and read is not None and other is not None:
            change = {other.seq_begin: {"message_id": f"{other.message_id}-other"}}
            about = (part.seq_begin, after.seq_begin, read.seq_begin, other.seq_begin)
            yield partial(trace.changed, change, about)


def unwanted_tag(trace: Trace) -> Changes:
    for calls in trace.calls:
        for row in calls:
            if row.body_hash is not None and row.tags is not None:
                change = {row.seq_begin: {"tags": f"not-{row.tags}"}}
                yield partial(trace.changed, change)


def wanted_passed_over(trace: Trace) -> Changes:
    for calls in trace.calls:
        for before, row, after in zip(calls, calls[1:], calls[2:], strict=False):
            ascending = (
                (before.queue_offset or 0) < (row.queue_offset or 0) < (after.queue_offset or 0)
            )
            sent = trace.sent.get((row.topic, row.broker, row.queue_id, row.queue_offset))
            once = sum(each.queue_offset == row.queue_offset for each in calls) == 1
            if ascending and once and sent is not None and sent.seq_begin < before.seq_begin:
                about = (before.seq_begin, sent.seq_begin, after.seq_begin)
                yield partial(lambda r, a: trace.without([r.seq_begin], a), row, about)


def another_wanted_tag(trace: Trace) -> Changes:
    """A message had another of the wanted tags from the beginning."""
    wanted = {tag.strip() for tag in trace.info.config.subscription.split("||")}
    for row in trace.of(Kind.SEND):
        for tag in sorted(wanted - {row.tags}):
            if row.tags in wanted:
                same = [
                    each.seq_begin
                    for each in trace.rows
                    if each.message_id == row.message_id and each.tags
                ]
                change = {seq: {"tags": tag} for seq in same}
                yield partial(trace.changed, change)


# ---------------------------------------------------------------- assignment


def _shared_alike(trace: Trace) -> Iterator[list[Row]]:
    """The shares of all members, each computed last from the same view; the one computed last comes first."""
    latest: dict[tuple[str | None, str | None], dict[str | None, Row]] = {}
    for row in trace.of(Kind.ASSIGN):
        if row.view is None or row.detail is None:
            continue
        known = latest.setdefault((row.group, row.topic), {})
        known[row.client_id] = row
        members = row.view.partition(" | ")[0].split()
        party = [
            known[member]
            for member in members
            if member in known and known[member].view == row.view
        ]
        if len(party) == len(members) > 1 and row.client_id in members:
            yield [row, *(each for each in party if each.client_id != row.client_id)]


def taken_twice(trace: Trace) -> Changes:
    for mine, other, *_ in _shared_alike(trace):
        if other.detail:
            change = {
                mine.seq_begin: {"detail": f"{mine.detail} {other.detail.split()[0]}".strip()}
            }
            about = (other.seq_begin, mine.seq_begin)
            yield partial(trace.changed, change, about)


def taken_by_nobody(trace: Trace) -> Changes:
    for mine, other, *_ in _shared_alike(trace):
        if mine.detail:
            change = {mine.seq_begin: {"detail": " ".join(mine.detail.split()[1:])}}
            about = (other.seq_begin, mine.seq_begin)
            yield partial(trace.changed, change, about)


def shared_otherwise(trace: Trace) -> Changes:
    for mine, other, *_ in _shared_alike(trace):
        members, _bar, queues = (mine.view or "").partition(" | ")
        turned = " ".join(reversed(queues.split()))
        if turned != queues:
            change = {mine.seq_begin: {"view": f"{members} | {turned}"}}
            about = (other.seq_begin, mine.seq_begin)
            yield partial(trace.changed, change, about)


def seen_by_one_only(trace: Trace) -> Changes:
    for mine, other, *_ in _shared_alike(trace):
        if other.detail:
            change = {mine.seq_begin: {"view": f"newcomer {mine.view}", "detail": other.detail}}
            yield partial(trace.changed, change)


def _as_half(trace: Trace, send: Row) -> Planted:
    change = {"detail": "half", "queue_offset": None, "value": send.queue_offset}
    return trace.changed({send.seq_begin: change})


def seen_half_message(trace: Trace) -> Changes:
    for send, read in _reads(trace):
        if send.message_id == read.message_id:
            yield partial(_as_half, trace, send)


# ---------------------------------------------------------------- lookalikes


def reset_between(trace: Trace) -> Changes:
    for first, second in _neighbours(trace):
        if first.sharding_key is None or first.sharding_key != second.sharding_key:
            yield partial(_reset, trace, first, second)


def _reset(trace: Trace, first: Row, second: Row) -> Planted:
    planted = _swapped(trace, first, second)
    unsaid = (*_MESSAGE, "incarnation", "client_id", "reconsume_times", "commit_mode", "attempt")
    nobody: dict[str, Any] = dict.fromkeys(unsaid)
    reset = trace.another(
        first, first, 1, kind=Kind.RESET, outcome=Outcome.OK, value=second.queue_offset, **nobody
    )
    return Trace(planted.rows, trace.info).with_more([reset], planted.about)


def unanswered_lock(trace: Trace) -> Changes:
    for lock in _held(trace):
        yield partial(
            lambda a: trace.with_more(
                [_lock(trace, a, 1, STRANGER, Outcome.UNKNOWN)], [a.seq_begin]
            ),
            lock,
        )


def stranger_unlocks_in_vain(trace: Trace) -> Changes:
    for lock in _held(trace):
        yield partial(
            lambda a: trace.with_more(
                [
                    _lock(trace, a, 1, STRANGER, Outcome.OK)._replace(kind=Kind.UNLOCK),
                    _lock(trace, a, 2, ANOTHER, Outcome.REFUSED),
                ],
                [a.seq_begin],
            ),
            lock,
        )


def overlapping_commits(trace: Trace) -> Changes:
    for rows in trace.works:
        commits = [
            row
            for row in rows
            if row.kind is Kind.COMMIT and row.value is not None and row.detail is None
        ]
        for before, row in itertools.pairwise(commits):
            apart = before.seq_end is not None and before.seq_end < row.seq_begin
            longer = row.seq_end is not None and row.seq_end > row.seq_begin
            if apart and longer and (before.value or 0) < (row.value or 0):
                yield partial(
                    lambda b, r: trace.with_more(
                        [trace.another(r, r, 1, at_end=False, value=b.value)], [r.seq_begin]
                    ),
                    before,
                    row,
                )


def unacknowledged_is_lost(trace: Trace) -> Changes:
    for send, _read in _reads(trace):
        unknown = {
            "outcome": Outcome.UNKNOWN,
            "queue_offset": None,
            "message_id": f"{send.message_id}-unknown",
            "code": None,
        }
        yield partial(
            lambda s, u: trace.with_more([trace.another(s, s, 1, **u)], [s.seq_begin]),
            send,
            unknown,
        )


def stored_weakly_is_lost(trace: Trace) -> Changes:
    """Only the last message of a queue: a hole between others would be no loss by a flush that came too late."""
    last = {
        row.queue: row.queue_offset or 0
        for row in trace.of(Kind.READ)
        if row.queue_offset is not None
    }
    markers = {row.queue: row for row in trace.of(Kind.READ) if row.queue_offset is None}
    for send, read in _reads(trace):
        marker = markers[read.queue]
        if read.queue_offset == last[read.queue] and marker.value == last[read.queue] + 1:
            change = {send.seq_begin: {"code": 10}, marker.seq_begin: {"value": read.queue_offset}}
            yield partial(
                lambda s, r, c: Trace(trace.changed(c).rows, trace.info).without(
                    [r.seq_begin], [s.seq_begin]
                ),
                send,
                read,
                change,
            )


def refused_then_stored(trace: Trace) -> Changes:
    """A send without a key is refused, and stored at its second try."""
    for send, read in _reads(trace):
        if send.message_id == read.message_id and send.attempt == 1:
            yield partial(_stored_later, trace, send)


def _stored_later(trace: Trace, send: Row) -> Planted:
    refused = trace.another(
        send,
        send,
        1,
        at_end=False,
        outcome=Outcome.REFUSED,
        code=14,
        queue_offset=None,
        sharding_key=None,
    )
    later = Trace(trace.changed({send.seq_begin: {"attempt": 2}}).rows, trace.info)
    return later.with_more([refused], [send.seq_begin])


def content_unknown(trace: Trace) -> Changes:
    for send, read in _reads(trace):
        if send.body_hash is not None:
            change = {read.seq_begin: {"body_hash": None, "tags": "other"}}
            yield partial(trace.changed, change)


def committed_half_message(trace: Trace) -> Changes:
    for send, read in _reads(trace):
        if send.message_id == read.message_id:
            yield partial(_committed, trace, send)


def _committed(trace: Trace, send: Row) -> Planted:
    unsaid = dict.fromkeys(
        ("queue_offset", "sharding_key", "key_seq", "body_hash", "tags", "view", "attempt", "code")
    )
    more: dict[str, Any] = {
        **unsaid,
        "kind": Kind.END_TRANSACTION,
        "outcome": Outcome.SENT,
        "value": 8,
    }
    commit = trace.another(send, send, 1, at_end=False, **more)
    return Trace(_as_half(trace, send).rows, trace.info).with_more([commit], [send.seq_begin])


def no_level_at_all(trace: Trace) -> Changes:
    for send, _read in _reads(trace):
        told = (
            row
            for row in trace.rows
            if row.message_id == send.message_id and row.delay_level is not None
        )
        change = {row.seq_begin: {"delay_level": -1} for row in (send, *told)}
        yield partial(trace.changed, change)


def short_suspend(trace: Trace) -> Changes:
    config = trace.info.config
    soon_us = (
        min(config.suspend_ms, config.schedule_slack_ms) * MS
    )  # what comes later may be too late for 10 ms
    for before, row in _redelivered(trace):
        if 11 * MS < row.started_us - (before.ended_us or 0) <= soon_us:
            change = {before.seq_begin: {"suspend_ms": 3}}
            yield partial(trace.changed, change)


def corrected_commit(trace: Trace) -> Changes:
    for rows in trace.works:
        commits = [row for row in rows if row.kind is Kind.COMMIT and row.value]
        for row in commits[1:-1]:
            change = {row.seq_begin: {"value": (row.value or 0) - 1, "detail": "corrected"}}
            yield partial(trace.changed, change)


# ---------------------------------------------------------------- modes in which calls run side by side

CONCURRENT = ("concurrent", "clustering")
KEY_ORDERED = ("key_ordered", "clustering")
BROADCASTING = ("concurrent", "broadcasting")


def key_overlaps(trace: Trace) -> Changes:
    for calls in trace.calls:
        last: dict[str | None, Row] = {}
        for row in calls:
            before = last.get(row.sharding_key)
            last[row.sharding_key] = row
            if (
                row.sharding_key is not None
                and before is not None
                and before.outcome is Outcome.SUCCESS
            ):
                change = {
                    before.seq_begin: {"seq_end": row.seq_begin + 1, "ended_us": row.started_us}
                }
                about = (before.seq_begin, row.seq_begin)
                yield partial(trace.changed, change, about)


def lease_in_broadcasting(trace: Trace) -> Changes:
    for add in trace.of(Kind.ADD):
        yield partial(lambda a: trace.with_more([_asks(trace, a, a.client_id)], [a.seq_begin]), add)


def strangers_lease_in_broadcasting(trace: Trace) -> Changes:
    for add in trace.of(Kind.ADD):
        yield partial(lambda a: trace.with_more([_asks(trace, a, STRANGER)], [a.seq_begin]), add)


def _asks(trace: Trace, add: Row, client: str | None) -> Row:
    fields: dict[str, Any] = {
        "client_id": client,
        "incarnation": None,
        "value": None,
        "outcome": Outcome.REFUSED,
    }
    return trace.another(add, add, 1, kind=Kind.LOCK, **fields)


def commit_in_broadcasting(trace: Trace) -> Changes:
    for row in trace.of(Kind.PERSIST):
        commit = {"kind": Kind.COMMIT, "outcome": Outcome.SENT}
        yield partial(
            lambda r, c: trace.with_more([trace.another(r, r, 1, **c)], [r.seq_begin]), row, commit
        )


def own_file_not_read(trace: Trace) -> Changes:
    written: dict[tuple[str | None, Lane], Row] = {}
    for row in trace.of(Kind.PERSIST, Kind.ADD):
        if row.kind is Kind.PERSIST:
            written[row.process, row.lane] = row
        elif (row.process, row.lane) in written and row.value:
            change = {row.seq_begin: {"value": 0}}
            about = (written[row.process, row.lane].seq_begin, row.seq_begin)
            yield partial(trace.changed, change, about)


def copy_too_soon(trace: Trace) -> Changes:
    for back, copy in _copies(trace):
        if copy.reconsume_times == (back.reconsume_times or 0) + 1:
            change = {back.seq_begin: {"delay_level": 99}}
            about = (back.seq_begin, copy.seq_begin)
            yield partial(trace.changed, change, about)


def copy_miscounted(trace: Trace) -> Changes:
    for back, copy in _copies(trace):
        change = {copy.seq_begin: {"reconsume_times": (copy.reconsume_times or 0) + 99}}
        about = (back.seq_begin, copy.seq_begin)
        yield partial(trace.changed, change, about)


def copy_later_than_asked(trace: Trace) -> Changes:
    for back, copy in _copies(trace):
        if (back.delay_level or 0) > 0:
            change = {back.seq_begin: {"delay_level": 1}}
            about = (back.seq_begin, copy.seq_begin)
            yield partial(trace.changed, change, about)


def _copies(trace: Trace) -> Iterator[tuple[Row, Row]]:
    """(a send-back, the first delivery of what came of it), for messages that were sent back once in all."""
    backs: dict[tuple[str | None, str | None], list[Row]] = {}
    for row in trace.of(Kind.SEND_BACK):
        backs.setdefault((row.group, row.source_id), []).append(row)
    for row in trace.of(Kind.DELIVER):
        mine = backs.get((row.group, row.source_id), [])
        if is_copy_topic(row.topic) and row.attempt == 1 and len(mine) == 1:
            yield mine[0], row


def commit_past_the_smallest(trace: Trace) -> Changes:
    for rows in trace.works:
        calls = [row for row in rows if row.kind is Kind.DELIVER and acknowledges(row)]
        for row in rows:
            if row.kind is Kind.COMMIT and row.detail is None:
                running = [c for c in calls if c.seq_begin < row.seq_begin < (c.seq_end or 0)]
                if running:
                    change = {row.seq_begin: {"value": (running[-1].queue_offset or 0) + 1}}
                    about = (running[-1].seq_begin, row.seq_begin)
                    yield partial(trace.changed, change, about)


def _mutants(*mutants: Mutant) -> dict[str, Mutant]:
    return {mutant.name: mutant for mutant in mutants}


DEFECTS: dict[str, Mutant] = _mutants(
    Mutant(
        "swap-deliveries",
        "ORD-2",
        "two neighbours are delivered the wrong way round",
        swap_deliveries,
    ),
    Mutant(
        "swap-key",
        "ORD-12",
        "two neighbours of one key are delivered the wrong way round",
        swap_key,
    ),
    Mutant(
        "overtake-suspended",
        "ORD-3",
        "the next message is delivered while one is suspended",
        overtake_suspended,
    ),
    Mutant(
        "skip-at-handover", "ORD-4", "a new owner leaves its first message out", skip_at_handover
    ),
    Mutant(
        "below-the-start",
        "ORD-5",
        "a new owner begins one message too early",
        delivered_below_start,
    ),
    Mutant(
        "another-message-there",
        "ORD-7",
        "a group is given another message than the drain",
        another_message_there,
    ),
    Mutant("hole-between", "ORD-8", "a message between two others is missing", hole_between),
    Mutant("sends-swapped", "ORD-9", "a later send is given the smaller offset", sends_swapped),
    Mutant(
        "key-strays",
        "ORD-1",
        "a later message of a key lies in another queue",
        key_strays,
        generated=False,
    ),
    Mutant(
        "producers-disagree",
        "ORD-6",
        "another producer has another queue",
        producers_disagree,
        generated=False,
    ),
    Mutant(
        "finished-comes-again",
        "ORD-10",
        "a finished message is delivered again",
        finished_comes_again,
    ),
    Mutant(
        "handover-without-report",
        "ORD-14",
        "an old owner reports nothing at all",
        handover_without_report,
    ),
    Mutant(
        "call-after-drop", "ORD-13", "a call starts after the lane was dropped", call_after_drop
    ),
    Mutant("second-owner", "LSE-1", "a lane is granted to a second client", second_owner),
    Mutant(
        "two-processors", "LSE-2", "a second client's call begins during a call", two_processors
    ),
    Mutant("stale-lease", "LSE-3", "renewals are missing, and the client goes on", stale_lease),
    Mutant(
        "refused-free-lane", "LSE-4", "a lane that was given back is refused", refused_free_lane
    ),
    Mutant(
        "orphan-forgotten",
        "LSE-5",
        "a dead owner's lane is not taken over",
        orphan_forgotten,
        generated=False,
    ),
    Mutant(
        "unlock-in-vain",
        "LSE-6",
        "the owner gives a lane back, and the next one is refused",
        unlock_in_vain,
    ),
    Mutant(
        "prolonged-lease",
        "LSE-7",
        "a refusal makes the owner's lease longer",
        prolonged_by_a_refusal,
    ),
    Mutant(
        "pull-without-lease", "LSE-11", "the first grant of a client is missing", pull_without_lease
    ),
    Mutant(
        "renewals-missing",
        "LSE-13",
        "a client at work does not renew",
        renewals_missing,
        generated=False,
    ),
    Mutant(
        "unlock-during-call",
        "LSE-15",
        "a lane is given back while its call runs",
        unlock_during_a_call,
    ),
    Mutant("lease-kept", "LSE-16", "a dropped lane is not given back", lease_kept),
    Mutant("outlived-lease", "LSE-14", "a lease lives on when its time is over", outlived_lease),
    Mutant("stranger-unlock", "LSE-8", "a stranger's unlock frees the lane", stranger_unlock),
    Mutant(
        "early-redelivery", "RTY-1", "a suspended message comes again too early", early_redelivery
    ),
    Mutant(
        "suspended-for-ever", "RTY-2", "a suspended message never comes again", suspended_for_ever
    ),
    Mutant("counter-reset", "RTY-3", "the retry counter starts anew", counter_reset),
    Mutant(
        "start-before-suspended",
        "RTY-4",
        "a call starts before the suspended message",
        start_before_suspended,
    ),
    Mutant(
        "given-up-too-soon",
        "RTY-5",
        "a message is given up one delivery too soon",
        given_up_too_soon,
    ),
    Mutant(
        "held-back", "RTY-6", "a lane waits while another one rests", held_back, generated=False
    ),
    Mutant("throw-as-success", "RTY-7", "the lane goes on after a throw", throw_taken_for_success),
    Mutant(
        "no-limit",
        "RTY-8",
        "the run had no limit",
        given_up_without_limit,
        config={"max_reconsume_times": -1},
    ),
    Mutant(
        "rollback-counted",
        "RTY-9",
        "a replayed message was counted",
        rollback_counted,
        by_hand=True,
    ),
    Mutant("counted-on", "RTY-11", "a new owner counts from where the old one stopped", counted_on),
    Mutant(
        "lost-dead-letter", "DLQ-1", "a dead letter is missing", lost_dead_letter, dead_letters=True
    ),
    Mutant(
        "dead-letter-twice",
        "DLQ-2",
        "a dead letter is there twice",
        dead_letter_twice,
        dead_letters=True,
    ),
    Mutant(
        "given-up-comes-back", "DLQ-3", "a given-up message is delivered again", given_up_comes_back
    ),
    Mutant(
        "given-up-again",
        "DLQ-10",
        "a message of a batch is given up twice",
        given_up_again,
        config={"batch": 2},
    ),
    Mutant(
        "dead-letters-reversed",
        "DLQ-4",
        "dead letters lie the other way round",
        dead_letters_reversed,
        True,
    ),
    Mutant(
        "changed-dead-letter",
        "DLQ-5",
        "a dead letter has another body",
        changed_dead_letter,
        dead_letters=True,
    ),
    Mutant(
        "another-origin",
        "DLQ-5",
        "a dead letter names another topic",
        another_origin,
        dead_letters=True,
    ),
    Mutant(
        "failed-letter-skipped",
        "DLQ-6",
        "a dead letter is refused, the lane goes on",
        failed_dead_letter_skipped,
    ),
    Mutant(
        "slow-dead-letter",
        "DLQ-7",
        "a dead letter was stored late",
        slow_dead_letter,
        dead_letters=True,
    ),
    Mutant(
        "copy-in-its-topic",
        "DLQ-8",
        "a copy of a given-up message lies in its topic",
        copy_in_its_own_topic,
    ),
    Mutant(
        "lane-stands-still",
        "DLQ-9",
        "the lane waits after a message was given up",
        lane_stands_still,
    ),
    Mutant(
        "commit-past-unfinished",
        "CMT-1",
        "a commit passes a running message",
        commit_past_unfinished,
    ),
    Mutant("lost-commits", "CMT-2", "an incarnation commits nothing", lost_commits),
    Mutant(
        "committed-in-manual-mode",
        "CMT-3",
        "a SUCCESS in manual mode is committed",
        committed_in_manual_mode,
    ),
    Mutant("commit-rewinds", "CMT-4", "a commit goes back", commit_rewinds),
    Mutant("late-commit", "CMT-5", "the old owner commits after the new one's grant", late_commit),
    Mutant("wrong-start", "CMT-8", "a lane is not started where it was stored", wrong_start),
    Mutant(
        "commit-forgotten", "CMT-9", "a look-up answers what nobody committed", commit_forgotten
    ),
    Mutant("reset-overwritten", "CMT-11", "a commit in flight undoes a reset", reset_overwritten),
    Mutant(
        "written-commit-lost",
        "CMT-7",
        "an old commit is lost",
        written_commit_lost,
        generated=False,
    ),
    Mutant(
        "progress-after-the-drop",
        "CMT-6",
        "more is committed after the drop",
        progress_after_the_drop,
    ),
    Mutant(
        "released-without-a-commit",
        "CMT-13",
        "a lane is given back unreported",
        released_without_a_commit,
    ),
    Mutant(
        "never-delivered",
        "LIV-1",
        "the last message is never delivered",
        never_delivered,
        generated=False,
    ),
    Mutant(
        "nobodys-lane",
        "LIV-2",
        "a lane is dropped for good, with a message left",
        nobodys_lane,
        generated=False,
    ),
    Mutant(
        "starved-lane",
        "LIV-3",
        "a lane gets no thread while another goes on",
        starved_lane,
        generated=False,
    ),
    Mutant(
        "woken-by-nobody",
        "LIV-4",
        "a message comes, and a pull waits on",
        woken_by_nobody,
        generated=False,
    ),
    Mutant(
        "called-late", "LIV-5", "a lane's next message is called late", called_late, generated=False
    ),
    Mutant("lost-message", "SND-1", "an acknowledged message is missing", lost_message),
    Mutant(
        "removed-above-the-minimum",
        "SND-1",
        "more went than was announced",
        removed_above_the_minimum,
    ),
    Mutant(
        "replaced-message",
        "SND-1",
        "another message lies in an acknowledged one's place",
        replaced_message,
    ),
    Mutant("invented-message", "SND-2", "a message was never sent", invented_message),
    Mutant(
        "seen-though-refused", "SND-3", "a message that was refused is read", seen_though_refused
    ),
    Mutant(
        "keyed-send-again",
        "SND-4",
        "an unanswered send with a key is tried again",
        keyed_send_again,
    ),
    Mutant(
        "stored-behind", "SND-9", "a refused message is stored behind its successor", stored_behind
    ),
    Mutant("changed-body", "SND-10", "a message is read with another body", changed_body),
    Mutant(
        "seen-half-message",
        "SND-6",
        "a half message is read though nobody committed it",
        seen_half_message,
    ),
    Mutant(
        "delayed-message-missing",
        "SND-11",
        "a delayed message does not come",
        delayed_message_missing,
        generated=False,
    ),
    Mutant(
        "read-in-another-queue",
        "SND-12",
        "a message lies where nobody sent it",
        read_in_another_queue,
        generated=False,
    ),
    Mutant(
        "committed-half-missing",
        "SND-13",
        "a half message that was committed does not come",
        committed_half_missing,
        generated=False,
    ),
    Mutant(
        "seen-before-its-level",
        "SND-7",
        "a delayed message is there at once",
        seen_before_its_level,
    ),
    Mutant(
        "key-overlaps",
        "ORD-11",
        "a call of a key begins while another one of it runs",
        key_overlaps,
        generated=False,
        consumed=KEY_ORDERED,
    ),
    Mutant(
        "lease-in-broadcasting",
        "LSE-12",
        "a broadcast client asks for a lease",
        lease_in_broadcasting,
        generated=False,
        consumed=BROADCASTING,
    ),
    Mutant(
        "copy-too-soon",
        "RTY-10",
        "a message that was sent back comes before its level",
        copy_too_soon,
        generated=False,
        consumed=CONCURRENT,
    ),
    Mutant(
        "copy-miscounted",
        "RTY-10",
        "a message that was sent back comes with another counter",
        copy_miscounted,
        generated=False,
        consumed=CONCURRENT,
    ),
    Mutant(
        "commit-past-the-smallest",
        "CMT-10",
        "a commit passes a call that runs",
        commit_past_the_smallest,
        generated=False,
        consumed=CONCURRENT,
    ),
    Mutant(
        "commit-past-a-key",
        "CMT-10",
        "a commit passes a call that runs",
        commit_past_the_smallest,
        generated=False,
        consumed=KEY_ORDERED,
    ),
    Mutant(
        "commit-in-broadcasting",
        "CMT-12",
        "a broadcast client commits",
        commit_in_broadcasting,
        generated=False,
        consumed=BROADCASTING,
    ),
    Mutant(
        "own-file-not-read",
        "CMT-12",
        "a broadcast client begins anew",
        own_file_not_read,
        generated=False,
        consumed=BROADCASTING,
    ),
    Mutant(
        "batch-interrupted",
        "SND-5",
        "another message lies within a batch",
        batch_interrupted,
        tagged=True,
    ),
    Mutant(
        "unwanted-tag",
        "SND-8",
        "a message is delivered whose tag nobody asked for",
        unwanted_tag,
        tagged=True,
    ),
    Mutant(
        "wanted-passed-over",
        "SND-8",
        "a message with a wanted tag is left out",
        wanted_passed_over,
        tagged=True,
    ),
    Mutant(
        "taken-twice",
        "ASG-1",
        "a member takes a queue that another one took",
        taken_twice,
        generated=False,
    ),
    Mutant(
        "taken-by-nobody",
        "ASG-2",
        "a member leaves a queue of its share out",
        taken_by_nobody,
        generated=False,
    ),
    Mutant(
        "another-order",
        "ASG-4",
        "a member shares out in another order",
        shared_otherwise,
        generated=False,
    ),
)
"""Each breaks the clause that it names."""

LOOKALIKES: dict[str, Mutant] = _mutants(
    Mutant(
        "reset-between",
        None,
        "an operator reset the offset before the delivery that goes back",
        reset_between,
    ),
    Mutant(
        "queues-changed",
        None,
        "a key moves with the list of queues",
        queues_changed,
        generated=False,
    ),
    Mutant("unanswered-lock", None, "a second client asks and is not answered", unanswered_lock),
    Mutant(
        "stranger-in-vain",
        None,
        "a stranger unlocks, and the next one is refused",
        stranger_unlocks_in_vain,
    ),
    Mutant(
        "overlapping-commits", None, "a lower commit overlaps a higher one", overlapping_commits
    ),
    Mutant(
        "told-again",
        None,
        "the last offset is committed again after the drop",
        told_again_after_the_drop,
    ),
    Mutant("reset-in-flight", None, "a commit comes after a reset, which wins", reset_in_flight),
    Mutant("right-start", None, "a stranger adds a lane where it was stored", right_start),
    Mutant("removed-on-purpose", None, "what is missing was announced to go", removed_on_purpose),
    Mutant(
        "unacknowledged-lost",
        None,
        "a send without an answer is never read",
        unacknowledged_is_lost,
    ),
    Mutant(
        "stored-weakly-lost",
        None,
        "a message that was not flushed in time is lost",
        stored_weakly_is_lost,
    ),
    Mutant(
        "refused-then-stored",
        None,
        "a refused send is stored at its second try",
        refused_then_stored,
    ),
    Mutant(
        "seen-by-one-only",
        None,
        "a member sees somebody whom the others don't",
        seen_by_one_only,
        generated=False,
    ),
    Mutant(
        "another-wanted-tag",
        None,
        "a message has another wanted tag",
        another_wanted_tag,
        tagged=True,
    ),
    Mutant("content-unknown", None, "a reader does not know the body", content_unknown),
    Mutant("committed-half-message", None, "a half message was committed", committed_half_message),
    Mutant("no-level-at-all", None, "a level below 0 waits for nothing", no_level_at_all),
    Mutant("short-suspend", None, "a suspend of 3 ms means 10 ms", short_suspend),
    Mutant(
        "second-try-arrives",
        None,
        "a dead letter is refused at first, and acknowledged then",
        second_try_arrives,
    ),
    Mutant("corrected-commit", None, "a broker's correction moves a commit back", corrected_commit),
    Mutant(
        "stranger-leases-in-broadcasting",
        None,
        "a stranger asks for a lease",
        strangers_lease_in_broadcasting,
        generated=False,
        consumed=BROADCASTING,
    ),
    Mutant(
        "copy-later-than-asked",
        None,
        "a lower level was asked for",
        copy_later_than_asked,
        generated=False,
        consumed=CONCURRENT,
    ),
)
"""Each looks like a defect and breaks nothing."""


def named(name: str) -> Mutant:
    """A defect or lookalike. Raises UsageError for an unknown name."""
    found = DEFECTS.get(name) or LOOKALIKES.get(name)
    if found is None:
        known = ", ".join([*DEFECTS, *LOOKALIKES])
        raise UsageError(f"there is no defect {name}; known are {known}")
    return found
