"""Keys that are longer than a task should hold, a queue or a client with its lanes: judged a piece at a time.

A judge is a function of a set of rows. So what it finds in a key is the sum, over the pieces of the key, of what
each piece adds: found in all rows so far, less what was found in those before. And what a piece adds does not depend
on all that went before, but on the few rows of it that still matter: those are *carried*. With them a piece adds

    what is found in the carried rows and the piece, less what is found in the carried rows alone,

and whatever the carried rows would show for the lack of the others is in both, and cancels out. That it adds the same
as with all rows is a law, held for every clause (`tests/spark_checkers/test_pieces.py`).

What is carried knows nothing of clauses, and is said of each queue of the key by itself. Some rows are there from the
first piece on: what a lane has by time rather than by message (grants, incarnations, look-ups, ...), the markers of
readings, and a row of each way in which calls and commits are told. Of the messages' own rows are carried:

- what had not ended when the next piece begins, or began a short while ago (`memory_us`);
- every message that a group has yet to finish, and what is not known to have been stored anywhere;
- of a group whose messages are leased, every one that may be lent or put off still: also after an acknowledgement,
  where that was not of its last lease; and requests that may be about any message;
- messages of which a later piece speaks again, by offset or by id, and those from the lowest offset on that it reports,
  asks or is told;
- the last rows, and those with the highest offsets and values, of everybody in each of his ways (`LAST`; of a lane's
  earlier `INCARNATIONS` together), and a group's first and last reports of offsets (`REPORTS`);
- while a lane waits for its first call, those of the others that lie a turn apart;
- the other messages of a call, and the other rows of a message, that is carried.

Sends and reads that name an offset are not judged in the piece of their time, but in the one in which that offset was
reached by who takes the messages: what waits in a queue need not be carried then, nor what a reading at its end shows.
"""

import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from spark_checkers.coding import Columns
from specs.facts.columns import MS, NEVER, NO_TEXT, NONE, NOWHERE, Ints, Mask
from specs.facts.message_names import ABOUT_A_MESSAGE, Messages
from specs.facts.run_context import RunContext, Runs
from specs.facts.segments import dense, first_of_each, ints, is_first, positions
from specs.history.runinfo import RunInfo
from specs.plan.config import Config
from specs.vocabulary import Kind, Outcome

PIECE_ROWS = 1 << 17
"""About so many rows are in a piece, sends and reads not counted."""
LONG_ROWS = 1 << 20
"""A key of more rows is judged in pieces."""
LAST = 64
"""So many of the last rows are carried: as many as a judge compares a row with at most."""
INCARNATIONS = 16
"""Of so many of a lane's last incarnations each, and of those before together."""
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
_WAYS = ("kind", "group", "client_id", "process", "outcome", "commit_mode")
_WAYS_AT_ALL = ("kind", "group", "outcome", "commit_mode")
_QUEUE = ("topic", "broker", "queue_id")
_SPAN = 1 << 43
"""Offsets from here on count as one, where an offset and its queue are one number: more is carried then."""
COLUMNS = (
    "run",
    *_QUEUE,
    "seq_begin",
    "seq_end",
    "started_us",
    "ended_us",
    "lease_id",
    "lease_until_us",
    "op_id",
    "queue_offset",
    "message_id",
    "sharding_key",
    "value",
    "incarnation",
    *_WAYS,
)
"""The columns by which is told what is carried."""


def memory_us(config: Config) -> int:
    """How long, in µs, what is over may bear on what comes next by its time alone: a question may wait at a broker, a
    request may be under way, and judges allow for timers and disks. What lasts longer is an open or unfinished row."""
    slack_ms = config.delay_bound_ms + config.schedule_slack_ms + config.guard_slack_ms
    return (config.long_poll_ms + slack_ms + config.disk_slack_ms) * MS


class _Queues:
    """The queues of a key, numbered as they are met, and the deaths of their brokers."""

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._deaths: dict[int, Ints] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def have_deaths(self) -> bool:
        return any(len(seqs) for seqs in self._deaths.values())

    def of(self, columns: Columns) -> Ints:
        """The number of each row's queue; what names none is in one of its own."""
        code, count = dense(*(columns.numbers(name) for name in _QUEUE))
        firsts = first_of_each(code, count).tolist()
        names = [tuple(columns.value(name, at) for name in _QUEUE) for at in firsts]
        found: Ints = ints([self._number(name) for name in names])[code]
        return found

    def _number(self, name: tuple[Any, ...]) -> int:
        if name not in self._numbers:
            number = self._numbers[name] = len(self._numbers)
            self._deaths[number] = ints(self._context.deaths_of(name[1] or ""))
        return self._numbers[name]

    def lives(self, queue: Ints, begin: Ints) -> Ints:
        """How often the broker of each row's queue had died before it began."""
        found = np.zeros(len(begin), np.int64)
        for number, deaths in self._deaths.items():
            if len(deaths):
                mine = queue == number
                found[mine] = np.searchsorted(deaths, begin[mine], side="right")
        return found


