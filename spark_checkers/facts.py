"""The first look at a history: can it be trusted, and what do all judges have to know?

Every part of the files is read once, and a few columns are written in windows of seq, which are then looked at one by
one: in whichever order the rows lie, that tells whether seq numbers are unique and clocks run forward. What comes back
is small: counts, rows about deaths and clocks, and hashes of what must be unique.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from spark_checkers import hash_files
from spark_checkers.coding import Columns
from spark_checkers.hash_files import HashesFile
from spark_checkers.hashing import Hashes
from spark_checkers.homes import KeysSeen, keys_without_home
from spark_checkers.jobs import Jobs
from spark_checkers.ordered import Group, Part, parts, read_group, read_groups, row_groups
from spark_checkers.scatter import Spill, Together, even_cuts, gathered, spilled
from specs.clauses.context import CONTEXT_KINDS
from specs.clauses.rows import REQUEST_LEVELS
from specs.errors import HistoryError
from specs.facts.columns import NEVER, NONE, Ints, Mask
from specs.facts.rows import KINDS, LEVELS, OUTCOMES, coded
from specs.facts.run_context import RunContext, Runs
from specs.facts.segments import dense, first_of_each, ints, is_first, positions
from specs.facts.together import with_source
from specs.history import telling
from specs.history.columns import COLUMNS
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.history.store import rows_of_table
from specs.verdicts.examine import MOST_REASONS
from specs.verdicts.tally import RunFacts
from specs.vocabulary import DLQ_PREFIX, Kind, Outcome

WINDOW_ROWS = 1 << 21
"""About so many rows are put in order at a time."""
SAMPLED_GROUPS = 256
"""The rows of about so many row groups tell where they are cut for it."""
_LOOKED_AT = (
    *("run", "seq_begin", "kind", "level", "outcome", "group", "topic", "broker", "queue_id"),
    *("queue_offset", "message_id", "origin_id", "attempt", "broker_epoch", "incarnation"),
)
_SENT = ("run", "topic", "message_id", "attempt")
ASTRAY = ("run", "topic", "broker", "sharding_key")
"""What is asked of sends that name no queue: one of each is enough."""
WINDOWED = ("run", "seq_begin", "started_us", "ended_us", "clock")
OF_CONTEXT = frozenset(
    {*_LOOKED_AT, *WINDOWED, *ASTRAY, "seq_end", "client_id", "process", "value", "view", "detail"}
) - {"message_id", "origin_id", "attempt", "incarnation"}
"""What is asked of a row of the context; nothing else is told of it."""

Worker = tuple[str, str | None, str | None]
"""(run, group, client)"""
Reason = tuple[str, int, int, str]
"""Why a history can't be trusted: (run, seq, order of the check, text)."""
Stretch = tuple[str, str | None, int, int, int, int]
"""The rows of one clock in a window: (run, clock, first seq, when, last seq, when)."""
Key = TypeVar("Key")


@dataclass
class Report:
    """What one task saw."""

    rows: int = 0
    sends: int = 0
    deliveries: int = 0
    rare: list[pa.Table] = field(default_factory=list)
    """Rows of the context, and faults."""
    sent: HashesFile = ("", 0)
    """Of (run, message, attempt)."""
    naming: set[Worker] = field(default_factory=set)
    """Who names incarnations."""
    nameless: dict[Worker, int] = field(default_factory=dict)
    """The first row of each who names none."""
    reasons: list[Reason] = field(default_factory=list)
    clocks: list[Stretch] = field(default_factory=list)
    epochs: dict[tuple[str, str, int], int] = field(default_factory=dict)
    """By run, broker and epoch: the first seq."""
    seen: set[tuple[str, str | None, str]] = field(default_factory=set)
    """Run, group and kind of a row that there is."""
    looks: dict[tuple[str, tuple[Any, ...]], int] = field(default_factory=dict)
    """By run and topic or queue: the last seq."""
    named_origins: dict[str, int] = field(default_factory=dict)
    """By run: the first dead letter read with the id of its origin."""
    windows: Spill = field(default=Spill("", ()))
    """All rows, by windows of seq."""
    keys: list[HashesFile] = field(default_factory=list)
    """Of each of what is wanted together."""


@dataclass(frozen=True)
class Facts:
    """What is known of a history after the first look. kinds: those of which there are rows."""

    run_facts: RunFacts
    runs: Runs
    kinds: frozenset[Kind]
    away: Sequence[Hashes] = ()
    """Of each of what is wanted together: see `keys_without_home`."""


