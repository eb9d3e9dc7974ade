"""A child never outlives its parent, a death is noticed, and an error quotes the log."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from conformance.parts.processes import (
    Process,
    kill_all,
    living,
    nobody_starts_after,
    wait_until,
)
from specs.errors import TargetMisbehaved, UsageError

SLEEP = ["sleep", "600"]

PARENT = """
import sys, threading
from pathlib import Path
from conformance.parts.processes import Process, exit_on_sigterm
if "polite" in sys.argv:
    exit_on_sigterm()
children = []
start = lambda: children.append(Process("child", ["sleep", "600"], log=Path(sys.argv[1])))
starter = threading.Thread(target=start)
starter.start()
starter.join()
try:
    print(children[0].pid, flush=True)  # from here on a signal may come
    threading.Event().wait()
finally:
    print("cleaned up", flush=True)
"""


def gone(pid: int) -> bool:
    """Whether there is no such process, or only a dead one that nobody has buried yet."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@contextmanager
def parent_of_a_sleeper(log: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A program with one child: the program, and the child's pid."""
    command = [sys.executable, "-c", PARENT, str(log), *words]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as parent:
        try:
            assert parent.stdout is not None
            yield parent, int(parent.stdout.readline())
        finally:
            parent.kill()


@pytest.mark.parametrize(
    "number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name
)
def test_a_child_dies_with_its_parent(tmp_path: Path, number: signal.Signals) -> None:
    """Whichever way the parent ends, the child is gone, though the thread that asked for it ended long before."""
    with parent_of_a_sleeper(tmp_path / "log") as (parent, child):
        assert not gone(child)
        parent.send_signal(number)
        parent.communicate(timeout=30)
        assert wait_until(lambda: gone(child), deadline_s=30)


def test_a_polite_program_cleans_up_at_sigterm(tmp_path: Path) -> None:
    """With `exit_on_sigterm` a SIGTERM unwinds the program as sys.exit does, with code 143."""
    with parent_of_a_sleeper(tmp_path / "log", "polite") as (parent, child):
        parent.terminate()
        out, _ = parent.communicate(timeout=30)
        assert (out, parent.returncode) == ("cleaned up\n", 143)
        assert wait_until(lambda: gone(child), deadline_s=30)


DEAF = """
import gc, os, signal, sys, threading
from conformance.parts.processes import ctrl_c_is_heard, exit_on_sigterm
exit_on_sigterm()
number = int(sys.argv[1])
gc.callbacks.append(lambda phase, info: phase == "stop" and os.kill(os.getpid(), number))
gc.disable()
try:
    with ctrl_c_is_heard():
        gc.collect()
        gc.callbacks.clear()
        threading.Event().wait(20)
        print("nobody heard", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
finally:
    print("cleaned up", flush=True)
"""


FORGETFUL = """
import os, sys, threading, weakref
from conformance.parts.processes import exit_on_sigterm
exit_on_sigterm()
number = int(sys.argv[1])

class Thing:
    pass

thing = Thing()
gone = weakref.ref(thing, lambda _: os.kill(os.getpid(), number))
try:
    del thing
    threading.Event().wait(20)
    print("nobody heard", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
finally:
    print("cleaned up", flush=True)
"""


TASKS = """
import asyncio, os, signal
from conformance.parts.processes import exit_on_sigterm
exit_on_sigterm()

async def hit():
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.sleep(60)

async def main():
    tasks = [asyncio.ensure_future(hit())]
    await asyncio.sleep(60)

asyncio.run(main())
"""


def test_a_signal_that_comes_while_a_task_works_is_no_tasks_mistake() -> None:
    """The task that was at work carries the end, and nobody asks for it: no traceback."""
    ended = subprocess.run(
        [sys.executable, "-c", TASKS], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stderr) == (143, "")


@pytest.mark.parametrize(
    ("number", "out", "code"),
    [(signal.SIGTERM, "cleaned up\n", 143), (signal.SIGINT, "interrupted\ncleaned up\n", 0)],
    ids=["SIGTERM", "SIGINT"],
)
@pytest.mark.parametrize("program", [DEAF, FORGETFUL], ids=["collector", "weak reference"])
def test_a_signal_in_a_callback_is_not_lost(program: str, number: int, out: str, code: int) -> None:
    """What is raised there Python prints and forgets; so the signal comes again."""
    command = [sys.executable, "-c", program, str(int(number))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.returncode, done.stderr) == (out, code, "")


def test_a_child_survives_the_thread_that_started_it(tmp_path: Path) -> None:
    """The kernel's signal follows the forking thread, so no worker thread forks."""
    children: list[Process] = []
    starter = threading.Thread(
        target=lambda: children.append(Process("child", SLEEP, log=tmp_path / "log"))
    )
    starter.start()
    starter.join()
    with children[0] as child:
        assert wait_until(lambda: psutil.Process(child.pid).name() == "sleep", deadline_s=30)
        assert child.alive
        assert child in living()
    assert not child.alive
    assert child not in living()


def test_leaving_the_context_kills_descendants_too(tmp_path: Path) -> None:
    """A grandchild in the child's group dies with it."""
    script = "sleep 600 & echo $!; wait"
    with Process("shell", ["sh", "-c", script], log=tmp_path / "log") as shell:
        grandchild = shell.wait_until(
            lambda: int(shell.tail() or 0), what="name its child", deadline_s=30
        )
        assert not gone(grandchild)
    assert wait_until(lambda: gone(grandchild), deadline_s=30)


def test_descendants_of_a_child_that_died_alone_are_killed(tmp_path: Path) -> None:
    """When a child's death is noticed, what it left behind in its group goes too."""
    with Process("shell", ["sh", "-c", "sleep 600 & echo $!"], log=tmp_path / "log") as shell:
        assert shell.wait(30) == 0
        grandchild = int(shell.tail())
        assert wait_until(lambda: gone(grandchild), deadline_s=30)


def test_stop_is_a_sigterm_first(tmp_path: Path) -> None:
    """A child that can, ends by itself; its exit code tells."""
    script = "trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.05; done"
    with Process("shell", ["sh", "-c", script], log=tmp_path / "log") as shell:
        shell.wait_until(lambda: "up" in shell.tail(), what="come up", deadline_s=30)
        assert shell.stop(grace_s=30) == 3
        assert shell.tail() == "up\nbye"


def test_stop_kills_what_does_not_listen_even_if_paused(tmp_path: Path) -> None:
    """A child that ignores SIGTERM, or is stopped, is gone after the grace time."""
    script = "trap '' TERM; echo up; while :; do sleep 0.05; done"
    with Process("shell", ["sh", "-c", script], log=tmp_path / "log") as shell:
        shell.wait_until(lambda: "up" in shell.tail(), what="come up", deadline_s=30)
        shell.pause()
        assert wait_until(
            lambda: psutil.Process(shell.pid).status() == psutil.STATUS_STOPPED, deadline_s=30
        )
        assert shell.stop(grace_s=0.2) == -signal.SIGKILL


def test_kill_all_leaves_nobody(tmp_path: Path) -> None:
    """What runs at exit: every child is killed."""
    children = [Process("child", SLEEP, log=tmp_path / "log") for _ in range(3)]
    kill_all()
    assert [child.returncode for child in children] == [-signal.SIGKILL] * 3


def test_an_ordinary_end_leaves_nobody(tmp_path: Path) -> None:
    """A program that just ends, without closing its child, leaves none."""
    script = PARENT.replace("threading.Event().wait()", "pass")
    out = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "log")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert gone(int(out.stdout.split()[0]))