class _Seen(Columns):
    """Rows of one key as numbers; of a column that nobody asked for nothing is told."""

    def __init__(self, table: pa.Table, queues: _Queues) -> None:
        super().__init__(table)
        self.size = table.num_rows
        self.begin = self.numbers("seq_begin")
        end = self.numbers("seq_end")
        self.end = np.where(end == NONE, NEVER, end)
        self.queue = queues.of(self)
        self.queues = len(queues)
        self.life = queues.lives(self.queue, self.begin)
        self.offset = self.numbers("queue_offset")
        self.values = self.numbers("value")
        silent = (self.offset == NONE) & self.of_kinds(*ABOUT_A_MESSAGE)
        self.by_id = silent & self.has("message_id") if silent.any() else silent

    def texts(self, name: str) -> tuple[Ints, list[str]]:
        if name not in self.table.column_names:
            return np.full(self.size, NO_TEXT, np.int64), []
        return super().texts(name)

    def numbers(self, name: str) -> Ints:
        if name not in self.table.column_names:
            return np.full(self.size, NONE, np.int64)
        return super().numbers(name)

    def codes(self, names: Iterable[str]) -> list[Ints]:
        return [self.texts(name)[0] for name in names]

    def spots(self, offset: Ints) -> Ints:
        """An offset with its queue, as one number; NONE where there is none."""
        spot: Ints = np.where(
            offset == NONE, NONE, self.queue * _SPAN + np.clip(offset, 0, _SPAN - 1)
        )
        return spot

    def highest(self, known: Ints, numbers: Ints, where: Mask, none: int = -1) -> Ints:
        """Of each queue the highest of these numbers, or what is known already; `none` where there is none."""
        found = np.full(self.queues, none, np.int64)
        found[: len(known)] = known
        np.maximum.at(found, self.queue[where], numbers[where])
        return found

    def of_kinds(self, *kinds: Kind) -> Mask:
        return self.are("kind", frozenset(kinds))

    def groups(self, where: Mask) -> set[str]:
        """The groups of these rows."""
        codes, words = self.texts("group")
        return {words[code] for code in np.unique(codes[where]).tolist() if code != NO_TEXT}

    def has(self, name: str) -> Mask:
        if name not in self.table.column_names:
            return np.zeros(self.size, np.bool_)
        return super().has(name)

    def handed_out(self) -> Mask:
        return self.of_kinds(Kind.RECEIVE) & self.are("outcome", (Outcome.OK,)) & (self.end < NEVER)

    def of_leased(self) -> Ints:
        """The offset of each row; of a request that names an id alone, where it is certain."""
        if not self.by_id.any():
            return self.offset
        lane, _ = dense(self.queue, self.texts("group")[0])
        message = self.texts("message_id")[0]
        messages = Messages(lane, self.begin, self.end, self.offset, message)
        return messages.offsets(self.by_id, self.handed_out())

    def offsets(self) -> Ints:
        """The offset of each row; of one that tells none, that of another row of its message."""
        silent = (self.offset == NONE) & self.of_kinds(*OF_MESSAGES - {Kind.READ, Kind.COMMIT})
        if not silent.any():
            return self.offset
        message, _ = self.texts("message_id")
        silent &= message != NO_TEXT
        if not silent.any():
            return self.offset
        known = np.full(int(message.max()) + 1, NONE, np.int64)
        told = positions((self.offset != NONE) & (message != NO_TEXT))
        known[message[told]] = self.offset[told]
        found = self.of_leased().copy()
        silent &= found == NONE
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


# ---------------------------------------------------------------- the pieces of a key


