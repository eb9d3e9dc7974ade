"""What planting a defect into a valid history is made of: the history's rows and what changes ask of them.

A *defect* changes as little as it can so that one clause, which it names, is broken (now and then another one is
broken with it: whoever skips a message also commits past it). A *lookalike* changes as much, and breaks nothing.
Both work on generated and on recorded histories; what they need (a suspended call, a handover) must be there.
Rows that are added take seq numbers between those of their neighbours: `spread` makes room in a recorded history.

The defects of a clause lie in the file of `spark_checkers.clauses` that has its name, as `DEFECTS`, and what only looks
like one as `LOOKALIKES`; here is what several of them share.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from specs.clauses.rows import REQUEST_LEVELS, is_copy_topic, is_manual
from specs.errors import UsageError
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.plan.config import Config, config_of
from specs.vocabulary import DLQ_PREFIX, LISTENER_SUSPENDS, Kind, Lane, Level, Outcome, Queue

MS = 1000


ROOM = 8


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
        """The run's description as the changed history has it: another system's where RocketMQ has no such setting."""
        if set(self.config) <= {each.name for each in fields(Config)}:
            return replace(info, config=replace(info.config, **self.config))
        told = {**info.config.to_json(), **self.config, "system": "planted"}
        return replace(info, config=config_of(told))


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


CONCURRENT = ("concurrent", "clustering")


KEY_ORDERED = ("key_ordered", "clustering")


BROADCASTING = ("concurrent", "broadcasting")


LEASED = ("leased", "clustering")
"""Of a system that leases messages one by one."""

GENERATIONS = {"generations": True}
"""Of a system that numbers the generations of its groups."""

BEHIND_ALL = 1_000_000
"""An offset beyond those of any recorded history."""


MESSAGE = (
    "queue_offset",
    "message_id",
    "origin_id",
    "sharding_key",
    "key_seq",
    "body_hash",
    "props_hash",
    "tags",
)
"""The columns that say which message a delivery is about."""


def neighbours(trace: Trace) -> Iterator[tuple[Row, Row]]:
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


def swapped(trace: Trace, first: Row, second: Row) -> Planted:
    ours, theirs = first._asdict(), second._asdict()
    return trace.changed(
        {
            first.seq_begin: {name: theirs[name] for name in MESSAGE},
            second.seq_begin: {name: ours[name] for name in MESSAGE},
        }
    )


def keyed(trace: Trace) -> Iterator[tuple[Row, Row]]:
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


def moved(trace: Trace, before: Row, row: Row, **columns: Any) -> Planted:
    place = {"queue_id": (row.queue_id or 0) + 1, "queue_offset": 10_000_000 + row.seq_begin}
    return trace.changed({row.seq_begin: {**place, **columns}}, (before.seq_begin, row.seq_begin))


def held(trace: Trace) -> Iterator[Row]:
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


def lock(trace: Trace, lock: Row, step: int, client: str, outcome: Outcome) -> Row:
    return trace.another(lock, lock, step, client_id=client, process=client, outcome=outcome)


def elsewhere(trace: Trace, lock: Row, after: Row, client: str, outcome: Outcome) -> Row:
    """A stranger asks for the lane that another group has of the same queue."""
    asked = trace.another(lock, after, 1, client_id=client, process=client, outcome=outcome)
    return asked._replace(group="strangers", incarnation=None, code=None, lease_until_us=None)


def later(trace: Trace, row: Row, after_us: int) -> Row | None:
    """The first row that begins so long after the end of another."""
    since = (row.ended_us or row.started_us) + after_us
    return next(
        (each for each in trace.rows if each.seq_begin > row.seq_begin and each.started_us > since),
        None,
    )


def redelivered(trace: Trace) -> Iterator[tuple[Row, Row]]:
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


def given_up(trace: Trace) -> Iterator[tuple[Row, Row, Row]]:
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


def grant(trace: Trace, like: Row, answered_us: int, until_us: int) -> Row | None:
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


def until_drop(rows: Sequence[Row]) -> float:
    """When an incarnation was dropped."""
    return next((row.seq_begin for row in rows if row.kind is Kind.DROP), float("inf"))


def fetched(rows: Iterable[Row], before: Row, offset: int | None) -> Row | None:
    """A pull that fetched the message, and the one before it."""
    for row in rows:
        ended = row.kind is Kind.PULL and row.outcome is Outcome.OK and row.seq_end is not None
        holds = (row.queue_offset or 0) < (offset or 0) < (row.value or 0)
        if ended and holds and (row.seq_end or 0) < before.seq_begin:
            return row
    return None


def dead_reads(trace: Trace) -> list[tuple[Row, Row]]:
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


def finished(rows: Sequence[Row]) -> list[Row]:
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


def acknowledged(trace: Trace) -> Iterator[Row]:
    """Commits that were answered, of a lane where no offset was reset."""
    for rows in trace.lanes.values():
        if any(row.kind is Kind.RESET for row in rows):
            continue
        yield from (
            row
            for row in rows
            if row.kind is Kind.COMMIT and row.outcome is Outcome.OK and row.value
        )


def looked_up(trace: Trace, commit: Row, after: Row, step: int, value: int) -> Row:
    """A stranger asks for the offset of the commit's lane, at once after a row."""
    who: dict[str, Any] = {"client_id": STRANGER, "process": STRANGER, "incarnation": None}
    row = trace.another(commit, after, step, **who, outcome=Outcome.OK, value=value)
    return row._replace(kind=Kind.FETCH_OFFSET, view=None, detail=None)


