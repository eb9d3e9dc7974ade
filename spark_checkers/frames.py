"""A DataFrame of history rows, from whatever Spark reads, judged: DataFrames of findings, opportunities and verdicts.

    judged = judge(rows, run=info, profile="kafka-classic-java")
    judged.findings.write.parquet("s3a://bucket/findings")

Nothing but what is rare passes through the process that asks: rows about deaths, clocks and faults, sums, and the
evidence of one witness for each kind of finding. No file is written, and no `sparkContext` asked for but a local one's.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from pathlib import Path
from typing import Any

import pyarrow as pa

from spark_checkers import facts
from spark_checkers.catalogue import all_judges, applicable
from spark_checkers.engine import Named, Sum, tallies_of
from spark_checkers.facts import Facts, Report
from spark_checkers.keyed import by_key
from spark_checkers.session import on_workers, open_session, ship
from specs import profiles
from specs.clauses.catalogue import all_clauses, select
from specs.clauses.clause import Clause
from specs.clauses.context import CONTEXT_KINDS
from specs.clauses.rows import REQUEST_LEVELS
from specs.documents import from_json
from specs.errors import HistoryError, UsageError
from specs.facts.judges import grouped
from specs.facts.rows import KINDS, LEVELS, OUTCOMES
from specs.history import telling
from specs.history.arrow import near_name
from specs.history.columns import COLUMNS, NAMES
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.history.store import rows_of_table
from specs.profiles import Profile
from specs.verdicts.examine import MOST_REASONS
from specs.verdicts.tally import Examination
from specs.verdicts.verdict import Verdict, conclude
from specs.vocabulary import DLQ_PREFIX, Kind, Outcome

_SPARK_TYPES = {"string": ("string",), "int64": ("bigint", "int", "smallint", "tinyint")}
_REQUESTS = sorted(level.value for level in REQUEST_LEVELS)


def schema() -> Any:
    """The columns of a history as a Spark `StructType`; only the required ones may not be null."""
    from pyspark.sql import types as T

    kinds = {"string": T.StringType, "int64": T.LongType}
    return T.StructType(
        [T.StructField(each.name, kinds[each.type](), not each.required) for each in COLUMNS]
    )


def conform(rows: Any) -> Any:
    """A DataFrame with the columns of a history, in their order and types; others are left out.

    A column that may be null may be missing. Starts no job. Raises HistoryError, with one sentence, for what is no
    DataFrame, for a required column that is missing, for one of another type, and for a further one that has nearly the
    name of one that is missing: without an offset, say, hardly anything would be judged.
    """
    from pyspark.sql import functions as F

    if not hasattr(rows, "sparkSession"):
        raise HistoryError(f"history rows are a DataFrame of Spark, not {type(rows).__name__}")
    found = {field.name: field.dataType.simpleString() for field in rows.schema.fields}
    further = [name for name in found if name not in NAMES]
    lacking = [each.name for each in COLUMNS if each.required and each.name not in found]
    if lacking:
        raise HistoryError(
            f"the rows lack {', '.join(lacking)}, which every history row must have; they have {', '.join(found)}"
            f"{near_name(further, lacking)}"
        )
    if near := near_name(further, [name for name in NAMES if name not in found]):
        raise HistoryError(
            f"the rows have the unknown columns {', '.join(further)}{near} Rename it, or leave it out"
        )
    names = {"string": "string", "int64": "bigint"}
    columns = []
    for each in COLUMNS:
        given = found.get(each.name, "void")
        if given not in (*_SPARK_TYPES[each.type], "void"):
            raise HistoryError(
                f"the rows have {each.name} as {given}; it must be {names[each.type]}"
            )
        column = F.col(f"`{each.name}`") if each.name in found else F.lit(None)
        columns.append(column.cast(names[each.type]).alias(each.name))
    return rows.select(*columns)


def read_history(path: str, session: Any = None) -> tuple[Any, RunInfo]:
    """The rows and the description of a history's folder, on any file system that Spark reads (`s3a://`, `hdfs://`).

    Raises HistoryError for a folder without run.json, or with one that can't be read.
    """
    session = session or open_session()
    place = str(path).rstrip("/")
    try:
        (text,) = session.read.text(f"{place}/run.json", wholetext=True).toArrow()[0].to_pylist()
        info = RunInfo.from_json(from_json(text), f"{place}/run.json")
    except HistoryError:
        raise
    except Exception as error:  # whatever a file system, py4j or JSON says about a file
        reason = str(error).strip().splitlines()[0]
        raise HistoryError(f"{place}/run.json can't be read: {reason}") from error
    return conform(read_rows(session, f"{place}/history/*.parquet")), info


def read_rows(session: Any, *paths: str) -> Any:
    """Parquet files of history rows, by Spark. Raises HistoryError, with one sentence, where they can't be read."""
    try:
        # Some may lack columns that may be null.
        return session.read.option("mergeSchema", True).parquet(*paths)
    except Exception as error:  # whatever a file system, py4j or Spark Connect says about a place
        reason = str(error).strip().splitlines()[0]
        raise HistoryError(f"Spark can't read {paths[0]}: {reason}") from error


