"""What a piece of a long queue adds does not depend on the rows that are not carried into it: a law for every judge."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from conftest import SPARK
from drawn import histories
from hypothesis import HealthCheck, given, settings
from judging import context_of
from recorded import recorded
from test_judged_alike import RECORDED, planted

from spark_checkers import engine, judge, keyed, ordered, pieces
from spark_checkers import judging as judging_module
from spark_checkers.balances import Balance, Balances
from spark_checkers.catalogue import applicable
from spark_checkers.generate import generate, plan_defect
from spark_checkers.jobs import InProcesses
from spark_checkers.keyed import IN_PIECES
from spark_checkers.pieces import Pieces
from spark_checkers.trace_mutants import DEFECTS, LOOKALIKES, Mutant, plant
from specs.clauses.catalogue import get
from specs.clauses.commit import fetch_answers_the_last_commit
from specs.errors import SpecError, UsageError
from specs.facts.groupings import CLIENTS, QUEUES, Grouping
from specs.facts.judged import judge_rows
from specs.facts.judges import Judge, judges_of
from specs.facts.rows import Rows
from specs.facts.run_context import Runs
from specs.facts.segments import dense
from specs.facts.together import codes_of, columns_of, levels_of, relevant, wanted_of, with_source
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.history.store import History, open_history, rows_to_table, write_history
from specs.history.text import parse_history
from specs.profiles import load


def spark(test: Any) -> Any:
    for mark in SPARK:
        test = mark(test)
    return test


CHANGES = {**DEFECTS, **LOOKALIKES}
Found = Mapping[str, tuple[dict[str, int], list[tuple[str, tuple[int, ...], bool, str]]]]


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little is carried for being young, so that what has to be carried for another reason is missed."""
    monkeypatch.setattr(pieces, "memory_us", lambda _config: 0)
    monkeypatch.setattr(pieces, "INCARNATIONS", 2)


def judge_of(clause: str) -> Judge:
    (found,) = judges_of([get(clause)])
    return found


def keys_of(rows: Sequence[Row], judges: Sequence[Judge], grouping: Grouping) -> list[pa.Table]:
    """The rows of each key by seq_begin."""
    table = rows_to_table(sorted(rows, key=lambda row: row.seq_begin))
    table = with_source(table).take(pa.array(wanted_of(table, judges, grouping)))
    names = [*columns_of(judges, grouping), *IN_PIECES[grouping]]
    table = table.select(list(dict.fromkeys(names)))
    if not table.num_rows:
        return []
    key, count = dense(*codes_of(table, grouping.columns))
    return [table.filter(pa.array(key == number)) for number in range(count)]


def judged(
    table: pa.Table, judges: Sequence[Judge], runs: Runs, balances: Balances, sign: int
) -> None:
    for levels in {levels_of((each,)) for each in judges}:
        some = [each for each in judges if levels_of((each,)) == levels]
        rows = Rows(table.filter(pa.array(relevant(table, some))), runs)
        if rows.size:
            balances.add(judge_rows(rows, some), sign)


def found(balances: Balances) -> Found:
    return {
        each.clause: (
            {run: times for run, times in each.opportunities.items() if times},
            each.violations,
        )
        for each in balances
        if any(each.opportunities.values()) or each.violations
    }


def whole(table: pa.Table, judges: Sequence[Judge], runs: Runs) -> Found:
    balances = Balances()
    judged(table, judges, runs, balances, 1)
    return found(balances)


def in_pieces(
    table: pa.Table, judges: Sequence[Judge], runs: Runs, piece_rows: int, folder: Path
) -> Found:
    cut, balances = Pieces(str(folder), runs, piece_rows), Balances()
    cut.take(table)
    for piece in cut.beside_what_matters():
        judged(piece.both, judges, runs, balances, 1)
        judged(piece.carried, judges, runs, balances, -1)
    return found(balances)


