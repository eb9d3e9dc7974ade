"""What continuous integration makes of its parts: what is counted, what is ended, and what the last line says."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import psutil
import pytest

from conformance.waiting import wait_until

ROOT = Path(__file__).parents[2]
SUMMARY = (
    "=========== 2 failed, 14113 passed, 23 skipped, 7 deselected in 983.21s (0:16:23) ==========="
)
PROGRAM = """
import re, sys
sys.path.insert(0, {tools!r})
import ci
ci.GRACE_S = 1
{before}
parts = [{parts}]
sys.exit(ci.main(parts))
"""
LEFT = (
    "import subprocess, time; p = subprocess.Popen(['sleep', '600'], start_new_session=True); "
    "print(p.pid, flush=True)"
)


@pytest.fixture(scope="module")
def ci() -> ModuleType:
    spec = importlib.util.spec_from_file_location("inorder_ci", ROOT / "tools" / "ci.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def made(*parts: str, before: str = "") -> subprocess.CompletedProcess[str]:
    """Parts as `NAME, COMMAND, and what else` in a process of their own."""
    text = PROGRAM.format(tools=str(ROOT / "tools"), before=before, parts=", ".join(parts))
    return subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=120, check=False
    )


def is_gone(pid: int) -> bool:
    """Whether it has been killed: at once, or as soon as whoever is to ask for it has done so."""
    return wait_until(lambda: not psutil.pid_exists(pid), deadline_s=20)


def part(name: str, code: str, more: str = "") -> str:
    command = ("python3", "-c", code)
    return f"ci.Part({name!r}, {command!r}, ci._PYTEST{more})"


@pytest.mark.parametrize(
    ("line", "code", "expected"),
    [
        (SUMMARY, 1, (14113, 2, 23)),
        ("5 passed in 0.01s", 0, (5, 0, 0)),
        ("= 1 passed, 1 warning, 2 errors in 3.00s =", 1, (1, 2, 0)),
        ("1 passed in 1.0s", 2, (1, 1, 0)),
        ("5 passed in 0.01s", 1, (5, 1, 0)),
        ("5 passed in 0.01s", None, (5, 1, 0)),
    ],
)
def test_what_pytest_counted_is_counted(
    ci: ModuleType, line: str, code: int | None, expected: tuple[int, int, int]
) -> None:
    """And what failed beside it, as lint and types, is one that failed."""
    tally = ci.count(
        ci.PARTS[0], ["2 passed in 1.0s", "of a test", line, "Success: no issues"], code
    )
    assert (tally.passed, tally.failed, tally.skipped) == expected


def test_a_part_that_counts_nothing_fails(ci: ModuleType) -> None:
    """As `make test` where lint is red."""
    assert str(ci.count(ci.PARTS[0], ["E501 Line too long"], 1)) == "0 passed, 1 failed, 0 skipped"


def test_what_the_gate_counted_is_counted(ci: ModuleType) -> None:
    """A promise that is broken is one that failed."""
    tally = ci.count(ci.PARTS[1], ["promises: 15 kept, 1 broken, 2 not tried"], 1)
    assert str(tally) == "15 passed, 1 failed, 2 skipped"


def test_what_had_no_time_is_skipped(ci: ModuleType) -> None:
    """By the exit code that says so, and only where what was not tried is counted."""
    left = ["promises: 12 kept, 0 broken, 5 not tried"]
    assert str(ci.count(ci.PARTS[1], left, 2)) == "12 passed, 0 failed, 5 skipped"
    assert ci.count(ci.PARTS[1], ["promises: 17 kept, 0 broken, 0 not tried"], 2).failed == 1
    assert ci.count(ci.PARTS[1], [], 2).failed == 1
    assert ci.count(ci.PARTS[0], ["5 passed in 0.01s"], 2).failed == 1


@pytest.mark.parametrize(("limit_s", "minutes"), [(29 * 60, 18), (13 * 60, 2), (60, 1)])
def test_a_part_is_told_for_how_long_it_may_begin_something(limit_s: int, minutes: int) -> None:
    """So that it ends by itself."""
    done = made(part("tells", "print('{minutes} passed in 1.0s')", f", {limit_s}"))
    assert done.stdout.splitlines()[-1] == f"{minutes} passed, 0 failed, 0 skipped"


def test_the_last_line_counts_all_parts() -> None:
    """A part that is red ends none of the others."""
    red = part("red", "print('1 failed, 2 passed in 1.0s'); raise SystemExit(1)")
    green = part("green", "print('3 passed, 1 skipped in 1.0s')")
    done = made(red, green)
    assert (done.stdout.splitlines()[-1], done.returncode) == ("5 passed, 1 failed, 1 skipped", 1)
    done = made(green, green)
    assert (done.stdout.splitlines()[-1], done.returncode) == ("6 passed, 0 failed, 2 skipped", 0)


@pytest.mark.parametrize(("may_be_cut", "failed"), [(True, 0), (False, 1)])
def test_a_part_is_ended_at_its_limit(may_be_cut: bool, failed: int) -> None:
    """With what it started, wherever that runs."""
    done = made(part("slow", f"{LEFT}; time.sleep(600)", f", 2, {may_be_cut}"))
    assert done.stdout.splitlines()[-1] == f"0 passed, {failed} failed, 0 skipped"
    assert is_gone(int(done.stdout.splitlines()[0]))


def test_what_a_part_leaves_behind_is_ended() -> None:
    """A process that it forgot, in a session of its own."""
    done = made(part("forgets", f"{LEFT}; print('1 passed in 0.1s')"))
    assert done.returncode == 0, done.stderr
    assert is_gone(int(done.stdout.splitlines()[0]))


def test_nothing_begins_after_its_time() -> None:
    """It is told, and skipped."""
    green = part("green", "print('3 passed in 1.0s')")
    done = made(green, before="ci.NOTHING_AFTER_S = -1")
    assert done.stdout.splitlines()[-1] == "0 passed, 0 failed, 1 skipped"
    assert "green: not begun" in done.stderr


def test_ctrl_c_ends_what_runs() -> None:
    """So does SIGTERM, which CI sends."""
    text = PROGRAM.format(
        tools=str(ROOT / "tools"), before="", parts=part("slow", f"{LEFT}; time.sleep(600)")
    )
    with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True) as main:
        assert main.stdout is not None
        left = int(main.stdout.readline())
        main.terminate()
        assert main.wait(60) == 128 + 15
    assert is_gone(left)
