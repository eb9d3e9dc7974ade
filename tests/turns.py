"""Which long tests a run makes: an eighth of them by turns, and what an earlier sitting on the same code left.

A turn is a number that follows from the commit. Each long test has its own eighth by its name, so that eight commits
make all of them; of planted defects and of the reference's profiles a tenth, in a sitting of all tests too. A sitting
writes down each test that passed or was skipped, and the next one on the same code leaves those out: what failed is
made again.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
TURNS = 8
FEWER = 10
SAMPLED = (
    "tests/spark_checkers/test_pieces.py",
    "tests/spark_checkers/test_generate.py",
    "tests/inorder/evidence/profile_grid/test_profiles.py",
)
"""Some 320 tests, of which one in `FEWER` is made in its turn: one for each planted defect, and one for each profile on
each body of the reference, all of which `make everywhere` makes."""
IN_THE_GATE = "tests/docs/test_commands.py::test_all_commands_of_a_page"
"""`make promises` makes these, by turns of its own, and goes on where it was ended too."""
SITTINGS = ROOT / "runs" / "test-all"
SAVE_S = 30
"""A worker writes down what it finished this often, after the coverage of it."""


def turn_of_the_commit() -> int:
    """How many commits lead to this one: a fresh clone knows nothing else."""
    return int(_git("rev-list", "--first-parent", "--count", "HEAD"))


def code_of_the_sitting() -> str:
    """The commit, and a digest of what is not committed of it."""
    changed = hashlib.sha256(_git("diff", "HEAD").encode())
    for name in _git("ls-files", "--others", "--exclude-standard").splitlines():
        changed.update(name.encode())
        changed.update((ROOT / name).read_bytes())
    return f"{_git('rev-parse', 'HEAD')[:12]}-{changed.hexdigest()[:8]}"


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def is_of_turn(name: str, turn: int) -> bool:
    """Whether a long test of this id belongs to a turn."""
    if name.startswith(IN_THE_GATE):
        return False
    return _number(name) % TURNS == turn % TURNS and is_sampled_now(name, turn)


def is_sampled_now(name: str, turn: int) -> bool:
    """Whether one of those is among the tenth of these eight commits; any other test is."""
    return not name.startswith(SAMPLED) or _number(name) // TURNS % FEWER == turn // TURNS % FEWER


def is_of_a_sitting(name: str, commit: int) -> bool:
    """Whether `make test-all` makes a long test, at this commit's number."""
    return not name.startswith(IN_THE_GATE) and is_sampled_now(name, commit)


def _number(name: str) -> int:
    return int(hashlib.sha256(name.encode()).hexdigest()[:12], 16)


def plain(name: str) -> str:
    """A test's id without the group that pytest-xdist writes behind it."""
    return name.rpartition("@")[0] if "@" in name.rpartition("]")[2] else name


def rotated(items: list[pytest.Item], turn: int) -> list[pytest.Item]:
    """Another file comes first each time, so that a limit of time does not leave out the same ones for ever."""
    files = list(dict.fromkeys(item.nodeid.partition("::")[0] for item in items))
    first = turn // TURNS * 7 % len(files) if files else 0
    order = {name: (place - first) % len(files) for place, name in enumerate(files)}
    return sorted(items, key=lambda item: order[item.nodeid.partition("::")[0]])


def add_options(parser: pytest.Parser) -> None:
    group = parser.getgroup("turns")
    group.addoption(
        "--turn", metavar="N", help="of the long tests those of a turn (commit: its own)"
    )
    group.addoption(
        "--begin-before", type=float, metavar="S", help="begin no test later (seconds since 1970)"
    )
    group.addoption(
        "--go-on", metavar="DIR", help="leave out what a sitting on this code has finished"
    )


