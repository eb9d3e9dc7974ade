"""The engine `spark`: `judge(history, profile, options) -> Verdict`, the same as the Python engine's, at any size.

Three steps. A first look reads the files once and says whether the history can be trusted (`facts`). Then the
queues are gone through, in parallel, in one of three ways: files that lie by queue are read where they lie; others,
up to some size, are read by every task, which keeps the queues that are its own (measured: a third of the time of a
shuffle); larger ones take one shuffle. What belongs together by message, by key or by group across queues is kept
aside by the sieve and judged at the end: in this process when it is little, with one shuffle per key when it is much.
"""

from __future__ import annotations

import pickle
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from spark_checkers import facts, sieve
from spark_checkers.catalogue import all_twins, applicable, twins_of
from spark_checkers.facts import Facts
from spark_checkers.keyed import (
    BATCH_ROWS,
    KEY_COLUMNS,
    SOURCE,
    by_key,
    codes_of,
    judge_in_memory,
    whole_keys,
    with_source,
)
from spark_checkers.ordered import (
    PART_ROWS,
    Group,
    Part,
    is_by_queue,
    part_tables,
    parts,
    row_groups,
)
from spark_checkers.rows import Findings, Rows, Runs, keep
from spark_checkers.session import open_session, parallelism
from spark_checkers.sieve import Sieve
from spark_checkers.twin import ALWAYS, Twin, judge_rows, levels_of, needed
from specs.clauses.catalogue import all_clauses, select
from specs.clauses.certainty import recorded
from specs.clauses.clause import Clause
from specs.clauses.judging import Finding
from specs.errors import HistoryError, SpecError
from specs.history.arrow import in_our_schema
from specs.history.columns import NAMES
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.history.store import History, check_parquet, rows_of_table, rows_to_table
from specs.profiles import Profile
from specs.verdicts.examine import found_alone, witness
from specs.verdicts.tally import Examination, Found, Tally
from specs.verdicts.verdict import Verdict, conclude
from specs.vocabulary import Key, Kind

SHARED_ROWS = 20_000_000
"""Up to so many rows every task reads all files; more tasks than a few would read too often."""
FEW_ROWS = 1_000_000
"""So many rows are judged in this process; more go back to Spark."""
_REPORT = "report binary"
_SIFTED = ("SND-2", "ORD-12", "DLQ-1", "DLQ-2", "DLQ-7")
"""Of other keys than a queue, these find all that they need among rows that the first passes keep."""
Place = tuple[bool, str, int, tuple[int, ...]]
"""By which a violation is the witness: certain ones first, then the run, the last event, and all events."""


def judge(history: History, profile: Profile, options: Mapping[str, Any] | None = None) -> Verdict:
    """Judge a stored history on Spark.

    options: floor, require_exercised and clauses as for the Python engine; master, the Spark master (local by default);
    memory, the driver's ("4g"); session, a SparkSession to use. Raises HistoryError for a history that can't be
    read, UsageError where there is no Java, TargetMisbehaved where Spark does not start.
    """
    options = options or {}
    for path in history.parquet:
        check_parquet(path)
    session = options.get("session") or open_session(
        options.get("master"), memory=options.get("memory") or "4g"
    )
    chosen = select(options["clauses"]) if options.get("clauses") else None
    examination = examine(history, session, chosen)
    return conclude(
        examination,
        history.info,
        profile,
        floor=int(options.get("floor", 1)),
        require_exercised=bool(options.get("require_exercised", False)),
        clauses=chosen,
        ours_too=chosen is not None,
        tool={"engine": "spark"},
    )


def examine(history: History, session: Any, clauses: Sequence[Clause] | None = None) -> Examination:
    """What a pass over the history finds, clause by clause.

    clauses: whose tallies and witnesses are wanted, by default all; the passes judge all of them side by side.
    """
    missing = {clause.id for clause in all_clauses()} - {twin.id for twin in all_twins()}
    if missing:
        raise SpecError(
            f"no Spark twin for {', '.join(sorted(missing))}: judge with --engine python"
        )
    scratch = Path(tempfile.mkdtemp(prefix="inorder-spark-"))
    try:
        return _Examiner(history, session, scratch).examine(
            all_clauses() if clauses is None else clauses
        )
    except Exception as error:
        raise _told(error) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _told(error: Exception) -> Exception:
    """An error of ours that a worker raised comes back wrapped in Spark's: unwrap its sentence."""
    text = str(error)
    mark = "specs.errors.HistoryError: "
    if not isinstance(error, HistoryError) and mark in text:
        return HistoryError(text.split(mark, 1)[1].splitlines()[0])
    return error


