"""Valid histories of any size, written a queue at a time, in the layout that is judged fastest, or by time.

What is played: every queue of the topic `orders` has a producer and, for each group, three clients that take turns
as its owner. An owner locks, looks up its offset, adds the lane, renews its lock, pulls, calls its listener,
commits on its clock and with its pulls, and hands over: in good order, or by dying and leaving an expired lease.
Some calls suspend, some messages exhaust their retries and become dead letters; the group `audit` works in manual
mode and sometimes rolls back. At the end every queue is read. All of it is drawn from one seed.

How order is kept without sorting everything: within a queue no two moments share a microsecond, and a moment's
seq is its time times the number of queues (and some room for what is planted), plus the queue's number.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_checkers.changes import by
from spark_checkers.scatter import Spill, by_windows, gathered, one_by_one, spilled
from spark_checkers.trace_mutants import Mutant, named, plant
from spark_checkers.writing import BY_SEQ, ROWS_PER_FILE, ROWS_PER_GROUP, HistoryWriter
from specs.errors import UsageError
from specs.facts.columns import NEVER, NONE, Ints
from specs.facts.segments import ints
from specs.history.arrow import arrow_schema
from specs.history.runinfo import RunInfo, write_runinfo
from specs.history.store import rows_of_table, rows_to_table
from specs.plan.config import Config
from specs.scratch import Scratch
from specs.vocabulary import Kind, Level, Outcome, dead_letter_topic

MS = 1_000
SECOND = 1_000_000
ROOM = 8
"""Seq numbers between two moments of a queue, for events that are planted later."""
BEGIN_US = 1 * SECOND
WALL_US = 1_700_000_000 * SECOND
TOPIC = "orders"
AUTO_GROUP, MANUAL_GROUP = "billing", "audit"
MOST_GROUPS = 9
"""So their names, which end in a digit, come in the order of the numbers."""
BROKERS = 4
CLIENTS = 3
KEYS = 64
QUEUE_US, MESSAGE_US = 240 * SECOND, 1_500
"""How long a queue's work and a message take at least."""
PULLED_AT_ONCE = 16
"""How many messages a pull brings, where they come as fast as they can."""
LONGEST_GAP_US = 300 * MS
"""How long a client that has something to do rests at most."""
MANUAL_EVERY = 4
"""Every so many queues the manual group consumes too."""
MANUAL_BLOCK = 8
LEG_ROWS = 1 << 21
"""A queue of more rows is played in legs, one after the other, so that it takes the memory of one."""
WINDOW_ROWS = 1 << 20
"""About so many rows are put in the order of time at once."""
ORDERS = ("queue", "time")
USUAL = {"queues": None, "groups": 1, "order": "queue", "defect": None, "edge": "none"}
CONFIG = Config(max_reconsume_times=2, consume_from="first")
RESULTS = (
    *(Outcome.SUCCESS, Outcome.COMMIT, Outcome.SUSPEND, Outcome.NULL, Outcome.THREW),
    *(Outcome.ROLLBACK, Outcome.UNKNOWN),
)


class Family(NamedTuple):
    """Some rows of one kind: times in µs (end NEVER: still open; NONE: begin and end are one moment)."""

    begin: Ints
    end: Ints
    columns: dict[str, Any]


@dataclass
class Sheet:
    """The rows of one queue before they have their seq numbers."""

    common: dict[str, Any] = field(default_factory=dict)
    families: list[Family] = field(default_factory=list)

    def add(self, kind: Kind, begin: Any, end: Any = None, **columns: Any) -> None:
        """Rows of one kind. begin, end: arrays or single times; without an end the rows are instants."""
        begins = np.atleast_1d(ints(begin))
        if not len(begins):
            return
        ends = np.broadcast_to(ints(NONE if end is None else end), begins.shape)
        usual = {"outcome": Outcome.OK, "level": Level.CLIENT, "kind": kind, **self.common}
        self.families.append(Family(begins, ends, {**usual, **columns}))

    @property
    def last_us(self) -> int:
        """The last moment at which a row begins or ends."""
        moments = np.concatenate([each for family in self.families for each in family[:2]])
        return int(moments[moments < NEVER].max())

    def table(self, run: str, stride: int, residue: int) -> pa.Table:
        """The rows by seq_begin, in the schema of a history."""
        schema = arrow_schema()
        told = {"run": run, "clock": "virtual"}
        tables = []
        for begin, _end, columns in self.families:
            said = {**told, **columns}
            arrays = [_column(each.type, said.get(each.name), len(begin)) for each in schema]
            tables.append(pa.Table.from_arrays(arrays, schema=schema))
        table = pa.concat_tables(tables).unify_dictionaries().combine_chunks()
        begin, end = _distinct_moments(
            np.concatenate([family.begin for family in self.families]),
            np.concatenate([family.end for family in self.families]),
        )
        is_open = end >= NEVER
        seq_begin = begin * stride + residue
        moments = {
            "seq_begin": seq_begin,
            "seq_end": np.where(is_open, NONE, end * stride + residue),
            "op_id": seq_begin,
            "started_us": begin + BEGIN_US,
            "ended_us": np.where(is_open, NONE, end + BEGIN_US),
            "wall_us": begin + BEGIN_US + WALL_US,
        }
        for name, values in moments.items():
            column = pc.coalesce(table.column(name), _column(pa.int64(), values, len(values)))
            table = table.set_column(schema.get_field_index(name), schema.field(name), column)
        return table.take(pa.array(np.argsort(begin, kind="stable")))


