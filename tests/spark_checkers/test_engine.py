"""The engine says what the Python engine says, about the run itself as well; its jobs are done in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from drawn import histories
from hypothesis import HealthCheck, given, settings
from recorded import recorded

from spark_checkers import engine
from spark_checkers.catalogue import applicable
from spark_checkers.layout import compact
from spark_checkers.trace_mutants import DEFECTS, plant, spread
from specs import profiles
from specs.clauses.catalogue import get
from specs.errors import HistoryError
from specs.history.columns import NAMES
from specs.history.row import Row, make_row
from specs.history.runinfo import RunInfo, write_runinfo
from specs.history.store import History, open_history, rows_to_table, write_history
from specs.history.text import parse_history, render_rows
from specs.verdicts.engine import judge as judge_in_python
from specs.verdicts.examine import examine
from specs.vocabulary import Kind, Level


@pytest.fixture
def stored(tmp_path: Path) -> Callable[[RunInfo, Sequence[Row]], History]:
    def store(info: RunInfo, rows: Sequence[Row]) -> History:
        return compact(write_history(tmp_path / "seq", info, rows), tmp_path / "queue")

    return store


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(histories())
def test_both_engines_say_the_same(
    tmp_path_factory: pytest.TempPathFactory, here: Any, history: tuple
) -> None:
    info, rows = history
    folder = tmp_path_factory.mktemp("drawn")
    as_recorded = write_history(folder / "seq", info, rows)
    expected = examine(rows, info)
    assert engine.examine(compact(as_recorded, folder / "queue"), here) == expected, render_rows(
        rows
    )
    assert engine.examine(as_recorded, here) == expected, render_rows(rows)


def test_messages_without_a_queue_are_judged_too(stored: Callable[..., History], here: Any) -> None:
    """A plain consumer log may know neither queue nor offset."""
    info, rows = parse_history(
        """
        0ms..1ms  shop   sends     orders/b0/0           offset=0 id=m0 key=k key_seq=0 ok
        1ms..2ms  shop   sends     -                     id=m1 key=k key_seq=1 unknown
        3ms..4ms  alice  delivers  billing/orders/b0/0   offset=0 id=m0 key=k key_seq=0 success
        5ms..6ms  alice  delivers  billing               id=m2 key=k key_seq=2 success
        7ms..8ms  alice  delivers  billing               id=m1 key=k key_seq=1 success
        9ms       alice  delivers  billing               id=m9 success
    """.replace("billing  ", "-        ")
    )
    rows = [
        row._replace(group="billing", topic="orders")
        if row.group is None and row.client_id == "alice"
        else row
        for row in rows
    ]
    found = engine.examine(stored(info, rows), here)
    assert found == examine(rows, info)
    assert {"SND-2", "ORD-12"} <= set(found.refuted())


@pytest.mark.parametrize("told", ["unknown", "ok", "refused"])
def test_a_send_that_names_no_queue_counts_in_each_of_its_topic(
    stored: Callable[..., History], here: Any, told: str
) -> None:
    info, rows = parse_history(f"""
        0ms..1ms    shop  sends     orders/b0/3          offset=6 id=m6 ok
        1ms..2ms    shop  sends     -                    topic=orders broker=b0 id=m7 {told}
        5ms..6ms    eve   acks      billing/orders/b0/3  offset=8 lease=r1 ok
        9s..9002ms  eve   witnesses billing/orders/b0/3  value=7 ok
    """)
    found = engine.examine(stored(info, rows), here)
    assert found == examine(rows, info)
    assert found.tallies["FLR-2"].violations == (told == "refused")


def test_a_key_that_moved_to_another_queue_is_followed(
    stored: Callable[..., History], here: Any
) -> None:
    info, rows = parse_history("""
        0ms..1ms  alice  delivers  billing/orders/b0/0   offset=0 id=m0 key=k key_seq=5 success
        2ms..3ms  bob    delivers  billing/orders/b0/1   offset=0 id=m1 key=k key_seq=6 success
        4ms..5ms  bob    delivers  billing/orders/b0/1   offset=1 id=m2 key=k key_seq=5 success
        6ms..7ms  alice  delivers  billing/orders/b0/0   offset=1 id=m3 key=j key_seq=9 success
        8ms..9ms  alice  delivers  billing/orders/b0/0   id=m4 key=j key_seq=8 success
    """)
    found = engine.examine(stored(info, rows), here)
    assert found == examine(rows, info)
    assert found.tallies["ORD-12"].violations == 1


def broken(how: str, rows: Iterable[Row]) -> list[Row]:
    """A recorded history that can't be trusted."""
    changed = list(rows)
    place = len(changed) // 2
    row = changed[place]
    match how:
        case "seq twice":
            changed[place] = row._replace(seq_begin=changed[place - 1].seq_begin)
        case "seq below 0":
            changed[0] = changed[0]._replace(seq_begin=-1)
        case "from 0":
            changed[0] = changed[0]._replace(seq_begin=0)
        case "two topics":
            sends = [each for each in changed if each.kind == "send"]
            index = changed.index(sends[-1])
            changed[index] = sends[-1]._replace(
                topic="paid", message_id=sends[0].message_id, attempt=sends[0].attempt
            )
        case "stored twice":
            sends = [each for each in changed if each.kind == "send"]
            index = changed.index(sends[-1])
            changed[index] = sends[-1]._replace(level=Level.STORE, message_id=sends[0].message_id)
        case "ends first":
            place = next(
                i
                for i, each in enumerate(changed)
                if each.ended_us is not None and each.started_us > 10
            )
            changed[place] = changed[place]._replace(ended_us=changed[place].started_us - 5)
        case "clock back":
            changed[place] = row._replace(
                started_us=changed[place - 1].started_us - 7, ended_us=None
            )
        case "sent twice":
            sends = [each for each in changed if each.kind == "send"]
            index = changed.index(sends[-1])
            changed[index] = sends[-1]._replace(
                message_id=sends[0].message_id, attempt=sends[0].attempt
            )
        case "by nobody":
            changed[place] = row._replace(kind=Kind.LOCK, client_id=None)
            changed[-1] = changed[-1]._replace(kind=Kind.DELIVER, client_id=None)
        case "untold":
            changed[place] = row._replace(kind=Kind.COMMIT, value=None)
            changed[-1] = changed[-1]._replace(kind=Kind.DEAD_LETTER, queue_offset=None)
        case "nameless":
            named = [i for i, each in enumerate(changed) if each.kind is Kind.DELIVER]
            for at in (named[-1], named[3]):
                changed[at] = changed[at]._replace(incarnation=None)
        case _:
            raise AssertionError(how)
    return changed


