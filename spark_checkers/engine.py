"""The engines `arrow` and `spark`: `judge(history, profile, options) -> Verdict`, the same as the Python engine's.

Both do the same tasks, on processes of this machine or as Spark jobs. A first look reads the files once and says
whether the history can be trusted (`facts`). Then all goes through the queues: where they lie, if the files lie by
queue, or brought together first (`scatter`). What belongs together by message or sharding key is judged there as well,
but for keys that are seen in several queues (`homes`); what belongs together by another key is picked on the way and
brought together. No key brings all that grows with the number of messages into one task: see `Judge`.
"""

from __future__ import annotations

import gc
import itertools
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from spark_checkers import facts, scatter
from spark_checkers.balances import Balance, Balances
from spark_checkers.catalogue import applicable
from spark_checkers.facts import Facts
from spark_checkers.hashing import Hashes
from spark_checkers.homes import MOST_KEYS, without_home
from spark_checkers.jobs import InProcesses, Jobs, OnSpark
from spark_checkers.judging import AT_HOME, FINDINGS_ARROW, to_batch
from spark_checkers.keyed import IN_PIECES, Long, judge_sorted, picked_anew, whole_or_long
from spark_checkers.ordered import (
    Group,
    Part,
    has_long_key,
    is_by_queue,
    part_tables,
    parts,
    plain,
    row_groups,
)
from spark_checkers.pieces import LONG_ROWS, PIECE_ROWS, Pieces
from spark_checkers.scatter import Scatter, Spill, Together, keys_in_order, shared_out
from spark_checkers.session import is_local, open_session, ship
from specs.clauses.catalogue import all_clauses
from specs.clauses.certainty import told_of
from specs.clauses.clause import Clause
from specs.clauses.judging import Finding
from specs.errors import HistoryError
from specs.facts.columns import Ints, Mask
from specs.facts.findings import Findings
from specs.facts.groupings import QUEUES, SOURCE
from specs.facts.judged import judge_rows
from specs.facts.judges import Judge, grouped
from specs.facts.rows import Rows, keep, kept
from specs.facts.run_context import Runs
from specs.facts.segments import positions
from specs.facts.together import columns_of, levels_of, relevant, with_source
from specs.history.arrow import in_our_schema
from specs.history.columns import NAMES
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.history.store import History, check_parquet, rows_of_table, rows_to_table
from specs.profiles import Profile
from specs.scratch import Scratch
from specs.verdicts.engine import chosen_by, concluded
from specs.verdicts.examine import found_alone, witness
from specs.verdicts.tally import Examination, Found, Tally
from specs.verdicts.verdict import Verdict

ALONE_ROWS = 300_000
"""Up to so many rows the engine `arrow` judges in its own process: to start others takes longer."""
SCATTERED_ROWS = 1 << 20
"""About how many rows of the files a task brings together with others."""
Picked = dict[int, list[pa.Table]]
"""What was picked, by the number of what it is wanted for."""
EvidenceKey = tuple[bool, str, int, tuple[int, ...]]
"""By which a violation is the witness: certain ones first, then the run, the last event, and all events."""


def judge(history: History, profile: Profile, options: Mapping[str, Any] | None = None) -> Verdict:
    """Judge a stored history on Spark.

    options: floor, require_exercised and clauses as for the Python engine; findings, a folder to which all findings
    are written as Parquet; master, the Spark master (local by default); memory, see `open_session`; session, a
    SparkSession to use; scratch, a folder that all of Spark's workers can write. Workers of another master than a local
    one read the history by Spark, with shuffles, unless there is such a folder: then by path, without. Raises
    HistoryError for a history that can't be read, UsageError where there is no Java, TargetMisbehaved where Spark does
    not start.
    """
    options = options or {}
    for path in history.parquet:
        check_parquet(path)
    session = options.get("session") or open_session(
        options.get("master"), memory=options.get("memory")
    )
    by_uri = bool(history.uri) and not history.parquet
    if by_uri or (not is_local(session) and not options.get("scratch")):
        return _judged_elsewhere(history, profile, options, session)
    return _judged(history, profile, options, OnSpark(session))


