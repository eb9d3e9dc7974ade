"""`python -m spark_checkers.bench`: what a check costs, beside a plain scan of the same columns in the same session.

A history is generated (or given), checked once to warm up and then a few times; the shortest time counts. Memory
is that of this process, of the Java process and of the Python workers together, looked at ten times a second.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click
import psutil

from spark_checkers import engine
from spark_checkers.catalogue import applicable
from spark_checkers.generate import generate
from spark_checkers.in_sql import CLAUSES, InDuckDB
from spark_checkers.layout import sort_on_spark
from spark_checkers.ordered import is_by_queue, row_groups
from spark_checkers.session import DEFAULT_MEMORY, open_session
from spark_checkers.writing import BY_SEQ
from specs import profiles
from specs.errors import InorderError
from specs.facts.columns import MS
from specs.facts.together import needed
from specs.history.clock import host_clock
from specs.history.runinfo import write_runinfo
from specs.history.store import History, open_history
from specs.profiles import Profile
from specs.scratch import Scratch

MIB = 1 << 20
LOOK_EVERY_S = 0.1
"""Between two looks at the memory of all processes."""


@contextmanager
def watching(seen: list[int]) -> Iterator[None]:
    """Note the memory of this process and all that it started, in bytes, again and again while a block runs."""
    over = threading.Event()

    def watch() -> None:
        seen.append(_resident(psutil.Process()))
        while not over.wait(LOOK_EVERY_S):
            seen.append(_resident(psutil.Process()))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _resident(process: psutil.Process) -> int:
    total = 0
    for each in [process, *process.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):
            total += each.memory_info().rss
    return total


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the result. seconds: of the shortest run."""

    what: str
    events: int
    seconds: float
    peak_mib: int

    def line(self, scan: Figure) -> str:
        ratio = (self.seconds / self.events) / (scan.seconds / scan.events)
        speed = self.events / self.seconds
        return (
            f"{self.what:<34} {self.events:>11,} {self.seconds:>8.1f} s {speed:>12,.0f}/s "
            f"{self.peak_mib:>7,} MiB {ratio:>7.1f}"
        )


def measure(what: str, events: int, times: int, work: Callable[[], object]) -> Figure:
    """Do the work so many times; the shortest counts."""
    clock, took_us, seen = host_clock(), list[int](), list[int]()
    with watching(seen):
        for _ in range(times):
            begun_us = clock.monotonic_us()
            work()
            took_us.append(clock.monotonic_us() - begun_us)
    return Figure(what, events, min(took_us) / 1_000_000, max(seen) // MIB)


def scan(session: Any, history: History) -> None:
    """Read every column that the checkers use, and do nothing with it but hash it."""
    from pyspark.sql import functions as F

    columns = sorted(needed(applicable(history.info)))
    rows = session.read.parquet(*(str(path) for path in history.parquet)).select(*columns)
    rows.select(F.bit_xor(F.xxhash64(*columns))).collect()


def six_clauses(history: History, profile: Profile, rows: int, times: int) -> list[Figure]:
    """Each clause that there is in SQL alone, summed: by DuckDB, and with --engine arrow; on the same cores."""
    base = InDuckDB(
        history.parquet, history.info.config.broker_lease_ms * MS, len(os.sched_getaffinity(0))
    )

    def sums(what: str, judge: Callable[[str], object]) -> Figure:
        each = [measure(what, rows, times, partial(judge, clause)) for clause in CLAUSES]
        peak = max(figure.peak_mib for figure in each)
        return Figure(what, rows, sum(figure.seconds for figure in each), peak)

    return [
        sums("six clauses in SQL, by DuckDB", base.violations),
        sums(
            "the same six, --engine arrow",
            lambda clause: engine.judge_here(history, profile, {"clauses": [clause]}),
        ),
    ]


@click.command()
@click.option("--events", default=2_000_000, show_default=True, type=click.IntRange(10_000))
@click.option("--history", type=click.Path(path_type=Path), help="Measure this one instead.")
@click.option("--seed", default=7, show_default=True)
@click.option("--times", default=2, show_default=True, type=click.IntRange(1))
@click.option("--master", metavar="URL")
@click.option("--memory", default=DEFAULT_MEMORY, show_default=True, help="Of Spark's driver.")
@click.option(
    "--duckdb", "in_sql", is_flag=True, help="Measure six clauses in SQL as well, by DuckDB."
)
@click.option("--by-seq", "shuffled", is_flag=True, help="Measure it in the order of seq as well.")
def main(
    events: int,
    history: Path | None,
    seed: int,
    times: int,
    master: str | None,
    memory: str,
    in_sql: bool,
    shuffled: bool,
) -> None:
    """Time, events per second and peak memory of a check, beside a plain scan of the same columns."""
    profile = profiles.load("reference")
    with Scratch("bench") as scratch:
        click.echo(f"seed {seed}", err=True)
        if history is None:
            history = Path(scratch) / "big"
            generate(history, events, seed)
        big = open_history(history)
        rows, by_queue = sum(row_groups(big.parquet)[1]), is_by_queue(big.parquet)
        session = open_session(master, memory=memory)
        judge = partial(engine.judge, profile=profile, options={"session": session})
        click.echo(f"{rows:,} events; warming up", err=True)
        scan(session, big)
        verdict = judge(big)
        layout = "by queue" if by_queue else "by seq"
        works: dict[str, Callable[[], object]] = {
            "plain scan of the same columns": partial(scan, session, big),
            f"inorder check ({layout})": partial(judge, big),
            "the same with --engine arrow": partial(engine.judge_here, big, profile, {}),
        }
        figures = [measure(what, rows, times, work) for what, work in works.items()]
        if in_sql:
            figures += six_clauses(big, profile, rows, times)
        if shuffled and by_queue:
            by_seq = Path(scratch) / "seq"
            write_runinfo(by_seq, big.info)
            sort_on_spark(session, big.parquet, by_seq, rows, by=("run", "seq_begin"), order=BY_SEQ)
            work = partial(judge, open_history(by_seq))
            figures.append(measure("inorder check (by seq)", rows, 1, work))
    click.echo(f"{'':<34} {'events':>11} {'time':>10} {'events/s':>14} {'peak':>11} {'× scan':>7}")
    for figure in figures:
        click.echo(figure.line(figures[0]))
    click.echo(
        f"verdict: {verdict.verdict}; peak memory is this process, Java and the Python workers together"
    )


if __name__ == "__main__":
    try:
        main(standalone_mode=False)
    except InorderError as error:
        click.echo(f"bench: {error}", err=True)
        sys.exit(error.exit_code)
