"""Queues that are longer than a task should hold: judged a piece at a time.

A kernel is a function of a set of rows. So what it finds in a queue is the sum, over the pieces of the queue, of what
each piece adds: found in all rows so far, less what was found in those before. And what a piece adds does not depend
on all that went before, but on the few rows of it that still matter: those are *carried*. With them a piece adds

    what is found in the carried rows and the piece, less what is found in the carried rows alone,

and whatever the carried rows would show for the lack of the others is in both, and cancels out. That it adds the same
as with all rows is a law, held for every twin (`tests/spark_checkers/test_pieces.py`).

What is carried knows nothing of clauses. Some rows are there from the first piece on: what a lane has by time rather
than by message (grants, incarnations, look-ups, ...), the markers of readings, and a row of each way in which calls
and commits are told. Of the messages' own rows are carried:

- what had not ended when the next piece begins, or began a short while ago (`memory_us`);
- every message that a group has yet to finish, and what is not known to have been stored anywhere;
- messages of which a later piece speaks again, and those from the lowest offset on that it reports, asks or is told;
- the last rows, and those with the highest offsets and values, of everybody in each of his ways (`LAST`), and a group's
  first and last reports of offsets (`REPORTS`);
- the other messages of a call, and the other rows of a message, that is carried.

Sends and reads that name an offset are not judged in the piece of their time, but in the one in which that offset was
reached by who takes the messages: what waits in a queue need not be carried then, nor what a reading at its end shows.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from spark_checkers.rows import MS, NEVER, NO_TEXT, NONE, Findings, RunContext, Runs, encoded
from spark_checkers.segments import Ints, Mask, dense, ints, positions
from specs.errors import SpecError
from specs.history.runinfo import RunInfo
from specs.plan.config import Config
from specs.vocabulary import Kind, Outcome

PIECE_ROWS = 1 << 17
"""About so many rows are in a piece, sends and reads not counted."""
LONG_ROWS = 1 << 20
"""A queue of more rows is judged in pieces."""
LAST = 64
"""So many of the last rows are carried: as many as a judge compares a row with at most."""
REPORTS, REPORTS_BESIDE_A_DEATH = 1_025, 4_097
"""So many of a group's last reports of offsets are, and of its first ones that name another value: one more than a
judge remembers, who remembers more of them where the broker may have forgotten some."""

OF_MESSAGES = frozenset(
    {
        Kind.APPEND,
        Kind.SEND,
        Kind.RENEW,
        Kind.RECEIVE,
        Kind.ACK,
        Kind.RELEASE,
        Kind.PULL,
        Kind.DELIVER,
        Kind.COMMIT,
        Kind.DEAD_LETTER,
        Kind.SEND_BACK,
        Kind.END_TRANSACTION,
        Kind.CHECK,
        Kind.READ,
    }
)
"""Kinds of which there are the more rows the more messages there are."""
_HANDED_OUT = (Kind.DELIVER, Kind.RECEIVE)
_WITH_THEIR_OFFSET = (Kind.APPEND, Kind.SEND, Kind.READ)
_FINISHES = {
    Kind.DELIVER: (Outcome.SUCCESS, Outcome.COMMIT),
    Kind.ACK: (Outcome.OK,),
    Kind.DEAD_LETTER: (Outcome.OK,),
    Kind.SEND_BACK: (Outcome.OK,),
}
_TELL_OFFSETS = (
    Kind.COMMIT,
    Kind.ADD,
    Kind.FETCH_OFFSET,
    Kind.RESET,
    Kind.PROGRESS,
    Kind.PERSIST,
    Kind.PULL,
)
"""Kinds whose value is an offset that is reported, asked for or told."""
_WAYS = ("kind", "group", "client_id", "process", "incarnation", "outcome", "commit_mode")
_WAYS_AT_ALL = ("kind", "group", "outcome", "commit_mode")
COLUMNS = (
    "run",
    "broker",
    "seq_begin",
    "seq_end",
    "started_us",
    "op_id",
    "queue_offset",
    "message_id",
    "sharding_key",
    "value",
    *_WAYS,
)
"""The columns by which is told what is carried."""


def memory_us(config: Config) -> int:
    """How long, in µs, what is over may bear on what comes next by its time alone: a question may wait at a broker, a
    request may be under way, and judges allow for timers and disks. What lasts longer is an open or unfinished row."""
    slack_ms = config.delay_bound_ms + config.schedule_slack_ms + config.guard_slack_ms
    return (config.long_poll_ms + slack_ms + config.disk_slack_ms) * MS


class _Seen:
    """Rows of one queue as numbers; texts are codes, by which `words` are told."""

    def __init__(self, table: pa.Table, deaths: Sequence[int]) -> None:
        """deaths: the seqs by which the queue's broker died, ascending."""
        self.table = table
        self.size = table.num_rows
        self.begin = self.number("seq_begin")
        end = self.number("seq_end")
        self.end = np.where(end == NONE, NEVER, end)
        self.codes: dict[str, Ints] = {}
        self.words: dict[str, list[str]] = {}
        self.life = np.searchsorted(ints(deaths), self.begin, side="right").astype(np.int64)
        for name in (*_WAYS, "sharding_key"):
            self.codes[name], words = encoded(table.column(name))
            self.words[name] = words.to_pylist()
        self.offset = self.number("queue_offset")
        self.value = self.number("value")

    def number(self, name: str) -> Ints:
        column = self.table.column(name)
        found: Ints = (column.fill_null(NONE) if column.null_count else column).to_numpy()
        return found

    def among(self, name: str, wanted: Iterable[str]) -> Mask:
        """Is the row's text one of these?"""
        chosen = frozenset(wanted)
        known = np.asarray([*(word in chosen for word in self.words[name]), False], np.bool_)
        found: Mask = known[self.codes[name]]
        return found

    def are(self, *kinds: Kind) -> Mask:
        return self.among("kind", kinds)

    def groups(self, where: Mask) -> set[str]:
        """The groups of these rows."""
        codes = np.unique(self.codes["group"][where])
        return {self.words["group"][code] for code in codes.tolist() if code != NO_TEXT}

    def offsets(self) -> Ints:
        """The offset of each row; of one that tells none, that of another row of its message."""
        silent = (self.offset == NONE) & self.are(*OF_MESSAGES - {Kind.READ, Kind.COMMIT})
        if not silent.any():
            return self.offset
        message, _ = encoded(self.table.column("message_id"))
        silent &= message != NO_TEXT
        if not silent.any():
            return self.offset
        known = np.full(int(message.max()) + 1, NONE, np.int64)
        told = positions((self.offset != NONE) & (message != NO_TEXT))
        known[message[told]] = self.offset[told]
        found = self.offset.copy()
        found[silent] = known[message[silent]]
        return found


