"""The rows of whole keys as columns of numbers: what clauses are judged by.

A judge gets rows of one or many keys, each key whole, sorted by key and then by seq_begin. Texts are numbers
too: the code of a text within these rows, NO_TEXT for none. A missing number is NONE, and the end of an operation
that never ended is NEVER.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from specs.clauses.links import Sending
from specs.clauses.rows import CHANGE_NOTHING_REFUSED, NOTHING_HERE, OFFSET_MOVED
from specs.facts.columns import NEVER, NO_TEXT, NONE, NOWHERE, Ints, Mask
from specs.facts.run_context import RunContext, Runs
from specs.facts.segments import Timeline, dense, first_of_each, ints, positions
from specs.history.runinfo import RunInfo
from specs.plan.config import Config
from specs.vocabulary import SERVER_CONSUMER, Kind, Lane, Level, Outcome, Queue

KINDS: tuple[Kind, ...] = tuple(Kind)
OUTCOMES: tuple[Outcome, ...] = tuple(Outcome)
LEVELS: tuple[Level, ...] = tuple(Level)
Made = TypeVar("Made")


_MADE_OF_KINDS = ("correction", "told_ahead")
"""What `Rows` derives from the kinds of rows."""


class Rows:
    """Columns of rows, sorted by key and seq_begin. Derived columns are made when asked for, once."""

    def __init__(self, table: pa.Table, runs: Runs) -> None:
        self.table = table = without_refused(table)
        self.runs = runs
        self.size = int(table.num_rows)
        self._numbers: dict[str, Ints] = {}
        self._codes: dict[str, tuple[Ints, Any]] = {}
        self._parties: dict[tuple[str, ...], tuple[Ints, list[int]]] = {}
        self._words: dict[str, list[str]] = {}
        self._shared: dict[Any, Any] = {}
        self._masks: dict[tuple[str, ...], Mask] = {}

    def shared(self, make: Callable[..., Made], *of: Any) -> Made:
        """What several clauses ask of these rows, made once (of: of this)."""
        if (make, *of) not in self._shared:
            self._shared[make, *of] = make(self, *of)
        found: Made = self._shared[make, *of]
        return found

    def without(self, hidden: Mask) -> Rows:
        """The same rows, of which the hidden ones are of no kind: who goes by kinds does not see them."""
        found = Rows.__new__(Rows)
        kept = {name: made for name, made in self.__dict__.items() if name not in _MADE_OF_KINDS}
        found.__dict__.update(kept, _shared={}, _masks={})
        found.kind = np.where(hidden, len(KINDS), self.kind).astype(np.int8)
        return found

    # ---- columns

    def number(self, name: str) -> Ints:
        """A column of numbers; NONE where there is none."""
        found = self._numbers.get(name)
        if found is None:
            column = self.table.column(name)
            filled = column.fill_null(NONE) if column.null_count else column
            found = self._numbers[name] = filled.to_numpy().astype(np.int64, copy=False)
        return found

    def text(self, name: str) -> Ints:
        """A column of texts as codes; NO_TEXT where there is none."""
        return self.encoded(name)[0]

    def words(self, name: str) -> list[str]:
        """The texts of a column, by code."""
        if name not in self._words:
            self._words[name] = self.encoded(name)[1].to_pylist()
        return self._words[name]

    def code(self, name: str, word: str) -> int:
        """The code of a text in a column; one that no row has when it does not occur."""
        try:
            return self.words(name).index(word)
        except ValueError:
            return NO_TEXT - 1

    def name_of(self, name: str, position: int) -> str:
        """The text of one row; empty where there is none."""
        code = int(self.text(name)[position])
        return self.words(name)[code] if code != NO_TEXT else ""

    def client_of(self, position: int) -> str:
        """The client of one row, by its name; empty where there is none."""
        return self.name_of("client_id", position)

    def member_of(self, position: int) -> tuple[str, str]:
        """The client of one row, and its group."""
        return self.client_of(position), self.name_of("group", position)

    def party_of(self, position: int) -> tuple[str, str]:
        """The client of one row, and its broker."""
        return self.client_of(position), self.name_of("broker", position)

    def encoded(self, name: str) -> tuple[Ints, Any]:
        """A column of texts as codes, and the texts by code as an Arrow array."""
        found = self._codes.get(name)
        if found is None:
            columns = set(self.table.column_names)
            is_source = name == "source_id" and {"message_id", "origin_id"} <= columns
            made = self._sources() if is_source else encoded(self.table.column(name))
            found = self._codes[name] = made
        return found

    def _sources(self) -> tuple[Ints, Any]:
        """As of the column that `with_source` makes, without telling the messages' ids apart once more."""
        codes, words = self.encoded("message_id")
        origin, named = self.encoded("origin_id")
        if not len(named):
            return codes, words
        known = pc.index_in(named, words)
        unknown = np.asarray(known.is_null())
        place = np.asarray(known.fill_null(0), np.int64)
        place[unknown] = len(words) + np.arange(int(unknown.sum()))
        says = np.append(np.asarray(pc.not_equal(named, "")), False)[origin]
        by_origin = (origin != NO_TEXT) & (says | (codes == NO_TEXT))
        merged = pa.concat_arrays(
            [words.cast(pa.string()), named.cast(pa.string()).filter(known.is_null())]
        )
        return np.where(by_origin, np.append(place, NO_TEXT)[origin], codes), merged

    def _enumerated(self, name: str, words: Sequence[str]) -> npt.NDArray[np.int8]:
        codes, present = self.text(name), self.words(name)
        numbers = [words.index(word) if word in words else len(words) for word in present]
        return np.asarray([*numbers, len(words)], np.int8)[codes]  # NO_TEXT takes the last

    @cached_property
    def kind(self) -> npt.NDArray[np.int8]:
        return self._enumerated("kind", KINDS)

    @cached_property
    def outcome(self) -> npt.NDArray[np.int8]:
        return self._enumerated("outcome", OUTCOMES)

    @cached_property
    def run(self) -> Ints:
        return self.text("run")

    @cached_property
    def begin(self) -> Ints:
        return self.number("seq_begin")

    @cached_property
    def end(self) -> Ints:
        """seq_end, NEVER while open."""
        end = self.number("seq_end")
        return np.where(end == NONE, NEVER, end)

    @cached_property
    def started(self) -> Ints:
        return self.number("started_us")

    @cached_property
    def ended(self) -> Ints:
        """ended_us, NEVER while open."""
        ended = self.number("ended_us")
        return np.where(ended == NONE, NEVER, ended)

    @cached_property
    def client(self) -> Ints:
        return self.text("client_id")

    @cached_property
    def group(self) -> Ints:
        return self.text("group")

    @cached_property
    def offset(self) -> Ints:
        return self.number("queue_offset")

    @cached_property
    def value(self) -> Ints:
        return self.number("value")

    def are(self, *kinds: Kind) -> Mask:
        """Is a row of one of these kinds?"""
        return self._among("kind", kinds, KINDS)

    def ended_as(self, *outcomes: Outcome) -> Mask:
        """Does a row have one of these outcomes?"""
        return self._among("outcome", outcomes, OUTCOMES)

    def _among(self, name: str, wanted: tuple[str, ...], vocabulary: Sequence[str]) -> Mask:
        key = (name, *wanted)  # a kind and an outcome may be the same word
        if key not in self._masks:  # many clauses ask for the same ones, and each changes its own
            codes = [vocabulary.index(each) for each in wanted]
            self._masks[key] = _is_one_of(getattr(self, name), codes)
        return self._masks[key].copy()

    def of(self, *kinds: Kind) -> Ints:
        """Positions of the rows of these kinds."""
        return positions(self.are(*kinds))

    # ---- keys

    def parties(self, *names: str) -> tuple[Ints, list[int]]:
        """Of each row a number of its run and these texts; and the first row of each number."""
        if names not in self._parties:
            number, count = dense(self.run, *map(self.text, names))
            self._parties[names] = number, first_of_each(number, count).tolist()
        return self._parties[names]

    @cached_property
    def queue(self) -> Ints:
        """Number of the row's queue (run, topic, broker, queue_id). No queue_id is a queue_id of its own."""
        return self._numbered(
            self.run, self.text("topic"), self.text("broker"), self.number("queue_id")
        )

    @cached_property
    def lane(self) -> Ints:
        """Number of the row's lane, in the order of the queues. Rows of no group are a lane of their own."""
        return self._numbered(self.queue, self.group)

    @cached_property
    def incarnation(self) -> Ints:
        """Number of (lane, client, its life, its process, incarnation).

        Rows without one share a number. The ADD of a server's consumer names no client: it is of whoever comes first.
        """
        name = self.text("incarnation")
        client, life = (
            np.where(name != NO_TEXT, each, nobodys)
            for each, nobodys in ((self.client, NO_TEXT), (self.life, 0))
        )
        nobodys = positions((name != NO_TEXT) & (client == NO_TEXT))
        if len(nobodys):
            same, count = dense(self.lane, name)
            told = positions(client != NO_TEXT)
            told = told[np.argsort(-self.begin[told], kind="stable")]
            first = np.full(count, NOWHERE, np.int64)
            first[same[told]] = told  # the last one written stays: the first one that began
            nobodys = nobodys[first[same[nobodys]] != NOWHERE]
            theirs = first[same[nobodys]]
            client[nobodys], life[nobodys] = client[theirs], life[theirs]
        one = self._numbered(self.lane, name, client, life)
        told, process = self._processes()
        other = np.full(self.size, NO_TEXT, np.int64)
        if len(told):
            first = first_of_each(one[told], int(one.max()) + 1)
            first = np.append(process[told], NO_TEXT)[first]
            others = told[process[told] != first[one[told]]]
            other[others] = process[others]
        return self._numbered(one, other)

    def _processes(self) -> tuple[Ints, Ints]:
        """Where a client names the process of an incarnation, in the order of begin; and the process of every row."""
        process = self.own_process
        tells = self.names_incarnation & (self.client != NO_TEXT)
        tells &= (process != NO_TEXT) & (self.client != self.code("client_id", SERVER_CONSUMER))
        told = positions(tells)
        return told[np.argsort(self.begin[told], kind="stable")], process

    @cached_property
    def lane_client(self) -> Ints:
        """The number of each row's lane and client."""
        return dense(self.lane, self.client)[0]

    @cached_property
    def by_end(self) -> Ints:
        """Of each row a number by which rows are in the order of their ends; of equal ones in that of their begins."""
        return self._numbered(self.end, self.begin)

    @cached_property
    def names_incarnation(self) -> Mask:
        """Does a row say of which incarnation it is?"""
        found: Mask = self.text("incarnation") != NO_TEXT
        return found

    @cached_property
    def own_process(self) -> Ints:
        """The process that a row names as its client's (`specs.clauses.rows.own_process`)."""
        own = self.text("level") == self.code("level", Level.CLIENT.value)
        found: Ints = np.where(own, self.text("process"), NO_TEXT)
        return found

    def of_two_processes(self, first: Ints, second: Ints) -> Mask:
        """Of each two rows of one client: do both name the process, and two of them?"""
        mine, others = self.own_process[first], self.own_process[second]
        found: Mask = (mine != NO_TEXT) & (others != NO_TEXT) & (mine != others)
        return found

    @cached_property
    def doer(self) -> Ints:
        """Number of who did it: the client, the process that the row names, and its life."""
        return self._numbered(self.run, self.client, self.own_process, self.life)

    @cached_property
    def life(self) -> Ints:
        """A number of each row: in which life of its client, in its group, it was done; of none: in any group."""
        crashed = self._count_of_each(
            (run, client, None, seq)
            for run in self.words("run")
            for client, states in self._context(run).client_state.items()
            for seq, kind in states
            if kind is Kind.CRASH
        )
        anew = [
            (run, client, group, seq)
            for run in self.words("run")
            for client, begun in self._context(run).begun_anew.items()
            for seq, group in begun
        ]
        if not anew:
            return crashed
        everywhere = self._count_of_each(each for each in anew if each[2] is None)
        here = np.zeros(self.size, np.int64)
        for group in sorted({each[2] for each in anew if each[2] is not None}):
            mine = (self.group == self.code("group", group)) | (self.group == NO_TEXT)
            here[mine] += self._count_of_each(each for each in anew if each[2] == group)[mine]
        return self._numbered(crashed, everywhere, here)

    def _count_of_each(self, events: Iterable[tuple[str, str, str | None, int]]) -> Ints:
        """How many of these (run, client, group, seq) each row's client has come to, its own included."""
        runs = {run: number for number, run in enumerate(self.words("run"))}
        codes = {client: code for code, client in enumerate(self.words("client_id"))}
        known = [
            (runs[run] * len(codes) + codes[client], seq)
            for run, client, _group, seq in events
            if client in codes
        ]
        count = np.zeros(self.size, np.int64)
        if known:
            whose, seqs = ints(known).T
            has = np.zeros(len(runs) * len(codes) + 1, np.bool_)
            has[whose] = True
            mine = np.where(self.client == NO_TEXT, NO_TEXT, self.run * len(codes) + self.client)
            where = positions(has[mine])
            count[where] = Timeline(whose, seqs).count_before(mine[where], self.begin[where] + 1)
        return count

    def _numbered(self, *columns: Ints) -> Ints:
        return dense(*columns)[0] if self.size else np.zeros(0, np.int64)

    @cached_property
    def corrected(self) -> Mask:
        """Is this a commit that a broker's correction or a filter moved?"""
        return np.equal(self.text("detail"), self.code("detail", "corrected"))

    @cached_property
    def correction(self) -> Mask:
        """Does this commit report a broker's correction: is that said, or did a pull name its value before?

        A pull names a value when it is told to go on there: code 21, or no code and further back, or nothing found and
        further ahead. The commits of the incarnation (where the pull or the commit names none: of the client) that
        repeat it count, up to the first other one after them, and until the incarnation begins anew.
        """
        found = self.corrected.copy()
        code, value = self.number("code"), self.value
        ahead = np.isin(code, NOTHING_HERE) & (self.offset != NONE) & (value > self.offset)
        back = (code == NONE) & (value < self.offset)
        told = (
            self.are(Kind.PULL)
            & ((code == OFFSET_MOVED) | ahead | back)
            & (value != NONE)
            & (self.end < NEVER)
        )
        if not told.any():
            return found
        named = self.names_incarnation
        also = (self.are(Kind.COMMIT) & (value != NONE) & ~found) | (self.are(Kind.ADD) & named)
        also &= np.isin(self.lane, self.lane[told])
        events = [(int(self.end[place]), 1, place) for place in np.flatnonzero(told).tolist()]
        events += [(int(self.begin[place]), 0, place) for place in np.flatnonzero(also).tolist()]
        adds = self.are(Kind.ADD)
        # By incarnation, or by lane and client: what was told, and what of it was committed last.
        words: dict[tuple[int, ...], set[int]] = defaultdict(set)
        repeated: dict[tuple[int, ...], set[int]] = defaultdict(set)
        for _seq, is_pull, place in sorted(events):
            own: tuple[int, ...] = (int(self.incarnation[place]),)
            clients = (int(self.lane[place]), int(self.client[place]))
            of_any = (*clients, 0)  # whichever incarnation the pull names
            now = {int(value[place])}
            if is_pull:
                for by in (own if named[place] else clients, of_any):
                    words[by] |= now
                    repeated[by] -= now
            elif adds[place]:
                words.pop(own, None)
            else:
                for by in (own, clients) if named[place] else (of_any,):
                    words[by] -= repeated[by] - now
                    repeated[by] = words[by] & now
                    if repeated[by]:
                        found[place] = True
                        break
        return found

    @cached_property
    def found_nothing(self) -> Mask:
        """Which rows' answer says that there is no message, or none here."""
        code = self.number("code")
        found: Mask = np.isin(code, NOTHING_HERE) | (code == OFFSET_MOVED)
        return found

    @cached_property
    def told_ahead(self) -> Ints:
        """The pulls that were answered with no message, and with an offset beyond the one they asked for."""
        told = self.are(Kind.PULL) & self.found_nothing & (self.end < NEVER)
        return positions(told & (self.offset != NONE) & (self.value > self.offset))

    @cached_property
    def source(self) -> Ints:
        """The id of the message as it was first sent, as a code."""
        return self.text("source_id")

    def starts_with(self, name: str, prefix: str) -> Mask:
        """Does the text begin with the prefix?"""
        return self.that_say(name, lambda word: word.startswith(prefix))

    def that_say(self, name: str, wanted: Callable[[str], bool]) -> Mask:
        """Of each row: is its text wanted?"""
        says = np.asarray([*map(wanted, self.words(name)), False], np.bool_)
        return says[self.text(name)] if says.any() else np.zeros(self.size, np.bool_)

    # ---- what is known of the runs

    def config(self, name: str, where: Ints) -> Ints:
        """A number of the configuration, for the rows at these positions."""
        return self.of_runs(lambda context: getattr(context.info.config, name), where)

    def closed_world(self, where: Ints) -> Mask:
        """Does the row's run hold every producer and consumer?"""
        found: Mask = self.of_runs(lambda context: context.info.closed_world, where) != 0
        return found

    def begins_late(self, where: Ints) -> Mask:
        """Are rows before the first one missing, of the run of each of these rows?"""
        found: Mask = self.of_runs(lambda context: context.info.begins_late, where) != 0
        return found

    def frames_twice(self, where: Ints) -> Mask:
        """Did something on the way make two frames of one, in the row's run?"""
        found: Mask = self.of_runs(lambda context: context.frames_twice, where) != NEVER
        return found

    def clock_stepped(self, where: Ints) -> Ints:
        """The seq from which lease clauses stop judging the row's run; NEVER without a step."""
        return self.of_runs(lambda context: context.clock_stepped, where)

    def clocks_us(self, where: Ints) -> Ints:
        """By how much the clocks of the row's run may differ."""
        return self.of_runs(lambda context: context.info.clock_bound_us, where)

    def moved_from(self, where: Ints) -> Ints:
        """The seq from which somebody had moved the offset of the row's lane; NEVER where nobody did."""
        if not any(context.resets for context in self.runs.values()):
            return np.full(len(where), NEVER, np.int64)
        _, one, lane = np.unique(self.lane[where], return_index=True, return_inverse=True)
        of_each = [
            self.context_of(at).resets.get(self.lane_of(at), NEVER) for at in where[one].tolist()
        ]
        return ints(of_each)[lane]

    def of_runs(self, ask: Callable[[RunContext], int], where: Ints) -> Ints:
        """A number that is known of the rows' runs."""
        per_run = [ask(self._context(run)) for run in self.words("run")]
        if len(per_run) < 2:
            return np.full(len(where), per_run[0] if per_run else 0, np.int64)
        return ints(per_run)[self.run[where]]

    def queue_of(self, position: int) -> Queue:
        """The name of one row's queue."""
        number = int(self.number("queue_id")[position])
        number = -1 if number == NONE else number  # as `Row.queue` has it
        return Queue(self.name_of("topic", position), self.name_of("broker", position), number)

    def lane_of(self, position: int) -> Lane:
        """The name of one row's lane."""
        return Lane(self.name_of("group", position), *self.queue_of(position))

    def config_of(self, position: int) -> Config:
        """The configuration of one row's run."""
        return self.context_of(position).info.config

    def was_disturbed(
        self,
        position: int,
        until_us: int,
        now: int,
        kind: Kind | None = None,
        broker: str | None = None,
    ) -> bool:
        """Did anything that had begun by `now` stand in the way of the row's request, or of its answer, until then?

        kind: of a request that its sender makes besides, from the same moment on. broker: to whom, where the row does
        not say.
        """
        asked = KINDS[int(self.kind[position])] if kind is None else kind
        client = self.client_of(position)
        broker = self.name_of("broker", position) if broker is None else broker
        sending = Sending(client, broker, asked, int(self.started[position]))
        return self.context_of(position).is_disturbed(sending, until_us, now)

    def context_of(self, position: int) -> RunContext:
        return self._context(self.words("run")[int(self.run[position])])

    def _context(self, run: str) -> RunContext:
        found = self.runs.get(run)
        return found if found is not None else RunContext(RunInfo(run))


