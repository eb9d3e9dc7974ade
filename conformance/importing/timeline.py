"""Puts marks in order and makes rows of them: places in the total order, ends with their begins, incarnations.

*Lines*: the order of the lines is the order of events, and a time that goes back contradicts it. *Times*: only the
times say what came first; marks of one time have no order among them, so the rows concerned get clocks of their own and
the run a bound between clocks, with which no judge concludes anything from their order.

Memory: a piece of the log, and the operations that are open. What has to be sorted is sorted in pieces and merged from
a temporary file.
"""

from __future__ import annotations

import heapq
import pickle
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any, Generic, NamedTuple, TypeVar

from conformance.importing.events import PLACE, BadRow, Mark, Role
from conformance.importing.mapping import KEEP, LANE, Map
from specs.vocabulary import Kind, Outcome

T = TypeVar("T")
MOST_SHOWN = 10
"""So many lines of a kind are told by their numbers."""
PIECE = 50_000
_BLOCK = 2_000
_CLOCKS = 1 << 16
TIE_BOUND_US = 1
"""The bound between the clocks of rows of one time: any two times that differ are farther apart, or uncertain too."""

_NUMBERED = frozenset(
    kind.value
    for kind in (
        Kind.DELIVER,
        Kind.COMMIT,
        Kind.PULL,
        Kind.FETCH_OFFSET,
        Kind.DEAD_LETTER,
        Kind.SEND_BACK,
        Kind.DROP,
    )
)
"""What a client does within an incarnation. Not its locks: it has a lane's lease before it adds the lane."""
_WITHIN = _NUMBERED - {Kind.FETCH_OFFSET.value, Kind.PULL.value}
"""What nobody does before the lane is added; a look-up, and the pull that follows it, may come before."""
_LANE_OF_CLIENT = itemgetter(PLACE["client_id"], *(PLACE[name] for name in LANE))
_KIND, _INCARNATION, _OUTCOME = PLACE["kind"], PLACE["incarnation"], PLACE["outcome"]
_SEQ_BEGIN, _SEQ_END, _OP = PLACE["seq_begin"], PLACE["seq_end"], PLACE["op_id"]
_STARTED, _ENDED, _CLOCK = PLACE["started_us"], PLACE["ended_us"], PLACE["clock"]
_WALL = PLACE["wall_us"]


# ---------------------------------------------------------------- sorting what does not fit


class Run(NamedTuple):
    """A part of the temporary file that is in order: where its blocks begin."""

    blocks: list[int]
    last: Any


class Sorter(Generic[T]):
    """Gives back what it took, sorted. What came in order is not sorted again, and costs no memory to merge."""

    def __init__(self, key: Callable[[T], Any], piece: int = PIECE) -> None:
        self._key, self._size = key, piece
        self._piece: list[T] = []
        self._runs: list[Run] = []
        self._file: Any = None

    def add(self, item: T) -> None:
        self._piece.append(item)
        if len(self._piece) >= self._size:
            self._spill()

    def _spill(self) -> None:
        piece, self._piece = self._piece, []
        piece.sort(key=self._key)
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="inorder-import-")  # noqa: SIM115
        first, last = self._key(piece[0]), self._key(piece[-1])
        blocks = []
        self._file.seek(0, 2)
        for start in range(0, len(piece), _BLOCK):
            blocks.append(self._file.tell())
            pickle.dump(piece[start : start + _BLOCK], self._file, pickle.HIGHEST_PROTOCOL)
        if self._runs and self._runs[-1].last <= first:
            self._runs[-1] = Run(self._runs[-1].blocks + blocks, last)
        else:
            self._runs.append(Run(blocks, last))

    def sorted(self) -> Iterator[T]:
        """All of it, once."""
        self._piece.sort(key=self._key)
        rest, self._piece = self._piece, []
        try:
            yield from heapq.merge(*(self._read(run) for run in self._runs), rest, key=self._key)
        finally:
            if self._file is not None:
                self._file.close()

    def _read(self, run: Run) -> Iterator[T]:
        for block in run.blocks:
            self._file.seek(block)
            yield from pickle.load(self._file)