@dataclass
class Named:
    """What was found of one name."""

    violations: int = 0
    possible: int = 0
    best: Place | None = None

    def take(self, run: str, seqs: tuple[int, ...], certain: bool) -> None:
        self.merge(Named(int(certain), int(not certain), (not certain, run, seqs[-1], seqs)))

    def merge(self, other: Named) -> None:
        self.violations += other.violations
        self.possible += other.possible
        if other.best is not None and (self.best is None or other.best < self.best):
            self.best = other.best


@dataclass
class Sum:
    """What was found of one clause, by the public names of findings."""

    opportunities: int = 0
    found: dict[str, Named] = field(default_factory=dict)

    def take(self, findings: Findings) -> None:
        self.opportunities += sum(findings.opportunities.values())
        for run, seqs, certain, name in findings.violations:
            self.found.setdefault(name, Named()).take(run, seqs, certain)

    def merge(self, other: Sum) -> None:
        self.opportunities += other.opportunities
        for name, part in other.found.items():
            self.found.setdefault(name, Named()).merge(part)


@dataclass
class PassReport:
    """What one task of the pass over the queues found, and how many rows it kept for which clause."""

    sums: dict[str, Sum] = field(default_factory=dict)
    kept: dict[str, int] = field(default_factory=dict)

    def take(self, findings: Findings) -> None:
        self.sums.setdefault(findings.clause, Sum()).take(findings)


@dataclass(frozen=True)
class QueuePass:
    """The work of one task: judge whole queues, sift them, and write what is kept."""

    twins: tuple[Twin, ...]
    runs: Runs
    sieve: Sieve
    scratch: str

    @property
    def columns(self) -> tuple[str, ...]:
        extra = {*needed(self.twins), *sieve.COLUMNS} - {SOURCE}
        return (*ALWAYS, *sorted(extra.difference(ALWAYS)))

    @property
    def kinds(self) -> frozenset[Kind]:
        return frozenset(
            {*sieve.KINDS, *(kind for twin in self.twins for kind in twin.clause.kinds)}
        )

    def work(self, name: str, tables: Iterable[pa.Table]) -> PassReport:
        report = PassReport()
        kept: dict[str, Any] = {}
        try:
            for table in tables:
                self._judge(table, report, kept, name)
        finally:
            for writer in kept.values():
                writer.close()
        return report

    def _judge(self, table: pa.Table, report: PassReport, kept: dict[str, Any], name: str) -> None:
        wanted = keep(keep(table, "kind", self.kinds), "level", levels_of(self.twins))
        if not wanted.num_rows:
            return
        wanted = with_source(wanted)
        queued = wanted.column("queue_id").is_valid()
        for has_queue in (True, False):
            part = (
                wanted.filter(queued if has_queue else pc.invert(queued))
                if self._mixed(wanted, has_queue)
                else wanted
            )
            if not part.num_rows:
                continue
            rows = Rows(part, self.runs)
            if has_queue:
                for findings in judge_rows(rows, self.twins):
                    report.take(findings)
                decided, aside = self.sieve.sift(rows)
                for findings in decided:
                    report.take(findings)
            else:
                aside = self.sieve.without_queue(rows)
            for clause, some in aside.items():
                self._keep(clause, some, report, kept, name)

    @staticmethod
    def _mixed(table: pa.Table, has_queue: bool) -> bool:
        return bool(table.column("queue_id").null_count) or not has_queue

    def _keep(
        self, clause: str, table: pa.Table, report: PassReport, kept: dict[str, Any], name: str
    ) -> None:
        table = as_kept(table)
        if clause not in kept:
            folder = Path(self.scratch) / clause
            folder.mkdir(parents=True, exist_ok=True)
            kept[clause] = pq.ParquetWriter(folder / f"{name}.parquet", KEPT)
        kept[clause].write_table(table)
        report.kept[clause] = report.kept.get(clause, 0) + table.num_rows


_KEPT_NAMES = tuple(dict.fromkeys([*ALWAYS, *sieve.COLUMNS]))
KEPT = pa.schema(
    [(name, pa.string() if facts.is_text(name) else pa.int64()) for name in _KEPT_NAMES]
)
"""What is kept of a row for the clauses of other keys."""


def as_kept(table: pa.Table) -> pa.Table:
    return with_source(table).select(list(_KEPT_NAMES)).cast(KEPT)


