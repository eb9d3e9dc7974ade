"""What continuous integration makes, one part after the other, in an hour at most; needs Python alone.

`make test`, then `make promises`, then the long tests whose turn it is. Each part is a process of its own; one that
takes too long gets a Ctrl-C, and what is left of it is killed. Nothing begins after `NOTHING_AFTER_S`. A part that is
red ends none of the others. The last line counts what all of them passed and failed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MOST_S, NOTHING_AFTER_S = 60 * 60, 55 * 60
LAST_S = 11 * 60
"""What was begun last is finished within this time: a page is ended after ten minutes."""
GRACE_S = 60
"""How long a part may clean up after its Ctrl-C."""
PR_SET_CHILD_SUBREAPER = 36

_PYTEST = re.compile(r"^=* ?(?=.*\b(?:passed|failed|skipped|errors?)\b)(.+) in [\d.]+s\b.*?=*$")
_PROMISES = re.compile(r"^promises: (.+)$")
_COUNT = re.compile(r"(\d+) (passed|failed|skipped|errors?|kept|broken|not tried)")
_MEANS = {
    "kept": "passed",
    "broken": "failed",
    "not tried": "skipped",
    "error": "failed",
    "errors": "failed",
}


@dataclass(frozen=True, slots=True)
class Part:
    """most_s: after which it is ended; None for what is left of the hour. may_be_cut: whether that is no failure.

    A word of the command may hold {minutes}: for how long it may begin something, so that it ends by itself before it
    is ended. left: the exit code by which it says that nothing is broken, and that it had no time for all; what it
    names as not tried is skipped then. A slow machine turns nothing red that is right.
    """

    name: str
    command: Sequence[str]
    counts: re.Pattern[str]
    most_s: float | None = None
    may_be_cut: bool = False
    left: int | None = None


PARTS = (
    Part("make test", ("make", "test"), _PYTEST),
    Part(
        "make promises",
        ("make", "promises", "ARGS=--budget {minutes}m"),
        _PROMISES,
        most_s=29 * 60,
        left=2,
    ),
    Part("make test-turn", ("make", "test-turn"), _PYTEST, most_s=8 * 60, may_be_cut=True),
)


@dataclass(slots=True)
class Tally:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def add(self, line: str) -> None:
        for number, word in _COUNT.findall(line):
            name = _MEANS.get(word, word)
            setattr(self, name, getattr(self, name) + int(number))

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def say(line: str) -> None:
    sys.stderr.write(f"ci: {line}\n")
    sys.stderr.flush()


def count(part: Part, lines: Sequence[str], code: int | None) -> Tally:
    """What a part counted in its last such line. code: with which it ended; None where it was ended at its limit."""
    told = [line for line in lines if part.counts.match(line)]
    tally = Tally()
    if told:
        tally.add(told[-1])
    cut_well = code is None and part.may_be_cut
    left = code is not None and code == part.left and tally.skipped > 0
    if code != 0 and not cut_well and not left and tally.failed == 0:
        tally.failed += 1  # lint, types, a part that told nothing
    return tally


def run(part: Part, limit_s: float, write: Callable[[str], object]) -> tuple[list[str], int | None]:
    """Its lines, and its exit code; None where it was ended at its limit. All that it started is ended with it."""
    minutes = max(1, int((limit_s - LAST_S) / 60))
    process = subprocess.Popen(
        [word.replace("{minutes}", str(minutes)) for word in part.command],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        text=True,
        errors="replace",
    )
    lines: list[str] = []

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            write(line)
            lines.append(line.rstrip("\n"))

    # Read beside it: a process that was forgotten may hold the pipe open for ever.
    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    signal.signal(signal.SIGCHLD, lambda number, frame: reap_orphans(process.pid))
    code: int | None = None
    try:
        code = process.wait(limit_s)
    except subprocess.TimeoutExpired:
        say(f"{part.name} takes longer than {limit_s / 60:.0f} minutes: ending it")
        interrupt(process)
    except BaseException:
        interrupt(process)
        raise
    finally:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        end_all()
        reader.join(GRACE_S)
    return lines, code


def interrupt(process: subprocess.Popen[str]) -> None:
    """As a Ctrl-C at a terminal: all of its group hear of it, and have some time to clean up."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(GRACE_S)


def end_all() -> None:
    """Kills what came of this process, until there is none: orphans of it are its children (see `adopt_orphans`)."""
    children: list[int] | None = None
    while children or children is None:
        children = descendants(os.getpid())
        for pid in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def reap_orphans(ours: int) -> None:
    """As init does: a test that waits until a process is gone must not wait for one that nobody asks for."""
    with contextlib.suppress(ChildProcessError):
        while found := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if found.si_pid == ours:
                return
            os.waitpid(found.si_pid, 0)


def descendants(pid: int) -> list[int]:
    """The processes below one, by /proc; those that have ended and wait to be asked are not among them."""
    below: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, parent = stat.read_text(errors="replace").rpartition(")")[2].split()[:2]
            if state != "Z":
                below.setdefault(int(parent), []).append(int(stat.parent.name))
    found, ahead = [], [pid]
    while ahead:
        these = below.get(ahead.pop(), [])
        found += these
        ahead += these
    return found


def adopt_orphans() -> None:
    """Whoever loses its parent below us becomes our child, and is ended with the rest (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def main(parts: Sequence[Part] = PARTS) -> int:
    """The exit code: 0 when nothing failed."""
    adopt_orphans()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, frame: sys.exit(128 + number))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    began, total, told = time.monotonic(), Tally(), []
    for part in parts:
        gone = time.monotonic() - began
        if gone > NOTHING_AFTER_S:
            told.append(f"{part.name}: not begun, {gone / 60:.0f} minutes are gone")
            total.skipped += 1
            continue
        limit_s = min(part.most_s or MOST_S, MOST_S - GRACE_S - gone)
        lines, code = run(part, limit_s, sys.stdout.write)
        tally = count(part, lines, code)
        took = (time.monotonic() - began - gone) / 60
        how = "ended at its limit" if code is None else f"exit code {code}"
        told.append(f"{part.name}: {tally} ({took:.1f} minutes, {how})")
        say(told[-1])
        total.passed += tally.passed
        total.failed += tally.failed
        total.skipped += tally.skipped
    sys.stdout.flush()
    for line in told:
        say(line)
    sys.stdout.write(f"{total}\n")
    sys.stdout.flush()
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