def _last(keys: Sequence[Ints], among: Mask, by: Ints, count: int) -> Ints:
    """Of each combination of the keys, among these rows, the `count` that are the last by this number."""
    where = positions(among)
    if not len(where):
        return where
    way, _ = dense(*(key[where] for key in keys))
    order = np.lexsort((by[where], way))
    stop = np.cumsum(np.bincount(way))
    return where[order[stop[way[order]] - np.arange(len(where)) <= count]]


# ---------------------------------------------------------------- the pieces of a queue


@dataclass
class _Piece:
    """paths: the files of its rows. seq, us: of the row that began first, and the first moment, when it was cut off.

    reached: the highest offset handed out so far; sent: likewise of those sent. again: the offsets of earlier pieces of
    which it speaks, as ranges start..stop-1. lowest: of the offsets that are reported, asked for or told.
    """

    seq: int
    us: int
    reached: int
    sent: int
    rows: int = 0
    paths: list[str] = field(default_factory=list)
    again: list[Ints] = field(default_factory=list)
    lowest: int = NEVER


@dataclass(frozen=True)
class Beside:
    """carried: rows of earlier pieces; both: these with the piece's own, by seq_begin."""

    carried: pa.Table
    both: pa.Table

    def are_own(self, seqs: Ints) -> Mask:
        """Which of these seq_begin are of the piece's own rows?"""
        own: Mask = ~np.isin(seqs, self.carried.column("seq_begin").to_numpy())
        return own