def write_history(rows: Any, path: str, run: RunInfo) -> None:
    """Write rows and description as a history's folder, by seq, on any file system that Spark writes.

    `inorder check` reads it as any other. Raises HistoryError as `conform` does.
    """
    session = rows.sparkSession
    place = str(path).rstrip("/")
    sorted_rows = conform(rows).repartitionByRange("run", "seq_begin")
    sorted_rows = sorted_rows.sortWithinPartitions("run", "seq_begin")
    text = json.dumps(run.to_json(), sort_keys=True)
    described = session.createDataFrame([(text,)], "value string").coalesce(1)
    try:
        sorted_rows.write.parquet(f"{place}/history")
        described.write.text(f"{place}/run.json")
    except Exception as error:
        if "PATH_ALREADY_EXISTS" in str(error):
            raise HistoryError(f"{place} holds a history already: give another folder") from error
        raise


def judge(
    rows: Any,
    *,
    run: RunInfo | None = None,
    profile: Profile | str | None = None,
    clauses: str | Sequence[str] = (),
    floor: int = 1,
    drop_duplicates: bool = False,
    session: Any = None,
) -> JudgedRows:
    """Judge history rows: a DataFrame in any order, or the path of a history's folder.

    run: what is known of the run; read from the folder where a path is given. profile: what was promised, by name or
    as it is; the run's own by default. clauses: judge these alone, or this one. floor: at stake less often, a clause is
    not exercised. drop_duplicates: rows that are there twice, alike in every column, count once; otherwise the verdict
    says that the history can't be trusted. Checks the schema and starts no job. Raises HistoryError for rows that are
    none of a history's, UsageError where nobody says what was promised.
    """
    if isinstance(rows, (str, Path)):
        rows, told = read_history(str(rows), session)
        run = run or told
    else:
        rows = conform(rows)
    if run is None:
        raise UsageError("nobody says what is known of the run: give run=RunInfo(...)")
    name = profile if profile is not None else run.profile
    if name is None and not clauses:
        raise UsageError("nobody says what was promised: give profile=NAME, or clauses=[ID, ...]")
    if isinstance(clauses, str):
        clauses = (clauses,)
    if clauses:
        claims = dict.fromkeys(clauses, profiles.Claim("claimed", "judge"))
        promised = Profile("no profile", "the clauses that were asked for", claims)
    else:
        promised = name if isinstance(name, Profile) else profiles.load(str(name))
    chosen = tuple(select(clauses)) if clauses else tuple(all_clauses())
    ship(rows.sparkSession)
    kept = rows.dropDuplicates() if drop_duplicates else rows
    return JudgedRows(kept, run, promised, chosen, floor, asked=bool(clauses))


