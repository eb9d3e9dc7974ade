"""Doing something once although its message comes twice."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reference_impl.client import Once, OnceInMemory, OnceOnDisk, UsageError

Maker = Callable[..., Once]


@pytest.fixture(params=["memory", "disk"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Maker]:
    made: list[OnceOnDisk] = []

    def make_one(**options: int) -> Once:
        if request.param == "memory":
            return OnceInMemory(**options)
        made.append(OnceOnDisk(tmp_path / "done.sqlite3", **options))
        return made[-1]

    yield make_one
    for once in made:
        once.close()


def claims(once: Once, *names: str) -> list[bool]:
    answers = []
    for name in names:
        with once.claim(name) as is_new:
            answers.append(is_new)
    return answers


def test_the_first_of_a_name_is_new_and_the_next_is_not(make: Maker) -> None:
    assert claims(make(), "a", "b", "a", "a", "b") == [True, True, False, False, False]


def test_what_failed_is_new_again(make: Maker) -> None:
    once = make()

    def fail() -> None:
        with once.claim("a") as is_new:
            raise ValueError(f"new: {is_new}")

    with pytest.raises(ValueError, match="new: True"):
        fail()
    assert claims(once, "a", "a") == [True, False]


def test_only_the_newest_names_are_kept(make: Maker) -> None:
    once = make(capacity=3)
    assert claims(once, "a", "b", "c", "d") == [True] * 4
    assert claims(once, "d", "c", "b") == [False] * 3
    assert claims(once, "a") == [True]


def test_of_two_threads_with_one_name_the_second_waits_for_the_first(make: Maker) -> None:
    once = make()
    inside, may_end = threading.Event(), threading.Event()
    answers: list[bool] = []

    def first() -> None:
        with once.claim("a") as is_new:
            inside.set()
            assert may_end.wait(30)
            answers.append(is_new)

    def second() -> None:
        answers.extend(claims(once, "a"))

    one = threading.Thread(target=first)
    one.start()
    assert inside.wait(30)
    two = threading.Thread(target=second)
    two.start()
    assert claims(once, "b") == [True]  # other names wait for nobody
    may_end.set()
    one.join()
    two.join()
    assert answers == [True, False]


def test_what_is_on_disk_outlives_a_process_that_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "done.sqlite3"
    program = (
        "import os, signal, sys; from reference_impl.client import OnceOnDisk\n"
        "once = OnceOnDisk(sys.argv[1])\n"
        "with once.claim('a'): pass\n"
        "with once.claim('b'): os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run(
        [sys.executable, "-c", program, str(path)],
        check=False,
        cwd=Path(__file__).resolve().parents[3],
    )
    with OnceOnDisk(path) as once:
        assert claims(once, "a", "b") == [False, True]


def test_a_file_that_is_no_store_is_said(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("this is no database, and long enough to be seen as none" * 20)
    with pytest.raises(UsageError, match="can't be used"):
        OnceOnDisk(path)
    with pytest.raises(UsageError, match="room for at least one"):
        OnceInMemory(capacity=0)