def _is_one_of(codes: npt.NDArray[np.int8], wanted: Iterable[int]) -> Mask:
    """Is a code one of these few? Comparing bytes is quicker than a look-up by them."""
    found = np.zeros(len(codes), np.bool_)
    for code in wanted:
        found |= codes == code
    return found


def coded(column: Any) -> tuple[Ints, list[str]]:
    """A text column as (codes, texts by code)."""
    codes, words = encoded(column)
    return codes, words.to_pylist()


def encoded(column: Any) -> tuple[Ints, Any]:
    """A text column as (codes, texts by code): the texts as an Arrow array, of which few ask."""
    if column.null_count == len(column):
        return np.full(len(column), NO_TEXT, np.int64), pa.array([], pa.string())
    if isinstance(column, pa.ChunkedArray):
        column = (
            column.unify_dictionaries()
            if pa.types.is_dictionary(column.type)
            else column.dictionary_encode()
        )
        column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):  # too long for one array
            column = pa.concat_arrays(column.chunks)
    elif not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    indices = column.indices
    codes = (indices.fill_null(NO_TEXT) if indices.null_count else indices).to_numpy(
        zero_copy_only=False
    )
    return codes.astype(np.int64), column.dictionary


def without_refused(table: pa.Table) -> pa.Table:
    """The rows without those that no clause is shown: see `specs.clauses.rows.changed_nothing`."""
    if "outcome" not in table.column_names:
        return table
    kinds, words = coded(table.column("kind"))
    wanted = [word in CHANGE_NOTHING_REFUSED for word in words]
    if not any(wanted):
        return table
    gone = np.asarray([*wanted, False], np.bool_)[kinds]
    outcomes, ends = coded(table.column("outcome"))
    gone &= np.asarray([*(end == Outcome.REFUSED.value for end in ends), False], np.bool_)[outcomes]
    return table.filter(pa.array(~gone)) if gone.any() else table


