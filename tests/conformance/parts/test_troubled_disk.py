"""A disk of one process alone can be full, and slow, while it runs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from conformance.parts import troubled_disk
from conformance.parts.preload import environment_of
from conformance.parts.troubled_disk import TroubledDisk

WHY_NOT = troubled_disk.why_not()
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))
LATER_MS = 200
SAYS = f"""
import mmap, os, sys, tempfile, time
file = tempfile.TemporaryFile()
file.write(b"?" * mmap.PAGESIZE)
file.flush()
page = mmap.mmap(file.fileno(), 0)
def is_late(sync):
    began = time.monotonic_ns()
    sync()
    return time.monotonic_ns() - began >= {LATER_MS} * 1_000_000
for question in sys.stdin:
    if question == "room\\n":
        found = os.statvfs("/")
        print(found.f_bavail, found.f_bfree == found.f_blocks, flush=True)
    else:
        syncs = (lambda: os.fsync(file.fileno()), lambda: os.fdatasync(file.fileno()), page.flush)
        print(*map(is_late, syncs), flush=True)
"""


@contextmanager
def asked(disk: TroubledDisk) -> Iterator[Callable[[str], list[str]]]:
    """A process that says how much room there is, and which of its syncs take `LATER_MS` at least."""
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", SAYS],
        env={**os.environ, **environment_of(disk.told)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        questions, answers = process.stdin, process.stdout

        def ask(question: str) -> list[str]:
            questions.write(f"{question}\n")
            questions.flush()
            return answers.readline().split()

        yield ask
        questions.close()


def test_there_is_no_room_while_it_is_full_and_all_of_it_otherwise(tmp_path: Path) -> None:
    disk = TroubledDisk(tmp_path)
    with asked(disk) as ask:
        before = ask("room")
        disk.fill(full=True)
        full = ask("room"), disk.is_full
        disk.fill(full=False)
        after = ask("room"), disk.is_full
    disk.close()
    assert before[1] == "True"
    assert full == (["0", "False"], True)
    assert after == (before, False)


def test_each_sync_takes_longer_while_it_is_slow(tmp_path: Path) -> None:
    disk = TroubledDisk(tmp_path)
    with asked(disk) as ask:
        disk.slow(LATER_MS)
        assert ask("sync") == ["True"] * 3
    disk.close()


def test_two_processes_have_two_disks(tmp_path: Path) -> None:
    mine, hers = TroubledDisk(tmp_path), TroubledDisk(tmp_path)
    mine.fill(full=True)
    with asked(mine) as first, asked(hers) as second:
        assert (first("room")[1], second("room")[1]) == ("False", "True")
    mine.close()
    hers.close()
