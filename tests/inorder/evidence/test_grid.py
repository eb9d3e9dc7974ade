"""A grid loses no finished cell and makes none twice, whenever it is ended; and it knows what is not finished."""

from __future__ import annotations

import ast
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
import psutil
import pytest
from click.testing import CliRunner

from conformance.waiting import wait_until
from inorder.evidence import grid
from inorder.evidence.grid import Cell, Done, age, read_cell, run, told_of_kept
from inorder.evidence.options import GridOptions, close, grid_options
from specs.errors import TargetMisbehaved, UsageError

PROGRAM = """
import os, sys, time
from pathlib import Path
from inorder.evidence.grid import Cell, run

LOG = Path(sys.argv[2])

def tell(word, cell):
    with LOG.open("ab", buffering=0) as log:
        log.write(f"{word} {cell.name}\\n".encode())

def work(cell):
    tell("begins", cell)
    time.sleep(0.03 + int(cell.key["number"]) % 3 * 0.02)
    return {"square": cell.key["number"] ** 2}

if __name__ == "__main__":
    cells = [Cell("squares", f"number {n}", {"number": n, "code": sys.argv[4]}) for n in range(24)]
    for done in run(cells, work, Path(sys.argv[1]), workers=int(sys.argv[3])):
        tell("resumed" if done.resumed else "made", done.cell)
"""
CELLS = 24
EVIDENCE = Path(grid.__file__).parent


def cell_of(number: int, **key: Any) -> Cell:
    return Cell("squares", f"number {number}", {"number": number, "code": "a", **key})


def square(cell: Cell) -> Any:
    return {"square": cell.key["number"] ** 2}


def values(done: Sequence[Done]) -> list[int]:
    return [each.value["square"] for each in done]


@pytest.fixture
def program(tmp_path: Path) -> Callable[..., subprocess.Popen[bytes]]:
    """`program(workers, code)` starts the grid of 24 cells in `tmp_path / "store"`."""
    path = tmp_path / "program.py"
    path.write_text(PROGRAM, encoding="utf-8")

    def start(workers: int, code: str = "a") -> subprocess.Popen[bytes]:
        words = [str(tmp_path / "store"), str(tmp_path / "log"), str(workers), code]
        return subprocess.Popen([sys.executable, str(path), *words], stderr=subprocess.PIPE)

    return start


def finished(store: Path) -> dict[str, tuple[int, int]]:
    """Every file that a finished cell has, with what changes when it is written anew."""
    found = {path.name: path.stat() for path in store.glob("[!.]*.json")}
    return {name: (stat.st_ino, stat.st_mtime_ns) for name, stat in found.items()}


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_grid_that_is_ended_goes_on_where_it_was(
    program: Callable[..., subprocess.Popen[bytes]],
    tmp_path: Path,
    workers: int,
    how: signal.Signals,
) -> None:
    """Ended at several moments: no finished cell is lost or written again, and in the end each was made."""
    store, log = tmp_path / "store", tmp_path / "log"
    before: dict[str, tuple[int, int]] = {}
    for wanted in (1, 5, 10, 16):
        process = program(workers)
        try:
            assert wait_until(lambda: len(finished(store)) >= wanted, 30)  # noqa: B023 - asked at once
        finally:
            children = psutil.Process(process.pid).children(recursive=True)
            process.send_signal(how)
            process.communicate(timeout=30)
        assert process.returncode != 0  # it did not come to its end
        psutil.wait_procs(children, timeout=30)
        after = finished(store)
        assert {name: after.get(name) for name in before} == before
        before = after
    process = program(workers)
    _, words = process.communicate(timeout=60)
    assert process.returncode == 0, words.decode()
    after = finished(store)
    assert {name: after[name] for name in before} == before
    assert len(after) == CELLS
    told = log.read_text(encoding="utf-8").splitlines()
    assert len({line for line in told if line.startswith("begins")}) == CELLS
    assert told[-1].startswith("made")
    numbers = [cell_of(number) for number in range(CELLS)]
    kept = [read_cell(store, each) for each in numbers]
    assert values([each for each in kept if each]) == [number**2 for number in range(CELLS)]


