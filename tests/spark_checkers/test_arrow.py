"""The engine `arrow`: the Python engine's verdict, from processes, from buckets, and without one task for a group."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from recorded import recorded

from conformance import run as runs
from conformance.cli import seam
from spark_checkers import engine, facts, hash_files, homes, ordered, scatter
from spark_checkers.catalogue import all_judges
from spark_checkers.generate import generate
from spark_checkers.hashing import of_texts
from spark_checkers.homes import without_low
from spark_checkers.jobs import InProcesses
from spark_checkers.ordered import read_group, row_groups
from spark_checkers.scatter import Together, key_hashes
from spark_checkers.trace_mutants import DEFECTS, plant, spread
from specs import profiles
from specs.clauses.catalogue import all_clauses
from specs.facts.groupings import GROUPINGS
from specs.facts.together import with_source
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.history.store import open_history, rows_to_table, write_history
from specs.history.text import parse_history
from specs.verdicts import engine as python_engine
from specs.verdicts.examine import examine
from specs.vocabulary import Key, Kind


def planted(name: str) -> tuple[RunInfo, list[Row]]:
    mutant = DEFECTS[name]
    info, rows = recorded(*mutant.consumed, tagged=mutant.tagged)
    return mutant.under(info), list(plant(mutant, spread(rows), info, seed=1).rows)


def test_the_verdict_of_several_processes_is_that_of_the_python_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "ALONE_ROWS", 0)
    info, rows = planted("second-owner")
    history = write_history(tmp_path / "h", info, rows)
    profile = profiles.load("reference")
    found = engine.judge_here(history, profile, {"tasks": 2}).to_json()
    expected = python_engine.judge(history, profile).to_json()
    assert found.pop("tool") == {"engine": "arrow"}
    expected.pop("tool")
    assert found == expected
    assert found["verdict"] == "refuted"


@pytest.mark.parametrize(
    "defect",
    [
        "held-back",
        "called-late",
        "starved-lane",
        "orphan-forgotten",
        "lost-dead-letter",
        "dead-letters-reversed",
        "dead-letter-twice",
        "key-strays",
        "producers-disagree",
        "read-in-another-queue",
    ],
)
def test_what_lies_across_queues_is_found_whatever_the_buckets(
    tmp_path: Path, here: InProcesses, monkeypatch: pytest.MonkeyPatch, defect: str
) -> None:
    """These look at more than one queue: their rows come from many files' buckets."""
    info, rows = planted(defect)
    history = write_history(tmp_path / "h", info, rows)
    monkeypatch.setattr(scatter, "BUCKET_ROWS", 50)
    monkeypatch.setattr(scatter, "JUDGED_ROWS", 60)
    monkeypatch.setattr(scatter, "BATCH_ROWS", 7)
    found = engine.examine(history, here)
    assert found == examine(rows, info)
    assert found.tallies[DEFECTS[defect].clause or ""].found


@given(
    counts=st.lists(st.sampled_from((0, 1, 2, 3, 9)), min_size=1, max_size=12),
    at_least=st.integers(1, 12),
    data=st.data(),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_buckets_are_read_as_they_were_written(
    tmp_path: Path, counts: list[int], at_least: int, data: st.DataObject
) -> None:
    """Small ones lie in one batch: a hundred thousand batches of two rows took gigabytes to read."""
    bucket = np.repeat(np.arange(len(counts)), counts)
    where = np.asarray(data.draw(st.permutations(range(len(bucket)))), np.int64)
    table = pa.table({"bucket": bucket, "at": np.arange(len(bucket))})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scatter, "BATCH_ROWS", at_least)
        spill = scatter.spilled(table, where, bucket[where], len(counts), str(tmp_path))
    assert all(rows >= at_least for rows in spill.batches[:-1])
    start, stop = sorted(data.draw(st.tuples(*[st.integers(0, len(counts))] * 2)))
    found = spill.read(range(start, stop))
    wanted = [at for of in range(start, stop) for at in where.tolist() if bucket[at] == of]
    assert ([] if found is None else found.column("at").to_pylist()) == wanted


