"""A driver as a child process: requests with answers, events to a handler, every line held against its model.

The first line that can't be, whatever it breaks (its model, the turns, the clock, or whoever takes it down), and the
end of a driver that nobody has ended, are its `failure`: whoever waits for an answer hears of it at once, and everybody
else who asks (`check`). What comes after a wrong line is read and left out.

Times: a driver runs on this machine, so the time of a line is at most that of its arrival, and at least that of the
request that it answers, or of the process' start. What is told of one client ascends, but for lines of several threads
that overtake each other.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import queue
import select
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from conformance.drivers.protocol import (
    ANSWER_BYTES_MAX,
    LINE_BYTES_MAX,
    QUOTED,
    VERSIONS,
    WrongLine,
    parse,
    read_said,
)
from conformance.drivers.turns import ANSWERS_WITH, Turns
from conformance.parts.processes import Process, how_it_ended, printable
from specs.errors import DriverBug, DriverFailed, TargetMisbehaved, UsageError
from specs.history.clock import host_clock

ANSWER_S = 60.0
STOP_S = 30.0
ANSWER_VARIABLE = "INORDER_DRIVER_ANSWER_S"
"""Of the environment: how many seconds a request has, if not ANSWER_S."""
LOOK_MS = 200
END_S = 5.0
"""So long after its last line a driver has its exit code, or it only closed its stdout."""
EARLY_US = 50_000
"""So much before its request a line's time may lie: the kernel's coarse clock ticks each 10 ms at the slowest."""
LATE_US = 1_000
"""So much after its arrival."""
BEHIND_US = 1_000_000
"""So much before an earlier event of its client, as of a thread that took the time and then waited for its turn: what
is recorded of a client is in the order of its lines, and would seem to have happened later."""
TAIL_LINES = 5
_ASKED = 40
"""So much of a verb is named."""
Event = Mapping[str, Any]
_DAY_US = 86_400_000_000


def answer_s() -> float:
    """How long a request may take, in seconds. Raises UsageError for what is no number of seconds."""
    text = os.environ.get(ANSWER_VARIABLE, "")
    if not text:
        return ANSWER_S
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < threading.TIMEOUT_MAX:
        raise UsageError(f"{ANSWER_VARIABLE} must be a number of seconds, not {text!r}")
    return seconds


@dataclass(frozen=True, slots=True)
class _Asked:
    """The request whose answer is waited for. ends: once it is answered, the process is to end."""

    number: Any
    verb: str
    at_us: int
    ends: bool


class DriverProcess:
    """A running driver; leaving it kills it. on_event is called in the reader's thread, in the order of the lines.

    env: added to our own environment.

    Raises DriverBug when it says what can't be, DriverFailed when it dies, keeps silent or refuses.
    """

    def __init__(
        self,
        name: str,
        argv: Sequence[str | Path],
        log: Path,
        on_event: Callable[[Event], Any],
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.failure: TargetMisbehaved | None = None
        self.version = VERSIONS[0]
        """Of the protocol that it speaks."""
        self._on_event = on_event
        self.answer_s = answer_s()
        """How long a request may take, and whoever writes one may wait, in seconds."""
        self._is_ended = False  # by us, or at our request
        self._turns = Turns()
        self._asked: _Asked | None = None
        self._last_verb = ""
        self._has_said = False
        self._answers: queue.SimpleQueue[Mapping[str, Any] | None] = queue.SimpleQueue()
        self._numbers = itertools.count(1)
        self._one_writes = threading.Lock()
        self._now_us = host_clock().monotonic_us
        self._began_us = self._now_us()
        self._latest_us: dict[str, int] = {}  # by client: of its latest event
        self._pauses = 0
        self._process = Process(name, argv, log=log, pipes=True, env=env)
        self._reader = threading.Thread(target=self._read, name=f"{name}-reader", daemon=True)
        self._reader.start()

    @property
    def process(self) -> Process:
        return self._process

    @property
    def faults(self) -> list[str]:
        """What it wrote that can't be: the first one, or nothing."""
        return [str(self.failure)] if isinstance(self.failure, DriverBug) else []

    def check(self) -> None:
        """Raises what it has done wrong, if anything."""
        if self.failure is not None:
            raise self.failure

    def hello(self) -> Mapping[str, Any]:
        """Greet it; the answer names the driver and its client's version.

        Who refuses the newest version of the protocol is asked for the ones before. Raises DriverBug where all are
        refused.
        """
        said: Mapping[str, Any] = {}
        for version in sorted(VERSIONS, reverse=True):
            asked = {"verb": "hello", "id": next(self._numbers), "version": version}
            said = self.ask_anything(asked)
            if said["ok"]:
                break
        else:
            spoken = " and ".join(map(str, VERSIONS))
            raise DriverBug(
                f"{self.name} refused the versions {spoken} of the protocol: {printable(said['error'][:QUOTED])}"
            )
        self.version = said.get("version", VERSIONS[0])
        self._turns.hosts = bool(said.get("hosts"))
        return said

    def ask(self, verb: str, **fields: Any) -> Mapping[str, Any]:
        """One request and its answer. DriverFailed when it is refused."""
        answer = self.ask_anything({"verb": verb, "id": next(self._numbers), **fields})
        if not answer["ok"]:
            raise self._refusal(verb, answer["error"])
        return answer

    def ask_anything(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """A request that may be wrong, and its answer. One at a time."""
        self.check()
        verb = str(request.get("verb"))[:_ASKED]
        ends = verb == "stop" and "client" not in request
        self._asked = _Asked(request.get("id"), verb, self._now_us(), ends)
        self._write(request)
        try:
            answer = self._answers.get(timeout=self.answer_s)
        except queue.Empty:
            hint = (
                ""
                if self._has_said
                else " and has written no line so far (is each flushed as it is written?)"
            )
            self._fail(self._misbehaved(f"did not answer {verb} in {self.answer_s:g} s{hint}"))
            answer = None
        if answer is None:
            self.check()
            raise self._misbehaved(f"ended before it answered {verb}")
        return answer

    def next_number(self) -> int:
        """A request's number, taken before the request: see `send`."""
        return next(self._numbers)

    def send(self, number: int, verb: str = "send", /, **fields: Any) -> None:
        """Ask for a send; its `sent` event carries the number. verb: another one that sends."""
        self.check()
        self._write({"verb": verb, "id": number, **fields})

    def stop(self) -> int:
        """A clean end; the exit code. Every event has been handled when it returns."""
        self.ask("stop")
        code = self._process.wait(STOP_S)
        if code is None:
            self._fail(self._misbehaved(f"did not end within {STOP_S:g} s after it answered stop"))
        self._reader.join(STOP_S)
        self.check()
        return 0 if code is None else code

    def kill(self) -> None:
        """SIGKILL; what it had written is still read, to the last line that it had ended."""
        self._is_ended = True
        self._process.end()
        self._reader.join(STOP_S)
        if not self._reader.is_alive():  # whoever closes what is being read waits for its reader
            self._process.close_pipes()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    def _write(self, request: Mapping[str, Any]) -> None:
        self._last_verb = str(request.get("verb"))[:_ASKED]
        self._turns.asks(request, self._now_us())
        data = json.dumps(request).encode() + b"\n"
        try:
            with self._one_writes:
                self._write_all(data)
        except (OSError, ValueError) as error:  # ValueError: it was killed, and the pipe is closed
            self._reader.join(
                END_S
            )  # it is dead, and the reader says how, unless stdin alone is closed
            self.check()
            raise self._misbehaved(f"takes no request any more ({error})") from error

    def _write_all(self, data: bytes) -> None:
        """Who reads nothing any more fills the pipe: nobody waits for him for ever."""
        stdin = self._process.stdin.fileno()
        os.set_blocking(stdin, False)
        waiting = select.poll()
        waiting.register(stdin, select.POLLOUT)
        until_us = self._now_us() + self.answer_s * 1_000_000
        while data:
            self.check()
            if waiting.poll(LOOK_MS):
                with contextlib.suppress(BlockingIOError):
                    data = data[os.write(stdin, data) :]
                    until_us = self._now_us() + self.answer_s * 1_000_000
            elif self._now_us() >= until_us:
                what = f"took no request for {self.answer_s:g} s: it does not read its stdin"
                self._fail(self._misbehaved(what))

    # ---------------------------------------------------------------- what goes wrong

    def _misbehaved(self, what: str) -> DriverFailed:
        return DriverFailed(str(self._process.misbehaved(what, TAIL_LINES)))

    def _refusal(self, verb: str, error: str) -> DriverFailed:
        return self._misbehaved(f"refused {verb}: {printable(error[:QUOTED])}")

    def _fail(self, error: TargetMisbehaved) -> None:
        """The first one counts, and whoever waits for an answer hears of it."""
        if self.failure is None:
            self.failure = error
        self._answers.put(None)

    def _fails_by(self, raw: bytes, error: Exception) -> None:
        """A line can't be, or can't be taken down."""
        if isinstance(error, DriverFailed):
            self._fail(error)
            return
        text = raw.rstrip(b"\r\n")
        quoted = repr(text[:QUOTED])[1:] + (
            "" if len(text) <= QUOTED else f"... ({len(text)} bytes)"
        )
        kind: type[TargetMisbehaved] = DriverBug
        why = str(error)
        if not isinstance(error, WrongLine | DriverBug):
            kind, why = (
                TargetMisbehaved,
                f"it can't be taken down ({type(error).__name__}: {error})",
            )
        if len(why) > 3 * QUOTED:
            why = f"{why[: 3 * QUOTED]}..."
        failure = kind(f"{self.name} wrote the line {quoted}, which can't be: {why}")
        failure.__cause__ = error
        self._fail(failure)

    # ---------------------------------------------------------------- the reader's thread

    def _read(self) -> None:
        """Until the end of its stdout. A line that an ended process had begun to write is none."""
        raw = b"\n"
        while raw:
            try:
                raw = self._process.stdout.readline(ANSWER_BYTES_MAX + 1)
                if self.failure is None and raw:
                    self._takes(raw, self._now_us())
            except Exception as error:  # whatever it is, the run is to end by it
                self._fails_by(raw, error)
        self._end()

    def _takes(self, raw: bytes, arrived_us: int) -> None:
        self._has_said = True
        if len(raw) > ANSWER_BYTES_MAX:
            raise WrongLine(f"it is longer than {ANSWER_BYTES_MAX} bytes")
        if raw.endswith(b"\n"):
            self._line(raw, arrived_us)

    def _end(self) -> None:
        """It says nothing any more. Was it told to end?"""
        code = None if self._is_ended else self._process.wait(END_S)
        if self._is_ended:
            self._answers.put(None)
            return
        how = "closed its stdout and runs on" if code is None else f"died ({how_it_ended(code)})"
        asked = self._asked
        if asked is not None:
            when = f"before it answered {asked.verb}"
        else:
            when = f"after {self._last_verb or 'its start'}, and was not told to"
        self._fail(self._misbehaved(f"{how} {when}"))

    def _line(self, raw: bytes, arrived_us: int) -> None:
        line = parse(raw)
        read_said(line)
        if "event" in line:
            if len(raw) > LINE_BYTES_MAX + 1:
                raise WrongLine(f"an event is at most {LINE_BYTES_MAX} bytes long")
            asked_us = self._turns.takes(line)
            self._check_time(line, asked_us, arrived_us)
            self._on_event(line)
        else:
            self._answer(line, arrived_us)

    def _answer(self, line: Mapping[str, Any], arrived_us: int) -> None:
        number, asked = line["reply"], self._asked
        if asked is not None and number in (asked.number, None):
            if line["ok"]:
                lacking = [each for each in ANSWERS_WITH.get(asked.verb, ()) if each not in line]
                if lacking:
                    raise WrongLine(f"the answer to {asked.verb} must hold {' and '.join(lacking)}")
            self._check_time(line, asked.at_us, arrived_us)
            self._is_ended = self._is_ended or (asked.ends and line["ok"])
            self._asked = None
            self._answers.put(line)
        elif not line["ok"] and (number is None or self._turns.is_send(number)):
            raise self._refusal("a send" if number is None else f"send {number}", line["error"])
        elif self._turns.is_send(number):
            raise WrongLine(
                f"it answers request {number}, which is a send: that is told by the event `sent`"
            )
        else:
            raise WrongLine(
                f"it answers request {number}, which nobody asked or which was answered already"
            )

    def _check_time(self, line: Event, asked_us: int | None, arrived_us: int) -> None:
        """Raises WrongLine for a time at which the line can't have been written."""
        if self._pauses != self._process.pauses:  # who stood still may have taken the time before
            self._pauses = self._process.pauses
            self._latest_us.clear()
        client = line.get("client", "") if self._turns.hosts else ""
        at_us, is_event = line["at_us"], "event" in line
        first_us = self._began_us if asked_us is None else asked_us
        if is_event:
            first_us = max(first_us, self._latest_us.get(client, 0) - BEHIND_US)
        if first_us - EARLY_US <= at_us <= arrived_us + LATE_US:
            if is_event:
                self._latest_us[client] = max(self._latest_us.get(client, 0), at_us)
            return
        if at_us > arrived_us:
            off = f"{_spelt(at_us - arrived_us)} after the line arrived"
        else:
            before = (
                "the request that it answers"
                if asked_us == first_us
                else "it can have been written"
            )
            off = f"{_spelt(first_us - at_us)} before {before}"
        raise WrongLine(
            f"its at_us lies {off}; at_us is this machine's CLOCK_MONOTONIC in µs, taken as the line is written "
            f"(Python: time.monotonic_ns() // 1000){_mistaken(at_us, arrived_us, self._began_us)}"
        )


def _spelt(us: int) -> str:
    return f"{us / 1_000_000:.3f} s" if us < _DAY_US else f"{us // _DAY_US} days"


def _mistaken(at_us: int, now_us: int, began_us: int) -> str:
    """Which other clock, or unit, it seems to be; empty where none fits."""
    wall_us = host_clock().wall_us()
    known = {
        "the wall clock in ns": (wall_us * 1000, 1_000_000_000),
        "the wall clock in µs": (wall_us, 1_000_000),
        "the wall clock in ms": (wall_us // 1000, 1000),
        "the wall clock in s": (wall_us // 1_000_000, 1),
        "the right clock in ns": (now_us * 1000, 1_000_000_000),
        "the right clock in ms": (now_us // 1000, 1000),
        "a clock that began with the process": (now_us - began_us, 1_000_000),
    }
    for name, (value, second) in known.items():
        if abs(at_us - value) <= 2 * second:
            return f"; this one looks like {name}"
    return ""
