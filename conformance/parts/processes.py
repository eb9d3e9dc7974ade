"""Child processes that never outlive their parent, and conditions that are waited for with a deadline.

Rules:
- every child dies with this process, however it ends: context managers on the ordinary way, `atexit` on exit,
  the kernel (see `leash`) after SIGTERM, Ctrl-C or SIGKILL;
- every child is the leader of its own process group, so that a Ctrl-C at the terminal reaches only us and a
  kill reaches its descendants too;
- output goes to a log file, and an error quotes the log's last lines;
- nobody sleeps and hopes: `wait_until` polls a condition under a deadline and notices a death at once.

Why the forking thread: the kernel's signal at the parent's death follows the *thread* that forked. A child
started from a worker thread (`asyncio.to_thread`, a pool) would die when that worker ends. One daemon thread
forks them all.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import logging
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextvars import ContextVar
from pathlib import Path
from types import FrameType, TracebackType
from typing import IO, Self, TypeAlias, TypeVar

from tenacity import RetryCallState, Retrying, retry_if_result, stop_after_delay, wait_fixed

from specs.errors import PartFailed, TargetMisbehaved, Unavailable
from specs.plan.rig import TURN_MS

T = TypeVar("T")
Child: TypeAlias = "subprocess.Popen[bytes]"
Job: TypeAlias = Callable[[], Child]

LEASH = Path(__file__).with_name("leash.py")
TAIL_LINES = 20
ITS_LOG = "Its log"
"""So the sentence begins that follows what a process did wrong."""
LINE_LETTERS = 400
"""So much of a log's line stands in an error."""
SIGNAL_AGAIN_S = 0.05
ENDING = (signal.SIGTERM, signal.SIGHUP)
"""After which a signal is sent again that came where nothing can be raised."""


# ---------------------------------------------------------------------------------------------- waiting


def wait_until(
    probe: Callable[[], T | None], *, deadline_s: float, every_s: float = 0.05
) -> T | None:
    """Calls `probe` each `every_s` seconds until it returns something true, and returns that.

    Returns None when `deadline_s` seconds have passed. What the probe raises goes through.
    """

    def unanswered(_state: RetryCallState) -> None:
        return None

    retrying = Retrying(
        stop=stop_after_delay(deadline_s),
        wait=wait_fixed(every_s),
        retry=retry_if_result(lambda answer: not answer),
        retry_error_callback=unanswered,
    )
    return retrying(probe)


# ---------------------------------------------------------------------------------------------- forking