@dataclass(eq=False)  # pytest keeps its plug-ins in sets
class Turns:
    """The plug-in of a run. deadline: in seconds since 1970, which all processes share. commit: its number."""

    turn: int | None
    store: Path | None
    deadline: float | None
    commit: int
    done: Mapping[str, str] = field(default_factory=dict)
    waiting: list[dict[str, Any]] = field(default_factory=list)
    saved: float = field(default_factory=time.monotonic)
    outcome: dict[str, Any] = field(default_factory=dict)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        kept = [item for item in items if self._is_wanted(item)]
        left = [item for item in items if not self._is_wanted(item)]
        if left:
            config.hook.pytest_deselected(items=left)
        items[:] = kept if self.turn is None else rotated(kept, self.turn)

    def _is_wanted(self, item: pytest.Item) -> bool:
        name = plain(item.nodeid)
        if item.get_closest_marker("long") is not None:
            if self.turn is not None:
                return is_of_turn(name, self.turn)
            if self.store is not None and not is_of_a_sitting(name, self.commit):
                return False
        return name not in self.done

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        if self.deadline is not None and time.time() > self.deadline:
            pytest.skip("not begun: the time for the long tests of a turn is over")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """In the process that made it: a test's three phases as one outcome."""
        if self.store is None or hasattr(report, "node"):
            return
        if report.when == "setup":
            self.outcome = {"id": plain(report.nodeid), "outcome": "passed", "seconds": 0.0}
        self.outcome["seconds"] = round(self.outcome["seconds"] + report.duration, 2)
        if report.outcome != "passed":
            self.outcome["outcome"] = report.outcome
        if report.when == "teardown":
            self.waiting.append(self.outcome)
            if time.monotonic() - self.saved > SAVE_S:
                self.save()

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        self.save()
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self.done:
            session.exitstatus = pytest.ExitCode.OK

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.done:
            terminalreporter.write_line(
                f"{len(self.done)} tests were finished in an earlier sitting"
            )

    def save(self) -> None:
        """Coverage first: a test counts as finished only when nothing of it can be lost."""
        if self.store is None or not self.waiting:
            return
        coverage = sys.modules.get("coverage")
        current = coverage.Coverage.current() if coverage is not None else None
        if current is not None:
            current.save()
        self.store.parent.mkdir(parents=True, exist_ok=True)
        with self.store.open("ab") as file:
            file.write("".join(json.dumps(each) + "\n" for each in self.waiting).encode())
            file.flush()
            os.fsync(file.fileno())
        self.waiting.clear()
        self.saved = time.monotonic()


def read_sitting(store: Path) -> dict[str, str]:
    """What is finished there, with its outcome; a line that was torn off counts for nothing."""
    last: dict[str, str] = {}
    for line in store.read_text(encoding="utf-8").splitlines() if store.exists() else ():
        try:
            each = json.loads(line)
        except ValueError:
            continue
        last[each["id"]] = each["outcome"]
    return {name: outcome for name, outcome in last.items() if outcome != "failed"}


def plug_in(config: pytest.Config) -> None:
    """Registers the plug-in where one of its options was given."""
    option = config.option
    asked = (option.turn, option.begin_before, option.go_on)
    if all(each is None for each in asked):
        return
    turn = turn_of_the_commit() if option.turn == "commit" else option.turn
    store = None if option.go_on is None else Path(option.go_on) / "finished.jsonl"
    config.pluginmanager.register(
        Turns(
            turn=None if turn is None else int(turn),
            store=store,
            deadline=option.begin_before,
            commit=turn_of_the_commit(),
            done={} if store is None else read_sitting(store),
        ),
        "turns",
    )


def sitting(fresh: bool) -> Path:
    """The folder of the sittings on this code. What other code left is removed, and coverage with it."""
    folder = SITTINGS / code_of_the_sitting()
    if fresh or not folder.is_dir():
        for old in SITTINGS.iterdir() if SITTINGS.is_dir() else ():
            shutil.rmtree(old)
        for data in ROOT.glob(".coverage*"):
            data.unlink()
        folder.mkdir(parents=True)
    return folder


def slowest(store: Path) -> Iterator[str]:
    """A table of minutes by file, the longest first."""
    files: dict[str, list[float]] = {}
    for line in store.read_text(encoding="utf-8").splitlines():
        each = json.loads(line)
        files.setdefault(each["id"].partition("::")[0], []).append(each["seconds"])
    for name, seconds in sorted(files.items(), key=lambda each: -sum(each[1])):
        yield f"{sum(seconds) / 60:8.1f} min  {len(seconds):5}  {name}"


def main(words: Iterable[str]) -> None:
    """`python -m tests.turns [--fresh]`: the folder of the sittings; `minutes`: what the tests of one took."""
    folder = sitting(fresh="--fresh" in words)
    if "minutes" in words:
        sys.stdout.write("\n".join(slowest(folder / "finished.jsonl")) + "\n")
    else:
        sys.stdout.write(f"{folder}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