class _Examiner:
    """One examination: its files, its session, its scratch folder."""

    def __init__(self, history: History, session: Any, scratch: Path) -> None:
        self.history = history
        self.session = session
        self.scratch = scratch
        self.paths = [
            in_our_schema(path, scratch / f"part-{number:05d}.parquet")
            for number, path in enumerate(history.parquet)
        ] or [self._written()]
        self.tasks = parallelism(session)
        self.sums: dict[str, Sum] = {}

    def _written(self) -> Path:
        """A small history that lies in memory, as a file."""
        path = self.scratch / "rows.parquet"
        pq.write_table(rows_to_table(self.history.loaded), path)
        return path

    def examine(self, clauses: Sequence[Clause]) -> Examination:
        seen = facts.look(self.session, self.paths, self.history.info, self.tasks)
        self._queues(seen)
        self._others(seen)
        self._apart(seen)
        tallies = {clause.id: self._tally(clause, seen) for clause in clauses}
        return Examination(tallies, seen.run_facts, list(self.history.why_cut))

    # ---- queues

    def _queues(self, seen: Facts) -> None:
        known = Sieve(_given_up(seen.few), seen.cross_keys)
        work = QueuePass(
            twins_of(Key.QUEUE, self.history.info), seen.runs, known, str(self.scratch / "kept")
        )
        if is_by_queue(self.paths):
            done = self._by_files(work)
        elif sum(row_groups(self.paths)[1]) <= SHARED_ROWS:
            done = self._by_shares(work)
        else:
            done = self._by_shuffle(work)
        self.kept: dict[str, int] = {}
        for report in done:
            for clause, found in report.sums.items():
                self.sums.setdefault(clause, Sum()).merge(found)
            for clause, rows in report.kept.items():
                self.kept[clause] = self.kept.get(clause, 0) + rows

    def _by_files(self, work: QueuePass) -> list[PassReport]:
        groups, sizes = row_groups(self.paths)
        cut = parts(sizes, self.tasks)
        if not cut:
            return []
        job = self.session.range(0, len(cut), 1, len(cut)).mapInArrow(
            partial(_judge_parts, groups=groups, cut=cut, work=work), _REPORT
        )
        return _reports(job)

    def _by_shares(self, work: QueuePass) -> list[PassReport]:
        groups, sizes = row_groups(self.paths)
        shares = max(self.tasks, -(-sum(sizes) // PART_ROWS))
        job = self.session.range(0, shares, 1, shares).mapInArrow(
            partial(_judge_share, groups=groups, shares=shares, work=work), _REPORT
        )
        return _reports(job)

    def _by_shuffle(self, work: QueuePass) -> list[PassReport]:
        from pyspark.sql import functions as F

        rows = self.session.read.parquet(*(str(path) for path in self.paths))
        columns = KEY_COLUMNS[Key.QUEUE]
        job = (
            rows.where(F.col("kind").isin(sorted(kind.value for kind in work.kinds)))
            .where(F.col("level").isin(sorted(levels_of(work.twins))))
            .select(*work.columns)
            .repartition(*columns)
            .sortWithinPartitions(*columns, "seq_begin")
            .mapInArrow(partial(_judge_shuffled, work=work), _REPORT)
        )
        return _reports(job)

    # ---- what lies across queues

    def _others(self, seen: Facts) -> None:
        few = as_kept(seen.few) if seen.few.num_rows else KEPT.empty_table()
        for twin in applicable(self.history.info):
            if twin.id not in _SIFTED:
                continue
            extra: list[pa.Table] = []
            if twin.id in ("DLQ-1", "DLQ-2", "DLQ-7"):
                extra.append(few)
            folder = self.scratch / "kept" / twin.id
            kept = sorted(folder.glob("*.parquet")) if folder.is_dir() else []
            if twin.id == "SND-2" and kept:
                kept += self._sends(kept)
            rows = sum(table.num_rows for table in extra) + sum(
                pq.read_metadata(path).num_rows for path in kept
            )
            if not rows:
                continue
            total = self.sums.setdefault(twin.id, Sum())
            if rows <= FEW_ROWS:
                table = pa.concat_tables(
                    [*extra, *(pq.read_table(path, schema=KEPT) for path in kept)]
                )
                for findings in judge_in_memory(table, (twin,), seen.runs):
                    total.take(findings)
            else:
                self._on_spark(twin, extra, kept, seen.runs)

    def _apart(self, seen: Facts) -> None:
        """Clauses of other keys that no sieve serves: one shuffle for each kind of key, of the rows they look at."""
        for key in Key:
            twins = tuple(
                twin for twin in twins_of(key, self.history.info) if twin.id not in _SIFTED
            )
            if key is Key.QUEUE or not twins:
                continue
            if sum(row_groups(self.paths)[1]) <= FEW_ROWS:
                for findings in judge_in_memory(self._whole(), twins, seen.runs):
                    self.sums.setdefault(findings.clause, Sum()).take(findings)
            else:
                self._collect(
                    by_key(
                        self.session.read.parquet(*(str(path) for path in self.paths)),
                        twins,
                        seen.runs,
                    )
                )

    def _whole(self) -> pa.Table:
        """A small history, in memory."""
        return pa.concat_tables([pq.read_table(path, columns=list(NAMES)) for path in self.paths])

    def _on_spark(
        self, twin: Twin, extra: Sequence[pa.Table], kept: Sequence[Path], runs: Runs
    ) -> None:
        folder = self.scratch / "many" / twin.id
        folder.mkdir(parents=True, exist_ok=True)
        files = [*kept]
        for number, table in enumerate(extra):
            files.append(folder / f"{number}.parquet")
            pq.write_table(table, files[-1])
        self._collect(
            by_key(self.session.read.parquet(*(str(path) for path in files)), (twin,), runs)
        )

    def _collect(self, found: Any) -> None:
        """Add a DataFrame of `FINDINGS` to the sums."""
        for row in found.toLocalIterator():
            each = Sum(opportunities=int(row["opportunities"]))
            if row["seqs"] is not None:
                part = each.found.setdefault(row["finding"], Named())
                part.take(row["run"], tuple(row["seqs"]), bool(row["certain"]))
            self.sums.setdefault(row["clause"], Sum()).merge(each)

    def _sends(self, kept: Sequence[Path]) -> list[Path]:
        """The sends of the messages in question, by a scan of all sends."""
        columns = ["run", "message_id", "origin_id"]
        wanted = np.unique(
            np.concatenate(
                [
                    sieve.message_hashes(with_source(pq.read_table(path, columns=columns)))
                    for path in kept
                ]
            )
        )
        groups, sizes = row_groups(self.paths)
        cut = parts(sizes, self.tasks)
        folder = self.scratch / "kept" / "sends"
        folder.mkdir(parents=True, exist_ok=True)
        work = partial(_gather_sends, groups=groups, cut=cut, wanted=wanted, folder=str(folder))
        self.session.range(0, len(cut), 1, len(cut)).mapInArrow(work, _REPORT).toArrow()
        return sorted(folder.glob("*.parquet"))

    # ---- witnesses

    def _tally(self, clause: Clause, seen: Facts) -> Tally:
        if clause.unmet(self.history.info) is not None:
            return Tally()  # the sieve does not ask about premises
        known = recorded(self.history.info)
        told = seen.kinds if known is None else known
        if missing := clause.missing(told):
            return Tally(missing=tuple(sorted(missing)))
        total = self.sums.get(clause.id, Sum())
        tally = Tally(total.opportunities)
        for name, part in sorted(total.found.items()):
            found = tally.found[name] = Found(part.violations, part.possible)
            if part.best is not None:
                possible, run, _last, seqs = part.best
                rows = fetch(self.paths, run, seqs)
                found.witness, found.explanation = witness_of(
                    clause, rows, self.history.info, name, certain=not possible
                )
                found.certain = not possible
        if known is None and tally.violations:
            tally.assumed = tuple(sorted(clause.excuses - told))
        return tally


def _given_up(few: pa.Table) -> Any:
    """Hashes of the messages that were given up."""
    if not few.num_rows:
        return np.zeros(0, np.uint64)
    letters = keep(few, "kind", {Kind.DEAD_LETTER.value})
    return np.unique(sieve.message_hashes(with_source(letters)))


def _reports(job: Any) -> list[PassReport]:
    return [pickle.loads(data) for data in job.toArrow().column(0).to_pylist()]


def _report(report: PassReport) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array([pickle.dumps(report)], pa.binary())], names=["report"]
    )