class _Forker:
    """The one thread of this process that forks; it ends only with the process."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._jobs: queue.SimpleQueue[tuple[Job, Future[Child]]] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="inorder-forker", daemon=True).start()

    def _run(self) -> None:
        while True:
            job, future = self._jobs.get()
            try:
                future.set_result(job())
            except BaseException as error:  # handed to the asking thread, whatever it is
                future.set_exception(error)

    def fork(self, job: Job) -> Child:
        future: Future[Child] = Future()
        self._jobs.put((job, future))
        return future.result()


_the_end: ContextVar[threading.Event | None] = ContextVar("the_end", default=None)


@contextlib.contextmanager
def nobody_starts_after(end: threading.Event) -> Iterator[None]:
    """For work in a thread that is to end at once: after `end` is set a child that it starts is none.

    The work hears of it as of a server that died (TargetMisbehaved), also in the threads that it hands work to with its
    context, as `asyncio.to_thread` does. Set `end` first, and then `kill_all`.
    """
    token = _the_end.set(end)
    try:
        yield
    finally:
        _the_end.reset(token)


_lock = threading.Lock()
_forker: _Forker | None = None
_living: dict[int, Process] = {}


def _the_forker() -> _Forker:
    global _forker
    with _lock:
        # After an os.fork() the thread is gone in the child, so it gets its own.
        if _forker is None or _forker.pid != os.getpid():
            _forker = _Forker()
            _living.clear()
        return _forker


class Process:
    """A running child. A context manager: leaving it kills the child.

    name: how messages call it. argv: the command; its first word is looked up in PATH.
    log: file that gets stdout and stderr (appended). pipes: stdin and stdout are pipes instead (binary,
    `stdin`/`stdout` below) and only stderr goes to the log. env: added to our own environment.
    Raises Unavailable if the command does not exist.
    """

    def __init__(
        self,
        name: str,
        argv: Sequence[str | Path],
        *,
        log: Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        pipes: bool = False,
    ) -> None:
        self.name = name
        self.argv = [str(word) for word in argv]
        self.log = log
        if shutil.which(self.argv[0]) is None:
            raise Unavailable(
                f"{name} can't be started: there is no command {self.argv[0]!r} on this machine."
            )
        log.parent.mkdir(parents=True, exist_ok=True)
        leash = [sys.executable, "-I", "-S", str(LEASH), str(os.getpid()), *self.argv]
        environment = {**os.environ, **(env or {})}

        def fork() -> Child:
            with log.open("ab") as sink:
                return subprocess.Popen(
                    leash,
                    stdin=subprocess.PIPE if pipes else subprocess.DEVNULL,
                    stdout=subprocess.PIPE if pipes else sink,
                    stderr=sink,
                    env=environment,
                    cwd=cwd,
                    process_group=0,
                )

        end = _the_end.get()
        if end is not None and end.is_set():
            raise TargetMisbehaved(f"{name} is not started: what it was for is over.")
        self.pauses = 0
        """How often it was stopped."""
        self._starving: _Turns | None = None
        self._popen = _the_forker().fork(fork)
        with _lock:
            _living[self._popen.pid] = self
        if end is not None and end.is_set():  # who killed all may have come before it was known
            self.kill()

    def __repr__(self) -> str:
        return f"Process({self.name!r}, pid={self.pid}, returncode={self._popen.returncode})"

    @property
    def pid(self) -> int:
        """The pid of the command itself (the leash became it)."""
        return self._popen.pid

    @property
    def stdin(self) -> IO[bytes]:
        """The child's standard input; only with `pipes`."""
        assert self._popen.stdin is not None, "start the process with pipes=True"
        return self._popen.stdin

    @property
    def stdout(self) -> IO[bytes]:
        """The child's standard output; only with `pipes`."""
        assert self._popen.stdout is not None, "start the process with pipes=True"
        return self._popen.stdout

    @property
    def returncode(self) -> int | None:
        """None while it runs; then its exit code, or minus the number of the signal that killed it."""
        before = self._popen.returncode
        code = self._popen.poll()
        if before is None and code is not None:
            self._buried()
        return code

    @property
    def alive(self) -> bool:
        return self.returncode is None

    def tail(self, lines: int = TAIL_LINES) -> str:
        """The last lines of the log."""
        try:
            with self.log.open("rb") as log:
                log.seek(max(0, self.log.stat().st_size - 64 * 1024))
                text = log.read().decode(errors="replace")
        except FileNotFoundError:
            return ""
        return "\n".join(text.splitlines()[-lines:])

    def misbehaved(self, what: str, lines: int = TAIL_LINES) -> PartFailed:
        """The error that says what this process did wrong, with the last lines of its log."""
        tail = "\n".join(_clipped(line) for line in self.tail(lines).splitlines())
        between = " " if lines == 1 else "\n"
        said = (
            f"{ITS_LOG} ({self.log}) ends with:{between}{tail}"
            if tail
            else f"{ITS_LOG} ({self.log}) is empty."
        )
        return PartFailed(f"{self.name} {what}. {said}")

    def check_alive(self) -> None:
        """Raises PartFailed if the process is dead, with its last word."""
        code = self.returncode
        if code is not None:
            raise self.misbehaved(f"died ({how_it_ended(code)})", lines=1)

    def wait_until(
        self, probe: Callable[[], T | None], *, what: str, deadline_s: float, every_s: float = 0.05
    ) -> T:
        """Like the function of that name, for a condition that this process must bring about.

        Raises PartFailed if the process dies or the deadline passes, with its last word. what: the condition, after
        "until".
        """

        def alive_and() -> T | None:
            self.check_alive()
            return probe()

        answer = wait_until(alive_and, deadline_s=deadline_s, every_s=every_s)
        if answer is None or answer is False:
            raise self.misbehaved(f"was given {deadline_s:g} s and did not {what}", lines=1)
        return answer

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to the process itself; nothing if it is dead."""
        if self.alive:
            self._popen.send_signal(number)

    def pause(self) -> None:
        """SIGSTOP to its group, as a script may have started what works: its connections stay open, its clocks go on,
        it does nothing."""
        self.pauses += 1
        self._signal_group(signal.SIGSTOP)

    def starve(self, percent: int) -> None:
        """Until `resume` it runs for so much of each turn, and stands still for the rest. Nothing for 100."""
        self.resume()
        if percent < 100:
            self._starving = _Turns(self, percent)

    def resume(self) -> None:
        """It goes on as ever."""
        starving, self._starving = self._starving, None
        if starving is not None:
            starving.end()
        self.go_on()

    def go_on(self) -> None:
        """SIGCONT to its group."""
        self._signal_group(signal.SIGCONT)

    def wait(self, deadline_s: float) -> int | None:
        """Waits for its end; the exit code, or None if it still runs after `deadline_s` seconds."""
        try:
            self._popen.wait(deadline_s)
        except subprocess.TimeoutExpired:
            return None
        self._buried()
        return self._popen.returncode

    def stop(self, grace_s: float = 5.0) -> int:
        """SIGTERM, and SIGKILL to the whole group if it still runs after `grace_s` seconds. Its exit code."""
        if self.alive:
            self.resume()  # a stopped process would not hear the SIGTERM
            self.signal(signal.SIGTERM)
            self.wait(grace_s)
        return self.kill()

    def kill(self) -> int:
        """SIGKILL to the process and its group, and waits until it is gone. Its exit code. What lies in its pipes is
        lost: who reads them calls `end`, reads on, and then `close_pipes`.
        """
        code = self.end()
        self.close_pipes()
        return code

    def end(self) -> int:
        """As `kill`, and what it had written can still be read."""
        if self._popen.returncode is None:
            self._kill_group()
            self._popen.wait()
            self._buried()
        assert self._popen.returncode is not None
        return self._popen.returncode

    def close_pipes(self) -> None:
        """Nobody reads or writes any more."""
        for pipe in (self._popen.stdin, self._popen.stdout):
            if pipe is not None:
                # Closing flushes what the dead reader no longer wants.
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()

    def _kill_group(self) -> None:
        try:
            os.killpg(self._popen.pid, signal.SIGKILL)
        except ProcessLookupError:
            # Only in the moment between fork and setpgid, or when the group is already empty.
            self._popen.kill()

    def _signal_group(self, number: int) -> None:
        """Nothing if it is dead."""
        if self.alive:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._popen.pid, number)

    def _buried(self) -> None:
        """Once, when its death is noticed: descendants of its group die with it."""
        with _lock:
            mine = _living.pop(self._popen.pid, None)
        if mine is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._popen.pid, signal.SIGKILL)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()


class _Turns:
    """Stops a process and lets it go on, turn by turn, until the end of one of us."""

    def __init__(self, process: Process, percent: int) -> None:
        self._process = process
        self._runs_s = TURN_MS * percent / 100_000
        self._stands_s = TURN_MS / 1000 - self._runs_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._take, name="inorder-turns", daemon=True)
        self._thread.start()

    def _take(self) -> None:
        while self._process.alive:
            self._process.pause()
            if self._over.wait(self._stands_s):
                return
            self._process.go_on()
            if self._over.wait(self._runs_s):
                return

    def end(self) -> None:
        """No further turn; it may stand still."""
        self._over.set()
        self._thread.join()


def _clipped(line: str) -> str:
    line = printable(line)
    return line if len(line) <= LINE_LETTERS else f"{line[:LINE_LETTERS]}..."


def printable(text: str) -> str:
    """What a process wrote, as a terminal can be shown it: no control character of its own gets through."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def how_it_ended(code: int) -> str:
    """In words. code: as of `Process.returncode`."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


# ---------------------------------------------------------------------------------------------- the end


def living() -> list[Process]:
    """The children of this process that still run."""
    with _lock:
        children = list(_living.values())
    return [child for child in children if child.alive]


@atexit.register
def kill_all() -> None:
    """Kills every child of this process that still runs."""
    with _lock:
        ours = _forker is not None and _forker.pid == os.getpid()
        children = list(_living.values()) if ours else []
    for child in children:
        child.kill()


def _is_no_end(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], SystemExit | KeyboardInterrupt))


def exit_on_sigterm() -> None:
    """Makes SIGTERM and SIGHUP end this program as `sys.exit` does, so that context managers clean up.

    For programs (the command line), from their main thread; a handler that somebody else set stays. What a signal ended
    is no task's mistake: asyncio would tell of each one that nobody asks any more, with a traceback. And where Python
    ignores what a handler raises (in a finalizer, or a callback of a weak reference), the signal comes again.
    """
    logging.getLogger("asyncio").addFilter(_is_no_end)
    others = sys.unraisablehook
    ends = {128 + number: number for number in ENDING}

    def ignored(what: sys.UnraisableHookArgs) -> None:
        end = what.exc_value
        if isinstance(end, KeyboardInterrupt):
            _send_again(signal.SIGINT)
        elif isinstance(end, SystemExit) and end.code in ends:
            _send_again(ends[end.code])
        else:
            others(what)

    sys.unraisablehook = ignored

    def leave(number: int, frame: FrameType | None) -> None:
        if is_heard(number, frame):
            sys.exit(128 + number)

    for number in ENDING:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, leave)


@contextlib.contextmanager
def ctrl_c_is_heard() -> Iterator[None]:
    """While it lasts no Ctrl-C is lost to a moment whose exceptions Python ignores; see `ctrl_c_goes_to`."""

    def on_ctrl_c(number: int, frame: FrameType | None) -> None:
        if is_heard(number, frame):
            raise KeyboardInterrupt

    with ctrl_c_goes_to(on_ctrl_c):
        yield


@contextlib.contextmanager
def ctrl_c_goes_to(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """While it lasts the handler hears of Ctrl-C.

    Only in the main thread, and only where Python's own handler is set: asyncio, for one, looks for just that, so
    this is for a stretch of work and not for a whole program.
    """
    here = threading.current_thread() is threading.main_thread()
    if not here or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def is_heard(number: int, frame: FrameType | None) -> bool:
    """Whether what a signal's handler raises there comes out; where it does not, the signal is sent again."""
    if _is_ignored(frame):
        _send_again(number)
        return False
    return True


def _is_ignored(frame: FrameType | None) -> bool:
    """Whether an exception raised there would be printed and forgotten: in a finalizer, or a callback of `gc`.

    Hypothesis has such a callback; what ends a search must not end in it.
    """
    callbacks = {getattr(callback, "__code__", None) for callback in gc.callbacks}
    while frame is not None:
        if frame.f_code in callbacks or frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False


def _send_again(number: int) -> None:
    later = threading.Timer(SIGNAL_AGAIN_S, os.kill, (os.getpid(), number))
    later.daemon = True
    later.start()