@pytest.mark.parametrize(
    "how",
    [
        *("seq twice", "seq below 0", "ends first", "clock back", "sent twice", "by nobody"),
        *("untold", "nameless"),
    ],
)
def test_why_a_history_cannot_be_trusted(
    stored: Callable[..., History], here: Any, how: str
) -> None:
    info, rows = recorded()
    changed = broken(how, rows)
    found = engine.examine(stored(info, changed), here)
    expected = examine(sorted(changed, key=lambda row: row.seq_begin), info)
    assert found.facts == expected.facts
    assert found.facts.broken


@pytest.mark.parametrize("how", ["stored twice", "two topics", "from 0"])
def test_what_looks_alike_and_can_be_trusted(
    stored: Callable[..., History], here: Any, how: str
) -> None:
    """A message seen at two levels, an id that two topics have, and rows numbered from 0."""
    info, rows = recorded()
    changed = broken(how, rows)
    assert engine.examine(stored(info, changed), here).facts.broken == []
    assert examine(changed, info).facts.broken == []


def test_faults_and_subscriptions(stored: Callable[..., History], here: Any) -> None:
    common = {"run": "r", "level": "client", "clock": "virtual", "started_us": 1, "ended_us": 1}
    rows = [
        make_row(
            seq_begin=1,
            seq_end=1,
            op_id=1,
            kind="join",
            group="g",
            client_id="a",
            view="*",
            outcome="ok",
            **common,
        ),
        make_row(
            seq_begin=2,
            seq_end=2,
            op_id=2,
            kind="join",
            group="g",
            client_id="b",
            view="x",
            outcome="ok",
            **common,
        ),
        make_row(
            seq_begin=3, seq_end=3, op_id=3, kind="fault", detail="cut", outcome="ok", **common
        ),
        make_row(seq_begin=4, seq_end=4, op_id=4, kind="fault", outcome="refused", **common),
    ]
    info = RunInfo("r")
    found = engine.examine(stored(info, rows), here)
    assert found == examine(rows, info)
    assert found.facts.faults == [("cut", True), ("fault", False)]
    assert found.facts.subscriptions_differ == ["g"]


def test_the_witness_is_the_same_and_is_explained(
    stored: Callable[..., History], here: Any
) -> None:
    info, rows = recorded()
    changed = plant(DEFECTS["commit-past-unfinished"], spread(rows), info, seed=4).rows
    found = engine.examine(stored(info, changed), here).tallies["CMT-1"]
    expected = examine(changed, info).tallies["CMT-1"]
    assert found == expected
    assert "past offset" in found.explanation