def _column(kind: pa.DataType, told: Any, rows: int) -> pa.Array:
    """A column of so many rows.

    told: an Arrow array, None, one text for all rows, (codes, texts), or numbers, of which NONE says nothing.
    """
    if isinstance(told, pa.Array):
        return told
    if told is None:
        return pa.nulls(rows, kind)
    if isinstance(told, str):
        told = (np.zeros(rows, np.int32), [told])
    if isinstance(told, tuple):
        codes, texts = told
        encoded = pa.DictionaryArray.from_arrays(
            pa.array(codes, pa.int32()), pa.array(texts, pa.string())
        )
        return encoded.cast(kind)
    numbers = np.broadcast_to(told, rows)
    return pa.array(numbers, pa.int64(), mask=numbers == NONE)


def _distinct_moments(begin: Ints, end: Ints) -> tuple[Ints, Ints]:
    """Push moments that fall together apart, by a microsecond each, in the order of their times."""
    rows = len(begin)
    ends = np.flatnonzero((end != NONE) & (end < NEVER))
    times = np.concatenate([begin, end[ends]])
    phase = np.concatenate([np.zeros(rows, np.int8), np.ones(len(ends), np.int8)])
    order = np.lexsort((phase, times))
    steps = np.arange(len(times), dtype=np.int64)
    pushed = np.empty(len(times), np.int64)
    pushed[order] = np.maximum.accumulate(times[order] - steps) + steps
    new_end = np.where(end == NONE, pushed[:rows], NEVER)
    new_end[ends] = pushed[rows:]
    return pushed[:rows], new_end


def _texts(words: Iterable[str]) -> pa.Array:
    """A text a row, where many are alike."""
    return pa.array(words, pa.string()).dictionary_encode()


def message_ids(prefix: str, numbers: Ints) -> pa.Array:
    """Ids of one length: the prefix and ten digits."""
    digits = pc.utf8_lpad(pc.cast(pa.array(numbers), pa.string()), 10, "0")
    return pc.binary_join_element_wise(prefix, digits, "")


@dataclass(frozen=True)
class Past:
    """What went before a leg of a queue: when it begins, how often was sent, how many were stored, and by key."""

    us: int = 0
    tries: int = 0
    stored: int = 0
    of_key: Ints = field(default_factory=lambda: np.zeros(KEYS, np.int64))


@dataclass
class Messages:
    """The messages of one queue, by offset: when each could be pulled, and what the producer said of it.

    base: the first one's offset.
    """

    base: int
    ids: pa.Array
    available: Ints
    key: Ints
    key_words: Sequence[str]
    key_seq: Ints
    body: Ints

    @property
    def size(self) -> int:
        return len(self.available)

    @property
    def stop(self) -> int:
        """The offset after the last one."""
        return self.base + self.size

    def columns(self, offsets: Ints | None = None) -> dict[str, Any]:
        """What the messages at these offsets are, by default all of them."""
        place = np.arange(self.size, dtype=np.int64) if offsets is None else offsets - self.base
        return {
            "queue_offset": self.base + place,
            "message_id": self.ids.take(pa.array(place)),
            "sharding_key": (self.key[place], self.key_words),
            "key_seq": self.key_seq[place],
            "body_hash": self.body[place],
        }


def _spread(rng: np.random.Generator, mean_us: float, size: int, least_us: int = 10) -> Ints:
    return (rng.exponential(mean_us, size) + least_us).astype(np.int64)


