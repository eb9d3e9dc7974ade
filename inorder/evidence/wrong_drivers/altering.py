"""Any driver with one line altered: `altering.py CHANGE KIND NTH MARK COMMAND...`.

The driver of COMMAND runs behind it. Of its lines of KIND (an event's name, or the verb that an answer answers) the
NTH is altered, and the file MARK says that it came. Nothing of inorder is imported: what it stands for is a stranger's.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

TOO_LARGE = 1 << 70
TOO_LATE_US = 10_000_000
_NUMBERS = ("queue_offset", "call", "commit", "look", "lock", "id", "incarnation", "reply")


def spelt(line: object) -> bytes:
    return json.dumps(line).encode() + b"\n"


def numbered(line: dict[str, Any], value: Callable[[int], object]) -> bytes:
    """The line with another value for a number of it, or of its first message."""
    messages = line.get("messages") or [line]
    holder = messages[0]
    name = next(name for name in _NUMBERS if name in holder)
    holder[name] = value(holder[name])
    return spelt(line)


def later(line: dict[str, Any]) -> bytes:
    return spelt({**line, "at_us": line["at_us"] + TOO_LATE_US})


Altered = Iterable[bytes]
CHANGES: Mapping[str, Callable[[dict[str, Any]], Altered]] = {
    "left out": lambda line: (),
    "doubled": lambda line: (spelt(line), spelt(line)),
    "wrong type": lambda line: (numbered(line, str),),
    "too large": lambda line: (numbered(line, lambda number: number + TOO_LARGE),),
    "too late": lambda line: (later(line),),
}
SWAPPED, KILLED, HUNG, FLOODING = "swapped", "killed", "hung", "flooding"


class Altering:
    """Passes lines on, and alters one. verbs: of the requests, by their number."""

    def __init__(self, change: str, kind: str, nth: int, mark: Path) -> None:
        self.verbs: dict[int, str] = {}
        self._change, self._kind, self._nth, self._mark = change, kind, nth, mark
        self._seen = 0
        self._held: bytes | None = None

    def takes(self, raw: bytes, pid: int) -> None:
        line = json.loads(raw)
        kind = line.get("event") or self.verbs.get(line.get("reply"), "")
        self._seen += kind == self._kind
        if kind != self._kind or self._seen != self._nth:
            self._tell(raw)
            if self._held is not None:
                held, self._held = self._held, None
                self._tell(held)
            return
        self._seen += 1
        self._mark.touch()
        if self._change == SWAPPED:
            self._held = raw
        elif self._change == KILLED:
            os.kill(pid, signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)
        elif self._change == HUNG:
            threading.Event().wait()
        elif self._change == FLOODING:
            while True:
                self._tell(raw)
        else:
            for each in CHANGES[self._change](line):
                self._tell(each)

    def _tell(self, raw: bytes) -> None:
        sys.stdout.buffer.write(raw)
        sys.stdout.buffer.flush()


def main(change: str, kind: str, nth: str, mark: str, *command: str) -> int:
    altering = Altering(change, kind, int(nth), Path(mark))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as driver:
        asks, says = driver.stdin, driver.stdout
        assert asks is not None
        assert says is not None

        def ask() -> None:
            for raw in sys.stdin.buffer:
                request = json.loads(raw)
                if isinstance(request.get("id"), int):
                    altering.verbs[request["id"]] = str(request.get("verb"))
                asks.write(raw)
                asks.flush()
            asks.close()

        threading.Thread(target=ask, daemon=True).start()
        for raw in says:
            altering.takes(raw, driver.pid)
    sys.stdout.flush()
    os._exit(driver.returncode)  # a thread may still read stdin


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