def _judged_elsewhere(
    history: History, profile: Profile, options: Mapping[str, Any], session: Any
) -> Verdict:
    """On workers that may be on other machines: by Spark's own file systems and shuffles."""
    from spark_checkers.frames import JudgedRows, conform, read_rows

    ship(session)
    if history.parquet:
        frame = read_rows(session, *(str(path) for path in history.parquet))
    elif history.uri:
        frame = read_rows(session, f"{history.uri.rstrip('/')}/history/*.parquet")
    else:
        frame = session.createDataFrame(rows_to_table(history.loaded))
    chosen = chosen_by(options)
    judged = JudgedRows(
        conform(frame),
        history.info,
        profile,
        tuple(all_clauses() if chosen is None else chosen),
        int(options.get("floor", 1)),
        asked=chosen is not None,
        why_cut=tuple(history.why_cut),
        require_exercised=bool(options.get("require_exercised", False)),
    )
    try:
        if options.get("findings"):
            judged.findings.write.mode("overwrite").parquet(str(options["findings"]))
        return judged.verdict
    except Exception as error:
        raise _told(error) from error


def judge_here(
    history: History, profile: Profile, options: Mapping[str, Any] | None = None
) -> Verdict:
    """The same on processes of this machine, without Java. options: likewise; tasks, how many at once."""
    options = options or {}
    rows = sum(check_parquet(path) for path in history.parquet)
    # The folder goes last: until they are ended, processes may write into it.
    with (
        Scratch("judging", options.get("scratch")) as folder,
        InProcesses(options.get("tasks"), alone=rows <= ALONE_ROWS) as jobs,
    ):
        return _judged(history, profile, {**options, "scratch": folder}, jobs)


def _judged(history: History, profile: Profile, options: Mapping[str, Any], jobs: Jobs) -> Verdict:
    chosen = chosen_by(options)
    examination = examine(
        history,
        jobs,
        chosen,
        findings=options.get("findings"),
        scratch=options.get("scratch"),
        told=None if chosen is not None else profile.spoken_of,
    )
    return concluded(examination, history.info, profile, options, {"engine": jobs.name})


def examine(
    history: History,
    jobs: Jobs,
    clauses: Sequence[Clause] | None = None,
    *,
    findings: Path | None = None,
    scratch: Path | None = None,
    told: Sequence[str] | None = None,
) -> Examination:
    """What a pass over the history finds, clause by clause.

    clauses: which to judge, by default all. findings: a folder for all findings, or for those of the clauses `told`;
    scratch: one that every task can write.
    """
    with Scratch("judging", scratch) as folder:
        try:
            examiner = _Examiner(history, jobs, Path(folder))
            examination = examiner.examine(all_clauses() if clauses is None else clauses)
            if findings is not None:
                examiner.keep_findings(findings, told)
            return examination
        except Exception as error:
            raise _told(error) from error


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
    best: EvidenceKey | None = None

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

    def take(self, findings: Findings | Balance) -> None:
        self.opportunities += sum(findings.opportunities.values())
        for run, seqs, certain, name in findings.violations:
            self.found.setdefault(name, Named()).take(run, seqs, certain)

    def merge(self, other: Sum) -> None:
        self.opportunities += other.opportunities
        for name, part in other.found.items():
            self.found.setdefault(name, Named()).merge(part)