def last_works(trace: Trace) -> Iterator[tuple[list[Row], list[int]]]:
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
        if last >= (adds[-1].value or 0) and lane.queue in settled_queues(trace):
            yield mine, [row.seq_begin for row in calls if row.queue_offset == last]


def settled_queues(trace: Trace) -> set[Queue]:
    return {
        row.queue
        for row in trace.of(Kind.READ)
        if row.queue_offset is None and row.detail == "settled"
    }


def reads(trace: Trace) -> Iterator[tuple[Row, Row]]:
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


def missed(trace: Trace, wait_us: int) -> Iterator[tuple[Row, Row]]:
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
    for send, read in reads(trace):
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


def shared_alike(trace: Trace) -> Iterator[list[Row]]:
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


def as_half(trace: Trace, send: Row) -> Planted:
    change = {"detail": "half", "queue_offset": None, "value": send.queue_offset}
    return trace.changed({send.seq_begin: change})


def handed_out(trace: Trace) -> Iterator[Row]:
    """First hand-outs of messages, each to a member that neither stands still nor is about to leave."""
    troubled = list(trace.of(Kind.PAUSE, Kind.LEAVE, Kind.CRASH))
    for row in trace.of(Kind.RECEIVE):
        fine = row.outcome is Outcome.OK and not row.reconsume_times and row.ended_us is not None
        if not fine or (row.lease_until_us or 0) <= (row.ended_us or 0) + 10 * MS:
            continue
        if not any(
            each.client_id == row.client_id
            and each.started_us <= (row.ended_us or 0)
            and (each.ended_us or each.started_us) >= row.started_us
            for each in troubled
        ):
            yield row


def handed_out_once(trace: Trace) -> Iterator[Row]:
    """Those of them whose message is not handed out again: there is room for one hand-out more."""
    times = Counter((row.lane, row.queue_offset) for row in trace.of(Kind.RECEIVE))
    return (row for row in handed_out(trace) if times[row.lane, row.queue_offset] == 1)


def handed_again(trace: Trace, row: Row, client: str, *, released: bool = False) -> Planted:
    """The message of a hand-out is handed out once more at once. released: it was put back before."""
    more = []
    if released:
        put_back = trace.another(row, row, 1, kind=Kind.RELEASE, suspend_ms=0, lease_until_us=None)
        more.append(put_back._replace(reconsume_times=None))
    until_us = (row.lease_until_us or 0) + 50 * MS
    columns: dict[str, Any] = {
        "lease_id": "planted",
        "lease_until_us": until_us,
        "reconsume_times": 1,
    }
    again = trace.another(row, row, 2, client_id=client, process=client, **columns)
    return trace.with_more([*more, again], [row.seq_begin])