def test_a_finished_cell_is_begun_once(
    program: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    """What was begun when the grid was killed is begun again; what was finished is not."""
    store, log = tmp_path / "store", tmp_path / "log"
    process = program(2)
    assert wait_until(lambda: len(finished(store)) >= 5, 30)
    children = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.communicate(timeout=30)
    psutil.wait_procs(children, timeout=30)
    done = {json.loads((store / name).read_text())["name"] for name in finished(store)}
    program(2).communicate(timeout=60)
    begun = [line[7:] for line in log.read_text().splitlines() if line.startswith("begins ")]
    assert {name: begun.count(name) for name in done} == dict.fromkeys(done, 1)
    assert len(set(begun)) == CELLS


def test_a_changed_key_is_made_anew(tmp_path: Path) -> None:
    """Here and there the code has changed; the cell's former result goes, those of the others stay."""
    numbers = [cell_of(1), cell_of(2)]
    assert [each.resumed for each in run(numbers, square, tmp_path)] == [False, False]
    numbers[1] = cell_of(2, code="b")
    again = list(run(numbers, square, tmp_path))
    assert {each.cell.name: each.resumed for each in again} == {"number 1": True, "number 2": False}
    assert read_cell(tmp_path, cell_of(2)) is None
    assert len(finished(tmp_path)) == 2


@pytest.mark.parametrize("cut", [0, 1, 20, -2])
def test_half_a_file_is_no_cell(tmp_path: Path, cut: int) -> None:
    """Nor is an empty one; the cell is made again."""
    list(run([cell_of(7)], square, tmp_path))
    path = tmp_path / f"{cell_of(7).id}.json"
    whole = path.read_bytes()
    path.write_bytes(whole[:cut])
    assert read_cell(tmp_path, cell_of(7)) is None
    (again,) = run([cell_of(7)], square, tmp_path)
    assert (again.resumed, values([again])) == (False, [49])


@pytest.mark.parametrize("change", [{"format": 99}, {"key": {"number": 8}}, {"result": None}])
def test_a_file_that_says_otherwise_is_no_cell(tmp_path: Path, change: dict[str, Any]) -> None:
    """The name of a file is not believed: another format, another key, or no result."""
    list(run([cell_of(7)], square, tmp_path))
    path = tmp_path / f"{cell_of(7).id}.json"
    data = {**json.loads(path.read_text()), **change}
    if data["result"] is None:
        del data["result"]
    path.write_text(json.dumps(data))
    assert read_cell(tmp_path, cell_of(7)) is None


def test_what_a_kill_left_half_written_is_taken_away(tmp_path: Path) -> None:
    """It lies under a name that no cell has."""
    torn = tmp_path / f".{cell_of(7).id}.json.part"
    torn.write_text('{"format": 1, "resu')
    (done,) = run([cell_of(7)], square, tmp_path)
    assert (done.resumed, torn.exists()) == (False, False)


def test_a_budget_begins_nothing_more(tmp_path: Path) -> None:
    """Without time nothing is made; what is there is told all the same."""
    list(run([cell_of(1)], square, tmp_path))
    numbers = [cell_of(number) for number in range(4)]
    for workers in (1, 2):
        told = list(run(numbers, square, tmp_path, budget_s=0, workers=workers))
        assert [(each.cell.name, each.resumed) for each in told] == [("number 1", True)]


def test_fresh_makes_all_anew(tmp_path: Path) -> None:
    """And what a killed fresh run had made is kept by one that goes on."""
    list(run([cell_of(1), cell_of(2)], square, tmp_path))
    begun = run([cell_of(1), cell_of(2)], square, tmp_path, fresh=True)
    assert next(begun).resumed is False
    begun.close()  # type: ignore[attr-defined]
    again = {
        each.cell.name: each.resumed for each in run([cell_of(1), cell_of(2)], square, tmp_path)
    }
    assert again == {"number 1": True, "number 2": False}


def test_a_cell_whose_run_is_gone_is_made_anew(tmp_path: Path) -> None:
    """A cell may tell of a folder; without that it does not stand."""
    list(run([cell_of(1)], square, tmp_path))
    (again,) = run([cell_of(1)], square, tmp_path, stands=lambda cell, value: False)
    assert again.resumed is False


@pytest.mark.parametrize("workers", [1, 2])
def test_a_cell_that_can_not_be_made_costs_no_other(tmp_path: Path, workers: int) -> None:
    """It comes with its error, is not kept, and is tried again by the next run."""
    numbers = [cell_of(number) for number in range(3)]
    told = {each.cell.name: each for each in run(numbers, fails_at_1, tmp_path, workers=workers)}
    assert str(told["number 1"].error) == "it did not start"
    assert values([told["number 0"], told["number 2"]]) == [0, 4]
    again = list(run(numbers, square, tmp_path))
    assert [each.cell.name for each in again if not each.resumed] == ["number 1"]


def fails_at_1(cell: Cell) -> Any:
    if cell.key["number"] == 1:
        raise TargetMisbehaved("it did not start")
    return square(cell)


def test_two_runs_do_not_share_a_store(tmp_path: Path) -> None:
    """The second one says so, at once."""
    first = run([cell_of(1), cell_of(2)], square, tmp_path)
    next(first)
    with pytest.raises(UsageError, match="another run is at work"):
        next(run([cell_of(2)], square, tmp_path))
    first.close()  # type: ignore[attr-defined]
    assert [each.resumed for each in run([cell_of(1)], square, tmp_path)] == [True]


def test_two_cells_of_one_name_are_refused(tmp_path: Path) -> None:
    """One of them would take the other's place for ever."""
    with pytest.raises(ValueError, match="number 1"):
        list(run([cell_of(1), cell_of(1, code="b")], square, tmp_path))


def test_ids_are_the_same_in_every_process() -> None:
    """And differ by grid, name and key."""
    here = Cell("a grid", "a/name: of two", {"b": 1, "a": [2, "ä"]})
    same = Cell("a grid", "a/name: of two", {"a": [2, "ä"], "b": 1})
    others = [
        Cell("another", here.name, here.key), Cell(here.grid, "a/name-of two", here.key),
        Cell(here.grid, here.name, {"b": 1}),
    ]  # fmt: skip
    assert here.id == same.id == "a-name-of-two-56670561-ef56e67f079da2be"
    assert len({each.id for each in [here, *others]}) == 4


def test_ages_are_told(tmp_path: Path) -> None:
    """Of what was kept, from the youngest to the oldest."""
    list(run([cell_of(1), cell_of(2)], square, tmp_path))
    path = tmp_path / f"{cell_of(2).id}.json"
    data = json.loads(path.read_text())
    path.write_text(json.dumps({**data, "made_us": data["made_us"] - 3 * 3_600_000_000}))
    told = told_of_kept(list(run([cell_of(1), cell_of(2)], square, tmp_path)))
    assert told.endswith(" to 3 h old and kept; --fresh makes them anew")
    assert told.startswith("2 cells are ")
    assert told_of_kept([]) == ""
    assert [age(us * 1_000_000) for us in (0, 59, 60, 3_599, 3_600, 86_400)] == [
        "0 s", "59 s", "1 min", "59 min", "1 h", "1 d",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--budget", "90s"], GridOptions(budget_s=90, workers=2)),
        (["--budget", "10m", "--seed", "7"], GridOptions(7, 2, budget_s=600)),
        (["--budget", "1.5h", "--fresh"], GridOptions(workers=2, budget_s=5_400, fresh=True)),
        (["--workers", "3", "--out", "there"], GridOptions(1, 3, Path("there"))),
        (["--format", "json"], GridOptions(workers=2, form="json")),
        ([], GridOptions(workers=2)),
    ],
)
def test_the_options_of_grids(words: list[str], told: GridOptions) -> None:
    """They come as one; a time has its unit."""
    seen: list[GridOptions] = []

    @click.command()
    @grid_options(out="Where.", workers=2, formats=())
    def command(how: GridOptions) -> None:
        seen.append(how)

    assert CliRunner().invoke(command, words).output == ""
    assert seen == [told]
    assert "is no time" in CliRunner().invoke(command, ["--budget", "10"]).output