def _judge_parts(
    numbers: Iterator[pa.RecordBatch],
    *,
    groups: Sequence[Group],
    cut: Sequence[Part],
    work: QueuePass,
) -> Iterator[pa.RecordBatch]:
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            yield _report(
                work.work(f"part-{number}", part_tables(groups, cut[number], work.columns))
            )


def _judge_share(
    numbers: Iterator[pa.RecordBatch], *, groups: Sequence[Group], shares: int, work: QueuePass
) -> Iterator[pa.RecordBatch]:
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            yield _report(
                work.work(f"share-{number}", _share_tables(groups, number, shares, work.columns))
            )


def _share_tables(
    groups: Sequence[Group], number: int, shares: int, columns: Sequence[str]
) -> Iterator[pa.Table]:
    """The whole keys of one share of the queues."""
    found: list[pa.Table] = []
    for path, group in groups:
        table = pq.ParquetFile(path).read_row_group(group, columns=list(columns), use_threads=False)
        mine = facts.queue_hashes(table) % np.uint64(shares) == number
        if mine.any():
            found.append(table.filter(pa.array(mine)))
    if found:
        yield from whole_keys(by_key_order(pa.concat_tables(found)), KEY_COLUMNS[Key.QUEUE])


def by_key_order(table: pa.Table) -> Iterator[pa.RecordBatch]:
    """The rows by queue and seq_begin."""
    table = table.unify_dictionaries().combine_chunks()
    order = np.lexsort(
        (table.column("seq_begin").to_numpy(), *reversed(codes_of(table, KEY_COLUMNS[Key.QUEUE])))
    )
    for start in range(0, len(order), BATCH_ROWS):
        yield from (
            table.take(pa.array(order[start : start + BATCH_ROWS])).combine_chunks().to_batches()
        )