def look(
    jobs: Jobs, paths: Sequence[Path], info: RunInfo, folder: Path, wanted: Sequence[Together] = ()
) -> Facts:
    """Read the history once. folder: one that every task can write. wanted: of which keys to tell the home."""
    groups, sizes = row_groups(paths)
    cut = parts(sizes, jobs.tasks)
    starts = _windows(groups, sizes, jobs.tasks)
    work = partial(
        _look_at_part, groups=groups, cut=cut, starts=starts, wanted=wanted, folder=str(folder)
    )
    reports = jobs.each(work, len(cut))
    sent = hash_files.seen_again(jobs, [report.sent for report in reports])
    away = keys_without_home(jobs, [report.keys for report in reports], len(wanted))
    spills = [report.windows for report in reports]
    reports += jobs.each(partial(_look_at_window, spills=spills), len(starts))
    for spill in spills:
        Path(spill.path).unlink(missing_ok=True)  # as large as the history
    return replace(sum_up(reports, info, _sent_twice(sent, groups)), away=away)


def _windows(groups: Sequence[Group], sizes: Sequence[int], at_least: int) -> list[int]:
    """Where ranges of seq begin that share the rows out about evenly, as far as a sample tells.

    They are not spread evenly: what is read in the end has as many rows in a moment as went before in hours.
    """
    rows = sum(sizes)
    if not rows:
        return []
    chosen = groups[:: 1 + len(groups) // SAMPLED_GROUPS]
    read = read_groups(chosen, Part(0, len(chosen)), ["seq_begin"])
    count = max(min(at_least, rows // 100_000), -(-rows // WINDOW_ROWS), 1)
    return [NONE, *even_cuts((table[0].to_numpy() for table in read), count).tolist()]


def seq_range(path: str, number: int) -> tuple[int, int]:
    """The smallest and the greatest seq_begin of a row group."""
    metadata = pq.read_metadata(path)
    index = metadata.schema.to_arrow_schema().get_field_index("seq_begin")
    statistics = metadata.row_group(number).column(index).statistics
    if statistics is not None and statistics.has_min_max:
        return int(statistics.min), int(statistics.max)
    column = pq.ParquetFile(path).read_row_group(number, columns=["seq_begin"]).column(0)
    return int(pc.min(column).as_py()), int(pc.max(column).as_py())


# ---------------------------------------------------------------- parts


def _look_at_part(
    number: int,
    *,
    groups: Sequence[Group],
    cut: Sequence[Part],
    starts: Sequence[int],
    wanted: Sequence[Together],
    folder: str,
) -> Report:
    report = Report()
    windowed = []
    sent = [np.zeros(0, np.uint64)]
    seen = KeysSeen(wanted)
    names = sorted({*_LOOKED_AT, *OF_CONTEXT, *seen.columns})
    for table in read_groups(groups, cut[number], names):
        columns = Columns(with_source(table))
        windowed.append(table.select(WINDOWED))
        report.rows += table.num_rows
        _all_known(columns)
        sends, calls, reads = (
            columns.are("kind", {kind}) for kind in (Kind.SEND, Kind.DELIVER, Kind.READ)
        )
        report.sends += int(sends.sum())
        report.deliveries += int(calls.sum())
        _look_at_what_is_told(report, columns)
        _look_at_names(report, columns)
        rare = columns.are("kind", CONTEXT_KINDS)
        unsure = columns.are("outcome", {Outcome.UNKNOWN})
        rare |= sends & unsure
        placed = columns.has("queue_id") | columns.has("queue_offset") | unsure
        where = positions(sends & ~placed & ~columns.are("outcome", {Outcome.REFUSED}))
        rare[where[is_first(*(columns.numbers(name)[where] for name in ASTRAY))]] = True
        if rare.any():
            report.rare.append(table.filter(pa.array(rare)))
        _look_at_epochs(report, columns)
        _look_at_looks(report, columns, calls, reads)
        seen.take(columns)
        sent.append(columns.keys(_SENT, _named(columns, sends)))
    report.rare = [pa.concat_tables(report.rare)] if report.rare else []
    report.sent = hash_files.write(np.sort(np.concatenate(sent)), folder=folder)
    rows = pa.concat_tables(windowed).unify_dictionaries()
    window = np.searchsorted(ints(starts), rows.column("seq_begin").to_numpy(), "right") - 1
    where = np.arange(len(window))
    report.windows = spilled(rows, where, window, len(starts), folder, compression=None)
    report.keys = seen.write(folder)
    return report


def _look_at_what_is_told(report: Report, columns: Columns) -> None:
    """Does each row tell what a row of its kind must?"""
    for name, kinds in telling.MUST_TELL.items():
        lacking = columns.are("kind", kinds) & ~columns.has(name)
        for by, values in telling.MAY_LACK[name].items():
            lacking &= ~columns.are(by, values)
        where = positions(lacking)
        first = np.argsort(columns.numbers("seq_begin")[where], kind="stable")[:MOST_REASONS]
        for at in where[first].tolist():
            run, seq, kind = (columns.value(each, at) for each in ("run", "seq_begin", "kind"))
            report.reasons.append(untold(run, seq, kind, name))


def untold(run: str, seq: int, kind: str, name: str) -> Reason:
    return run, seq, telling.check_of(name), telling.why_untold(kind, seq, name)


def _look_at_names(report: Report, columns: Columns) -> None:
    """Which clients name incarnations in a group, and which is the first row of each that names none?"""
    of_one = columns.are("kind", telling.OF_AN_INCARNATION) & columns.are("level", REQUEST_LEVELS)
    named, who = columns.has("incarnation"), ("run", "group", "client_id")
    report.naming.update(_seqs(columns, who, of_one & named))
    report.nameless = _merged(min, report.nameless, _seqs(columns, who, of_one & ~named))


def _look_at_epochs(report: Report, columns: Columns) -> None:
    """When each broker first named an epoch, and which kinds of rows there are of which group."""
    told = columns.has("broker_epoch") & columns.has("broker")
    named = _seqs(columns, ("run", "broker", "broker_epoch"), told)
    report.epochs = _merged(min, report.epochs, named)
    report.seen.update(_seqs(columns, ("run", "group", "kind"), np.ones(len(told), np.bool_)))


def _look_at_looks(report: Report, columns: Columns, calls: Mask, reads: Mask) -> None:
    """When somebody last looked at a topic (a listener call), or at a queue (its reading to the end).

    And when anybody first read a dead letter that names the id of its origin.
    """
    asked = columns.are("level", REQUEST_LEVELS)
    reads = reads & asked
    named = columns.has("queue_offset") | columns.has("message_id")
    markers = reads & columns.are("outcome", {Outcome.OK}) & ~named
    queue = ("topic", "broker", "queue_id")
    for where, looks in ((("topic",), calls & asked), (queue, markers)):
        found = _seqs(columns, ("run", *where), looks, np.maximum)
        last = {(run, tuple(there)): seq for (run, *there), seq in found.items()}
        report.looks = _merged(max, report.looks, last)
    dead = columns.fit("topic", lambda name: name.startswith(DLQ_PREFIX))
    origins = _seqs(columns, ("run",), reads & dead & columns.has("origin_id"))
    first = {run: seq for (run,), seq in origins.items()}
    report.named_origins = _merged(min, report.named_origins, first)


def _seqs(
    columns: Columns, names: Sequence[str], wanted: Mask, choose: np.ufunc = np.minimum
) -> dict[tuple[Any, ...], int]:
    """The first seq_begin (or the last) of the wanted rows that are alike in these columns, by their values."""
    where = positions(wanted)
    if not len(where):
        return {}
    chosen = slice(None) if len(where) == len(wanted) else where
    number, count = dense(*(columns.numbers(name)[chosen] for name in names))
    seq, places = columns.numbers("seq_begin")[chosen], first_of_each(number, count)
    found = seq[places]
    choose.at(found, number, seq)
    return {
        tuple(columns.value(name, at) for name in names): each
        for at, each in zip(where[places].tolist(), found.tolist(), strict=True)
    }


def _merged(choose: Callable[[int, int], int], *told: Mapping[Key, int]) -> dict[Key, int]:
    """By key, the least or the greatest number of what is told of it."""
    found: dict[Key, int] = {}
    for key, number in (item for each in told for item in each.items()):
        found[key] = choose(number, found.get(key, number))
    return found


def _all_known(columns: Columns) -> None:
    """Raises HistoryError for a word that the vocabulary lacks, as the Python engine does."""
    for name, known in (("kind", KINDS), ("level", LEVELS), ("outcome", OUTCOMES)):
        for word in columns.texts(name)[1]:
            if word not in known:
                raise HistoryError(f"a history holds the unknown word {word!r}")


def _named(columns: Columns, sends: Mask) -> Ints:
    """Sends as their senders saw them, with an id."""
    return positions(sends & columns.has("message_id") & columns.are("level", REQUEST_LEVELS))


def _of_none(reports: Sequence[Report]) -> list[Reason]:
    """Of each client that names incarnations, the first row that names none."""
    naming = set[Worker]().union(*(report.naming for report in reports))
    firsts = _merged(min, *(report.nameless for report in reports))
    return [
        (worker[0], seq, telling.LAST_CHECK, telling.why_of_none(seq))
        for worker, seq in firsts.items()
        if worker in naming
    ]


# ---------------------------------------------------------------- windows


def _look_at_window(number: int, *, spills: Sequence[Spill]) -> Report:
    table = gathered(spills, range(number, number + 1))
    return Report() if table is None else look_at_rows(table)


def look_at_rows(table: pa.Table) -> Report:
    """Of some rows, in any order: are the numbers unique, do the clocks run forward?"""
    report = Report()
    run, runs = coded(table.column("run"))
    clock, clocks = coded(table.column("clock"))
    seq = table.column("seq_begin").to_numpy()
    # By the run's name, not its code: the reasons are given in the order in which the rows would be read.
    by_name = np.argsort(np.argsort(np.asarray(runs, object))) if runs else np.zeros(0, np.int64)
    run = by_name[run]
    runs = sorted(runs)
    order = np.lexsort((seq, run)) if len(runs) > 1 else np.argsort(seq, kind="stable")
    run, clock, seq = run[order], clock[order], seq[order]
    started = table.column("started_us").to_numpy()[order]
    ended = table.column("ended_us").fill_null(np.iinfo(np.int64).max).to_numpy()[order]
    same_run = run[1:] == run[:-1]
    for index in np.flatnonzero(same_run & (seq[1:] == seq[:-1]))[:MOST_REASONS].tolist():
        text = f"seq {seq[index]} does not follow seq {seq[index]}"
        report.reasons.append((runs[run[index]], int(seq[index]), 0, text))
    for index in np.flatnonzero(ended < started)[:MOST_REASONS].tolist():
        text = f"seq {seq[index]} ends before it begins"
        report.reasons.append((runs[run[index]], int(seq[index]), 1, text))
    if len(runs) > 1 or (clock != clock[:1]).any():
        by_clock = np.lexsort((clock, run))
        run, clock, seq, started = (each[by_clock] for each in (run, clock, seq, started))
    names = [*clocks, None]  # a row that names no clock has the code -1
    same = (run[1:] == run[:-1]) & (clock[1:] == clock[:-1])
    back = np.flatnonzero(same & (started[1:] < started[:-1])) + 1
    for index in back[np.argsort(seq[back], kind="stable")][:MOST_REASONS].tolist():
        text = f"clock {names[clock[index]]} runs backwards at seq {seq[index]}"
        report.reasons.append((runs[run[index]], int(seq[index]), 2, text))
    edges = np.flatnonzero(np.append(True, ~same))
    ends = np.append(edges[1:], len(seq)) - 1
    for first, last in zip(edges.tolist(), ends.tolist(), strict=True):
        moments = (int(each[at]) for at in (first, last) for each in (seq, started))
        report.clocks.append((runs[run[first]], names[clock[first]], *moments))
    return report


# ---------------------------------------------------------------- summing up


def sum_up(reports: Sequence[Report], info: RunInfo, sent_twice: Sequence[Reason]) -> Facts:
    """What all tasks saw."""
    facts = RunFacts(
        sum(report.rows for report in reports),
        sum(report.sends for report in reports),
        sum(report.deliveries for report in reports),
    )
    clocks = [clock for report in reports for clock in report.clocks]
    reasons = [
        *(reason for report in reports for reason in report.reasons),
        *(_between_windows(clocks) + _first_seqs(clocks)),
        *sent_twice,
        *_of_none(reports),
    ]
    facts.broken.extend(text for _run, _seq, _check, text in sorted(reasons)[:MOST_REASONS])
    rare = (table for report in reports for table in report.rare)
    context = [row for table in rare for row in rows_of_table(_filled(table))]
    context.sort(key=lambda row: (row.run, row.seq_begin))
    facts.faults.extend(
        (row.detail or "fault", row.outcome is Outcome.OK)
        for row in context
        if row.kind is Kind.FAULT
    )
    subscriptions: dict[str, str] = {}
    for row in context:
        joined = row.kind is Kind.JOIN and row.view is not None
        if joined and row.group and subscriptions.setdefault(row.group, row.view or "") != row.view:
            facts.subscriptions_differ.append(row.group)
    runs = _contexts(reports, info, context)
    kinds = frozenset(Kind(kind) for report in reports for _run, _group, kind in report.seen)
    return Facts(facts, runs, kinds)


def _contexts(
    reports: Sequence[Report], info: RunInfo, rows: Sequence[Row]
) -> dict[str, RunContext]:
    """What is known of each run. rows: those of the context, by run and seq_begin."""
    all_seen = set[tuple[str, str | None, str]]().union(*(report.seen for report in reports))
    epochs: dict[str, dict[str, list[tuple[int, int]]]] = defaultdict(lambda: defaultdict(list))
    for (run, broker, epoch), seq in _merged(min, *(each.epochs for each in reports)).items():
        epochs[run][broker].append((seq, epoch))
    looks: dict[str, dict[tuple[Any, ...], int]] = defaultdict(dict)
    for (run, where), seq in _merged(max, *(each.looks for each in reports)).items():
        looks[run][where] = seq
    origins = _merged(min, *(report.named_origins for report in reports))
    seen: dict[str, dict[str | None, set[Kind]]] = defaultdict(lambda: {None: set()})
    for run, group, kind in all_seen:
        seen[run].setdefault(group, set()).add(Kind(kind))
    return {
        run: RunContext.of(
            info,
            (row for row in rows if row.run == run),
            epochs[run],
            {group: frozenset(kinds) for group, kinds in seen[run].items()},
            looks[run],
            origins.get(run, NEVER),
        )
        for run in sorted({info.run, *seen})
    }


def _filled(rows: pa.Table) -> pa.Table:
    """Rows of the context, with nothing in the columns that nobody asks of them."""
    for column in COLUMNS:
        if column.name not in rows.column_names:
            number = rows.column("seq_begin")
            nothing = number if column.required else pa.nulls(len(number))
            rows = rows.append_column(column.name, nothing)
    return rows


def _between_windows(clocks: Sequence[Stretch]) -> list[Reason]:
    """Does a clock run backwards from one window to the next?"""
    reasons: list[Reason] = []
    last: dict[tuple[str, str | None], int] = {}
    in_order = sorted(clocks, key=lambda each: (each[0], each[2]))
    for run, clock, first_seq, first_us, _last_seq, last_us in in_order:
        if first_us < last.get((run, clock), first_us):
            reasons.append((run, first_seq, 2, f"clock {clock} runs backwards at seq {first_seq}"))
        last[(run, clock)] = last_us
    return reasons


def _first_seqs(clocks: Sequence[Stretch]) -> list[Reason]:
    """Numbers of a run begin with 0, or above."""
    first = _merged(min, *({run: seq} for run, _clock, seq, *_rest in clocks))
    return [
        (run, seq, 0, f"seq {seq} does not follow seq -1") for run, seq in first.items() if seq < 0
    ]


def _sent_twice(suspects: Hashes, groups: Sequence[Group]) -> list[Reason]:
    """Sends to one topic with one id and one attempt. suspects: equal hashes; they may be two ids after all."""
    if not len(suspects):
        return []
    seen: list[tuple[Any, ...]] = []
    names = ("run", "seq_begin", "topic", "message_id", "attempt")
    for path, number in groups:
        table = read_group(path, number, [*names, "kind", "level"])
        rows = Columns(table)
        where = _named(rows, rows.are("kind", {Kind.SEND}))
        found = table.take(pa.array(where[np.isin(rows.keys(_SENT, where), suspects)]))
        seen += zip(*(found.column(name).to_pylist() for name in names), strict=True)
    reasons: list[Reason] = []
    known: set[tuple[str, str, str, int | None]] = set()
    for run, seq, topic, message, attempt in sorted(seen, key=lambda each: each[:2]):
        if (run, topic, message, attempt) in known:
            text = f"message id {message} was sent twice as the same attempt"
            reasons.append((run, seq, 3, text))
        known.add((run, topic, message, attempt))
    return reasons[:MOST_REASONS]
