"""The wrong drivers, made by a rule: each change of a line, of each kind of line that it says something about.

The right one is the whole driver of docs/drivers.md. What must come of a wrong one follows from the protocol: what
can't be is the driver's mistake (64), a driver that is gone is a part that is not there (69, or 1 where what it did
before refutes something). What else a change comes to depends on what the line told. Nothing may be 70, or hang.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from conformance.drivers.guide import write_example
from conformance.drivers.process import ANSWER_VARIABLE
from conformance.drivers.turns import TURNS
from conformance.waiting import now_s
from inorder.evidence.grid import Cell
from inorder.evidence.wrong_drivers import altering
from inorder.evidence.wrong_drivers.altering import FLOODING, HUNG, KILLED, SWAPPED
from specs.errors import (
    EXIT_INCONCLUSIVE,
    EXIT_REFUTED,
    EXIT_UNAVAILABLE,
    EXIT_UPHELD,
    EXIT_USAGE,
)

EVENTS = (
    "delivered",
    "finished",
    "sent",
    "added",
    "dropped",
    "locking",
    "locked",
    "unlocked",
    "committing",
    "committed",
    "looking_up",
    "looked_up",
)
"""What the right driver tells."""
CHANGED: Mapping[str, Sequence[str]] = {
    "left out": (*EVENTS, "start", "read"),
    "doubled": (*EVENTS, "start"),
    SWAPPED: ("delivered", "sent", "added", "locking", "committing", "looking_up"),
    "wrong type": ("hello", "delivered", "finished", "sent", "added", "committed", "read"),
    "too large": ("delivered", "added", "committing", "looked_up", "read"),
    "too late": ("start", "delivered", "sent", "committed"),
    KILLED: ("hello", "start", "delivered", "committed", "read"),
    HUNG: ("hello", "delivered", "read"),
    FLOODING: ("delivered", "locking", "read"),
}
SELDOM = frozenset(
    {"hello", "start", "read", "added", "dropped", "unlocked", "looking_up", "looked_up"}
)
NTH = 3
"""Of a line that comes seldom the first is altered, of others the third."""
COMMANDS: Mapping[str, Sequence[str]] = {
    "smoke": ("smoke", "--format", "json"),
    "conform": ("conform", "--seed", "1", "--examples", "1", "--quiet"),
    "chaos": ("chaos", "consumer-killed", "--seed", "1", "--quiet"),
}
ANSWER_S = 15
"""So long each request may take where one is not answered."""
LIMIT_S = 300
"""Whoever runs longer hangs."""
_ALL = frozenset({EXIT_UPHELD, EXIT_REFUTED, EXIT_INCONCLUSIVE, EXIT_USAGE, EXIT_UNAVAILABLE})
_WRONG, _GONE = frozenset({EXIT_USAGE}), frozenset({EXIT_UNAVAILABLE, EXIT_REFUTED})
_PAIRED = {name for turn in TURNS for name in (turn.begin, turn.end)} | {"sent", "start"}
_BEGIN = {turn.begin for turn in TURNS}
ANSWERS = ("hello", "start", "read")


@dataclass(frozen=True, slots=True)
class WrongDriver:
    """change: of the line; kind: which line it is."""

    change: str
    kind: str

    @property
    def name(self) -> str:
        return f"{self.kind} {self.change}"

    @property
    def is_silent(self) -> bool:
        """Does it end by a deadline?"""
        return self.change == HUNG or (self.change == "left out" and self.kind in ANSWERS)

    @property
    def expected(self) -> Collection[int]:
        """The exit codes that are right where the line came."""
        match self.change:
            case altering.FLOODING if self.kind == "read":
                return _ALL  # the run may be over before the second one is whole
            case "wrong type" | "too large" | "too late" | altering.FLOODING:
                return _WRONG
            case altering.KILLED | altering.HUNG:
                return _GONE
            case "doubled" if self.kind in _PAIRED:
                return _WRONG
            case "left out" if self.kind in _BEGIN:
                return _WRONG
            case "left out" if self.kind in ANSWERS:
                return _GONE
            case _:
                return _ALL


WRONG_DRIVERS = tuple(
    WrongDriver(change, kind) for change, kinds in CHANGED.items() for kind in kinds
)


@dataclass(frozen=True, slots=True)
class Told:
    """What came of a wrong driver by a command. met: did the line come? code: None where it did not end."""

    met: bool
    code: int | None
    seconds: float
    sentence: str

    def is_right(self, wrong: WrongDriver) -> bool:
        return self.code in (wrong.expected if self.met else _ALL)


def tried(wrong: WrongDriver, command: str, folder: Path) -> Told:
    """Try it in a folder of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    right, mark = folder / "driver", folder / "met"
    right.mkdir(exist_ok=True)
    mark.unlink(missing_ok=True)
    driver = [sys.executable, str(write_example(right))]
    nth = "1" if wrong.kind in SELDOM else f"{NTH}"
    words = [sys.executable, altering.__file__, wrong.change, wrong.kind, nth, str(mark), *driver]
    out = () if command == "smoke" else ("--out", str(folder / "run"))
    asked = [sys.executable, "-m", "inorder", *COMMANDS[command], *out]
    asked += ["--target", f"exec:{shlex.join(words)}"]
    began_s = now_s()
    try:
        done = subprocess.run(
            asked,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
            env={**os.environ, **({ANSWER_VARIABLE: f"{ANSWER_S}"} if wrong.is_silent else {})},
        )
        code = done.returncode
        sentence = _sentence(command, folder, done.stdout, done.stderr)
    except subprocess.TimeoutExpired:
        code, sentence = None, "it did not end"
    return Told(mark.exists(), code, round(now_s() - began_s, 1), sentence)


def _sentence(command: str, folder: Path, stdout: str, stderr: str) -> str:
    """What a person is told in the end."""
    said = [line for line in stderr.splitlines() if line.startswith("inorder: ")]
    if said:
        return said[-1].removeprefix("inorder: ")
    if command == "smoke" and stdout:
        wrong = [item for item in json.loads(stdout)["items"] if not item["ok"]]
        return "; ".join(f"{item['name']}: {item['why']}" for item in wrong)
    kept = [*folder.glob("run/verdict.json"), *folder.glob("run/*/verdict.json")]
    if not kept:
        return stderr.strip()
    verdict = json.loads(kept[0].read_text(encoding="utf-8"))
    refuted = [each for each in verdict["clauses"] if each["verdict"] in ("refuted", "possible")]
    why = [f"{each['id']}: {each['explanation']}" for each in refuted]
    why += [check["detail"] for check in verdict["met"] if check["ok"] is False]
    return "; ".join([verdict["verdict"], *why])


def make_cell(folder: Path, cell: Cell) -> dict[str, object]:
    """What a cell of the grid came to. folder: the grid's."""
    wrong = WrongDriver(str(cell.key["change"]), str(cell.key["kind"]))
    return asdict(tried(wrong, str(cell.key["command"]), folder / cell.stem))