def test_a_grid_without_a_meaning_for_an_option_has_none() -> None:
    @click.command()
    @grid_options(out="Where.", seed=None)
    def command(how: GridOptions) -> None:
        click.echo(f"{how.folder('it')}")

    assert CliRunner().invoke(command, []).output == "runs/it-1\n"
    for option in ("--seed", "--workers", "--format"):
        assert "No such option" in CliRunner().invoke(command, [option, "1"]).output


def test_what_a_grid_comes_to_and_says_at_its_end(tmp_path: Path) -> None:
    """Refuted wins over undone; what is told goes to whoever asks."""
    numbers = [cell_of(1), cell_of(2)]
    told: list[str] = []
    made = list(run(numbers[:1], square, tmp_path))
    assert (close(made, 1, say=told.append), told) == (0, [])
    made = list(run(numbers[:1], square, tmp_path))
    assert close(made, 2, say=told.append) == 2
    assert [line.partition(" cell")[0] for line in told] == ["1", "1 of 2"]
    assert close(made, 2, wrong=True, say=told.append) == 1


@pytest.mark.parametrize(
    "path", sorted(EVIDENCE.glob("*/__main__.py")), ids=lambda path: path.parent.name
)
def test_what_makes_a_cell_can_be_imported_by_another_process(path: Path) -> None:
    """The `__main__` of a package can't: such a grid ended as soon as it was given two workers."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    own = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    made = [
        node.args[1]
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "make"
        and len(node.args) > 1
    ]
    works = [work.args[0] if isinstance(work, ast.Call) else work for work in made]
    assert not own & {work.id for work in works if isinstance(work, ast.Name)}
