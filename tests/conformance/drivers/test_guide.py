"""The guide for a driver's author (docs/drivers.md), done step by step as its reader would.

Its blocks are put into files of a fresh folder, its commands are run there, and what they print is read. Nothing of
this project is in the folder, and the blocks import nothing of it.
"""

from __future__ import annotations

import ast
import fnmatch
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from conformance.drivers import guide
from conformance.parts.places import CHECKOUT
from conformance.run import run
from conformance.targets.base import find
from specs.plan.plan import Action, ClientPlan, Plan, TopicPlan, Topology
from specs.vocabulary import Kind, Level

GUIDE = CHECKOUT / "docs" / "drivers.md"
BLOCK = re.compile(r"```(python|diff|console)\n(.*?)```", re.DOTALL)
COMMAND_S = 240


def blocks(kind: str) -> list[str]:
    text = GUIDE.read_text(encoding="utf-8")
    return [body for found, body in BLOCK.findall(text) if found == kind]


@dataclass(frozen=True)
class Reader:
    """Somebody with an empty folder and the commands of this project on the path."""

    folder: Path

    def change(self, diff: str) -> None:
        """Take out what a diff takes out, and put in what it puts in."""
        old, new = (
            "".join(line[1:] for line in diff.splitlines(keepends=True) if line[0] == sign)
            for sign in "-+"
        )
        files = [file for file in self.folder.glob("*.py") if old in file.read_text()]
        assert len(files) == 1, f"one file has these lines: {old}"
        files[0].write_text(files[0].read_text().replace(old, new))

    def do(self, console: str) -> None:
        """The commands of a block, each with what it is to print; `...` stands for anything."""
        for part in re.split(r"^\$ ", console, flags=re.MULTILINE)[1:]:
            command, _, expected = part.partition("\n")
            seen = self._run(command)
            wanted = re.sub(r"\s+", " ", expected.replace("...", " * ")).strip()
            plain = " " + re.sub(r"\s+", " ", re.sub(r"[\[\]?]", " ", seen)) + " "
            assert fnmatch.fnmatchcase(plain, f"*{wanted.replace('* *', '*')}*"), (
                f"{command}\n{seen}"
            )

    def _run(self, command: str) -> str:
        commands = str(Path(sys.executable).parent)
        env = {**os.environ, "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}"}
        done = subprocess.run(
            shlex.split(command),
            cwd=self.folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=COMMAND_S,
            check=False,
        )
        return done.stdout


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    someone = Reader(tmp_path / "new user")
    someone.folder.mkdir()
    guide.write_example(someone.folder)
    return someone


def broken() -> Iterator[object]:
    """Each change of the guide with the commands that follow it."""
    diffs = blocks("diff")
    consoles = blocks("console")[-len(diffs) :]
    for number, pair in enumerate(zip(diffs, consoles, strict=True)):
        yield pytest.param(*pair, id=str(number))


def test_the_blocks_import_nothing_of_this_project(reader: Reader) -> None:
    for file in reader.folder.glob("*.py"):
        tree = ast.parse(file.read_text())
        named = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        plain = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
        assert named | plain <= {"asyncio", "itertools", "json", "sys", "time", "myqueue"}


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_driver_of_the_guide_is_right(reader: Reader) -> None:
    for console in blocks("console")[: -len(blocks("diff"))]:
        reader.do(console)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("diff", "console"), list(broken()))
def test_each_change_of_the_guide_is_refuted(reader: Reader, diff: str, console: str) -> None:
    reader.change(diff)
    reader.do(console)


def test_batches_tags_delays_and_messages_without_a_key(
    reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(reader.folder)
    target = find(f"exec:{sys.executable} driver.py")
    send = {"client": "shop", "topic": "orders"}
    config: dict[str, Any] = {
        "delay_levels": "1s 2s",
        "subscription": "red || blue",
        "max_reconsume_times": -1,
    }
    plan = Plan(
        topology=Topology(topics=(TopicPlan("orders", 2),), groups=("billing",)),
        config=replace(target.config, **config),
        clients=(
            ClientPlan("shop", "producer"),
            ClientPlan("alice", "consumer", "billing", ("orders",)),
        ),
        actions=(
            Action(0, "start", {"client": "shop"}),
            Action(0, "start", {"client": "alice"}),
            Action(1, "send", {**send, "count": 3, "batch": True, "tags": "red"}),
            Action(200, "send", {**send, "count": 2, "tags": "green"}),
            Action(300, "send", {**send, "count": 1, "tags": "blue", "delay_level": 1}),
            Action(400, "send", {**send, "count": 1, "tags": "blue", "key": "k"}),
        ),
        until_ms=2_000,
        settle_ms=20_000,
    )
    folder = tmp_path / "run"
    rows = list(run(plan, target, folder).rows())
    calls = {row.message_id: row for row in rows if row.kind is Kind.DELIVER}
    assert set(calls) == {"m1", "m2", "m3", "m6", "m7"}
    sent = {row.message_id: row for row in rows if row.kind is Kind.SEND}
    assert [sent[f"m{number}"].tags for number in (1, 4, 7)] == ["red", "green", "blue"]
    batch = [sent[f"m{number}"] for number in (1, 2, 3)]
    assert (len({row.queue_id for row in batch}), len({row.op_id for row in batch})) == (1, 1)
    assert [calls[f"m{number}"].queue_offset for number in (1, 2, 3)] == [0, 1, 2]
    assert calls["m6"].started_us - sent["m6"].started_us >= 1_000_000
    read = [row for row in rows if row.kind is Kind.READ and row.message_id is not None]
    assert {row.message_id for row in read} == {f"m{number}" for number in range(1, 8)}
    assert {row.level for row in read} == {Level.WIRE}
    stored = {row.queue_id: row.value for row in rows if row.kind is Kind.PROGRESS}
    reached = {queue: -1 for queue in (0, 1)}
    for call in calls.values():
        queue = call.queue_id or 0
        reached[queue] = max(reached[queue], (call.queue_offset or 0) + 1)
    assert stored == reached
    assert {row.level for row in rows if row.kind is Kind.PROGRESS} == {Level.STORE}
    assert [row.message_id for row in read if row.sharding_key is not None] == ["m7"]


def test_the_table_of_events_is_todays() -> None:
    """`python -m conformance.drivers.guide` was run."""
    text = guide.DOCUMENT.read_text(encoding="utf-8")
    assert guide.with_table(text) == text
