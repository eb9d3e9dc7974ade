"""What is done to the rows of a history where something is planted: rows are altered, gone or new.

Changes are `alter`, `swap`, `drop`, `copy` and `insert`, and sums of these. Rows that are added take seq numbers
between those of their neighbours: `spread` makes room for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from specs.history.row import Row
from specs.vocabulary import Kind, Level, Outcome

MS = 1000
ROOM = 8
STRANGER, ANOTHER = "stranger", "another-stranger"
STRANGERS_WORK = f"{STRANGER}#1"
"""The name of an incarnation."""
BEHIND_ALL = 1_000_000
"""An offset beyond those of any recorded history."""
MESSAGE = (
    *("queue_offset", "message_id", "origin_id", "sharding_key", "key_seq"),
    *("body_hash", "props_hash", "tags"),
)
"""The columns that say which message a delivery is about."""
INSTANTS = {Kind.ADD, Kind.DROP, Kind.CRASH}
REQUEST = {
    *("run", "level", "process", "client_id", "incarnation"),
    *("group", "topic", "broker", "broker_epoch", "queue_id"),
    *("seq_begin", "started_us", "ended_us", "wall_us", "clock"),
}
"""The columns that say who asks, where and when."""
REFUSED_SEND = {"outcome": Outcome.REFUSED, "code": 14, "queue_offset": None}
UNANSWERED_SEND = {"outcome": Outcome.UNKNOWN, "code": None, "queue_offset": None}
Given = Any
"""A row whose columns are known to be given, because its kind or the selection says so; `Row` allows None in most."""


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


@dataclass(frozen=True, slots=True)
class Change:
    """What is done to the rows of a history, each named by its seq_begin.

    beside: rows that it is about, though they stay as they are.
    """

    altered: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    gone: frozenset[int] = frozenset()
    new: tuple[Row, ...] = ()
    beside: tuple[int, ...] = ()

    def __add__(self, other: Change) -> Change:
        return Change(
            {**self.altered, **other.altered},
            self.gone | other.gone,
            self.new + other.new,
            self.beside + other.beside,
        )

    def about(self, *rows: Row) -> Change:
        return self + Change(beside=tuple(row.seq_begin for row in rows))

    def made(self, rows: Sequence[Row]) -> Planted:
        """The rows with this change; those that are added at one place follow each other."""
        changed = [
            row._replace(**self.altered[row.seq_begin]) if row.seq_begin in self.altered else row
            for row in rows
            if row.seq_begin not in self.gone
        ]
        op_id, taken, about = max((row.op_id for row in rows), default=0), Counter[int](), set()
        for number, row in enumerate(self.new, start=1):
            at = row.seq_begin + 2 * taken[row.seq_begin]
            taken[row.seq_begin] += 1
            end = at if row.kind in INSTANTS else at + 1
            changed.append(row._replace(seq_begin=at, seq_end=end, op_id=op_id + number))
            about.add(at)
        about |= {*self.altered, *self.beside}
        changed.sort(key=lambda row: row.seq_begin)
        return Planted(changed, tuple(sorted(about or self.gone)))


def alter(*rows: Row, **columns: Any) -> Change:
    return Change({row.seq_begin: columns for row in rows})


def swap(first: Row, second: Row, *columns: str) -> Change:
    ours, theirs = ({name: getattr(row, name) for name in columns} for row in (first, second))
    return alter(first, **theirs) + alter(second, **ours)


def drop(*rows: Row) -> Change:
    return Change(gone=frozenset(row.seq_begin for row in rows))


def begin(row: Row) -> Row:
    """As if it had ended when it began: what is added after this lies within the row."""
    return row._replace(seq_end=row.seq_begin, ended_us=row.started_us)


def just_before(row: Row) -> Row:
    """As if it had ended shortly before it began: what is added after this lies before the row."""
    return row._replace(seq_end=row.seq_begin - 3, ended_us=row.started_us)


def copy(like: Row, after: Row, **columns: Any) -> Change:
    """A row like another one, right after the end of a row."""
    seq, time = after.seq_begin, after.started_us
    if after.seq_end is not None and after.ended_us is not None:
        seq, time = after.seq_end, after.ended_us
    moved = {
        "seq_begin": seq + 1,
        "started_us": time,
        "ended_us": time,
        "wall_us": None if like.wall_us is None else like.wall_us + (time - like.started_us),
        "clock": after.clock,
    }
    return Change(new=(like._replace(**{**moved, **columns}),))


def insert(kind: Kind, like: Row, after: Row, **columns: Any) -> Change:
    """A row of another kind, by the same client and in the same lane as a row; nothing else is the same."""
    unsaid = dict.fromkeys(set(like._fields) - REQUEST)
    return copy(like, after, **{**unsaid, "kind": kind, "outcome": Outcome.OK, **columns})


def by(client: str, work: str | None = None) -> dict[str, Any]:
    """The columns that say that a client did it. work: in the incarnation of that name."""
    return {"client_id": client, "process": client, **({"incarnation": work} if work else {})}


def by_whom(row: Row) -> dict[str, Any]:
    """The columns that say that it was done by who did the row."""
    return {name: getattr(row, name) for name in ("client_id", "process", "incarnation")}


def as_half(send: Row) -> Change:
    return alter(send, detail="half", queue_offset=None, value=send.queue_offset)


def half_committed(send: Row, after: Row) -> Change:
    """It was a half message, and its producer says after a row that it is committed."""
    said = {"message_id": send.message_id, "outcome": Outcome.SENT, "value": 8}
    return as_half(send) + insert(Kind.END_TRANSACTION, send, after, **said)


def moved(row: Given, **columns: Any) -> Change:
    """A send goes to another queue."""
    there = {"queue_id": row.queue_id + 1, "queue_offset": 10_000_000 + row.seq_begin}
    return alter(row, **there, **columns)


def lock_again(lock: Row, client: str, outcome: Outcome, kind: Kind = Kind.LOCK) -> Change:
    """Right after a lock somebody asks for the lane, or gives it back."""
    return copy(lock, lock, **by(client), outcome=outcome, kind=kind)


def elsewhere(lock: Row, after: Row, client: str, outcome: Outcome, **columns: Any) -> Change:
    """A stranger asks for the lane that another group has of the same queue."""
    bare = dict.fromkeys(("incarnation", "code", "lease_until_us"))
    asked = {**bare, **by(client), "group": "strangers", "outcome": outcome}
    return copy(lock, after, **{**asked, **columns})


def looked_up(commit: Row, after: Row, value: int, **columns: Any) -> Change:
    """A stranger asks for the offset of the commit's lane, at once after a row."""
    said = {"kind": Kind.FETCH_OFFSET, "incarnation": None, **by(STRANGER), "value": value}
    return insert(like=commit, after=after, **{**said, **columns})


def begun_beside(call: Row) -> Change:
    """A stranger begins the same call, and ends it, while it runs."""
    return copy(call, begin(call), **by(STRANGER, STRANGERS_WORK)).about(call)


def handed_again(row: Given, client: str) -> Change:
    """The message of a hand-out is handed out once more at once."""
    lease = {"lease_id": "planted", "lease_until_us": row.lease_until_us + 50 * MS}
    return copy(row, row, **by(client), **lease, reconsume_times=1).about(row)


def put_back(row: Given, pause_ms: int = 0) -> Change:
    """The message of a hand-out is put back at once, for that long."""
    bare = {"lease_until_us": None, "reconsume_times": None}
    return copy(row, row, kind=Kind.RELEASE, suspend_ms=pause_ms, **bare)


def floor_told(value: int, like: Row, after: Row) -> Change:
    """A witness reads this floor of a row's lane, right after the end of another one."""
    nobody = {"client_id": None, "process": "witness", "incarnation": None, "level": Level.STORE}
    return insert(Kind.PROGRESS, like, after, **nobody, value=value).about(like, after)