# ---------------------------------------------------------------- order


@dataclass(slots=True)
class Told:
    """What was found out about the log's order and times. resolution_us: every time is a multiple of it.
    reckoned_us: how finely lengths are told, where begins or ends were reckoned from them.

    without_begin: ends that no line began, and of these in_the_midst: of a lane of which the log had told before.
    twice: lines of the same bytes as another one, the first few as (line, the other). gaps: kinds of which rows are
    missing.
    """

    ties: int = 0
    never_ended: dict[str, int] = field(default_factory=dict)
    without_begin: dict[str, int] = field(default_factory=dict)
    in_the_midst: dict[str, int] = field(default_factory=dict)
    ends_shown: dict[str, list[int]] = field(default_factory=dict)
    twice: int = 0
    twice_shown: list[tuple[int, int]] = field(default_factory=list)
    gaps: set[str] = field(default_factory=set)
    newest_first: bool = False
    resolution_us: int = 0
    earliest_us: int = 1 << 62
    reckoned_us: int = 0


Refuse = Callable[[int, BadRow], None]
"""Told of a line that can't be a row; it raises where that is not allowed."""


def by_lines(marks: Iterable[Mark], told: Told, refuse: Refuse) -> Iterator[list[Mark]]:
    """Each mark by itself, in the order of the lines; one whose time goes back is refused."""
    last_us, last_line, refused = -1, 0, 0
    for mark in marks:
        if mark.at_us < last_us:
            told.gaps.add(mark.columns[_KIND])
            if mark.place == refused:
                continue  # the line was refused as a whole
            refused = mark.place
            back_ms = f"{(last_us - mark.at_us) / 1000:.3f}".rstrip("0").rstrip(".")
            why = (
                f"is {back_ms} ms earlier than line {last_line}, though the map says that the lines are in order: "
                'order = "times"'
            )
            refuse(mark.line, BadRow(why))
            continue
        last_us, last_line = mark.at_us, mark.line
        yield [mark]


def by_times(marks: Iterable[Mark], told: Told, piece: int = PIECE) -> Iterator[list[Mark]]:
    """The marks of one time together, in the order of times; among them as the lines are, or against them in a log that
    begins with the newest."""
    sorter: Sorter[Mark] = Sorter(itemgetter(0, 1, 3), piece)
    up = down = 0
    last_us = None
    for mark in marks:
        if last_us is not None:
            up += mark.at_us > last_us
            down += mark.at_us < last_us
        last_us = mark.at_us
        sorter.add(mark)
    told.newest_first = down > up
    for _at_us, together in groupby(sorter.sorted(), key=itemgetter(0)):
        found = list(together)
        if told.newest_first and len(found) > 1:
            found = _latest_line_first(found)
        yield found


class Once:
    """Takes lines of the same bytes, so of the same time, for one. What that does to certainty the map says.

    Memory: the lines of one time.
    """

    def __init__(self, mapping: Map, told: Told, refuse: Callable[[int, int], None]) -> None:
        """refuse: told of a line and of the one that it repeats."""
        self._said, self._told, self._refuse = mapping.duplicates, told, refuse
        self._keeps = self._said == KEEP or not mapping.timed
        self._at_us: int | None = None
        self._first: dict[int, Mark] = {}
        self._last = 0

    def marks(self, groups: Iterable[list[Mark]]) -> Iterator[list[Mark]]:
        if self._keeps:
            yield from groups
            return
        for group in groups:
            if group[0].at_us != self._at_us:
                self._at_us = group[0].at_us
                self._first.clear()
            left = [mark for mark in group if self._is_new(mark)]
            if left:
                yield left

    def _is_new(self, mark: Mark) -> bool:
        first = self._first.setdefault(mark.same, mark)
        if first.place == mark.place:
            return True
        if mark.columns:  # an end that its own line tells goes with its begin
            self._count(mark, first)
        return False

    def _count(self, mark: Mark, first: Mark) -> None:
        told = self._told
        if self._last != mark.place:  # a line may tell several
            self._last = mark.place
            self._refuse(mark.line, first.line)
            told.twice += 1
            if len(told.twice_shown) < MOST_SHOWN:
                told.twice_shown.append((mark.line, first.line))
        if self._said is None:
            told.gaps.add(mark.columns[_KIND])