@dataclass(frozen=True)
class JudgedRows:
    """What was found in a DataFrame of history rows. Each DataFrame is lazy, but for one look at the rare rows.

    What several of them use is worked out anew for each: `judged.found.persist()` keeps it.
    """

    rows: Any
    run: RunInfo
    profile: Profile
    clauses: tuple[Clause, ...]
    floor: int
    asked: bool = False
    why_cut: tuple[str, ...] = ()
    require_exercised: bool = False

    @cached_property
    def facts(self) -> Facts:
        """What judges must know of the whole, and whether it can be trusted: some small jobs, at the first use."""
        return look(self.rows, self.run)

    @cached_property
    def found(self) -> Any:
        """All that the judges say: violations, and how often each clause was at stake in some rows."""
        wanted = {clause.id for clause in self.clauses}
        judges = [judge for judge in applicable(self.run) if judge.id in wanted] or all_judges()[:1]
        parts = [by_key(self.rows, some, self.facts.runs) for _, some in grouped(judges)]
        return reduce(lambda one, other: one.unionByName(other), parts)

    @property
    def findings(self) -> Any:
        """Every violation, of the clauses that were asked for, or else of those that the profile speaks of."""
        from pyspark.sql import functions as F

        told = self.found.where("finding is not null").drop("opportunities")
        return told if self.asked else told.where(F.col("clause").isin(*self.profile.spoken_of))

    @property
    def evidence(self) -> Any:
        """The rows of every violation's evidence, each beside its clause, finding and seqs."""
        from pyspark.sql import functions as F

        shown = self.findings.select(
            "run", "clause", "finding", "seqs", F.explode("seqs").alias("seq_begin")
        )
        return shown.join(self.rows, ["run", "seq_begin"])

    @property
    def opportunities(self) -> Any:
        """How often each clause was at stake, by run."""
        from pyspark.sql import functions as F

        told = self.found.where("opportunities > 0").groupBy("run", "clause")
        return told.agg(F.sum("opportunities").alias("opportunities"))

    @cached_property
    def verdict(self) -> Verdict:
        """The verdict, the same as `inorder check` gives."""
        tallies = tallies_of(
            self.clauses, self.run, self._sums(), self.facts, partial(_fetch, self.rows)
        )
        return conclude(
            Examination(tallies, self.facts.run_facts, list(self.why_cut)),
            self.run,
            self.profile,
            floor=self.floor,
            require_exercised=self.require_exercised,
            clauses=self.clauses if self.asked else None,
            ours_too=self.asked,
            tool={"engine": "spark"},
        )

    @property
    def verdicts(self) -> Any:
        """One row for each clause: its verdict, how often it was at stake, its violations, and why it is no better;
        where the history can't be trusted, that is the reason of each."""
        distrust = self.verdict.distrust
        data = [
            (
                each.id,
                each.title,
                each.verdict.value,
                each.opportunities,
                each.violations,
                distrust or each.reason,
            )
            for each in self.verdict.clauses
        ]
        columns = (
            "clause string, title string, verdict string, opportunities bigint, violations bigint, "
            "reason string"
        )
        return self.rows.sparkSession.createDataFrame(data, columns)

    def _sums(self) -> dict[str, Sum]:
        from pyspark.sql import functions as F

        last = F.element_at("seqs", -1)
        key = F.struct(~F.col("certain"), F.col("run"), last, F.col("seqs"))
        sums: dict[str, Sum] = {}
        summed = self.found.groupBy("clause", "finding").agg(
            F.sum("opportunities").alias("opportunities"),
            F.count_if("certain").alias("violations"),
            F.count_if(~F.col("certain")).alias("possible"),
            F.min(key).alias("best"),
        )
        for row in summed.collect():
            total = sums.setdefault(row["clause"], Sum())
            total.opportunities += int(row["opportunities"])
            if row["finding"] is not None:
                possible, run, at, seqs = row["best"]
                named = Named(row["violations"], row["possible"], (possible, run, at, tuple(seqs)))
                total.found[row["finding"]] = named
        return sums