@dataclass
class PassReport:
    """What one task found; the file in which its findings lie, if there are any; and what was picked, by its number."""

    sums: dict[str, Sum] = field(default_factory=dict)
    findings: str = ""
    picked: dict[int, list[Spill]] = field(default_factory=dict)

    def take(self, some: Iterable[Findings | Balance], folder: str) -> None:
        """Sum findings up, and write those of them that are violations."""
        batches = []
        for each in some:
            self.sums.setdefault(each.clause, Sum()).take(each)
            if each.violations:
                batches.append(to_batch([each]))
            del each  # it holds its rows, and the next one may be of others
        if batches:
            table = pa.Table.from_batches(batches)
            violations = table.filter(table.column("finding").is_valid())
            self.findings = str(Path(folder) / f"{uuid.uuid4().hex}.parquet")
            pq.write_table(violations.drop_columns("opportunities"), self.findings)


@dataclass(frozen=True)
class AtHome:
    """What is wanted together by a key that mostly lies in one queue. away: the hashes of the keys that do not."""

    wanted: Together
    away: Hashes


@dataclass(frozen=True)
class QueuePass:
    """The work of one task: judge whole queues, what is at home in them, and pick what is needed of them elsewhere."""

    queues: tuple[Together, ...]
    picks: tuple[Together, ...]
    at_home: tuple[AtHome, ...]
    runs: Runs
    scatter: Scatter
    long: Long | None = None

    @property
    def picking(self) -> tuple[Together, ...]:
        """What is wanted of the rows that are picked: none that is at home in its queue."""
        return (*self.picks, *(each.wanted for each in self.at_home))

    @property
    def judges(self) -> tuple[Judge, ...]:
        """All that judge, and all that pick."""
        return tuple(judge for each in (*self.queues, *self.picking) for judge in each.judges)

    @property
    def columns(self) -> list[str]:
        names = columns_of(self.judges, QUEUES)
        return names if self.long is None else list(dict.fromkeys([*names, *IN_PIECES[QUEUES]]))

    def work(self, tables: Iterable[pa.Table | Pieces]) -> PassReport:
        """tables: of whole queues, and the pieces of long ones."""
        report = PassReport()
        picked: Picked = {}
        report.take(self._found(tables, picked, report), self.scatter.scratch)
        self._put_away(picked, report)
        return report

    def _put_away(self, picked: Picked, report: PassReport) -> None:
        for index, tables_of in sorted(picked.items()):
            rows = pa.concat_tables(tables_of).unify_dictionaries()
            where = np.arange(rows.num_rows)
            spill = self.scatter.write(self.picking[index], rows, where)
            report.picked.setdefault(index, []).append(spill)
        picked.clear()

    def _found(
        self, tables: Iterable[pa.Table | Pieces], picked: Picked, report: PassReport
    ) -> Iterable[Findings | Balance]:
        for table in tables:
            if isinstance(table, Pieces):
                yield from self._judge_pieces(table, picked, report)
                continue
            yield from self._judge(table, picked)
            gc.collect(1)  # rows and what is derived of them know each other, and are large

    def _levels(self) -> list[frozenset[str]]:
        return sorted({levels_of((judge,)) for judge in self.judges}, key=sorted)

    def _rows_of(self, table: pa.Table, levels: frozenset[str]) -> tuple[Rows, pa.Table]:
        """What the clauses that look at these levels need: of queues, and of none."""
        has_queue = np.asarray(table.column("queue_id").is_valid())
        needed = relevant(table, [judge for judge in self.judges if levels_of((judge,)) == levels])
        return Rows(kept(table, needed & has_queue), self.runs), kept(table, needed & ~has_queue)

    def _judge(self, table: pa.Table, picked: Picked) -> Iterable[Findings]:
        for levels in self._levels():
            rows, lost = self._rows_of(table, levels)
            yield from self._of_queues(rows, levels)
            for index, wanted in enumerate(self.picking):
                if levels_of(wanted.judges) != levels:
                    continue
                where = positions(relevant(rows.table, wanted.judges))
                if index >= len(self.picks) and rows.size:
                    home = self.at_home[index - len(self.picks)]
                    away = without_home(rows, wanted, home.away)
                    yield from judge_rows(rows.without(away), wanted.judges)
                    where = where[away[where]]
                elif wanted.judges[0].pick is not None and rows.size:
                    where = wanted.judges[0].pick(rows)
                some = _picked(wanted, rows.table, where, lost)
                if some.num_rows:
                    picked.setdefault(index, []).append(some)

    def _of_queues(self, rows: Rows, levels: frozenset[str]) -> Iterable[Findings]:
        if rows.size:
            for each in self.queues:
                if levels_of(each.judges) == levels:
                    yield from judge_rows(rows, each.judges)

    def _judge_pieces(
        self, pieces: Pieces, picked: Picked, report: PassReport
    ) -> Iterable[Balance]:
        """Of a long queue: no key is taken for at home in it, so that none has to be whole."""
        balances = Balances()
        known: dict[int, set[int]] = {}
        for piece in pieces.beside_what_matters():
            for levels in self._levels():
                for sign, table in ((1, piece.both), (-1, piece.carried)):
                    rows, _ = self._rows_of(table, levels)
                    balances.add(self._of_queues(rows, levels), sign)
                    if sign > 0 and rows.size:
                        own = piece.are_own(rows.begin)
                        self._pick_of_piece(rows, own, levels, picked, known)
                    del rows
                    gc.collect(1)
            self._put_away(picked, report)
        yield from balances

    def _pick_of_piece(
        self,
        rows: Rows,
        own: Mask,
        levels: frozenset[str],
        picked: Picked,
        known: dict[int, set[int]],
    ) -> None:
        """own: which rows are the piece's own. known: the seqs of what was picked before of rows that are carried."""
        for index, wanted in enumerate(self.picking):
            if levels_of(wanted.judges) != levels:
                continue
            if wanted.judges[0].pick is None:
                where = positions(relevant(rows.table, wanted.judges) & own)
            else:
                where = picked_anew(wanted.judges[0], rows, known.setdefault(index, set()))
            some = _picked(wanted, rows.table, where, rows.table.slice(0, 0))
            if some.num_rows:
                picked.setdefault(index, []).append(some)