def test_pipes_carry_both_ways(tmp_path: Path) -> None:
    """With pipes a driver's lines go in and out; stderr goes to the log."""
    with Process(
        "cat", ["sh", "-c", "echo hello >&2; cat"], log=tmp_path / "log", pipes=True
    ) as cat:
        cat.stdin.write(b"a line\n")
        cat.stdin.flush()
        assert cat.stdout.readline() == b"a line\n"
        assert cat.tail() == "hello"


def test_environment_and_signals_are_ordinary(tmp_path: Path) -> None:
    """The command gets our environment and its additions, and default signals (Python ignores SIGPIPE)."""
    script = "echo $FLAG $HOME; yes | head -n 1"
    with Process("shell", ["sh", "-c", script], log=tmp_path / "log", env={"FLAG": "up"}) as shell:
        assert shell.wait(30) == 0
        assert shell.tail() == f"up {os.environ['HOME']}\ny"


def test_a_death_while_waiting_is_an_error_that_quotes_the_log(tmp_path: Path) -> None:
    """Nobody waits for the deadline of a dead process, and its last words are told."""
    with (
        Process(
            "The server", ["sh", "-c", "echo out of luck; exit 7"], log=tmp_path / "log"
        ) as server,
        pytest.raises(TargetMisbehaved, match=r"The server died \(exit code 7\)[\s\S]*out of luck"),
    ):
        server.wait_until(lambda: False, what="get ready", deadline_s=60)


def test_a_deadline_is_an_error_that_says_what_was_waited_for(tmp_path: Path) -> None:
    """A process that lives and never gets ready."""
    with (
        Process("The server", SLEEP, log=tmp_path / "log") as server,
        pytest.raises(
            TargetMisbehaved, match=r"was given 0\.2 s and did not get ready\. Its log .* is empty"
        ),
    ):
        server.wait_until(lambda: False, what="get ready", deadline_s=0.2)


def test_an_unknown_command_is_the_users_error(tmp_path: Path) -> None:
    """Known before anything is started."""
    with pytest.raises(UsageError, match="no command 'no-such-command'"):
        Process("x", ["no-such-command"], log=tmp_path / "log")


def test_nobody_starts_after_the_end(tmp_path: Path) -> None:
    """Work in other threads that has begun before can't start anybody either, so that all who live can be killed."""
    end = threading.Event()

    async def start() -> Process:
        return await asyncio.to_thread(Process, "child", SLEEP, log=tmp_path / "log")

    with nobody_starts_after(end):
        with asyncio.run(start()) as child:
            assert child.alive
        end.set()
        with pytest.raises(TargetMisbehaved, match="child is not started"):
            asyncio.run(start())
    with asyncio.run(start()) as other:
        assert other.alive


def test_a_starved_process_stops_and_goes_on_in_turns_until_it_is_resumed(tmp_path: Path) -> None:
    with Process("a starved one", SLEEP, log=tmp_path / "log") as process:
        known = psutil.Process(process.pid)

        def stands() -> bool:
            return known.status() == psutil.STATUS_STOPPED

        process.starve(50)
        for _turn in range(2):
            assert wait_until(stands, deadline_s=30, every_s=0.005)
            assert wait_until(lambda: not stands(), deadline_s=30, every_s=0.005)
        process.resume()
        assert not wait_until(stands, deadline_s=0.3, every_s=0.005)


def test_who_is_starved_can_be_killed(tmp_path: Path) -> None:
    process = Process("a starved one", SLEEP, log=tmp_path / "log")
    process.starve(5)
    process.kill()
    assert not process.alive
    assert living() == []
