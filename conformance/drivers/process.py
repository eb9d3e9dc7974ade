"""A driver as a child process: requests with answers, events to a handler, every line held against its model."""

from __future__ import annotations

import itertools
import json
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from conformance.drivers.protocol import ANSWER_BYTES_MAX, VERSIONS, WrongLine, read_said
from conformance.parts.processes import Process

ANSWER_S = 60.0
STOP_S = 30.0
Event = Mapping[str, Any]


class DriverProcess:
    """A running driver; leaving it kills it. on_event is called in the reader's thread, in the order of the lines.

    env: added to our own environment.

    Raises TargetMisbehaved when the driver dies, keeps silent or says what the protocol does not know.
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
        self.faults: list[str] = []
        self._on_event = on_event
        self._is_greeted = False
        self._is_killed = False
        self.version = VERSIONS[0]
        """Of the protocol that it speaks."""
        self._answers: queue.SimpleQueue[Mapping[str, Any] | None] = queue.SimpleQueue()
        self._numbers = itertools.count(1)
        self._process = Process(name, argv, log=log, pipes=True, env=env)
        self._reader = threading.Thread(target=self._read, name=f"{name}-reader", daemon=True)
        self._reader.start()

    @property
    def process(self) -> Process:
        return self._process

    def hello(self) -> Mapping[str, Any]:
        """Greet it; the answer names the driver and its client's version.

        Who refuses the newest version of the protocol is asked for the ones before.
        """
        for version in sorted(VERSIONS, reverse=True)[:-1]:
            said = self.ask_anything(
                {"verb": "hello", "id": next(self._numbers), "version": version}
            )
            if said["ok"]:
                break
            if (
                said["error"] in self.faults
            ):  # it was no answer to a greeting; another version mends nothing
                raise self._process.misbehaved(f"greets wrongly: {said['error']}")
        else:
            said = self.ask("hello", version=VERSIONS[0])
        self.version = said.get("version", VERSIONS[0])
        self._is_greeted = True
        return said

    def ask(self, verb: str, **fields: Any) -> Mapping[str, Any]:
        """One request and its answer. TargetMisbehaved when it is refused."""
        answer = self.ask_anything({"verb": verb, "id": next(self._numbers), **fields})
        if not answer["ok"]:
            raise self._process.misbehaved(f"refused {verb}: {answer['error']}")
        return answer

    def ask_anything(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """A request that may be wrong, and its answer. One at a time."""
        self._write(request)
        try:
            answer = self._answers.get(timeout=ANSWER_S)
        except queue.Empty:
            raise self._process.misbehaved(
                f"did not answer {str(request.get('verb'))[:40]} in {ANSWER_S:g} s"
            ) from None
        if answer is None:
            raise self._process.misbehaved(
                f"died before it answered {str(request.get('verb'))[:40]} (its end: {self._process.wait(STOP_S)})"
            )
        return answer

    def next_number(self) -> int:
        """A request's number, taken before the request: see `send`."""
        return next(self._numbers)

    def send(self, number: int, verb: str = "send", /, **fields: Any) -> None:
        """Ask for a send; its `sent` event carries the number. verb: another one that sends."""
        self._write({"verb": verb, "id": number, **fields})

    def stop(self) -> int:
        """A clean end; the exit code. Every event has been handled when it returns."""
        self.ask("stop")
        code = self._process.wait(STOP_S)
        if code is None:
            raise self._process.misbehaved("did not end after stop")
        self._reader.join(STOP_S)
        return code

    def kill(self) -> None:
        """SIGKILL; what it had written is still read, to the last line that it had ended."""
        self._is_killed = True
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
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise self._process.misbehaved(
                f"takes no request any more ({error.strerror})"
            ) from error

    def _read(self) -> None:
        """Until the end of its stdout. A wrong line is remembered in `faults`; the next one is read all the same.

        A line that a killed process had begun to write is none.
        """
        try:
            while raw := self._process.stdout.readline(ANSWER_BYTES_MAX + 1):
                if len(raw) > ANSWER_BYTES_MAX:
                    self._skip(raw)
                elif raw.endswith(b"\n") or not self._is_killed:
                    self._line(raw)
        finally:
            self._answers.put(None)

    def _skip(self, raw: bytes) -> None:
        """A line that is too long, to its end. It may have been what somebody waits for."""
        while raw and not raw.endswith(b"\n"):
            raw = self._process.stdout.readline(ANSWER_BYTES_MAX)
        fault = f"a line is longer than {ANSWER_BYTES_MAX} bytes"
        self.faults.append(fault)
        self._answers.put({"reply": None, "ok": False, "error": fault})

    def _line(self, raw: bytes) -> None:
        line: Any = None
        try:
            line = json.loads(raw)
            read_said(line)
        except (ValueError, WrongLine) as error:
            fault = f"{raw[:200]!r} is no line of the protocol: {error}"
            self.faults.append(fault)
            # Whoever waits for an answer is to hear why; and who answers a greeting so is no driver.
            if isinstance(line, dict) and ("reply" in line or not self._is_greeted):
                self._answers.put({"reply": None, "ok": False, "error": fault})
            return
        if "event" in line:
            self._on_event(line)
        else:
            if not line["ok"] and line["reply"] is None:
                self.faults.append(line["error"])
            self._answers.put(line)