def _picked(wanted: Together, table: pa.Table, where: Ints, lost: pa.Table) -> pa.Table:
    """The rows at these positions, and what is needed of those of no queue."""
    others = positions(relevant(lost, wanted.judges))
    names = [name for name in wanted.columns if name != SOURCE]
    some = pa.concat_tables(
        each.select(names).take(pa.array(at)) for each, at in ((table, where), (lost, others))
    )
    if SOURCE in wanted.columns:
        some = with_source(some)
    for name in wanted.grouping.must_have:
        if some.column(name).null_count:
            some = some.filter(some.column(name).is_valid())
    return plain(some)


def _together(judges: Iterable[Judge]) -> list[Together]:
    return [Together(*each) for each in grouped(judges)]


class _Examiner:
    """One examination: its files, who does its tasks, its scratch folder."""

    def __init__(self, history: History, jobs: Jobs, folder: Path) -> None:
        self.history = history
        self.jobs = jobs
        self.folder = folder
        self.paths = [
            in_our_schema(path, folder / f"history-{number:05d}.parquet")
            for number, path in enumerate(history.parquet)
        ] or [self._written()]
        self.groups, self.sizes = row_groups(self.paths)
        self.sums: dict[str, Sum] = {}
        self.findings: list[str] = []

    def _written(self) -> Path:
        """A small history that lies in memory, as a file."""
        path = self.folder / "rows.parquet"
        pq.write_table(rows_to_table(self.history.loaded), path)
        return path

    def examine(self, clauses: Sequence[Clause]) -> Examination:
        chosen = {clause.id for clause in clauses}
        judges = [judge for judge in applicable(self.history.info) if judge.id in chosen]
        homely = [each for each in _together(judges) if each.grouping in AT_HOME]
        seen = facts.look(self.jobs, self.paths, self.history.info, self.folder, homely)
        # What has too many keys in several queues is not judged with them.
        keys = zip(homely, seen.away, strict=True)
        at_home = tuple(AtHome(each, away) for each, away in keys if len(away) <= MOST_KEYS)
        mattering = [
            judge
            for judge in judges
            if judge.grouping in AT_HOME or judge.clause.may_matter(seen.kinds)
        ]
        self._judge(seen.runs, _together(mattering), at_home)
        tallies = tallies_of(
            clauses, self.history.info, self.sums, seen, partial(fetch, self.paths)
        )
        return Examination(tallies, seen.run_facts, list(self.history.why_cut))

    def keep_findings(self, folder: Path, told: Sequence[str] | None) -> None:
        """Move what the tasks found to where it is wanted, in an order that does not change; a table even if empty.

        told: the clauses of which it is kept; None for all.
        """
        folder.mkdir(parents=True, exist_ok=True)
        tables = [pq.read_table(path) for path in self.findings]
        schema = FINDINGS_ARROW.remove(FINDINGS_ARROW.get_field_index("opportunities"))
        found = pa.concat_tables(tables) if tables else schema.empty_table()
        if told is not None:
            found = found.filter(pc.is_in(found.column("clause"), pa.array(told, pa.string())))
        order = [("clause", "ascending"), ("run", "ascending"), ("at_us", "ascending")]
        pq.write_table(found.sort_by(order), folder / "findings.parquet")

    # ---- the passes

    def _judge(self, runs: Runs, wanted: Sequence[Together], at_home: tuple[AtHome, ...]) -> None:
        queues = tuple(each for each in wanted if each.grouping == QUEUES)
        homely = [each.wanted for each in at_home]
        picks = tuple(each for each in wanted if each not in (*queues, *homely))
        buckets = 1 + sum(self.sizes) // scatter.BUCKET_ROWS
        scatter_to = Scatter(buckets, str(self.folder))
        work = QueuePass(queues, picks, at_home, runs, scatter_to, self._long(runs))
        done = self._by_queue(work) if work.judges else []
        self._take(done)
        tasks = [
            (each, mine, cut)
            for index, each in enumerate(work.picking)
            for mine in [tuple(one for some in done for one in some.picked.get(index, ()))]
            for cut in shared_out(mine, self.jobs.tasks)
        ]
        # A client's rows are those of many queues, none of which has to be long.
        long = Long(LONG_ROWS, PIECE_ROWS, str(self.folder), runs)
        work_of = partial(_judge_buckets, tasks=tasks, long=long)
        self._take(self.jobs.each(work_of, len(tasks)))

    def _long(self, runs: Runs) -> Long | None:
        """How queues are judged that are too long to be held whole, if there may be any."""
        may_be = sum(self.sizes) > LONG_ROWS
        if may_be and is_by_queue(self.paths):
            may_be = has_long_key(self.groups, self.sizes, LONG_ROWS)
        return Long(LONG_ROWS, PIECE_ROWS, str(self.folder), runs) if may_be else None

    def _by_queue(self, work: QueuePass) -> list[PassReport]:
        """Go through the queues, where they lie or after they were brought together."""
        if is_by_queue(self.paths):
            cut = parts(self.sizes, self.jobs.tasks)
            judge_part = partial(_judge_part, groups=self.groups, cut=cut, work=work)
            return self.jobs.each(judge_part, len(cut))
        cut = self._cut()
        writing = partial(
            work.scatter.queues,
            judges=work.judges,
            columns=work.columns,
            groups=self.groups,
            cut=cut,
        )
        spills = self.jobs.each(writing, len(cut))
        cuts = shared_out(spills, self.jobs.tasks)
        judge_queues = partial(_judge_queues, spills=spills, cuts=cuts, work=work)
        return self.jobs.each(judge_queues, len(cuts))

    def _cut(self) -> list[Part]:
        """The parts of the files, as small as fits what is held of them whole."""
        return parts(self.sizes, max(self.jobs.tasks, sum(self.sizes) // SCATTERED_ROWS))

    def _take(self, done: Iterable[PassReport]) -> None:
        for report in done:
            for clause, found in report.sums.items():
                self.sums.setdefault(clause, Sum()).merge(found)
            if report.findings:
                self.findings.append(report.findings)


def tallies_of(
    clauses: Sequence[Clause],
    info: RunInfo,
    sums: Mapping[str, Sum],
    seen: Facts,
    rows_of: Callable[[set[tuple[str, int]]], Mapping[tuple[str, int], Row]],
) -> dict[str, Tally]:
    """What was found of each clause, with its witnesses. rows_of: fetches the rows of these runs and seq_begin."""
    known = told_of(info)
    told = seen.kinds if known is None else known
    tallies: dict[str, Tally] = {}
    best: list[tuple[Clause, str, EvidenceKey]] = []
    for clause in clauses:
        tallies[clause.id] = tally = Tally()
        if clause.unmet(info) is not None:
            continue
        if missing := clause.missing(told):
            tally.missing = tuple(sorted(missing))
            continue
        total = sums.get(clause.id, Sum())
        tally.opportunities = total.opportunities
        for name, part in sorted(total.found.items()):
            tally.found[name] = Found(part.violations, part.possible)
            if part.best is not None:
                best.append((clause, name, part.best))
        if known is None and tally.violations:
            tally.assumed = tuple(sorted(clause.excuses_in(info) - told))
    rows = rows_of({(key[1], seq) for _, _, key in best for seq in key[3]})
    for clause, name, (possible, run, _last, seqs) in best:
        found = tallies[clause.id].found[name]
        evidence = tuple(rows[run, seq] for seq in seqs)
        found.witness, found.explanation = witness_of(
            clause, evidence, info, name, certain=not possible
        )
        found.certain = not possible
    return tallies


def _judge_part(
    number: int, *, groups: Sequence[Group], cut: Sequence[Part], work: QueuePass
) -> PassReport:
    names = [name for name in work.columns if name != SOURCE]
    return work.work(part_tables(groups, cut[number], names, work.long))


def _judge_queues(
    number: int, *, spills: Sequence[Spill], cuts: Sequence[range], work: QueuePass
) -> PassReport:
    batches = keys_in_order(spills, cuts[number], QUEUES, work.long)
    return work.work(whole_or_long(batches, QUEUES.columns, work.long))


def _judge_buckets(
    number: int, *, tasks: Sequence[tuple[Together, tuple[Spill, ...], range]], long: Long
) -> PassReport:
    (wanted, spills, buckets), report = tasks[number], PassReport()
    may_be_long = long if wanted.grouping in IN_PIECES else None
    batches = keys_in_order(spills, buckets, wanted.grouping, may_be_long)
    found = judge_sorted(batches, wanted.judges, wanted.grouping, long.runs, may_be_long)
    report.take(itertools.chain.from_iterable(found), long.folder)
    return report


def fetch(paths: Sequence[Path], wanted: set[tuple[str, int]]) -> dict[tuple[str, int], Row]:
    """The rows of these runs with these seq_begin."""
    seqs = np.asarray(sorted({seq for _, seq in wanted}), np.int64)
    found: dict[tuple[str, int], Row] = {}
    for path, group in row_groups(paths)[0] if wanted else ():
        reader = pq.ParquetFile(path)
        low, high = facts.seq_range(path, group)
        if high < seqs[0] or low > seqs[-1]:
            continue
        here = np.isin(reader.read_row_group(group, columns=["seq_begin"]).column(0), seqs)
        if here.any():
            table = reader.read_row_group(group, columns=list(NAMES)).filter(pa.array(here))
            for row in rows_of_table(keep(table, "run", {run for run, _ in wanted})):
                found[row.run, row.seq_begin] = row
    return found


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