def test_a_cut_history_stays_cut(tmp_path: Path, here: Any) -> None:
    info, rows = recorded()
    history = write_history(tmp_path / "seq", info, rows, why_cut=("alice.0.jsonl has no end",))
    assert engine.examine(compact(history, tmp_path / "queue"), here).cut == [
        "alice.0.jsonl has no end"
    ]


def test_an_unknown_word_is_an_error(tmp_path: Path, here: Any) -> None:
    info, rows = recorded()
    strange = [rows[0]._replace(kind="teleport"), *rows[1:]]  # type: ignore[arg-type]
    history = write_history(tmp_path / "seq", info, strange)
    with pytest.raises(HistoryError, match="unknown word 'teleport'"):
        engine.examine(history, here)


def test_files_of_others_are_judged_as_ours(
    tmp_path: Path, here: Any, stored: Callable[..., History]
) -> None:
    """Several parts with the columns that there is something for, no footer of ours, and smaller numbers."""
    info, rows = recorded()
    table = rows_to_table(rows)
    used = [name for name in NAMES if table.column(name).null_count < table.num_rows]
    plain = pa.table(
        {
            name: table.column(name).cast(pa.string())
            if pa.types.is_dictionary(table.column(name).type)
            else table.column(name)
            for name in reversed(used)
        }
    )
    queue_id = plain.column("queue_id").cast(pa.int16())
    plain = plain.set_column(plain.column_names.index("queue_id"), "queue_id", queue_id)
    for number, start in enumerate(range(0, plain.num_rows, 1500)):
        pq.write_table(plain.slice(start, 1500), tmp_path / f"part-{number:05d}.parquet")
    write_runinfo(tmp_path, info)
    theirs = open_history(tmp_path)
    assert len(theirs.parquet) > 1
    expected = engine.examine(stored(info, rows), here)
    assert engine.examine(theirs, here) == expected
    assert engine.examine(compact(theirs, tmp_path / "by-queue"), here) == expected


def test_a_torn_file_is_an_error_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info, rows = recorded()
    history = write_history(tmp_path / "seq", info, rows)
    path = history.parquet[0]
    path.write_bytes(path.read_bytes()[:-100])
    monkeypatch.setattr(engine, "open_session", lambda *_, **__: pytest.fail("Spark was started"))
    with pytest.raises(HistoryError, match="torn or no Parquet file"):
        engine.judge(history, None)  # type: ignore[arg-type]


def test_evidence_that_does_not_stand_alone_is_shown_whole() -> None:
    info, rows = recorded()
    from specs.clauses.catalogue import get

    shown, text = engine.witness_of(
        get("CMT-4"), rows[:3], replace(info), "commit-went-back", certain=True
    )
    assert shown == rows[:3]
    assert "these events break the promise" in text


@pytest.mark.parametrize("status", ["claimed", "allowed"])
def test_single_clauses_are_judged_as_the_python_engine_does(
    tmp_path: Path, status: profiles.Status
) -> None:
    """The same verdict of those that were asked for, whatever their key, and of no other."""
    info, rows = parse_history(get("DLQ-1").shortest_violation)
    history = write_history(tmp_path, info, rows)
    chosen = ("LSE-1", "DLQ-1", "SND-2")
    claim = profiles.Claim(status, "a test", "" if status == "claimed" else "known")
    profile = profiles.Profile("p", "p", dict.fromkeys(chosen, claim))
    options = {"clauses": chosen}
    ours = engine.judge_here(history, profile, options)
    theirs = judge_in_python(history, profile, {"clauses": chosen})
    assert [each.to_json() for each in ours.clauses] == [each.to_json() for each in theirs.clauses]
    assert [each.id for each in ours.clauses] == ["LSE-1", "DLQ-1", "SND-2"]
    assert {each.id for each in ours.clauses if each.violations} == {"DLQ-1"}


def test_findings_are_of_clauses_that_the_verdict_judges() -> None:
    """Not of what nobody claims, nor of what lacks rows that somebody says are not recorded."""
    assert "LSE-3" not in profiles.load("kafka-java").spoken_of
    assert "LSE-3" in profiles.load("rocketmq-5-orderly").spoken_of
    some, more = (
        {judge.id for judge in applicable(RunInfo("r", records={"client": kinds}))}
        for kinds in ((Kind.DELIVER,), (Kind.DELIVER, Kind.LOCK))
    )
    assert "LSE-3" in more - some