def _latest_line_first(marks: list[Mark]) -> list[Mark]:
    """The lines turned round; the marks of one line stay as they are."""
    lines = [list(group) for _line, group in groupby(marks, key=itemgetter(2))]
    return [mark for line in reversed(lines) for mark in line]


# ---------------------------------------------------------------- rows


class Waiting(Generic[T]):
    """What waits for its other half, found by what both halves say; a further name that one of them lacks is not
    compared."""

    def __init__(self) -> None:
        self._by_pair: dict[Any, list[tuple[tuple[Any, ...], T]]] = {}

    def put(self, mark: Mark, item: T) -> T | None:
        """What it takes the place of, if anything."""
        before = self.take(mark)
        self._by_pair.setdefault(mark.pair, []).append((mark.names, item))
        return before

    def take(self, mark: Mark) -> T | None:
        """The one that it can be; None where there is none, or where it can be one of several."""
        waits = self._by_pair.get(mark.pair)
        if waits is None:
            return None
        fits = [each for each in waits if _agree(each[0], mark.names)]
        if len(fits) != 1:
            return None
        waits.remove(fits[0])
        if not waits:
            del self._by_pair[mark.pair]
        return fits[0][1]

    def __iter__(self) -> Iterator[T]:
        return (item for waits in self._by_pair.values() for _names, item in waits)