def without_refused_commits(rows: Rows) -> Rows:
    """The rows as most clauses are shown them: nobody can be accused by a refused commit.

    Those that it tells something say so (`TOLD_OF_REFUSED_COMMITS`). GEN-1 asks for the refusal. That one was sent says
    that its client works (LSE-13), and that it reported in time (CMT-2) or before it gave the lane back (CMT-13); that
    one was refused says that the broker lives (CMT-7).
    """
    hidden = rows.are(Kind.COMMIT) & rows.ended_as(Outcome.REFUSED)
    return rows.without(hidden) if hidden.any() else rows


def keep(table: pa.Table, name: str, words: Iterable[str]) -> pa.Table:
    """The rows whose text is one of the words; the table itself when all are."""
    codes, texts = coded(table.column(name))
    wanted = set(words)
    if wanted.issuperset(texts) and not (len(codes) and int(codes.min()) == NO_TEXT):
        return table
    allowed = np.asarray([*(text in wanted for text in texts), False], np.bool_)
    return table.filter(pa.array(allowed[codes]))


def kept(table: pa.Table, wanted: Mask) -> pa.Table:
    """The rows of which the mask is true; a part of the table itself where they lie together."""
    where = positions(wanted)
    if len(where) and where[-1] - where[0] + 1 == len(where):
        return table.slice(int(where[0]), len(where))
    return table.filter(pa.array(wanted))