def handed_next(trace: Trace, row: Row, client: str, **columns: Any) -> Planted:
    """A message behind all others is handed out right after a hand-out; of its key, if no other is named.

    Its lease has no end in time: when it ended the message would be owed again.
    """
    behind = {"queue_offset": BEHIND_ALL, "message_id": None}
    columns = {**behind, "lease_id": "planted", "lease_until_us": None, **columns}
    more = trace.another(row, row, 1, client_id=client, process=client, **columns)
    return trace.with_more([more], [row.seq_begin])


def passed_on(trace: Trace) -> Iterator[tuple[Row, Row]]:
    """A hand-out of a message and the next one, to a member that neither stands still nor is about to leave.

    Not where some request about the message was under way when it was asked for: that may have come later.
    """
    asked: dict[Any, list[Row]] = {}
    for row in trace.of(Kind.ACK, Kind.RELEASE):
        asked.setdefault((row.lane, row.queue_offset), []).append(row)
    fine = {row.seq_begin for row in handed_out(Trace(_as_first(trace), trace.info))}
    last: dict[Any, Row] = {}
    for row in trace.of(Kind.RECEIVE):
        if row.outcome is not Outcome.OK:
            continue
        message = (row.lane, row.queue_offset)
        before = last.get(message)
        ended = None if before is None else before.seq_end
        if (
            before is not None
            and not any(_is_under_way(each, row) for each in asked.get(message, ()))
            and row.seq_begin in fine
            and (ended or row.seq_begin) < row.seq_begin
        ):
            yield before, row
        last[message] = row


def _is_under_way(asked: Row, row: Row) -> bool:
    """May a request that was begun before still change something when another one is made?"""
    is_answered = asked.outcome in (Outcome.OK, Outcome.REFUSED) and asked.ended_us is not None
    over_us = (asked.ended_us or 0) if is_answered else row.started_us
    return asked.seq_begin < row.seq_begin and over_us >= row.started_us


def _as_first(trace: Trace) -> list[Row]:
    return [
        row._replace(reconsume_times=0) if row.kind is Kind.RECEIVE else row for row in trace.rows
    ]


def late_request(trace: Trace, before: Row, row: Row, outcome: Outcome) -> Planted:
    """An acknowledgement under the hand-out before, right after the message was handed out anew."""
    columns: dict[str, Any] = {"kind": Kind.ACK, "outcome": outcome, "lease_until_us": None}
    late = trace.another(before, row, 1, **columns)
    return trace.with_more([late._replace(reconsume_times=None)], [before.seq_begin, row.seq_begin])


def reading_after(trace: Trace, after: Row, value: int, like: Row | None = None) -> Planted:
    """A witness reads this floor right after the end of a row, of its lane or that of another row."""
    lane = (like or after).lane._asdict()
    of_message = ("client_id", "queue_offset", *MESSAGE, "key_seq", "lease_id", "lease_until_us")
    empty: dict[str, Any] = dict.fromkeys((*of_message, "reconsume_times", "suspend_ms"))
    told = {"kind": Kind.PROGRESS, "level": Level.STORE, "outcome": Outcome.OK, "value": value}
    row = trace.another(after, after, 1, **{**empty, **lane, **told, "process": "witness"})
    return trace.with_more([row], [after.seq_begin, *([like.seq_begin] if like else [])])


def acknowledged_long_before(trace: Trace) -> Iterator[tuple[Row, Row]]:
    """An answered acknowledgement, and a row that begins so long after it that the floor must have followed."""
    after_us = 2 * trace.info.config.schedule_slack_ms * MS
    for row in trace.of(Kind.ACK):
        if row.outcome is Outcome.OK and row.ended_us is not None:
            after = later(trace, row, after_us)
            if after is not None and after.ended_us is not None:
                yield row, after