def _judge_shuffled(
    batches: Iterator[pa.RecordBatch], *, work: QueuePass
) -> Iterator[pa.RecordBatch]:
    from pyspark import TaskContext

    context = TaskContext.get()
    number = context.partitionId() if context is not None else 0
    yield _report(work.work(f"part-{number}", whole_keys(batches, KEY_COLUMNS[Key.QUEUE])))


def _gather_sends(
    numbers: Iterator[pa.RecordBatch],
    *,
    groups: Sequence[Group],
    cut: Sequence[Part],
    wanted: Any,
    folder: str,
) -> Iterator[pa.RecordBatch]:
    columns = [name for name in _KEPT_NAMES if name != SOURCE]
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            with pq.ParquetWriter(Path(folder) / f"sends-{number}.parquet", KEPT) as writer:
                for path, group in groups[cut[number].start : cut[number].stop]:
                    reader = pq.ParquetFile(path)
                    narrow = reader.read_row_group(
                        group, columns=["kind", "run", "message_id", "origin_id"]
                    )
                    sends = np.asarray(
                        pc.equal(narrow.column("kind").cast(pa.string()), Kind.SEND.value)
                    )
                    sends &= np.isin(sieve.message_hashes(with_source(narrow)), wanted)
                    if sends.any():
                        whole = reader.read_row_group(group, columns=columns).filter(
                            pa.array(sends)
                        )
                        writer.write_table(as_kept(whole))
            yield _report(PassReport())


def fetch(paths: Sequence[Path], run: str, seqs: Sequence[int]) -> tuple[Row, ...]:
    """The rows with these seq_begin of one run, in that order."""
    wanted = np.asarray(sorted(seqs), np.int64)
    found: list[pa.Table] = []
    for path, group in row_groups(paths)[0]:
        reader = pq.ParquetFile(path)
        low, high = facts.seq_range(path, group)
        if high < wanted[0] or low > wanted[-1]:
            continue
        here = np.isin(
            reader.read_row_group(group, columns=["seq_begin"]).column(0).to_numpy(), wanted
        )
        if here.any():
            table = reader.read_row_group(group, columns=list(NAMES)).filter(pa.array(here))
            found.append(keep(table, "run", {run}))
    rows = [row for table in found for row in rows_of_table(table)]
    return tuple(sorted(rows, key=lambda row: row.seq_begin))


@dataclass(frozen=True, slots=True)
class Evidence(Finding):
    """A violation that is known by its rows alone."""

    evidence: tuple[Row, ...]


def witness_of(
    clause: Clause, rows: tuple[Row, ...], info: RunInfo, name: str, *, certain: bool
) -> tuple[tuple[Row, ...], str]:
    """The smallest part of the evidence that the clause still refutes alike, and what it says about it."""
    if found_alone(clause, rows, info, name, certain=certain) is None:
        # The evidence rests on what went before it, and does not stand alone: it is shown whole.
        return rows, f"these events break the promise: {clause.statement}"
    return witness(clause, Evidence(rows, certain=certain), info, name)