def holds(info: RunInfo, rows: Sequence[Row], sizes: Sequence[int], folder: Path) -> None:
    """sizes: of pieces, in rows."""
    runs = {info.run: context_of(rows, info)}
    for grouping in IN_PIECES:
        judges = [each for each in applicable(info) if each.grouping == grouping]
        for table in keys_of(rows, judges, grouping):
            expected = whole(table, judges, runs)
            for size in sizes:
                assert in_pieces(table, judges, runs, size, folder) == expected, size
    assert not list(folder.glob("*.arrow"))


@pytest.mark.parametrize(("mode", "message_model", "tagged"), RECORDED)
def test_pieces_of_a_recorded_history_add_up(
    mode: str, message_model: str, tagged: bool, tmp_path: Path
) -> None:
    info, rows = recorded(mode, message_model, tagged=tagged)
    holds(info, rows, (150,), tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("mutant", CHANGES.values(), ids=list(CHANGES))
def test_pieces_of_a_recorded_history_with_a_defect_add_up(mutant: Mutant, tmp_path: Path) -> None:
    info, rows = planted(mutant)
    holds(info, rows, (150,), tmp_path)


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(histories(most=40))
def test_pieces_of_a_drawn_history_add_up(
    tmp_path_factory: pytest.TempPathFactory, history: tuple
) -> None:
    info, rows = history
    holds(info, rows, (5,), tmp_path_factory.mktemp("pieces"))


@pytest.mark.parametrize(
    "mutant",
    [
        pytest.param(mutant, id=name, marks=[] if number % 32 == 0 else pytest.mark.long)
        for number, (name, mutant) in enumerate(CHANGES.items())
        if mutant.generated
    ],
)
def test_pieces_of_a_generated_queue_with_a_defect_add_up(
    mutant: Mutant, generated: History, tmp_path: Path
) -> None:
    """Long beside what is carried, with two groups: what a piece adds rests on few rows of those before."""
    rows = list(generated.rows())
    info = mutant.under(generated.info)
    try:
        rows = list(plant(mutant, rows, info, seed=1).rows)
    except UsageError as error:
        pytest.skip(f"no place in a generated history: {error}")
    holds(info, rows, (300,), tmp_path)


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> History:
    folder = tmp_path_factory.mktemp("generated") / "h"
    generate(folder, 9000, 5, queues=1, groups=2)
    return open_history(folder)


@pytest.mark.parametrize(
    ("defect", "events", "order"),
    [
        (None, 6000, "time"),
        ("swap-key", 6000, "queue"),
        ("lost-dead-letter", 20_000, "time"),
        *(
            pytest.param(*each, marks=pytest.mark.long)
            for each in (
                (None, 6000, "queue"),
                ("swap-key", 6000, "time"),
                ("invented-message", 6000, "queue"),
                ("invented-message", 6000, "time"),
                ("lost-dead-letter", 20_000, "queue"),
            )
        ),
    ],
)
def test_the_engine_judges_long_queues_in_pieces(
    order: str,
    defect: str | None,
    events: int,
    here: InProcesses,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two long queues, their keys and messages, and what is picked of them: all as if they were held whole."""
    planting = None if defect is None else plan_defect(defect, events, 3, 2)
    generate(tmp_path / "h", events, 3, queues=2, groups=2, order=order, change=planting)
    history, profile = open_history(tmp_path / "h"), load("reference")
    expected = engine.judge_here(history, profile).to_json()
    cut: list[int] = []
    monkeypatch.setattr(engine, "LONG_ROWS", events // 4)
    monkeypatch.setattr(engine, "PIECE_ROWS", events // 30)
    for module in (keyed, ordered):
        monkeypatch.setattr(module, "BATCH_ROWS", events // 60)
    carried = Pieces._carried
    monkeypatch.setattr(
        Pieces,
        "_carried",
        lambda self, seen, *args: cut.append(seen.size) or carried(self, seen, *args),
    )
    found = engine.judge_here(history, profile).to_json()
    assert found == expected
    assert (found["verdict"] == "refuted") == (defect is not None)
    assert len(cut) > 4
    assert max(cut) < events // 2


@pytest.mark.parametrize(
    "defect",
    [
        "held-back",
        pytest.param("starved-lane", marks=pytest.mark.long),
        pytest.param("called-late", marks=pytest.mark.long),
    ],
)
def test_the_engine_judges_clients_in_pieces(
    defect: str, here: InProcesses, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each with its lanes, none of which is long."""
    info, rows = planted(DEFECTS[defect])
    history = write_history(tmp_path / "h", info, rows)
    expected = engine.examine(history, here)
    cut: list[int] = []
    monkeypatch.setattr(engine, "LONG_ROWS", 150)
    monkeypatch.setattr(engine, "PIECE_ROWS", 50)
    monkeypatch.setattr(keyed, "BATCH_ROWS", 25)
    take = Pieces._take
    monkeypatch.setattr(
        Pieces,
        "_take",
        lambda self, table: (
            cut.append(pc.count_distinct(table["queue_id"]).as_py()) or take(self, table)
        ),
    )
    assert engine.examine(history, here) == expected
    assert max(cut) > 1
    assert expected.tallies[DEFECTS[defect].clause].found


@pytest.mark.long
@spark
def test_a_frame_judges_long_queues_in_pieces(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By Spark's own shuffle, what a judge picks of its queues among it."""
    generate(tmp_path / "h", 20_000, 3, queues=1, change=plan_defect("lost-dead-letter", 20_000, 3))
    history = open_history(tmp_path / "h")
    expected = engine.judge_here(history, load("reference")).to_json()
    monkeypatch.setattr(pieces, "LONG_ROWS", 5000)
    monkeypatch.setattr(pieces, "PIECE_ROWS", 1000)
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", 500)
    try:
        frame = session.read.parquet(*map(str, history.parquet))
        found = judge(frame, run=history.info, profile="reference").verdict.to_json()
    finally:
        session.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    assert found.pop("tool") == {"engine": "spark"}
    expected.pop("tool")
    assert found == expected
    assert found["verdict"] == "refuted"


def test_what_was_made_of_a_piece_is_let_go_before_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows and what is derived of them know each other: they stay until somebody looks for cycles."""
    made: list[weakref.ref[Rows]] = []
    alive: list[int] = []

    class Watched(Rows):
        def __init__(self, table: pa.Table, runs: Runs) -> None:
            super().__init__(table, runs)
            made.append(weakref.ref(self))
            alive.append(sum(each() is not None for each in made))

    monkeypatch.setattr(engine, "Rows", Watched)
    monkeypatch.setattr(judging_module, "Rows", Watched)
    monkeypatch.setattr(engine, "LONG_ROWS", 600)
    monkeypatch.setattr(engine, "PIECE_ROWS", 300)
    monkeypatch.setattr(keyed, "BATCH_ROWS", 150)
    info, rows = recorded()
    history = write_history(tmp_path / "h", info, rows)
    gc.disable()
    try:
        with InProcesses(1) as here:
            engine.examine(history, here)
    finally:
        gc.enable()
    assert len(made) > 20
    assert max(alive) <= 2


def test_as_many_reports_are_carried_as_a_judge_remembers(
    generated: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With small numbers: where a judge remembers eight of them, and nine are carried."""
    monkeypatch.setattr(fetch_answers_the_last_commit, "REMEMBERED_MAX", 8)
    monkeypatch.setattr(pieces, "REPORTS", 9)
    monkeypatch.setattr(pieces, "LAST", 1)
    rows = list(generated.rows())
    judges = [judge_of("CMT-9")]
    runs = {generated.info.run: context_of(rows, generated.info)}
    for table in keys_of(rows, judges, QUEUES):
        assert in_pieces(table, judges, runs, 60, tmp_path) == whole(table, judges, runs)


def test_turns_of_others_are_carried_while_a_lane_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it would be told anew of each piece for how long another lane goes on."""
    monkeypatch.setattr(pieces, "LAST", 1)
    info, rows = planted(DEFECTS["starved-lane"])
    judges, runs = [judge_of("LIV-3")], {info.run: context_of(rows, info)}
    told = 0
    for table in keys_of(rows, judges, CLIENTS):
        expected = whole(table, judges, runs)
        assert in_pieces(table, judges, runs, 10, tmp_path) == expected
        told += sum(len(violations) for _times, violations in expected.values())
    assert told


LEASES = "config broker_lease_ms=1000 delay_bound_ms=500 schedule_slack_ms=500"
LANE = "billing/orders/b0/3"
FIRST = f"""
0ms..1ms    dave   receives      {LANE}  offset=1  id=m1  rt=0  lease=q1  until=1s   ok
1ms..2ms    dave   acks          {LANE}  offset=1  id=m1  lease=q1                   ok
1ms..2ms    dave   acks          {LANE}            id=m1                             ok
2ms..3ms    dave   delivers      {LANE}  offset=1  id=m1                             success
"""
"""Of each way of telling the first row is carried: that is none of those of which a test is."""
MANY = "".join(
    f"""
{10 + 2 * at}ms..{11 + 2 * at}ms  carol  receives  {LANE}  offset={at + 20}  id=m{at + 20}  rt=0  lease=p{at}  until=2s
{11 + 2 * at}ms..{12 + 2 * at}ms  carol  acks      {LANE}  offset={at + 20}  id=m{at + 20}        lease=p{at}"""
    for at in range(100)
)
ALICE = f"300ms..301ms  alice  receives  {LANE}  offset=7  id=m7  rt=0  lease=r1  until=1300ms  ok"
IN_VAIN = f"{ALICE}\n3s..3001ms  bob  receives  {LANE}  refused"


@pytest.mark.parametrize("size", [4, 20, 60])
@pytest.mark.parametrize(
    ("before", "after", "judge", "told"),
    [
        pytest.param(
            f"""
            3ms..4ms  carol  receives  {LANE}  offset=8  id=m8  rt=0  lease=r2  until=30s  ok
            5ms..6ms  carol  acks      {LANE}  offset=8  id=m8        lease=r0             ok
            """,
            IN_VAIN,
            judge_of("PML-5"),
            0,
            id="acknowledged under an earlier lease, and lent still",
        ),
        pytest.param(
            f"""
            3ms..4ms  carol  receives  {LANE}  offset=8  id=m8  rt=0  lease=r2  until=30ms  ok
            5ms..6ms  carol  acks      {LANE}  offset=8  id=m8        lease=r0              ok
            """,
            IN_VAIN,
            judge_of("PML-5"),
            1,
            id="acknowledged under an earlier lease, and lent no more",
        ),
        pytest.param(
            f"""
            3ms..4ms  carol  receives  {LANE}  offset=8  id=m8  rt=0  lease=r2  until=30s  ok
            5ms..6ms  carol  acks      {LANE}  offset=8  id=m8        lease=r2             ok
            """,
            f"""{ALICE}
            400ms..401ms  alice  acks      {LANE}            id=m8                             ok
            500ms..501ms  bob    receives  {LANE}  offset=7  id=m7  rt=1  lease=r4  until=30s  ok
            """,
            judge_of("PML-1"),
            1,
            id="acknowledged once more, by its id alone",
        ),
    ],
)
def test_what_may_be_lent_still_is_carried(
    before: str, after: str, judge: Judge, told: int, size: int, tmp_path: Path
) -> None:
    info, rows = parse_history("\n".join((LEASES, FIRST, before, MANY, after)))
    runs = {info.run: context_of(rows, info)}
    found_in_all = 0
    for table in keys_of(rows, [judge], QUEUES):
        expected = whole(table, [judge], runs)
        assert in_pieces(table, [judge], runs, size, tmp_path) == expected
        found_in_all += sum(len(violations) for _times, violations in expected.values())
    assert found_in_all == told


def test_more_taken_away_than_was_found_is_told() -> None:
    balance = Balance("ORD-2")
    balance._opportunities["run"] = -1
    with pytest.raises(SpecError, match="ORD-2 took more away than it had found"):
        assert balance.opportunities
