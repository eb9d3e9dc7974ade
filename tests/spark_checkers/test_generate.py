"""Generated histories: valid, every clause at stake, the same for the same seed, and broken only where asked for."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner

from spark_checkers import cli
from spark_checkers import generate as generator
from spark_checkers.engine import examine as examine_on_spark
from spark_checkers.generate import (
    EDGES,
    MANUAL_GROUP,
    ORDERS,
    auto_groups,
    generate,
    plan_defect,
)
from spark_checkers.trace_mutants import DEFECTS, LOOKALIKES
from spark_checkers.writing import HistoryWriter
from specs import profiles
from specs.clauses.catalogue import all_clauses, get
from specs.clauses.context import takes_everything
from specs.errors import UsageError
from specs.history.store import History, open_history
from specs.verdicts.examine import examine
from specs.verdicts.verdict import RunVerdict, conclude
from specs.vocabulary import Kind, dead_letter_topic

SMALL = 8_000
SIZES = (4_000, 16_000, 40_000)
GENERATED = [
    name
    for name, mutant in {**DEFECTS, **LOOKALIKES}.items()
    if mutant.generated and not mutant.tagged
]
AT_STAKE = {
    *("ORD-2", "ORD-3", "ORD-4", "ORD-5", "ORD-7", "ORD-8", "ORD-9", "ORD-10", "ORD-12"),
    *(
        "LSE-1",
        "LSE-2",
        "LSE-3",
        "LSE-4",
        "LSE-8",
        "RTY-1",
        "RTY-2",
        "RTY-3",
        "RTY-4",
        "RTY-5",
        "RTY-7",
        "RTY-9",
    ),
    *("DLQ-1", "DLQ-2", "DLQ-3", "DLQ-4", "DLQ-5", "DLQ-7", "DLQ-8", "DLQ-9"),
    *("CMT-1", "CMT-2", "CMT-4", "CMT-5", "SND-1", "SND-2"),
}
"""What every generated history puts at stake; the size, the seed and a planted defect may add to it."""


def digest(folder: Path) -> str:
    found = hashlib.sha256()
    for path in sorted((folder / "history").iterdir()):
        found.update(path.name.encode())
        found.update(path.read_bytes())
    return found.hexdigest()


def test_a_generated_history_keeps_every_promise_and_puts_many_at_stake(tmp_path: Path) -> None:
    written = generate(tmp_path / "h", 30_000, seed=11)
    assert abs(written.events - 30_000) < 600
    history = open_history(tmp_path / "h")
    found = examine(history.rows(), history.info)
    assert found.refuted() == ()
    stakes = {clause: tally.opportunities for clause, tally in found.tallies.items()}
    assert {clause for clause in AT_STAKE if stakes[clause] < 5} == set()
    verdict = conclude(found, history.info, profiles.load("reference"), require_exercised=False)
    assert verdict.verdict is RunVerdict.UPHELD


def test_every_group_wants_everything(tmp_path: Path) -> None:
    """A group that filters is one of which much is not said, whatever is planted."""
    generate(tmp_path, SMALL, 1)
    views = [row.view for row in open_history(tmp_path).rows() if row.kind is Kind.JOIN]
    assert views
    assert all(map(takes_everything, views)), views


@pytest.mark.parametrize("seed", [85, pytest.param(243, marks=pytest.mark.long)])
def test_an_owner_that_ends_by_giving_up_waits_for_the_answer(tmp_path: Path, seed: int) -> None:
    """Its last commit covers the dead letter, and so comes after it."""
    generate(tmp_path / "h", SMALL, seed)
    history = open_history(tmp_path / "h")
    assert examine(history.rows(), history.info).refuted() == ()


def test_by_time_it_has_the_same_rows_as_by_queue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And some two windows' rows are held at once at most, as far as samples tell, though all is read in its end."""
    held: list[int] = []
    put = HistoryWriter.write
    monkeypatch.setattr(
        HistoryWriter,
        "write",
        lambda self, table, **cuts: held.append(table.num_rows) or put(self, table, **cuts),
    )
    monkeypatch.setattr(generator, "WINDOW_ROWS", SMALL // 32)
    for order in ORDERS:
        held.clear()
        folder = tmp_path / order
        generate(folder, SMALL, 3, groups=2, order=order, rows_per_file=3000, rows_per_group=1000)
    by_queue, by_time = (open_history(tmp_path / order) for order in ORDERS)
    times = [row.seq_begin for row in by_time.rows()]
    assert len(by_time.parquet) > 1
    assert max(held) < 3 * generator.WINDOW_ROWS
    assert times == sorted(times)
    assert list(by_time.rows()) == sorted(by_queue.rows(), key=lambda row: row.seq_begin)


def test_every_group_consumes_every_queue_and_keeps_every_promise(tmp_path: Path) -> None:
    generate(tmp_path / "h", 30_000, 11, groups=3)
    history = open_history(tmp_path / "h")
    calls = {(row.group, row.queue) for row in history.rows() if row.kind is Kind.DELIVER}
    queues = {queue for _, queue in calls}
    assert len(queues) == 4
    assert {call for call in calls if call[0] != MANUAL_GROUP} == {
        (group, queue) for group in auto_groups(3) for queue in queues
    }
    dead = {row.topic for row in history.rows() if row.kind is Kind.READ and row.group}
    assert dead == {dead_letter_topic(group) for group in auto_groups(3)}
    found = examine(history.rows(), history.info)
    assert found.refuted() == ()
    assert {clause for clause in AT_STAKE if found.tallies[clause].opportunities < 5} == set()


@pytest.mark.parametrize("order", ORDERS)
def test_a_long_queue_is_played_in_legs_and_keeps_every_promise(
    order: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generator, "LEG_ROWS", 5_000)
    monkeypatch.setattr(generator, "WINDOW_ROWS", 4_000)
    written = generate(tmp_path / "h", 30_000, 11, queues=2, groups=2, order=order)
    assert (written.queues, abs(written.events - 30_000) < 3_000) == (2, True)
    history = open_history(tmp_path / "h")
    rows = list(history.rows())
    assert len({row.seq_begin for row in rows}) == len(rows)
    for queue in {row.queue for row in rows if row.kind is Kind.SEND}:
        mine = [row for row in rows if row.queue == queue]
        (size,) = [row.value for row in mine if row.kind is Kind.READ and row.value is not None]
        read = [row.queue_offset for row in mine if row.kind is Kind.READ and row.value is None]
        assert read == list(range(size or 0))
    found = examine(history.rows(), history.info)
    assert found.refuted() == ()
    assert {clause for clause in AT_STAKE if found.tallies[clause].opportunities < 5} == set()


def test_same_seed_same_bytes(tmp_path: Path) -> None:
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        generate(tmp_path / name, SMALL, seed)
    assert digest(tmp_path / "a") == digest(tmp_path / "b")
    assert digest(tmp_path / "a") != digest(tmp_path / "c")


def with_planted(folder: Path, name: str, edge: str) -> History:
    """The smallest generated history that has a place for the defect."""
    for events in SIZES:
        with suppress(UsageError):
            planting = plan_defect(name, events, 2, edge=edge)
            place = folder / str(events)
            generate(
                place,
                events,
                2,
                change=planting,
                rows_per_file=events // 4,
                rows_per_group=events // 16,
            )
            return open_history(place)
    raise AssertionError(f"no size has a place for {name}")


def at_once(number: int) -> bool:
    """Every eighth, each time with the next of the edges, of which there are four."""
    return (number + number // 8) % 8 == 0


@pytest.mark.parametrize(
    ("number", "name"),
    [
        pytest.param(number, name, marks=[] if at_once(number) else pytest.mark.long)
        for number, name in enumerate(GENERATED)
    ],
)
def test_planted_defects_are_named_and_lookalikes_are_not(
    tmp_path: Path, here: object, number: int, name: str
) -> None:
    """The others are in the long tests; test_judged_alike.py plants each in a recorded history at once."""
    history = with_planted(tmp_path, name, EDGES[number % len(EDGES)])
    found = examine_on_spark(history, here)
    is_lookalike = name not in DEFECTS
    asked = (
        all_clauses()
        if is_lookalike or not number % 4
        else tuple(get(clause) for clause in found.refuted())
    )
    by_python = examine(history.rows(), history.info, asked).tallies
    assert {clause.id: found.tallies[clause.id] for clause in asked} == by_python
    if name in DEFECTS:
        assert DEFECTS[name].clause in found.refuted()
    else:
        assert found.refuted() == ()


def test_every_edge_has_defects_and_lookalikes_that_are_planted_at_once() -> None:
    planted = [(number, name) for number, name in enumerate(GENERATED) if at_once(number)]
    defects = {EDGES[number % len(EDGES)] for number, name in planted if name in DEFECTS}
    assert defects == set(EDGES)
    assert {name for _, name in planted} & set(LOOKALIKES)


def test_the_edge_lies_within_the_evidence(tmp_path: Path) -> None:
    planting = plan_defect("commit-rewinds", SMALL, 2, edge="file")
    generate(tmp_path / "h", SMALL, 2, change=planting)
    history = open_history(tmp_path / "h")
    places = {}
    import pyarrow.parquet as pq

    for path in history.parquet:
        for seq in pq.read_table(path, columns=["seq_begin"]).column(0).to_pylist():
            places[seq] = path.name
    assert len({places[seq] for seq in planting.about}) == 2


def test_wrong_usage_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no defect nope"):
        plan_defect("nope", 1000, 1)
    with pytest.raises(UsageError, match="there is no edge"):
        plan_defect("late-commit", 1000, 1, edge="nowhere")
    with pytest.raises(UsageError, match="1 to 9 groups"):
        generate(tmp_path / "h", 1000, 1, groups=generator.MOST_GROUPS + 1)
    planting = plan_defect("late-commit", 1000, 1, edge="file")
    with pytest.raises(UsageError, match="by time has no edge of a file"):
        generate(tmp_path / "h", 1000, 1, order="time", change=planting)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a").touch()
    with pytest.raises(UsageError, match="is not empty"):
        generate(tmp_path / "full", SMALL, 1)


def test_the_command_offers_what_the_generator_knows() -> None:
    """It has words of its own, so that it need not wait for what the generator imports."""
    known = (generator.EDGES, generator.ORDERS, generator.MOST_GROUPS)
    assert known == (cli.EDGES, cli.ORDERS, cli.MOST_GROUPS)


def test_the_command_prints_its_seed_first_and_its_data_on_stdout(tmp_path: Path) -> None:
    out = tmp_path / "h"
    arguments = [
        "--events",
        "2000",
        "--seed",
        "9",
        "--out",
        str(out),
        "--defect",
        "invented-message",
        "--format",
        "json",
    ]
    result = CliRunner().invoke(cli.generate, arguments, standalone_mode=False)
    assert result.exception is None
    assert result.stderr.splitlines()[0] == "generating 2000 events, seed 9"
    data = json.loads(result.stdout)
    assert (data["schema"], data["seed"], data["breaks"]) == ("inorder/generated/v1", 9, "SND-2")
    assert len(data["about"]) >= 1
    again = CliRunner().invoke(
        cli.compact, [str(out), "--out", str(tmp_path / "c"), "--format", "json"]
    )
    assert json.loads(again.stdout)["events"] == data["events"]


def test_a_drawn_seed_is_printed(tmp_path: Path) -> None:
    result = CliRunner().invoke(
        cli.generate, ["--events", "500", "--out", str(tmp_path / "h")], standalone_mode=False
    )
    seed = int(result.stderr.splitlines()[0].rsplit(" ", 1)[1])
    assert open_history(tmp_path / "h").info.seed == seed