@dataclass
class _Piece:
    """paths: the files of its rows. seq, us: of the row that began first, and the first moment, when it was cut off.

    Of each queue, by its number: reached, the highest offset handed out so far; sent, likewise of those sent; lowest,
    of the offsets that are reported, asked for or told. again: the spots of earlier pieces of which it speaks, as
    ranges start..stop-1.
    """

    seq: int
    us: int
    reached: Ints
    sent: Ints
    lowest: Ints
    rows: int = 0
    paths: list[str] = field(default_factory=list)
    again: list[Ints] = field(default_factory=list)


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
    """The pieces of one key. Its rows are taken by seq_begin, and lie in files of a folder until they are judged."""

    def __init__(self, folder: str, runs: Runs, piece_rows: int = PIECE_ROWS) -> None:
        self._folder = folder
        self._runs = runs
        self._piece_rows = piece_rows
        self._context = RunContext(RunInfo(""))
        self._queues = _Queues(self._context)
        self._pieces: list[_Piece] = []
        # Files, too, though they hold few rows: small tables between large ones that come and go take their room.
        self._always: list[str] = []
        self._apart: list[str] = []  # of what goes with its offset
        self._ahead: dict[
            tuple[int, int], int
        ] = {}  # offsets sent far ahead: the lowest sent later
        self._ways: set[tuple[object, ...]] = set()
        self._reported: dict[tuple[int, str], set[int]] = {}
        self._always_seqs: list[int] = []  # of reports that are there from the first piece on
        self._groups: set[str] = set()
        self._leasing: set[str] = set()
        self._by_id: dict[str, int] = {}  # the last piece with a request that names this id alone
        self._committing: set[str] = set()

    def take(self, table: pa.Table) -> None:
        """Take what comes next of the key."""
        if not self._pieces:
            self._context = self._runs.get(table.column("run")[0].as_py(), self._context)
            self._queues = _Queues(self._context)
        step = max(1, self._piece_rows // 4)
        for start in range(0, table.num_rows, step):
            self._take(table.slice(start, step))

    def _take(self, table: pa.Table) -> None:
        seen = _Seen(table, self._queues)
        if not self._pieces or self._pieces[-1].rows >= self._piece_rows:
            nothing = np.zeros(0, np.int64)
            last = self._pieces[-1] if self._pieces else None
            reached, sent = (nothing, nothing) if last is None else (last.reached, last.sent)
            us = int(seen.numbers("started_us").min())
            self._pieces.append(_Piece(int(seen.begin[0]), us, reached, sent, nothing))
        piece = self._pieces[-1]
        self._tell(piece, seen)
        has_offset = seen.offset != NONE
        always = ~seen.of_kinds(*OF_MESSAGES) | (seen.of_kinds(Kind.READ) & ~has_offset)
        always[self._new_ways(seen)] = True
        always[self._new_values(seen)] = True
        apart = seen.of_kinds(*_WITH_THEIR_OFFSET) & has_offset & ~always
        piece.rows += int((~apart & ~always).sum())
        self._write(self._always, table, always)
        self._write(piece.paths, table, ~apart & ~always)
        self._write(self._apart, table, apart)

    def _tell(self, piece: _Piece, seen: _Seen) -> None:
        """Note what the piece says of offsets."""
        named, nowhere = seen.offset != NONE, np.zeros(seen.size, np.bool_)
        known = self._pieces[-2].reached if len(self._pieces) > 1 else piece.reached[:0]
        before = seen.highest(known, seen.offset, nowhere)[seen.queue]
        spoken_of = named & ~seen.of_kinds(*_WITH_THEIR_OFFSET) & (seen.offset <= before)
        again = np.unique(seen.spots(seen.offset)[spoken_of])
        if len(again):
            cuts = np.flatnonzero(np.diff(again) > 1)
            starts, stops = np.append(0, cuts + 1), np.append(cuts, len(again) - 1)
            piece.again.append(np.stack([again[starts], again[stops] + 1]))
        piece.reached = seen.highest(
            piece.reached, seen.offset, named & seen.of_kinds(*_HANDED_OUT)
        )
        sends = named & seen.of_kinds(Kind.SEND)
        sent = seen.highest(piece.sent, seen.offset, nowhere)
        for queue in np.unique(seen.queue[sends]).tolist():
            mine = sends & (seen.queue == queue)
            self._note_ahead(queue, seen.offset[mine], int(sent[queue]))
        piece.sent = seen.highest(sent, seen.offset, named & seen.of_kinds(Kind.APPEND, Kind.SEND))
        told = seen.of_kinds(*_TELL_OFFSETS) & (seen.values >= 0)
        piece.lowest = -seen.highest(-piece.lowest, -seen.values, told, -NEVER)
        self._groups |= seen.groups(seen.of_kinds(*_HANDED_OUT))
        self._leasing |= seen.groups(seen.of_kinds(Kind.RECEIVE))
        if seen.by_id.any():
            codes, words = seen.texts("message_id")
            number = len(self._pieces) - 1
            self._by_id |= {words[code]: number for code in np.unique(codes[seen.by_id]).tolist()}
        self._committing |= seen.groups(seen.of_kinds(Kind.COMMIT))

    def _note_ahead(self, queue: int, sent: Ints, before: int) -> None:
        """Note which sends lie further on than many that were sent later. sent: offsets; before: the highest so far."""
        highest = np.maximum.accumulate(np.append(before, sent))[:-1]
        late = highest - sent > LAST  # what is nearer is carried for being the last
        for ahead, offset in zip(highest[late].tolist(), sent[late].tolist(), strict=True):
            self._ahead[queue, ahead] = min(offset, self._ahead.get((queue, ahead), NEVER))

    def _new_ways(self, seen: _Seen) -> Ints:
        """The first row of each way in which something is told that was not told so before."""
        way = dense(seen.queue, seen.life, *seen.codes(_WAYS_AT_ALL))
        found = []
        for place in first_of_each(*way).tolist():
            texts = (_text(seen, name, place) for name in _WAYS_AT_ALL)
            told = (int(seen.queue[place]), int(seen.life[place]), *texts)
            if told not in self._ways:
                self._ways.add(told)
                found.append(place)
        return np.asarray(found, np.int64)

    def _new_values(self, seen: _Seen) -> list[int]:
        """The reports of an offset that their group had not reported before, while there are few of them."""
        found = []
        for place in positions(seen.of_kinds(Kind.COMMIT) & (seen.values != NONE)).tolist():
            reporter = (int(seen.queue[place]), _text(seen, "group", place))
            known = self._reported.setdefault(reporter, set())
            if len(known) < REPORTS and (value := int(seen.values[place])) not in known:
                known.add(value)
                self._always_seqs.append(int(seen.begin[place]))
                found.append(place)
        return found

    def _bring_home(self) -> None:
        """What goes with its offset goes to the piece in which that was reached; where nobody takes any, was sent."""
        count = len(self._queues)
        reached, sent = (
            np.stack([_padded(numbers, count, -1) for numbers in of_all])
            for of_all in zip(*((each.reached, each.sent) for each in self._pieces), strict=True)
        )
        homes = np.where(reached[-1] >= 0, reached, sent)  # of each piece and queue
        for path in self._apart:
            table = _read(path)
            offset, queue = table.column("queue_offset").to_numpy(), self._queues.of(Columns(table))
            if self._ahead:  # judged as early as what they are ahead of
                spots = zip(queue.tolist(), offset.tolist(), strict=True)
                offset = ints([self._ahead.get(spot, spot[1]) for spot in spots])
            home = np.zeros(len(offset), np.int64)
            for number in np.unique(queue).tolist():
                mine = queue == number
                home[mine] = np.searchsorted(homes[:, number], offset[mine])
            home = np.minimum(home, len(homes) - 1)
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
            paths = [*self._always, *piece.paths] if number == 0 else piece.paths
            tables += [_read(path) for path in paths]
            both = _by_seq(tables)
            yield Beside(both.slice(0, 0) if carried is None else carried, both)
            if number + 1 < len(self._pieces):
                where = self._carried(_Seen(both, self._queues), number + 1, memory)
                carried = both.filter(pa.array(where)).combine_chunks()

    def _carried(self, seen: _Seen, number: int, memory: int) -> Mask:
        """Which rows matter to the pieces from this one on?"""
        cut, later = self._pieces[number], self._pieces[number:]
        read = seen.of_kinds(Kind.READ)
        offset = seen.offsets()
        spot = seen.spots(offset)
        has_offset, ended = offset != NONE, seen.end < cut.seq
        found = ~seen.of_kinds(*OF_MESSAGES) | (read & (seen.offset == NONE))
        found[self._first_of_each_way(seen)] = True
        found |= np.isin(seen.begin, self._always_seqs)
        found |= ~ended & (~read | (seen.end == NEVER))
        found |= ~read & (seen.numbers("started_us") >= cut.us - memory)
        again = _within(spot, [each for piece in later for each in piece.again])
        told = [_padded(piece.lowest, seen.queues, NEVER) for piece in later]
        lowest = np.min(told, axis=0)[seen.queue] - 1
        found |= ~read & has_offset & (again | (offset >= lowest))
        if self._by_id:
            found |= seen.fit("message_id", lambda word: self._by_id.get(word, -1) >= number)
            found |= seen.by_id & (seen.of_leased() == NONE)
        found |= has_offset & self._owed(seen, offset, cut)
        refused = seen.are("outcome", (Outcome.REFUSED,))
        found |= ~has_offset & ~read & ~seen.of_kinds(Kind.COMMIT, Kind.PULL) & ~refused
        found[self._latest(seen, offset)] = True
        found[self._while_one_waits(seen, seen.begin < cut.seq)] = True
        return self._with_their_own(seen, spot, found)

    def _first_of_each_way(self, seen: _Seen) -> Ints:
        """A row of each way in which something is told; also of hand-outs that name an offset alone, or an id."""
        keys = [seen.queue, seen.life, *seen.codes(_WAYS_AT_ALL)]
        handed = seen.handed_out()
        if handed.any():
            keys.append(
                (handed & ~((seen.offset != NONE) & seen.has("message_id"))).astype(np.int64)
            )
        return _last(keys, np.ones(seen.size, np.bool_), -seen.begin, 1)

    def _owed(self, seen: _Seen, offset: Ints, cut: _Piece) -> Mask:
        """Is the message one that a group has yet to finish, as far as is known?"""
        has_offset, ended = offset != NONE, seen.end < cut.seq
        message, count = dense(seen.queue, np.where(has_offset, offset, -1))
        finishes = np.zeros(seen.size, np.bool_)
        for kind, outcomes in _FINISHES.items():
            finishes |= seen.of_kinds(kind) & seen.are("outcome", outcomes)
        finishes &= has_offset & ended
        owed = np.zeros(count, np.bool_)
        for group in self._groups:
            mine = seen.are("group", (group,))
            done = np.zeros(count, np.bool_)
            done[message[finishes & mine]] = True
            if group in self._committing:
                told = seen.of_kinds(Kind.COMMIT) & mine & ended & (seen.values != NONE)
                reached = seen.highest(ints([]), seen.values, told)[seen.queue]
                below = np.zeros(count, np.bool_)
                below[message] = offset < reached
                done &= below
            if group in self._leasing:
                done &= ~self._lent(seen, message, count, mine & has_offset, cut)
            owed |= ~done
        found: Mask = owed[message]
        return found

    def _lent(self, seen: _Seen, message: Ints, count: int, mine: Mask, cut: _Piece) -> Mask:
        """Which of a group's messages may be lent or put off still, or were when a question began that is under way?

        No more those that were acknowledged under their last lease, nor, once that is over by its time, those that may
        have been acknowledged.
        """
        questions = seen.of_kinds(Kind.RECEIVE) & (seen.end >= cut.seq) & (seen.end < NEVER)
        since = min([cut.seq, *seen.begin[questions].tolist()])
        started = seen.numbers("started_us")
        info = self._context.info
        late_us = info.config.schedule_slack_ms * MS + info.clock_bound_us
        since_us = min([cut.us, *started[questions].tolist()]) - late_us
        handed = positions(mine & seen.handed_out() & (seen.end < cut.seq))
        handed = handed[np.argsort(seen.end[handed], kind="stable")]
        until = seen.numbers("lease_until_us")[handed]
        lease_us = np.maximum(until - started[handed], info.config.broker_lease_ms * MS)
        free_us = np.where(until == NONE, NEVER, seen.numbers("ended_us")[handed] + lease_us)
        last, first = np.full(count, NOWHERE, np.int64), np.full(count, NEVER, np.int64)
        last[message[handed]] = handed  # the last one that is written stays
        np.minimum.at(first, message[handed], seen.end[handed])
        free = np.full(count, NONE, np.int64)
        np.maximum.at(free, message[handed], free_us)
        asked = mine & ~seen.are("outcome", (Outcome.REFUSED,))
        moved = positions(asked & seen.of_kinds(Kind.RELEASE, Kind.RENEW))
        free[message[moved]] = NEVER
        may_be_over = np.zeros(count, np.bool_)
        may_be_over[message[asked & seen.of_kinds(Kind.ACK, Kind.DEAD_LETTER)]] = True
        acks = positions(asked & seen.of_kinds(Kind.ACK) & seen.are("outcome", (Outcome.OK,)))
        own, lease = last[message[acks]], seen.texts("lease_id")[0]
        own_lease = (own != NOWHERE) & (lease[acks] == lease[own])
        acks = acks[own_lease & (seen.end[acks] > seen.end[own]) & (seen.end[acks] < since)]
        over = may_be_over & (free < since_us)
        over[message[acks]] = True
        lent: Mask = (first < NEVER) & ~over
        lent[message[moved[seen.begin[moved] < first[message[moved]]]]] = True
        return lent

    def _latest(self, seen: _Seen, offset: Ints) -> Ints:
        ways = [seen.queue, seen.life, *seen.codes(_WAYS), _late_incarnations(seen)]
        everything = np.ones(seen.size, np.bool_)
        ended = np.where(seen.end == NEVER, -1, seen.end)
        handed = seen.of_kinds(Kind.RECEIVE)
        by_key = [seen.queue, *seen.codes(("kind", "group", "sharding_key"))]
        reporters, reports = [seen.queue, *seen.codes(("group",))], seen.of_kinds(Kind.COMMIT)
        most = REPORTS_BESIDE_A_DEATH if self._queues.have_deaths else REPORTS
        return np.concatenate(
            [
                _last(ways, everything, seen.begin, LAST),
                _last(ways, everything, ended, LAST),
                _last(ways, offset != NONE, offset, LAST),
                _last(ways, seen.values != NONE, seen.values, LAST),
                _last(by_key, handed, seen.end, 1),
                _last(reporters, reports, seen.begin, most),
                _last(reporters, reports, ended, most),
            ]
        )

    def _while_one_waits(self, seen: _Seen, so_far: Mask) -> list[int]:
        """While a lane with messages waits for its first call: of each other one the calls that lie a turn apart."""
        config = self._context.info.config
        turn_us = (config.continuous_ms + config.schedule_slack_ms) * MS
        name, started = seen.texts("incarnation")[0], seen.numbers("started_us")
        over = np.unique(name[seen.of_kinds(Kind.DELIVER, Kind.DROP) & so_far])
        waiting = seen.of_kinds(Kind.PULL) & (seen.values > seen.offset) & (name != NO_TEXT)
        waiting &= seen.are("outcome", (Outcome.OK,)) & ~np.isin(name, over)
        calls, found = positions(seen.of_kinds(Kind.DELIVER)), []
        for pull in positions(waiting)[is_first(name[waiting])].tolist():
            since: dict[int, int] = {}
            for call in calls[seen.begin[calls] > seen.end[pull]].tolist():
                last_us = since.get(int(name[call]))
                if last_us is None or started[call] > last_us + turn_us:
                    since[int(name[call])] = int(started[call])
                    found.append(call)
        return found

    @staticmethod
    def _with_their_own(seen: _Seen, spot: Ints, found: Mask) -> Mask:
        """And the other messages of their calls, and the other rows of their messages, until there are no more."""
        has_offset, op = spot != NONE, seen.numbers("op_id")
        named, count = (op != NONE) & ~seen.of_kinds(Kind.READ), -1
        while count != (count := int(found.sum())):
            found |= named & np.isin(op, op[found & named])
            found |= has_offset & np.isin(spot, spot[found & has_offset])
        return found


def _late_incarnations(seen: _Seen) -> Ints:
    """The incarnation of each row, where it is one of its lane's last ones; all before those are one."""
    (group,), (name,) = seen.codes(("group",)), seen.codes(("incarnation",))
    each, count = dense(seen.queue, group, name)
    last = np.full(count, NONE, np.int64)
    np.maximum.at(last, each, seen.begin)
    first = first_of_each(each, count)
    lane, _ = dense(seen.queue[first], group[first])
    order = np.lexsort((-last, lane))
    rank = np.empty(count, np.int64)
    rank[order] = np.arange(count) - np.searchsorted(lane[order], lane[order])
    late: Ints = np.where(rank[each] < INCARNATIONS, name, NO_TEXT - 1)
    return late


def _padded(numbers: Ints, count: int, none: int) -> Ints:
    """What is known of each queue so far, of as many queues."""
    return np.append(numbers, np.full(count - len(numbers), none, np.int64))


def _text(seen: _Seen, name: str, place: int) -> str:
    codes, words = seen.texts(name)
    return words[codes[place]] if codes[place] != NO_TEXT else ""


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