# ---------------------------------------------------------------- the first look


def look(rows: Any, info: RunInfo) -> Facts:
    """What all judges have to know, by small jobs. Raises HistoryError for rows that are none of a history's."""
    from pyspark.sql import functions as F

    report = Report()
    _look_at_words(rows, report)
    named = rows.where("broker_epoch is not null and broker is not null")
    for row in _collected(
        named.groupBy("run", "broker", "broker_epoch").agg(F.min("seq_begin").alias("seq"))
    ):
        report.epochs[row["run"], row["broker"], row["broker_epoch"]] = row["seq"]
    asked = F.col("level").isin(_REQUESTS)
    calls = rows.where(asked & (F.col("kind") == Kind.DELIVER.value))
    ends = rows.where(
        asked
        & (F.col("kind") == Kind.READ.value)
        & F.col("queue_offset").isNull()
        & F.col("message_id").isNull()
        & (F.col("outcome") == Outcome.OK.value)
    )
    for frame, where in ((calls, ("topic",)), (ends, ("topic", "broker", "queue_id"))):
        for row in _collected(frame.groupBy("run", *where).agg(F.max("seq_begin").alias("seq"))):
            report.looks[row["run"], tuple(row[name] for name in where)] = row["seq"]
    dead = F.col("topic").startswith(DLQ_PREFIX) & F.col("origin_id").isNotNull()
    copies = rows.where(asked & (F.col("kind") == Kind.READ.value) & dead)
    for row in _collected(copies.groupBy("run").agg(F.min("seq_begin").alias("seq"))):
        report.named_origins[row["run"]] = row["seq"]
    rare = sorted({kind.value for kind in CONTEXT_KINDS})
    sends, outcome = F.col("kind") == Kind.SEND.value, F.col("outcome")
    unsure = sends & (outcome == Outcome.UNKNOWN.value)
    astray = sends & F.col("queue_id").isNull() & F.col("queue_offset").isNull()
    astray &= ~outcome.isin(Outcome.UNKNOWN.value, Outcome.REFUSED.value)
    report.rare = [
        rows.where(F.col("kind").isin(rare) | unsure).toArrow(),
        rows.where(astray).dropDuplicates([*facts.ASTRAY]).toArrow(),
    ]
    _look_at_names(rows, report)
    windows = (
        rows.select(*facts.WINDOWED)
        .repartitionByRange("run", "seq_begin")
        .sortWithinPartitions("run", "seq_begin")
    )
    told = on_workers(windows, _look_at_windows, "report binary").toArrow().column(0)
    reports = [pickle.loads(data) for data in told.to_pylist()]
    return facts.sum_up([report, *reports], info, [*_sent_twice(rows), *_untold(rows)])


def _look_at_words(rows: Any, report: Report) -> None:
    """Counts, which kinds there are, and whether every word is one of the vocabulary's."""
    from pyspark.sql import functions as F

    required = [each.name for each in COLUMNS if each.required]
    told = rows.groupBy("run", "group", "kind", "level", "outcome").agg(
        F.count(F.lit(1)).alias("rows"),
        *(F.count_if(F.col(name).isNull()).alias(f"no_{name}") for name in required),
    )
    for row in _collected(told):
        lacking = next((name for name in required if row[f"no_{name}"]), None)
        if lacking is not None:
            raise HistoryError(f"a history holds a row without {lacking}")
        for word, known in (
            (row["kind"], KINDS),
            (row["level"], LEVELS),
            (row["outcome"], OUTCOMES),
        ):
            if word not in known:
                raise HistoryError(f"a history holds the unknown word {word!r}")
        report.rows += row["rows"]
        report.sends += row["rows"] * (row["kind"] == Kind.SEND.value)
        report.deliveries += row["rows"] * (row["kind"] == Kind.DELIVER.value)
        report.seen.add((row["run"], row["group"], row["kind"]))


