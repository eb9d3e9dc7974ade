"""Long tests have their turns, and a sitting goes on where the one before it was ended."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import turns

SUITE = """
import pathlib
def test_one(): note("one")
def test_two(): note("two"); assert pathlib.Path(__file__).with_name("mended").exists()
def test_three(): note("three")
def note(name):
    with pathlib.Path(__file__).with_name("made").open("a") as file:
        file.write(name + "\\n")
"""
CONFTEST = """
from tests import turns
def pytest_addoption(parser): turns.add_options(parser)
def pytest_configure(config): turns.plug_in(config)
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "test_some.py").write_text(SUITE)
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "store").mkdir()
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return tmp_path


def made(suite: Path, *words: str) -> tuple[int, set[str], str]:
    """(exit code, the tests that were made, what was printed) of a sitting."""
    (suite / "made").write_text("")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words, str(suite)],
        cwd=turns.ROOT,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    return done.returncode, set((suite / "made").read_text().split()), done.stdout


@pytest.mark.parametrize("workers", [(), pytest.param(("-n", "2"), marks=pytest.mark.long)])
def test_a_sitting_leaves_out_what_was_finished(suite: Path, workers: tuple[str, ...]) -> None:
    """What failed is made again, and where nothing is left the sitting is green."""
    words = (*workers, "--go-on", str(suite / "store"))
    assert made(suite, *words)[:2] == (1, {"one", "two", "three"})
    assert made(suite, *words)[:2] == (1, {"two"})
    (suite / "mended").touch()
    assert made(suite, *words)[:2] == (0, {"two"})
    code, again, printed = made(suite, *words)
    assert (code, again) == (0, set())
    assert "3 tests were finished in an earlier sitting" in printed


def test_a_line_that_was_torn_off_counts_for_nothing(tmp_path: Path) -> None:
    """The test is made again."""
    store = tmp_path / "finished.jsonl"
    store.write_text('{"id": "a", "outcome": "passed", "seconds": 1}\n{"id": "b", "outc')
    assert turns.read_sitting(store) == {"a": "passed"}


def test_nothing_begins_after_its_time(suite: Path) -> None:
    """Each test that was not begun says so."""
    code, tests, printed = made(suite, "--begin-before", "1", "-rs", "-n", "2")
    assert (code, tests) == (0, set())
    assert "not begun: the time for the long tests of a turn is over" in printed


def test_each_long_test_has_one_turn() -> None:
    """Of those with a planted defect one in ten, another one each time round."""
    names = [f"tests/some/test_{n}.py::test_it[{n}]" for n in range(400)]
    for name in names:
        assert sum(turns.is_of_turn(name, turn) for turn in range(turns.TURNS)) == 1
    planted = [f"{turns.SAMPLED[0]}::test_it[{n}]" for n in range(400)]
    once = [name for name in planted if any(turns.is_of_turn(name, t) for t in range(turns.TURNS))]
    assert 10 < len(once) < 80
    rounds = turns.TURNS * turns.FEWER
    assert all(sum(turns.is_of_turn(name, t) for t in range(rounds)) == 1 for name in planted)
    now = [name for name in planted if turns.is_sampled_now(name, 3)]
    assert set(once) & set(now)
    assert 10 < len(now) < 80
    assert all(turns.is_sampled_now(name, 3) for name in names)


def test_the_gate_reads_the_pages() -> None:
    """And no sitting of the long tests does besides."""
    page = f"{turns.IN_THE_GATE}[docs/page.md]"
    assert not any(turns.is_of_turn(page, turn) for turn in range(turns.TURNS))
    assert not turns.is_of_a_sitting(page, 3)
    assert turns.is_of_a_sitting("tests/docs/test_links.py::test_it", 3)


def test_a_group_is_no_part_of_a_name() -> None:
    """pytest-xdist writes it behind the id."""
    assert turns.plain("tests/a.py::test_it[x@y]@group") == "tests/a.py::test_it[x@y]"
    assert turns.plain("tests/a.py::test_it[x@y]") == "tests/a.py::test_it[x@y]"


@pytest.mark.parametrize("target", ["test", "test-turn", "test-all"])
def test_pytest_takes_what_make_hands_it(target: str, tmp_path: Path) -> None:
    """Its options are those of a plug-in that pytest has to find by itself, where no file is named."""
    shown = subprocess.run(
        ["make", "-n", target], cwd=turns.ROOT, capture_output=True, text=True, check=True
    ).stdout
    (line,) = [line for line in shown.splitlines() if "--dist loadgroup" in line]
    words = line.partition("pytest ")[2].partition(";")[0]
    words = words.replace("$(.venv/bin/python -m tests.turns )", str(tmp_path))
    done = subprocess.run(
        f"{sys.executable} -m pytest --markers {words}",
        shell=True,
        cwd=turns.ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_what_is_made_more_seldom_is_there() -> None:
    """The files of the tests that are made more seldom."""
    assert [name for name in turns.SAMPLED if not (turns.ROOT / name).is_file()] == []