def _produce(
    sheet: Sheet, rng: np.random.Generator, queue: int, wanted: int, pace: float, past: Past
) -> tuple[Messages, Past]:
    """Sends, one after another: nearly all acknowledged, some refused, some unanswered (stored or not)."""
    tries = wanted + max(2, wanted // 500)
    gap, took = _spread(rng, 1200 * pace, tries, 100), _spread(rng, 300, tries, 50)
    begin = past.us + np.cumsum(gap + took) - took
    end = begin + took
    fate = rng.random(tries)
    refused, unknown = fate < 0.0005, (fate >= 0.0005) & (fate < 0.0015)
    stored = ~refused & ~(unknown & (rng.random(tries) < 0.5))
    key = rng.integers(0, KEYS, tries)
    key_seq = np.zeros(tries, np.int64)
    for each in range(KEYS):
        mine = key == each
        key_seq[mine] = past.of_key[each] + np.arange(int(mine.sum()))
    number = past.tries + np.arange(tries, dtype=np.int64)
    ids = message_ids(f"{queue:05d}M", number)
    body = rng.integers(0, 1 << 32, tries)
    words = [f"k{queue}-{number}" for number in range(KEYS)]
    offsets = np.where(stored & ~unknown, past.stored + np.cumsum(stored) - 1, NONE)
    outcome = np.select([refused, unknown], [1, 2])
    shops = ((number % 3 == 2).astype(np.int64), [f"shop-{queue}", f"till-{queue}"])
    sheet.add(
        Kind.SEND,
        begin,
        end,
        outcome=(outcome, [Outcome.OK, Outcome.REFUSED, Outcome.UNKNOWN]),
        client_id=shops,
        process=shops,
        view=f"java-hash {sheet.common['broker']}/{sheet.common['queue_id']}",
        queue_offset=offsets,
        message_id=ids,
        sharding_key=(key, words),
        key_seq=key_seq,
        attempt=1,
        body_hash=body,
        code=np.select([refused, unknown], [14, NONE]),
    )
    kept = np.flatnonzero(stored)
    there, told = ids.take(pa.array(kept)), (key[kept], words, key_seq[kept], body[kept])
    messages = Messages(past.stored, there, end[kept] + 200, *told)
    of_key = past.of_key + np.bincount(key, minlength=KEYS)
    return messages, Past(past.us, past.tries + tries, messages.stop, of_key)


class Incident(NamedTuple):
    """A row that belongs to no queue: somebody joined, left or died."""

    at: int
    kind: Kind
    client: str
    group: str


class DeadLetter(NamedTuple):
    """A message that was given up: the dead-letter queues are made of these."""

    stored: int
    broker: str
    group: str
    message_id: str
    body: int
    key: str


@dataclass
class _Lane:
    """One group on one queue, being played, leg by leg."""

    group: str
    manual: bool
    queue: int
    broker: str
    incidents: list[Incident]
    dead: list[DeadLetter]
    pace: float  # how much slower than a message a millisecond everything goes
    turn: int = 0
    now: int = 0
    stored: int = -1  # the offset that the broker holds; -1: none yet
    last_lock: int = -(10**12)
    joined: set[str] = field(default_factory=set)
    sheet: Sheet = field(init=False)
    rng: np.random.Generator = field(init=False)
    messages: Messages = field(init=False)

    def client(self, turn: int) -> str:
        return f"{self.group}-{self.queue}-{turn % CLIENTS}"

    def add(self, kind: Kind, begin: Any, end: Any = None, **columns: Any) -> None:
        self.sheet.add(kind, begin, end, group=self.group, **columns)

    def play(
        self, sheet: Sheet, rng: np.random.Generator, messages: Messages, since: int, *, last: bool
    ) -> None:
        """Consume every message of a leg, which begins then; after the last leg everybody leaves."""
        self.sheet, self.rng, self.messages, self.now = sheet, rng, messages, max(self.now, since)
        begun, end = messages.base, messages.stop
        turns = int(rng.integers(3, 7))
        while begun < end or self.turn == 0:
            share = int(messages.size / turns * rng.uniform(0.6, 1.4)) + 1
            stop = min(begun + share, end)
            dies = stop < end and rng.random() < 0.25
            begun = self._incarnation(self.turn, max(self.stored, 0), stop, dies=dies)
            self.turn += 1
        for client in sorted(self.joined) if last else ():
            self.incidents.append(Incident(self.now + 1, Kind.LEAVE, client, self.group))

    def _join(self, client: str) -> None:
        if client not in self.joined:
            self.joined.add(client)
            self.incidents.append(Incident(self.now, Kind.JOIN, client, self.group))
            self.now += 50 * MS

    def _lock(self, client: str, begin: Any, outcome: Outcome = Outcome.OK) -> None:
        begins = np.atleast_1d(ints(begin))
        ends = begins + _spread(self.rng, 400, len(begins), 200)
        self.add(Kind.LOCK, begins, ends, outcome=outcome, **by(client))

    def _incarnation(self, turn: int, start: int, stop: int, *, dies: bool) -> int:
        """One owner, from its lock to the end of its work; returns the offset that it stopped at."""
        client, rng = self.client(turn), self.rng
        self._join(client)
        self._lock(client, self.now)
        looked = self.now + 5 * MS
        stored: dict[str, Any] = {"value": self.stored, "code": 0}
        if self.stored < 0:
            stored = {"outcome": Outcome.REFUSED, "value": -1, "code": 22}
        self.add(Kind.FETCH_OFFSET, looked, looked + 900, **stored, **by(client))
        added = looked + 2 * MS
        me = {**by(client), "incarnation": f"{client}#{turn}"}
        self.add(Kind.ADD, added, value=start, **me)
        pulls = self._pulled(start, stop, added + 1 * MS)
        calls = self._calls(start, stop, added + 3 * MS, pulls)
        end = int(calls.end[-1]) + 20 if calls.size else added + 10 * MS
        if calls.size and calls.given_up[-1]:
            end += 3 * MS  # nobody leaves before the dead letter is acknowledged
        cut = NEVER
        if dies and calls.size > 10:
            died = int(rng.integers(calls.size // 2, calls.size))
            cut = int(calls.begin[died]) + 5
            end = cut
        self._deliver(calls, cut, me)
        ticks = np.arange(added + 5 * SECOND, end, 5 * SECOND)
        values = calls.finished_before(ticks, start)
        self.add(Kind.COMMIT, ticks, ticks + 30, outcome=Outcome.SENT, value=values, **me)
        pulled, pulled_value = self._pulls(pulls, calls, cut, me, start)
        self._lock(client, np.arange(self.now + 20 * SECOND, end, 20 * SECOND))
        self._strangers(turn, self.now + 100 * MS, end - 100 * MS)
        renewals = (end - self.now) // (20 * SECOND)
        self.last_lock = max(self.last_lock, self.now + renewals * 20 * SECOND)
        known = [int(values[-1])] if len(values) else []
        self.stored = max([self.stored, *known, pulled_value])
        if cut < NEVER:
            self._die(client, turn, cut)
            return int(calls.offset[calls.begin < cut].max()) + 1
        done = int(calls.finished_before(ints([end + SECOND]), start)[0]) if calls.size else start
        over = max(end, pulled) + 100
        told = {"outcome": Outcome.SENT, "value": done, **me}
        self.add(Kind.COMMIT, over, over + 40, **told)
        self.add(Kind.DROP, over + 60, **me)
        self.add(Kind.COMMIT, over + 70, over + 75, **told)  # once more
        self.add(Kind.UNLOCK, over + 90, over + 90 + 500, **me)
        self.stored = max(self.stored, done)
        self.now = over + 2 * MS + int(rng.integers(10, 400)) * MS
        return stop

    def _die(self, client: str, turn: int, cut: int) -> None:
        """The owner dies; the next one asks until the lease has run out."""
        self.incidents.append(Incident(cut + 1, Kind.CRASH, client, self.group))
        self.joined.discard(client)
        lease = CONFIG.broker_lease_ms * MS
        self.now = cut + 1 * SECOND
        other = self.client(turn + 1)
        self._join(other)
        tries = np.arange(self.now, self.last_lock + lease - 100 * MS, 20 * SECOND)
        self._lock(other, tries, Outcome.REFUSED)
        self.now = max(self.now, self.last_lock + lease + 5 * MS)
        self.now += int(self.rng.integers(1, 20)) * SECOND

    def _strangers(self, turn: int, begin: int, end: int) -> None:
        """Another client asks and is refused; a third one unlocks what is not its own, and asks in vain."""
        bob, carol = self.client(turn + 1), self.client(turn + 2)
        if end - begin < 2 * SECOND or not {bob, carol} <= self.joined:
            return
        self._lock(bob, np.sort(self.rng.integers(begin, end, 4)), Outcome.REFUSED)
        at = np.sort(self.rng.integers(begin, end - SECOND, 2))
        self.add(Kind.UNLOCK, at, at + 400, **by(bob))
        self._lock(carol, at + 200 * MS, Outcome.REFUSED)

    def _pulled(self, start: int, stop: int, begin: int) -> _Pulls:
        """Pulls, one after another, until all of these messages are there.

        Each waits at the broker until there is a message, and brings what is there then; the next one comes a while
        after its answer.
        """
        there, base, rest = self.messages.available, self.messages.base, _rest_us(self.pace)
        found: list[tuple[int, int, int, int]] = []
        while start < stop:
            end = max(begin, int(there[start - base])) + 15
            brought = base + int(np.searchsorted(there, end - 10, side="right"))
            value = min(brought, start + CONFIG.pull_batch)
            found.append((start, begin, end, value))
            start, begin = value, end + rest
        return _Pulls(*ints(found).reshape(-1, 4).T)

    def _calls(self, start: int, stop: int, begin: int, pulls: _Pulls) -> _Calls:
        offsets = np.arange(start, stop, dtype=np.int64)
        brought = np.searchsorted(pulls.value, offsets, side="right")
        ready = np.maximum(pulls.end[brought] + 25, begin)
        return (self._manual_calls if self.manual else self._auto_calls)(offsets, ready)

    def _auto_calls(self, offsets: Ints, ready: Ints) -> _Calls:
        rng, limit = self.rng, CONFIG.max_reconsume_times
        luck = rng.random(len(offsets))
        fails = np.select([luck < 0.003, luck < 0.004, luck < 0.005], [1, 2, limit + 1])
        times = np.minimum(fails, limit) + 1
        offset = np.repeat(offsets, times)
        first = np.repeat(np.cumsum(times) - times, times)
        count = np.arange(len(offset)) - first
        suspends = count < np.repeat(fails, times)
        given_up = suspends & (count == limit)
        how = rng.integers(0, 3, len(offset))
        outcome = np.where(suspends, 2 + how, np.where(rng.random(len(offset)) < 0.01, 1, 0))
        usual, drawn = rng.random(len(offset)) < 0.5, rng.integers(10, 300, len(offset))
        asked = np.where(usual, CONFIG.suspend_ms, drawn)
        suspend = np.where(suspends & ~given_up, asked, NONE)
        return self._timed(offset, count, outcome, suspend, given_up, np.repeat(ready, times))

    def _manual_calls(self, offsets: Ints, ready: Ints) -> _Calls:
        rng = self.rng
        block = np.arange(len(offsets)) // MANUAL_BLOCK
        blocks = int(block[-1]) + 1 if len(offsets) else 0
        rolls = rng.random(blocks) < (0.05 if rng.random() < 0.7 else 0.0)
        again = np.repeat(np.arange(blocks), 1 + rolls)
        sizes = np.bincount(block, minlength=blocks)[again]
        starts = np.repeat(again * MANUAL_BLOCK, sizes)
        within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        chosen = starts + within
        offset, ready = (offsets[chosen], ready[chosen]) if len(offsets) else (offsets, ready)
        last = within == np.repeat(sizes, sizes) - 1
        replayed = np.zeros(len(again), np.bool_)
        replayed[:-1] = again[1:] == again[:-1]
        rollback = last & np.repeat(replayed, sizes)
        outcome = np.where(rollback, 5, np.where(last, 1, 0))
        suspend = np.where(rollback, CONFIG.suspend_ms, NONE)
        return self._timed(
            offset, np.zeros(len(offset), np.int64), outcome, suspend, rollback & False, ready
        )

    def _timed(
        self, offset: Ints, count: Ints, outcome: Ints, suspend: Ints, given_up: Any, ready: Ints
    ) -> _Calls:
        """Give calls their times: one after another, not before the message was pulled or the lane may go on."""
        rng, size = self.rng, len(offset)
        took = _spread(rng, 900 * self.pace, size, 40)
        gap = _spread(rng, 120 * self.pace, size, 30).clip(max=LONGEST_GAP_US)
        waits = np.zeros(size, np.int64)
        waits[1:] = np.where(suspend[:-1] != NONE, suspend[:-1] * MS + 2 * MS, 0)
        waits[1:] += np.where(given_up[:-1], 3 * MS, 0)
        steps = np.cumsum(gap + waits + took)
        ends = steps + np.maximum.accumulate(ready - (steps - took)) if size else steps
        return _Calls(ends - took, ends, offset, count, outcome, suspend, given_up, self.manual)

    def _deliver(self, calls: _Calls, cut: int, me: Mapping[str, Any]) -> None:
        mine = np.flatnonzero(calls.begin < cut)
        is_open = calls.end[mine] >= cut
        outcome = np.where(is_open, RESULTS.index(Outcome.UNKNOWN), calls.outcome[mine])
        self.add(
            Kind.DELIVER,
            calls.begin[mine],
            np.where(is_open, NEVER, calls.end[mine]),
            outcome=(outcome, RESULTS),
            reconsume_times=calls.count[mine],
            attempt=calls.count[mine] + 1,
            commit_mode="manual" if self.manual else "auto",
            suspend_ms=np.where(is_open, NONE, calls.suspend[mine]),
            **self.messages.columns(calls.offset[mine]),
            **me,
        )
        lost = np.flatnonzero(calls.given_up & (calls.end < cut))
        if not len(lost):
            return
        begin = calls.end[lost] + 60
        end = begin + _spread(self.rng, 500, len(lost), 100).clip(100, 2 * MS)
        columns = self.messages.columns(calls.offset[lost])
        del columns["body_hash"]
        tries = {"reconsume_times": calls.count[lost], "attempt": 1}
        said = {"commit_mode": "auto", "code": 0}
        self.add(Kind.DEAD_LETTER, begin, end, **tries, **said, **columns, **me)
        names, places = columns["message_id"].to_pylist(), calls.offset[lost] - self.messages.base
        for stored, name, place in zip((end - 50).tolist(), names, places, strict=True):
            body, key = int(self.messages.body[place]), self.messages.key[place]
            told = (self.broker, self.group, name, body, self.messages.key_words[key])
            self.dead.append(DeadLetter(stored, *told))

    def _pulls(
        self, pulls: _Pulls, calls: _Calls, cut: int, me: Mapping[str, Any], start: int
    ) -> tuple[int, int]:
        """Every eighth pull carries a commit; returns (end, value) of the last one."""
        kept = pulls.end < cut - 100
        begin, end = pulls.begin[kept], pulls.end[kept]
        self.add(
            Kind.PULL, begin, end, queue_offset=pulls.offset[kept], value=pulls.value[kept], **me
        )
        carried = np.flatnonzero(np.arange(len(begin)) % 8 == 1)
        values = calls.finished_before(begin[carried], start)
        self.add(
            Kind.COMMIT, begin[carried] + 2, begin[carried] + 12, value=values, view="pull", **me
        )
        return (int(end[carried][-1]), int(values[-1])) if len(carried) else (0, -1)


class _Pulls(NamedTuple):
    """The pulls of one incarnation: where each asked, when, and the offset after what it brought."""

    offset: Ints
    begin: Ints
    end: Ints
    value: Ints


@dataclass
class _Calls:
    """The listener calls of one incarnation, one message each."""

    begin: Ints
    end: Ints
    offset: Ints
    count: Ints
    outcome: Ints  # its number in RESULTS
    suspend: Ints
    given_up: Any
    manual: bool

    @property
    def size(self) -> int:
        return len(self.begin)

    def finished_before(self, at: Ints, start: int) -> Ints:
        """The offset after the last finished message, at each of these times."""
        if not self.size:
            return np.full(len(at), start, np.int64)
        final = self.outcome == 1 if self.manual else (self.outcome <= 1) | self.given_up
        done = np.flatnonzero(final)
        times = self.end[done] + np.where(self.given_up[done], 3 * MS, 1)
        index = np.searchsorted(times, at, side="left") - 1
        return np.where(index >= 0, self.offset[done[np.maximum(index, 0)]] + 1, start)


class Generated(NamedTuple):
    """What was written."""

    info: RunInfo
    events: int
    queues: int
    files: int


Cuts = Mapping[str, Collection[int]]
"""Before which rows of a table a new file, or a new row group, begins: as `HistoryWriter.write` is told."""


class QueueTable(NamedTuple):
    """One queue's rows, or a leg of them, ready to be written. legs: how many there are.

    number: -1 for dead-letter queues, -2 for rows without a queue.
    """

    number: int
    table: pa.Table
    legs: int = 1


def run_info(seed: int, replay: str | None = None) -> RunInfo:
    """The run.json of a generated history. replay: the command that writes it."""
    return RunInfo(
        run=f"generated-{seed}",
        seed=seed,
        target="generated",
        profile="reference",
        parties={"broker": "generated", "client": "generated", "producer": "generated"},
        levels=("client", "wire"),
        records={"client": tuple(sorted(kind.value for kind in Kind))},
        config=CONFIG,
        replay=replay,
    )


def again(events: int, seed: int, **options: Any) -> str:
    """The command that writes the same history again: every option that changes a row or where it lies."""
    unusual = {name: value for name, value in options.items() if value != USUAL[name]}
    told = {"events": events, "seed": seed, **unusual}
    words = [word for name, value in told.items() for word in (f"--{name}", str(value))]
    return shlex.join(["inorder", "generate", *words, "--out", "DIR"])


def _drain(sheet: Sheet, now: int, stored: Ints, columns: Mapping[str, Any], size: int) -> int:
    """Read a queue of this size to its end, or so much of it as these columns are of: the marker spans all reads."""
    reader = {"level": Level.WIRE, **by("drain")}
    offsets = columns["queue_offset"]
    begin = now + 10 * MS
    end = begin + 200 + size * 3
    if not len(offsets) or offsets[0] == 0:
        whose = {"group": columns["group"]} if "group" in columns else {}
        sheet.add(Kind.READ, begin, end, value=size, **whose, **reader)
    if size:
        wall_us = stored + BEGIN_US + WALL_US
        sheet.add(Kind.READ, begin + 100 + offsets * 3, wall_us=wall_us, **columns, **reader)
    return end


def _rest_us(pace: float) -> int:
    """How long a client takes from the answer of a pull to its next one: shorter than a timer may be late."""
    return min(int(PULLED_AT_ONCE * MESSAGE_US * pace), LONGEST_GAP_US)


def _messages_of(rows: float, groups: int) -> tuple[int, float]:
    """How many messages make about so many rows of a queue, and how much slower than usual they come.

    A small queue is as long in time as a large one, so that leases and commits have their turns; then each pull brings
    one message, and not many.
    """
    wanted, pace = max(1, round(rows / (2.05 + 2.03 * groups))), 1.0
    for _ in range(4):
        pace = max(1.0, QUEUE_US / (wanted * MESSAGE_US))
        at_once = 1 + _rest_us(pace) / (MESSAGE_US * pace)
        wanted = max(1, round(rows / (2.05 + (1.01 + 1.02 / at_once) * groups)))
    return wanted, pace


def how_many_queues(events: int) -> int:
    """As many queues as keep each at a size that is quick to make, four at least."""
    return max(BROKERS, events // 200_000)


def auto_groups(count: int) -> list[str]:
    """The names of so many groups that consume every queue in automatic mode."""
    return [AUTO_GROUP, *(f"{AUTO_GROUP}{number}" for number in range(2, count + 1))]


def queue_tables(
    events: int, seed: int, queues: int | None = None, groups: int = 1
) -> Iterator[QueueTable]:
    """A valid history of about `events` rows, queue by queue in the order of the layout.

    The dead-letter queues and the rows without a queue come last, though they lie first: they sum up the others.
    """
    count = queues or how_many_queues(events)
    run = run_info(seed).run
    autos = auto_groups(groups)
    stride = (count + BROKERS * groups + 1) * ROOM
    incidents: list[Incident] = []
    dead: list[DeadLetter] = []
    per_broker = -(-count // BROKERS)
    left, over = events, 0
    for number in range(count):
        broker = f"b{number // per_broker}"
        where = {"topic": TOPIC, "broker": broker, "queue_id": number % per_broker}
        common = {**where, "broker_epoch": 1}
        here = [*autos, MANUAL_GROUP] if number % MANUAL_EVERY == 1 else autos
        rows = left / (count - number)
        legs = -(-int(rows) // LEG_ROWS) or 1
        wanted, pace = _messages_of(rows / legs, len(here))
        lanes = [
            _Lane(group, group == MANUAL_GROUP, number, broker, incidents, dead, pace)
            for group in here
        ]
        for sheet, end in _legs([seed, number], legs, wanted, lanes, common):
            table = sheet.table(run, stride, number * ROOM)
            over = max(over, end, int(table.column("started_us")[-1].as_py()) - BEGIN_US)
            left -= table.num_rows
            yield QueueTable(number, table, legs)
    for number, group in enumerate(autos):
        letters = _dead_letter_queues(dead, group, over, min(BROKERS, count))
        for index, sheet in enumerate(letters):
            residue = (count + BROKERS * number + index) * ROOM
            yield QueueTable(-1, sheet.table(run, stride, residue))
    sheet = _incidents(incidents)
    yield QueueTable(-2, sheet.table(run, stride, (count + BROKERS * groups) * ROOM))


def _legs(
    seed: Sequence[int], legs: int, wanted: int, lanes: Sequence[_Lane], common: Mapping[str, Any]
) -> Iterator[tuple[Sheet, int]]:
    """A queue's rows, leg by leg and then what is read of it, each with the moment when it is over.

    Messages are not kept beyond their leg: they are made once more, to be read.
    """
    queue, pace, pasts = lanes[0].queue, lanes[0].pace, [Past()]

    def produced(sheet: Sheet, leg: int) -> tuple[np.random.Generator, Messages, Past]:
        rng = np.random.default_rng([*seed, leg] if leg else seed)
        return rng, *_produce(sheet, rng, queue, wanted, pace, pasts[leg])

    for leg in range(legs):
        sheet = Sheet({**common})
        rng, messages, past = produced(sheet, leg)
        for lane in lanes:
            lane.play(sheet, rng, messages, pasts[leg].us, last=leg + 1 == legs)
        now = max(lane.now for lane in lanes)
        if legs > 1:
            now = max(now, sheet.last_us) + SECOND
            yield sheet, now
        pasts.append(replace(past, us=now))
    for leg in range(legs):
        if legs > 1:
            sheet = Sheet({**common})
            _rng, messages, _past = produced(Sheet({**common}), leg)
        end = _drain(sheet, now, messages.available, messages.columns(), pasts[-1].stored)
        yield sheet, end


def _dead_letter_queues(
    dead: Sequence[DeadLetter], group: str, over: int, brokers: int
) -> Iterator[Sheet]:
    """What lies in an auto group's dead-letter queue on each broker, read after all else."""
    now = over + 2 * CONFIG.dead_letter_bound_ms * MS
    prefix = f"D{group.removeprefix(AUTO_GROUP)}"
    for broker in (f"b{index}" for index in range(brokers)):
        mine = [each for each in dead if (each.broker, each.group) == (broker, group)]
        mine.sort(key=lambda each: each.stored)
        where = {"topic": dead_letter_topic(group), "broker": broker, "queue_id": 0}
        sheet = Sheet({**where, "broker_epoch": 1, "group": group})
        offsets = np.arange(len(mine), dtype=np.int64)
        columns = {
            "group": group,
            "queue_offset": offsets,
            "message_id": message_ids(f"{broker}{prefix}", offsets),
            "origin_id": pa.array([each.message_id for each in mine], pa.string()),
            "body_hash": ints([each.body for each in mine]),
            "sharding_key": _texts(each.key for each in mine),
            "view": TOPIC,
        }
        _drain(sheet, now, ints([each.stored for each in mine]), columns, len(mine))
        yield sheet


def _incidents(incidents: Sequence[Incident]) -> Sheet:
    sheet = Sheet()
    for kind in (Kind.JOIN, Kind.LEAVE, Kind.CRASH):
        some = [each for each in incidents if each.kind is kind]
        clients = _texts(each.client for each in some)
        sheet.add(
            kind,
            [each.at for each in some],
            client_id=clients,
            process=clients,
            group=_texts(each.group for each in some),
            view="orders:*" if kind is Kind.JOIN else None,
        )
    return sheet


EDGES = ("none", "file", "group", "key")
"""Where a defect is planted: anywhere; across the edge of two files or of two row groups; at a queue's first rows."""


@dataclass
class Planting:
    """Plants one change into one queue (or a later one) of a generated history, and lets the file be cut there.

    about: the seqs of the rows that it is about, once it is planted.
    """

    mutant: Mutant
    info: RunInfo
    queue: int
    edge: str
    about: tuple[int, ...] = ()

    def __call__(self, each: QueueTable) -> tuple[pa.Table, Cuts]:
        if self.about or not self._wants(each):
            return each.table, {}
        rows = list(rows_of_table(each.table))
        first, seed = self.edge == "key", self.info.seed
        try:
            planted = plant(self.mutant, rows, self.info, seed=seed, first=first)
        except UsageError:
            return each.table, {}  # the next queue may have a place
        self.about = planted.about
        cut = [row.seq_begin for row in planted.rows].index(self.about[-1])
        cuts = {f"{self.edge}_before": [cut]} if self.edge in ("file", "group") else {}
        return rows_to_table(planted.rows), cuts

    def _wants(self, each: QueueTable) -> bool:
        if self.mutant.dead_letters:
            return each.number == -1
        if self.mutant.by_hand:
            return each.number % MANUAL_EVERY == 1
        # The manual group would hide some defects: it consumes, and so finishes, messages in its own way.
        return each.number >= self.queue and each.number % MANUAL_EVERY != 1


def plan_defect(
    name: str, events: int, seed: int, queues: int | None = None, edge: str = "none"
) -> Planting:
    """Where a named defect (or lookalike) goes. Raises UsageError for an unknown one."""
    mutant = named(name)
    if not mutant.generated:
        raise UsageError(
            f"no generated history has a place for the defect {name}; recorded ones have"
        )
    if edge not in EDGES:
        raise UsageError(f"there is no edge {edge}; known are {', '.join(EDGES)}")
    count = queues or how_many_queues(events)
    return Planting(mutant, run_info(seed), count // 2 if count > MANUAL_EVERY else 0, edge)


def generate(
    folder: Path,
    events: int,
    seed: int,
    *,
    queues: int | None = None,
    groups: int = 1,
    order: str = "queue",
    change: Planting | None = None,
    rows_per_file: int = ROWS_PER_FILE,
    rows_per_group: int = ROWS_PER_GROUP,
    progress: Callable[[int], object] = lambda rows: None,
) -> Generated:
    """Write a valid history of about `events` rows to a folder (which may exist, empty).

    groups: how many consume every queue in automatic mode. order: by queue, or by time, as a recorder writes.
    change: what is planted, from `plan_defect`. progress is called with the number of rows made so far. Raises
    UsageError where the folder holds something, for too many groups, and for an edge that there is none of.
    """
    if not 1 <= groups <= MOST_GROUPS:
        raise UsageError(f"1 to {MOST_GROUPS} groups can consume every queue; asked for {groups}")
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"{folder} is not empty: a history is written to a folder of its own")
    defect, edge = (None, "none") if change is None else (change.mutant.name, change.edge)
    if order != "queue" and edge in ("file", "group"):
        raise UsageError(f"a history by {order} has no edge of a {edge} within a queue")
    options = {"queues": queues, "groups": groups, "order": order, "defect": defect, "edge": edge}
    info = run_info(seed, again(events, seed, **options))
    if change is not None:
        info = change.mutant.under(info)
    folder.mkdir(parents=True, exist_ok=True)
    write_runinfo(folder, info)
    count, rows = queues or how_many_queues(events), 0
    with Scratch("generate") as scratch:
        writer: _ByQueue | _ByTime = (
            _ByQueue(folder, rows_per_file, rows_per_group)
            if order == "queue"
            else _ByTime(folder, rows_per_file, rows_per_group, events, scratch)
        )
        for each in queue_tables(events, seed, count, groups):
            table, cuts = (each.table, {}) if change is None else change(each)
            writer.write(table, cuts, sums_up=each.number < 0, legs=each.legs)
            rows += table.num_rows
            progress(rows)
        files = writer.close()
    if change is not None and not change.about:
        raise UsageError("the history has no place for the defect: ask for more events")
    return Generated(info, rows, count, files)


class _ByQueue:
    """Writes queue after queue as they come; what sums them up comes last and lies first."""

    def __init__(self, folder: Path, rows_per_file: int, rows_per_group: int) -> None:
        self._writer = HistoryWriter(
            folder, rows_per_file=rows_per_file, rows_per_group=rows_per_group
        )
        self._head = HistoryWriter(folder, rows_per_group=rows_per_group, first_file=0)
        self._first: list[tuple[pa.Table, Cuts]] = []

    def write(self, table: pa.Table, cuts: Cuts, *, sums_up: bool, legs: int) -> None:
        if sums_up:
            self._first.append((table, cuts))
        else:
            self._writer.write(table, **cuts)

    def close(self) -> int:
        """Write what is left; returns how many files there are."""
        self._writer.close()
        # Rows of no queue lie before all, then the dead-letter queues: "%" sorts before letters.
        for table, cuts in [*self._first[-1:], *self._first[:-1]]:
            self._head.write(table, group_before=[at for each in cuts.values() for at in each])
        self._head.close()
        return self._writer.files + self._head.files


class _ByTime:
    """Writes what comes queue by queue in the order of seq: each in windows, and then window by window."""

    def __init__(
        self, folder: Path, rows_per_file: int, rows_per_group: int, events: int, scratch: str
    ) -> None:
        self._writer = HistoryWriter(
            folder, BY_SEQ, rows_per_file=rows_per_file, rows_per_group=rows_per_group
        )
        self._windows = 1 + events // WINDOW_ROWS
        self._width = 0
        self._scratch = scratch
        self._spills: list[Spill] = []

    def write(self, table: pa.Table, cuts: Cuts, *, sums_up: bool, legs: int) -> None:
        if not table.num_rows:
            return
        seq = table.column("seq_begin").to_numpy()
        if not self._width:  # queues last about as long as each other
            self._width = int(seq.max()) * legs // self._windows + 1
        window = np.minimum(seq // self._width, self._windows - 1)
        where = np.arange(len(seq), dtype=np.int64)
        self._spills.append(spilled(table, where, window, self._windows, self._scratch))

    def close(self) -> int:
        for number in range(self._windows):
            for table in self._held(range(number, number + 1)):
                order = np.argsort(table.column("seq_begin").to_numpy())
                self._writer.write(table.take(pa.array(order)).combine_chunks())
        self._writer.close()
        return self._writer.files

    def _held(self, window: range) -> Iterator[pa.Table]:
        """A window's rows; those of the last one, in which all is read, some at a time."""
        parts = 1 + sum(spill.size(window) for spill in self._spills) // (2 * WINDOW_ROWS)
        if parts > 1:
            yield from by_windows(partial(one_by_one, self._spills, window), parts, self._scratch)
        elif (table := gathered(self._spills, window)) is not None:
            yield table