class Pieces:
    """The pieces of one queue. Its rows are taken by seq_begin, and lie in files of a folder until they are judged."""

    def __init__(self, folder: str, runs: Runs, piece_rows: int = PIECE_ROWS) -> None:
        self._folder = folder
        self._runs = runs
        self._piece_rows = piece_rows
        self._context = RunContext(RunInfo(""))
        self._deaths: Sequence[int] = ()
        self._pieces: list[_Piece] = []
        self._always: list[pa.Table] = []
        self._apart: list[str] = []  # the files of what goes with its offset
        self._ahead: dict[int, int] = {}  # offsets that were sent far ahead: the lowest sent later
        self._ways: set[str] = set()
        self._reported: dict[str, set[int]] = {}
        self._always_seqs: list[int] = []  # of reports that are there from the first piece on
        self._reports = REPORTS
        self._groups: set[str] = set()
        self._committing: set[str] = set()

    def take(self, table: pa.Table) -> None:
        """Take what comes next of the queue."""
        if not self._pieces:
            run, broker = (table.column(name)[0].as_py() for name in ("run", "broker"))
            self._context = self._runs.get(run, self._context)
            self._deaths = self._context.deaths_of(broker or "")
            self._reports = REPORTS_BESIDE_A_DEATH if self._deaths else REPORTS
        step = max(1, self._piece_rows // 4)
        for start in range(0, table.num_rows, step):
            self._take(table.slice(start, step))

    def _take(self, table: pa.Table) -> None:
        seen = _Seen(table, self._deaths)
        if not self._pieces or self._pieces[-1].rows >= self._piece_rows:
            last = self._pieces[-1] if self._pieces else None
            reached, sent = (-1, -1) if last is None else (last.reached, last.sent)
            us = int(seen.number("started_us").min())
            self._pieces.append(_Piece(int(seen.begin[0]), us, reached, sent))
        piece = self._pieces[-1]
        self._tell(piece, seen)
        has_offset = seen.offset != NONE
        always = ~seen.are(*OF_MESSAGES) | (seen.are(Kind.READ) & ~has_offset)
        always[self._new_ways(seen)] = True
        always[self._new_values(seen)] = True
        if always.any():
            self._always.append(table.filter(pa.array(always)))
        apart = seen.are(*_WITH_THEIR_OFFSET) & has_offset & ~always
        piece.rows += int((~apart & ~always).sum())
        self._write(piece.paths, table, ~apart & ~always)
        self._write(self._apart, table, apart)

    def _tell(self, piece: _Piece, seen: _Seen) -> None:
        """Note what the piece says of offsets."""
        named = seen.offset != NONE
        before = self._pieces[-2].reached if len(self._pieces) > 1 else -1
        spoken_of = named & ~seen.are(*_WITH_THEIR_OFFSET) & (seen.offset <= before)
        again = np.unique(seen.offset[spoken_of])
        if len(again):
            cuts = np.flatnonzero(np.diff(again) > 1)
            starts, stops = np.append(0, cuts + 1), np.append(cuts, len(again) - 1)
            piece.again.append(np.stack([again[starts], again[stops] + 1]))
        piece.reached = max(piece.reached, _highest(seen, named & seen.are(*_HANDED_OUT)))
        self._note_ahead(seen.offset[named & seen.are(Kind.SEND)], piece.sent)
        piece.sent = max(piece.sent, _highest(seen, named & seen.are(Kind.APPEND, Kind.SEND)))
        told = seen.value[seen.are(*_TELL_OFFSETS) & (seen.value >= 0)]
        piece.lowest = min(piece.lowest, int(told.min()) if len(told) else NEVER)
        self._groups |= seen.groups(seen.are(*_HANDED_OUT))
        self._committing |= seen.groups(seen.are(Kind.COMMIT))

    def _note_ahead(self, sent: Ints, before: int) -> None:
        """Note which sends lie further on than many that were sent later. sent: offsets; before: the highest so far."""
        highest = np.maximum.accumulate(np.append(before, sent))[:-1]
        late = highest - sent > LAST  # what is nearer is carried for being the last
        for ahead, offset in zip(highest[late].tolist(), sent[late].tolist(), strict=True):
            self._ahead[ahead] = min(offset, self._ahead.get(ahead, NEVER))

    def _new_ways(self, seen: _Seen) -> Ints:
        """The first row of each way in which something is told that was not told so before."""
        way, count = dense(seen.life, *(seen.codes[name] for name in _WAYS_AT_ALL))
        found = []
        first = np.full(count, seen.size, np.int64)
        np.minimum.at(first, way, np.arange(seen.size))
        for place in first.tolist():
            texts = [_text(seen, name, place) for name in _WAYS_AT_ALL]
            told = " ".join([str(seen.life[place]), *texts])
            if told not in self._ways:
                self._ways.add(told)
                found.append(place)
        return np.asarray(found, np.int64)

    def _new_values(self, seen: _Seen) -> list[int]:
        """The reports of an offset that their group had not reported before, while there are few of them."""
        found = []
        for place in positions(seen.are(Kind.COMMIT) & (seen.value != NONE)).tolist():
            known = self._reported.setdefault(_text(seen, "group", place), set())
            if len(known) < REPORTS and (value := int(seen.value[place])) not in known:
                known.add(value)
                self._always_seqs.append(int(seen.begin[place]))
                found.append(place)
        return found

    def _bring_home(self) -> None:
        """What goes with its offset goes to the piece in which that was reached; where nobody takes any, was sent."""
        taken = self._pieces[-1].reached >= 0
        homes = np.asarray([each.reached if taken else each.sent for each in self._pieces])
        for path in self._apart:
            table = _read(path)
            offset = table.column("queue_offset").to_numpy()
            if self._ahead:  # judged as early as what they are ahead of
                offset = ints([self._ahead.get(each, each) for each in offset.tolist()])
            home = np.minimum(np.searchsorted(homes, offset), len(homes) - 1)
            for number in np.unique(home).tolist():
                self._write(self._pieces[number].paths, table, home == number)
        self._apart = []

    def _write(self, paths: list[str], table: pa.Table, here: Mask) -> None:
        if not here.any():
            return
        path = str(Path(self._folder) / f"{uuid.uuid4().hex}.arrow")
        rows = table.filter(pa.array(here)).combine_chunks()
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        with pa.ipc.new_file(path, rows.schema, options=options) as writer:
            writer.write_table(rows)
        paths.append(path)

    def beside_what_matters(self) -> Iterator[Beside]:
        """Each piece with the rows that are carried into it. Its files are removed."""
        self._bring_home()
        carried: pa.Table | None = None
        memory = memory_us(self._context.info.config)
        for number, piece in enumerate(self._pieces):
            tables = [] if carried is None else [carried]
            if number == 0:
                tables += self._always
                self._always = []
            tables += [_read(path) for path in piece.paths]
            both = _by_seq(tables)
            yield Beside(both.slice(0, 0) if carried is None else carried, both)
            if number + 1 < len(self._pieces):
                where = self._carried(_Seen(both, self._deaths), number + 1, memory)
                carried = both.filter(pa.array(where)).combine_chunks()

    def _carried(self, seen: _Seen, number: int, memory: int) -> Mask:
        """Which rows matter to the pieces from this one on?"""
        cut, later = self._pieces[number], self._pieces[number:]
        read = seen.are(Kind.READ)
        offset = seen.offsets()
        has_offset, ended = offset != NONE, seen.end < cut.seq
        found = ~seen.are(*OF_MESSAGES) | (read & (seen.offset == NONE))
        found[self._first_of_each_way(seen)] = True
        found |= np.isin(seen.begin, self._always_seqs)
        found |= ~ended & (~read | (seen.end == NEVER))
        found |= ~read & (seen.number("started_us") >= cut.us - memory)
        again = _within(offset, [each for piece in later for each in piece.again])
        lowest = min(piece.lowest for piece in later) - 1
        found |= ~read & has_offset & (again | (offset >= lowest))
        found |= has_offset & self._owed(seen, offset, ended)
        refused = seen.among("outcome", (Outcome.REFUSED,))
        found |= ~has_offset & ~read & ~seen.are(Kind.COMMIT, Kind.PULL) & ~refused
        found[self._latest(seen, offset)] = True
        return self._with_their_own(seen, offset, found)

    def _first_of_each_way(self, seen: _Seen) -> Ints:
        """A row of each way in which something is told."""
        keys = [seen.life, *(seen.codes[name] for name in _WAYS_AT_ALL)]
        return _last(keys, np.ones(seen.size, np.bool_), -seen.begin, 1)

    def _owed(self, seen: _Seen, offset: Ints, ended: Mask) -> Mask:
        """Is the message one that a group has yet to finish, as far as is known?"""
        has_offset = offset != NONE
        message, count = dense(np.where(has_offset, offset, -1))
        finishes = np.zeros(seen.size, np.bool_)
        for kind, outcomes in _FINISHES.items():
            finishes |= seen.are(kind) & seen.among("outcome", outcomes)
        finishes &= has_offset & ended
        owed = np.zeros(count, np.bool_)
        for group in self._groups:
            mine = seen.among("group", (group,))
            done = np.zeros(count, np.bool_)
            done[message[finishes & mine]] = True
            if group in self._committing:
                told = seen.value[seen.are(Kind.COMMIT) & mine & ended & (seen.value != NONE)]
                reached = int(told.max()) if len(told) else -1
                below = np.zeros(count, np.bool_)
                below[message] = offset < reached
                done &= below
            owed |= ~done
        found: Mask = owed[message]
        return found

    def _latest(self, seen: _Seen, offset: Ints) -> Ints:
        ways = [seen.life, *(seen.codes[name] for name in _WAYS)]
        everything = np.ones(seen.size, np.bool_)
        ended = np.where(seen.end == NEVER, -1, seen.end)
        handed = seen.are(Kind.RECEIVE)
        by_key = [seen.codes[name] for name in ("kind", "group", "sharding_key")]
        reports = seen.are(Kind.COMMIT)
        return np.concatenate(
            [
                _last(ways, everything, seen.begin, LAST),
                _last(ways, everything, ended, LAST),
                _last(ways, offset != NONE, offset, LAST),
                _last(ways, seen.value != NONE, seen.value, LAST),
                _last(by_key, handed, seen.end, 1),
                _last([seen.codes["group"]], reports, seen.begin, self._reports),
                _last([seen.codes["group"]], reports, ended, self._reports),
            ]
        )

    @staticmethod
    def _with_their_own(seen: _Seen, offset: Ints, found: Mask) -> Mask:
        """And the other messages of their calls, and the other rows of their messages, until there are no more."""
        read, has_offset, op = seen.are(Kind.READ), offset != NONE, seen.number("op_id")
        count = -1
        while count != (count := int(found.sum())):
            found |= ~read & np.isin(op, op[found & ~read])
            found |= has_offset & np.isin(offset, offset[found & has_offset])
        return found


def _text(seen: _Seen, name: str, place: int) -> str:
    code = int(seen.codes[name][place])
    return seen.words[name][code] if code != NO_TEXT else ""


def _highest(seen: _Seen, where: Mask) -> int:
    offsets = seen.offset[where]
    return int(offsets.max()) if len(offsets) else -1


def _within(numbers: Ints, ranges: Sequence[Ints]) -> Mask:
    """Does a number lie in any of the ranges start..stop-1?"""
    if not ranges:
        return np.zeros(len(numbers), np.bool_)
    starts, stops = np.concatenate(ranges, axis=1)
    order = np.argsort(starts, kind="stable")
    starts, reach = starts[order], np.maximum.accumulate(stops[order])
    last = np.searchsorted(starts, numbers, side="right") - 1
    found: Mask = (last >= 0) & (numbers < reach[np.maximum(last, 0)])
    return found


def _read(path: str) -> pa.Table:
    with pa.ipc.open_file(path) as reader:
        table = reader.read_all()
    Path(path).unlink()
    return table


def _by_seq(tables: Sequence[pa.Table]) -> pa.Table:
    table = pa.concat_tables(tables).unify_dictionaries().combine_chunks()
    order = np.argsort(table.column("seq_begin").to_numpy(), kind="stable")
    return table.take(pa.array(order)).combine_chunks()


# ---------------------------------------------------------------- what a piece adds

Place = tuple[str | None, str | None, str | None, int | None, int]
Violation = tuple[str, tuple[int, ...], bool, str]


@dataclass
class Balance:
    """What one clause found in a queue, summed up over its pieces; in the end it reads like `Findings`."""

    clause: str
    _opportunities: Counter[str] = field(default_factory=Counter)
    _found: Counter[Violation] = field(default_factory=Counter)
    _places: dict[Violation, Place] = field(default_factory=dict)

    def add(self, findings: Findings, sign: int) -> None:
        """Add what was found, or take it away (sign -1)."""
        for run, times in findings.opportunities.items():
            self._opportunities[run] += sign * times
        for each, place in zip(findings.violations, findings.places, strict=True):
            self._found[each] += sign
            if self._found[each]:
                self._places[each] = place
            else:
                del self._found[each]
                self._places.pop(each, None)

    @property
    def opportunities(self) -> Mapping[str, int]:
        if min([0, *self._opportunities.values(), *self._found.values()]) < 0:
            raise SpecError(
                f"{self.clause} took more away than it had found in a long queue, which is a mistake of ours: judge "
                "with --engine python"
            )
        return self._opportunities

    @property
    def violations(self) -> list[Violation]:
        return sorted(self._found.elements(), key=lambda each: (each[1], each[3], each[2]))

    @property
    def places(self) -> list[Place]:
        return [self._places[each] for each in self.violations]


class Balances:
    """Those of all clauses."""

    def __init__(self) -> None:
        self._by_clause: dict[str, Balance] = {}

    def add(self, some: Iterable[Findings], sign: int) -> None:
        for each in some:
            self._by_clause.setdefault(each.clause, Balance(each.clause)).add(each, sign)

    def __iter__(self) -> Iterator[Balance]:
        return iter(self._by_clause.values())