def _collected(frame: Any) -> list[Mapping[str, Any]]:
    rows: list[Mapping[str, Any]] = frame.toArrow().to_pylist()
    return rows


def _look_at_windows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows by run and seq, a batch at a time, each beside the last row of the batch before."""
    last: pa.Table | None = None
    for batch in batches:
        if not batch.num_rows:
            continue
        table = pa.Table.from_batches([batch])
        report = facts.look_at_rows(table if last is None else pa.concat_tables([last, table]))
        last = table.slice(table.num_rows - 1)
        yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(report)])], names=["report"])


def _look_at_names(rows: Any, report: Report) -> None:
    """Which clients name incarnations in a group, and which is the first row of each that names none?"""
    from pyspark.sql import functions as F

    kinds = sorted(telling.OF_AN_INCARNATION)
    of_one = rows.where(F.col("kind").isin(kinds) & F.col("level").isin(_REQUESTS))
    named = F.col("incarnation").isNotNull()
    told = of_one.groupBy("run", "group", "client_id").agg(
        F.max(named).alias("named"), F.min(F.when(~named, F.col("seq_begin"))).alias("first")
    )
    for row in _collected(told):
        worker = row["run"], row["group"], row["client_id"]
        if row["named"]:
            report.naming.add(worker)
        if row["first"] is not None:
            report.nameless[worker] = row["first"]


def _untold(rows: Any) -> list[facts.Reason]:
    """Rows that lack what a row of their kind must tell."""
    from pyspark.sql import functions as F

    lacking = []
    for name, kinds in telling.MUST_TELL.items():
        lacks = F.col("kind").isin(sorted(kinds)) & F.col(name).isNull()
        for by, values in telling.MAY_LACK[name].items():
            lacks &= ~F.col(by).isin(sorted(values))
        lacking.append(F.when(lacks, F.lit(name)))
    first = (
        rows.where(F.coalesce(*lacking).isNotNull())
        .orderBy("run", "seq_begin")
        .limit(MOST_REASONS)
        .select(
            "run", "seq_begin", "kind", F.explode(F.array_compact(F.array(*lacking))).alias("name")
        )
    )
    return [
        facts.untold(row["run"], row["seq_begin"], row["kind"], row["name"])
        for row in _collected(first)
    ]


def _sent_twice(rows: Any) -> list[facts.Reason]:
    """Sends to one topic with one id and one attempt, but for the first of each."""
    from pyspark.sql import functions as F

    sends = rows.where(
        (F.col("kind") == Kind.SEND.value)
        & F.col("level").isin(_REQUESTS)
        & F.col("message_id").isNotNull()
    )
    seqs = F.sort_array(F.collect_list("seq_begin"))
    again = (
        sends.groupBy("run", "topic", "message_id", "attempt")
        .agg(seqs.alias("seqs"))
        .where("size(seqs) > 1")
        .select("run", "message_id", F.explode(F.slice("seqs", 2, F.size("seqs") - 1)).alias("seq"))
        .orderBy("run", "seq")
        .limit(MOST_REASONS)
    )
    return [
        (
            row["run"],
            row["seq"],
            3,
            f"message id {row['message_id']} was sent twice as the same attempt",
        )
        for row in _collected(again)
    ]


def _fetch(rows: Any, wanted: set[tuple[str, int]]) -> dict[tuple[str, int], Row]:
    """The rows of these runs with these seq_begin: they are few."""
    from pyspark.sql import functions as F

    if not wanted:
        return {}
    runs, seqs = ({each[index] for each in wanted} for index in (0, 1))
    found = rows.where(F.col("run").isin(sorted(runs)) & F.col("seq_begin").isin(sorted(seqs)))
    return {(row.run, row.seq_begin): row for row in rows_of_table(found.select(*NAMES).toArrow())}