def _agree(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    return one == other or all(
        mine is None or theirs is None or mine == theirs
        for mine, theirs in zip(one, other, strict=True)
    )


class Timeline:
    """Makes rows of marks in order. A row is handed out when its end is known, or when the log is over."""

    def __init__(self, mapping: Map, run: str, told: Told) -> None:
        self._run, self._told = run, told
        self._timed = mapping.timed
        self._numbers = mapping.counts_incarnations
        # Where every ADD is told, what a client does before its first one belongs to one that the log begins after.
        declared = (*(mapping.records or ()), *mapping.did_not_happen)
        self._first = 0 if Kind.ADD.value in declared else None
        self._seq = 0
        self._clock = 0
        self._open: Waiting[list[Any]] = Waiting()
        # Of what the log has told a begin, by kind, client and lane; and of what is of the same time, in no order.
        self._begun_in: set[tuple[Any, ...]] = set()
        self._begun_now: list[tuple[Any, ...]] = []
        self._waits: list[list[Any]] = []
        self._incarnation: dict[Any, int] = {}

    def rows(self, groups: Iterable[list[Mark]], *, ordered: bool) -> Iterator[list[Any]]:
        """Rows in the history's columns. ordered: marks of one group are in the order in which they stand."""
        nothing: Waiting[Mark] = Waiting()
        for group in groups:
            one_line = ordered or all(mark.place == group[0].place for mark in group)
            clocks = None if one_line else self._clocks_of(group)
            early = nothing if clocks is None else Waiting[Mark]()
            for index, mark in enumerate(group):
                clock = mark.clock if clocks is None else clocks[index]
                yield from self._take(mark, clock, early, clocks is not None)
            if clocks is not None:
                for mark in early:
                    self._without_begin(mark)
            if self._begun_now:
                self._begun_in.update(self._begun_now)
                self._begun_now.clear()
        yield from self._never_ended()

    def _take(
        self, mark: Mark, clock: str, early: Waiting[Mark], tied: bool
    ) -> Iterator[list[Any]]:
        if mark.role is Role.ENDS:
            row = self._open.take(mark)
            if row is not None:
                yield self._ended(row, mark, clock if tied else None)
            elif tied:
                if (other := early.put(mark, mark)) is not None:
                    self._without_begin(other)
            else:
                self._without_begin(mark)
            return
        row = self._begun(mark, clock)
        if mark.role is Role.MOMENT:
            row[_SEQ_END], row[_ENDED] = row[_SEQ_BEGIN], mark.at_us
            yield row
        elif mark.role is Role.OPEN:
            yield row
        elif (end := early.take(mark)) is not None:
            yield self._ended(row, end, None)
        else:
            self._begun_now.append(_of_whom(mark))
            before = self._open.put(mark, row)
            if before is not None:  # begun again before it ended: nobody knows when that was
                self._waits.append(before)

    def _begun(self, mark: Mark, clock: str) -> list[Any]:
        self._seq += 1
        row = list(mark.columns)
        row[PLACE["run"]] = self._run
        row[_SEQ_BEGIN], row[_OP] = self._seq, mark.op
        row[_STARTED], row[_CLOCK] = mark.at_us, clock
        if (
            self._timed and row[_WALL] is None and row[_KIND] != Kind.READ.value
        ):  # there it is the store's own time
            row[_WALL] = mark.at_us
        if self._numbers:
            self._number(row)
        return row

    def _number(self, row: list[Any]) -> None:
        lane = _LANE_OF_CLIENT(row)
        if row[_KIND] == Kind.ADD.value:
            self._incarnation[lane] = self._incarnation.get(lane, 0) + 1
        elif row[_KIND] not in _NUMBERED:
            return
        first = self._first if row[_KIND] in _WITHIN else None
        number = self._incarnation.get(lane, first)
        row[_INCARNATION] = None if number is None else str(number)

    def _ended(self, row: list[Any], mark: Mark, clock: str | None) -> list[Any]:
        self._seq += 1
        row[_SEQ_END], row[_ENDED] = self._seq, mark.at_us
        if clock is not None and row[_CLOCK] == mark.clock:
            row[_CLOCK] = clock
        for place, value in enumerate(mark.columns):
            if value is not None and place not in _OF_THE_BEGIN:
                row[place] = value
        if row[_OUTCOME] is None:
            row[_OUTCOME] = Outcome.OK.value
        return row

    def _clocks_of(self, group: list[Mark]) -> list[str]:
        """A clock for each row that has a mark at this time, another one for each."""
        self._told.ties += len(group)
        found = []
        for mark in group:
            self._clock = (self._clock + 1) % max(_CLOCKS, 2 * len(group))
            found.append(f"{mark.clock}~{self._clock}")
        return found

    def _without_begin(self, mark: Mark) -> None:
        """It may have begun before the log did; but not where the log told of such work by the same client there."""
        if not mark.columns:
            return
        told, kind = self._told, mark.columns[_KIND]
        told.without_begin[kind] = told.without_begin.get(kind, 0) + 1
        whom = _of_whom(mark)
        if whom in self._begun_in or (
            None in whom and any(_agree(whom, each) for each in self._begun_in)
        ):
            told.in_the_midst[kind] = told.in_the_midst.get(kind, 0) + 1
            told.gaps.add(kind)
        shown = told.ends_shown.setdefault(kind, [])
        if len(shown) < MOST_SHOWN:
            shown.append(mark.line)

    def _never_ended(self) -> Iterator[list[Any]]:
        for row in (*self._waits, *self._open):
            kind = row[_KIND]
            self._told.never_ended[kind] = self._told.never_ended.get(kind, 0) + 1
            row[_OUTCOME] = Outcome.UNKNOWN.value
            yield row


def _of_whom(mark: Mark) -> tuple[Any, ...]:
    """Of which client's work on which lane, as far as the line tells."""
    return (mark.columns[_KIND], *_LANE_OF_CLIENT(mark.columns))


_OF_THE_BEGIN = frozenset(
    PLACE[name]
    for name in ("run", "seq_begin", "seq_end", "op_id", "kind", "level", "started_us", "ended_us")
) | {_CLOCK, _WALL}


def in_order(rows: Iterable[list[Any]], piece: int = PIECE) -> Iterator[list[Any]]:
    """Rows by seq_begin."""
    sorter: Sorter[list[Any]] = Sorter(itemgetter(_SEQ_BEGIN), piece)
    for row in rows:
        sorter.add(row)
    yield from sorter.sorted()