def test_keys_of_which_too_many_lie_in_several_queues_are_brought_together(
    tmp_path: Path, here: InProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    info, rows = planted("key-strays")
    monkeypatch.setattr(engine, "MOST_KEYS", -1)
    assert engine.examine(write_history(tmp_path / "h", info, rows), here) == examine(rows, info)


def test_a_key_lies_at_home_until_it_is_seen_in_another_queue(
    tmp_path: Path, here: InProcesses
) -> None:
    """Of three messages one is seen in two queues, and one in none."""
    text = """
        0ms..1ms  shop   sends     orders/b0/0           offset=0 id=m0 ok
        1ms..2ms  shop   sends     orders/b0/0           offset=1 id=m1 ok
        2ms..3ms  shop   sends     -                     id=m2 unknown
        3ms..4ms  alice  delivers  billing/orders/b0/0   offset=0 id=m0 success
        5ms..6ms  alice  delivers  billing/orders/b0/1   offset=1 id=m1 success
    """
    info, rows = parse_history(text)
    assert sorted(names_away(tmp_path, here, info, rows)) == ["m1", "m2"]


def test_keys_in_one_of_too_many_queues_count_as_lying_in_several(
    tmp_path: Path, here: InProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the first queue that is met gets a number."""
    monkeypatch.setattr(homes, "MOST_QUEUES", 3)
    text = """
        0ms..1ms  shop  sends  orders/b0/0  offset=0 id=m0 ok
        1ms..2ms  shop  sends  orders/b0/1  offset=0 id=m1 ok
        2ms..3ms  shop  sends  orders/b0/2  offset=0 id=m2 ok
    """
    info, rows = parse_history(text)
    assert sorted(names_away(tmp_path, here, info, rows)) == ["m1", "m2"]


def names_away(
    tmp_path: Path, here: InProcesses, info: RunInfo, rows: Sequence[Row]
) -> Sequence[str]:
    """The ids of the messages that do not lie in one queue."""
    paths = write_history(tmp_path / "h", info, rows).parquet
    messages = Together(GROUPINGS[Key.MESSAGE], tuple(t for t in all_judges() if t.id == "SND-2"))
    (away,) = facts.look(here, paths, info, tmp_path, [messages]).away
    groups, _sizes = row_groups(paths)
    table = with_source(read_group(*groups[0], ["run", "message_id", "origin_id"]))
    hashes = without_low(key_hashes(table, messages.grouping.columns)).tolist()
    named = zip(table.column("message_id").to_pylist(), hashes, strict=True)
    return list({name for name, key in named if key in away})


def test_a_history_without_rows_is_judged(tmp_path: Path, here: InProcesses) -> None:
    info, _rows = planted("key-strays")
    assert engine.examine(write_history(tmp_path / "h", info, []), here) == examine([], info)


def test_sends_told_twice_are_found_wherever_they_and_their_hashes_lie(
    tmp_path: Path, here: InProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each in a part of its own, and the hashes looked through three at a time."""
    info, rows = parse_history(
        "\n".join(
            f"{at}ms..{at + 1}ms shop sends orders/b0/0 offset={at} id=m{at} ok" for at in range(20)
        )
    )
    again = [row._replace(seq_begin=100 + at, seq_end=100 + at) for at, row in enumerate(rows[::6])]
    rows += [row._replace(started_us=90_000 + row.seq_begin, ended_us=None) for row in again]
    monkeypatch.setattr(hash_files, "RANGE_HASHES", 3)
    monkeypatch.setattr(ordered, "PART_ROWS", 5)
    history = write_history(tmp_path / "h", info, rows)
    pq.write_table(rows_to_table(rows), history.parquet[0], row_group_size=5)
    found = engine.examine(history, here)
    assert found.facts.broken == examine(rows, info).facts.broken
    assert len(found.facts.broken) == 4


def test_windows_of_seq_hold_as_many_rows_each(
    tmp_path: Path, here: InProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though a history is read in its end: as many rows lie in that moment as in the hours before."""
    generate(tmp_path / "h", 20_000, 3, queues=1)
    monkeypatch.setattr(facts, "WINDOW_ROWS", 2_000)
    looked_at: list[int] = []
    look_at_rows = facts.look_at_rows
    monkeypatch.setattr(
        facts,
        "look_at_rows",
        lambda table: looked_at.append(table.num_rows) or look_at_rows(table),
    )
    history = open_history(tmp_path / "h")
    facts.look(here, history.parquet, history.info, tmp_path)
    assert len(looked_at) > 5
    assert max(looked_at) < 3_000


STUCK = """
import os, signal, sys, time
from functools import partial
from pathlib import Path
from spark_checkers.jobs import InProcesses

def work(number, folder):
    Path(folder, str(os.getpid())).touch()
    time.sleep(600)

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with InProcesses(2) as jobs:
        jobs.each(partial(work, folder=sys.argv[1]), 2)
"""


def test_whoever_is_ended_waits_for_no_task(tmp_path: Path) -> None:
    """One lane of a long history may take its process an hour."""
    script, begun = tmp_path / "stuck.py", tmp_path / "begun"
    script.write_text(STUCK, encoding="utf-8")
    begun.mkdir()
    with subprocess.Popen([sys.executable, str(script), str(begun)]) as asked:
        try:
            until = time.monotonic() + 60
            while len(workers := [int(path.name) for path in begun.iterdir()]) < 2:
                assert time.monotonic() < until
                time.sleep(0.1)
            asked.terminate()
            assert asked.wait(timeout=60) == 143
        finally:
            asked.kill()
    assert not [pid for pid in workers if psutil.pid_exists(pid)]


GROW = {Kind.SEND, Kind.DELIVER, Kind.PULL, Kind.COMMIT, Kind.READ}
"""There are the more of them the more messages there are."""


def test_no_group_and_no_run_brings_what_grows_with_the_messages_into_one_task() -> None:
    for judge in all_judges():
        if set(judge.grouping.columns) <= {"run", "group"} and judge.pick is None:
            assert not GROW & judge.kinds.difference(judge.only), judge.id


def test_texts_with_wide_offsets_hash_alike() -> None:
    """Others write them; a hash that differs brings a key's rows to two buckets."""
    words = ["a", None, "alice", ""]
    plain, wide = pa.array(words, pa.string()), pa.array(words, pa.large_string())
    assert of_texts(wide).tolist() == of_texts(plain).tolist()


def test_files_of_several_writers_are_judged_together(tmp_path: Path, here: InProcesses) -> None:
    """One wrote dictionaries, another plain texts with wide offsets."""
    info, rows = planted("second-owner")
    history = write_history(tmp_path / "h", info, rows)
    (path,) = history.parquet
    table = rows_to_table(rows)
    fields = [
        field
        if pa.types.is_integer(field.type)
        else pa.field(field.name, pa.large_string(), field.nullable)
        for field in table.schema
    ]
    half = table.num_rows // 2
    pq.write_table(table.slice(0, half), path)
    wide = table.slice(half).cast(pa.schema(fields, table.schema.metadata))
    pq.write_table(wide, path.with_name("part-1.parquet"))
    both = SimpleNamespace(
        parquet=(path, path.with_name("part-1.parquet")), loaded=(), why_cut=(), info=info
    )
    history_of_two: Any = both
    assert engine.examine(history_of_two, here) == examine(rows, info)


def test_every_finding_is_written(tmp_path: Path, here: InProcesses) -> None:
    info, rows = planted("second-owner")
    history = write_history(tmp_path / "h", info, rows)
    found = engine.examine(history, here, findings=tmp_path / "all")
    table = pq.read_table(tmp_path / "all" / "findings.parquet")
    counts = {
        clause: tally.violations + sum(each.possible for each in tally.found.values())
        for clause, tally in found.tallies.items()
        if tally.found
    }
    assert {
        row["values"]: row["counts"] for row in table["clause"].value_counts().to_pylist()
    } == counts
    assert set(table["topic"].to_pylist()) == {"orders"}
    assert all(row["at_us"] >= 0 and row["seqs"] for row in table.to_pylist())


def test_clauses_that_are_asked_for_are_judged_alone(tmp_path: Path, here: InProcesses) -> None:
    info, rows = planted("second-owner")
    history = write_history(tmp_path / "h", info, rows)
    whole = engine.examine(history, here, findings=tmp_path / "all")
    (asked,) = (clause for clause in all_clauses() if clause.id == "ORD-2")
    found = engine.examine(history, here, (asked,), findings=tmp_path / "asked")
    assert found.tallies == {"ORD-2": whole.tallies["ORD-2"]}
    assert found.tallies["ORD-2"].opportunities
    clauses = [
        set(pq.read_table(tmp_path / name / "findings.parquet")["clause"].to_pylist())
        for name in ("all", "asked")
    ]
    assert clauses == [{"LSE-1"}, set()]


@pytest.mark.parametrize(
    ("events", "master", "expected"),
    [
        (1_000, None, "python"),
        (5_000_000, None, "arrow"),
        (100_000_000, None, "spark"),
        (1_000, "local[2]", "spark"),
    ],
)
def test_the_engine_suits_the_size(
    monkeypatch: pytest.MonkeyPatch, events: int, master: str | None, expected: str
) -> None:
    monkeypatch.setattr(seam, "rows_in", lambda _history: events)
    monkeypatch.setattr(runs, "engine_names", lambda: ("arrow", "python", "spark"))
    asked = seam.question(engine="auto", profile=None, clauses=(), master=master, floor=1)
    assert asked.engine_for(None) == expected  # type: ignore[arg-type]
