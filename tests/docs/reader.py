"""Somebody who reads a page from its top to its end in an empty folder, writes its files and types its commands."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import psutil
from click.testing import CliRunner

from conformance.cli.main import root
from reference_impl.shell.cluster import ThreadedCluster
from tests.docs import how
from tests.docs.commands import Command, File, Step, steps
from tests.docs.reading import ROOT

CUT = "..."
WIDTH = "100"
PATIENCE_S = 1_800
GRACE_S = 30
ENDED = 124
"""The code of a command that was ended at its limit, as `timeout` has it."""
READY_S = 60
JUDGES = {"conform", "chaos", "check", "replay", "mutants", "diff", "pytest"}
NOT_THERE = 69
TWO_OWNERS = """\
0ms      alice  locks  billing/orders/b0/3   ok
30000ms  bob    locks  billing/orders/b0/3   ok
"""
TOYS = ROOT / "drivers" / "examples"
MUTANT = "inorder conform --target mutant:unlock-while-listener-runs --seed 1 --examples 2 --floor 0 --out"


class Unavailable(Exception):
    """A part that the page's command needs is not on this machine."""


@dataclass
class Things:
    """What a reader has already, where a page says RUN, HISTORY or HOST:PORT. Made when it is asked for."""

    folder: Path
    rest: ExitStack = field(default_factory=ExitStack)

    @cached_property
    def run(self) -> str:
        typed(f"{MUTANT} {self.folder / 'run'}", self.folder, in_process=True)
        return str(self.folder / "run")

    @cached_property
    def baseline(self) -> str:
        to = self.folder / "baseline.toml"
        told = f"--owner me --reason known --expires 2099-12-31 --out {to}"
        typed(f"inorder baseline {self.run} {told}", self.folder, in_process=True)
        return str(to)

    @cached_property
    def totals(self) -> str:
        """What the judges say of a frozen corpus."""
        typed("python -m inorder.evidence.freezing frozen --only examples", self.folder)
        typed("python -m inorder.evidence.corpus judge frozen --out totals.json", self.folder)
        return str(self.folder / "totals.json")

    @cached_property
    def matrix(self) -> str:
        """A page of the docs that a grid writes its tables into: a copy."""
        return self._copied("matrix")

    @cached_property
    def promises(self) -> str:
        return self._copied("promises")

    @cached_property
    def everywhere(self) -> str:
        return self._copied("everywhere")

    @cached_property
    def track_record(self) -> str:
        return self._copied("track-record")

    def _copied(self, page: str) -> str:
        return shutil.copy(ROOT / "docs" / f"{page}.md", self.folder)

    @cached_property
    def namesrv(self) -> str:
        return self.rest.enter_context(ThreadedCluster()).namesrv

    def fill(self, text: str) -> str:
        """A command with what its placeholders stand for."""
        text = text.replace("{what}", self.run if "check" in text else "consumer-killed")
        for name in set(re.findall(r"\{(\w+)\}", text)):
            text = text.replace(f"{{{name}}}", str(getattr(self, name)))
        return text


@dataclass
class Reader:
    """quick: as in every run of the tests; else the page at its word, each command as a process of its own."""

    folder: Path
    things: Things
    quick: bool
    left_out: set[str] = field(default_factory=set)

    def prepare(self, page: str) -> None:
        """What the page takes for granted in its reader's folder."""
        if page == "README.md":
            (self.folder / "two-owners.txt").write_text(TWO_OWNERS, encoding="utf-8")
            (self.folder / "tests").mkdir()
            (self.folder / "tests" / "test_mine.py").write_text("def test_mine():\n    pass\n")
            for step in steps(ROOT / "docs" / "import.md"):
                if isinstance(step, File):
                    (self.folder / step.name).write_text(step.text, encoding="utf-8")
        if page == "docs/targets.md":
            shutil.copy(TOYS / "hosted.py", self.folder)
        of_it = (step.text for step in steps(ROOT / page) if isinstance(step, Command))
        if any(" docs/" in how.replaced(text, how.STANDS_FOR) for text in of_it):
            (self.folder / "docs").symlink_to(ROOT / "docs")

    def do(self, step: Step) -> None:
        if isinstance(step, File):
            self._write(step)
        elif how.of(step, how.HELD_ELSEWHERE) is None and how.of(step, how.NOT_RUN) is None:
            self._type(step)

    def _write(self, file: File) -> None:
        """A block with a name: a new file, or a part of the one that a command has left."""
        path = self.folder / file.name
        if path.exists():
            assert file.text in path.read_text(encoding="utf-8"), (
                f"{file.name} holds something else"
            )
        elif not self.left_out:
            path.write_text(file.text, encoding="utf-8")

    def _type(self, command: Command) -> None:
        words = how.replaced(command.text, how.STANDS_FOR)
        out = re.findall(r"--out (\S+)", words)
        if self.quick and (
            not how.is_quick(command) or any(each in words for each in self.left_out)
        ):
            self.left_out.update(out)
            return
        words = how.replaced(words, how.SHORTER)
        words = self.things.fill(how.replaced(words, how.QUICKER) if self.quick else words)
        code, printed = typed(words, self.folder, in_process=self.quick)
        if code == NOT_THERE:
            raise Unavailable(f"{command.told}\n{printed}")
        expected = codes(command)
        assert code in expected, f"{command.told}\nended with {code}, not {expected}:\n{printed}"
        told = re.search(r"refuted by ([A-Z]{3}-\d+)", command.comment)
        assert told is None or f"REFUTED  {told[1]} " in printed, f"{command.told}\n{printed}"
        if command.shown is not None:
            compare(command, printed)


def codes(command: Command) -> Sequence[int]:
    """With which codes it may end, by what the page says of it."""
    first, _, rest = command.text.partition(" ")
    verb = rest.partition(" ")[0] if first == "inorder" else first
    if verb not in JUDGES and "--exit-code" not in command.text:
        return (0, 2) if "--budget" in how.replaced(command.text, how.SHORTER) else (0,)
    said = f"{command.comment} {' '.join(command.shown or ())}"
    if re.search(r"\b(?:REFUTED|refuted|BROKE)\b", said) and "everything upheld" not in said:
        return (1,)
    if re.search(r"\bINCONCLUSIVE\b", said):
        return (2,)
    return (0,) if re.search(r"\b(?:UPHELD|upheld)\b", said) else (0, 1, 2)


def typed(
    words: str, folder: Path, *, in_process: bool = False, patience_s: float = PATIENCE_S
) -> tuple[int, str]:
    """(exit code, what was printed) of a command in a folder; ENDED where it took longer than patience_s."""
    if in_process and words.startswith("inorder "):
        result = CliRunner(env={"COLUMNS": WIDTH}).invoke(root, shlex.split(words)[1:])
        return result.exit_code, result.output
    environment = {
        **os.environ,
        "COLUMNS": WIDTH,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        "PYTHONUNBUFFERED": "1",
    }
    if words.startswith("inorder serve"):
        return served(words, folder, environment)
    if words.startswith("pytest tests/conformance"):
        folder = ROOT
    if words.startswith("make "):
        words = " && ".join(recipe(words))
    process = subprocess.Popen(
        ["bash", "-c", words],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    )
    try:
        printed, _ = process.communicate(timeout=patience_s)
        return process.returncode, printed
    except subprocess.TimeoutExpired:
        return ENDED, ended(process)
    except BaseException:
        ended(process)
        raise


def ended(process: subprocess.Popen[str]) -> str:
    """A command's processes get a Ctrl-C, and are killed where that is not enough; what it had printed."""
    tree = descendants(process.pid)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)
    with suppress(subprocess.TimeoutExpired):
        process.wait(GRACE_S)
    for each in [*tree, *descendants(process.pid)]:
        with suppress(psutil.NoSuchProcess):
            each.kill()
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        return process.communicate(timeout=GRACE_S)[0]
    return ""


def descendants(pid: int) -> list[psutil.Process]:
    """A process and all that came of it; none where it is gone."""
    try:
        top = psutil.Process(pid)
        return [*top.children(recursive=True), top]
    except psutil.NoSuchProcess:
        return []


def recipe(words: str) -> list[str]:
    """The lines that `make` would run for a goal, but for the set-up that every goal has before its own."""
    done = subprocess.run(
        ["make", "-n", "--no-print-directory", *shlex.split(words)[1:]],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line for line in done.stdout.splitlines() if "tools/setup.py" not in line]
    return [re.sub(r"^\.venv/bin/", "", line) for line in lines]


def served(words: str, folder: Path, environment: Mapping[str, str]) -> tuple[int, str]:
    """What serves until it is stopped: it says where, and ends well when it is told to."""
    process = subprocess.Popen(
        ["bash", "-c", f"exec {words}"],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=READY_S)
    finally:
        process.kill()
    assert "127.0.0.1:" in first, first + rest
    return (0 if process.returncode in (0, 130) else process.returncode), first + rest


def compare(command: Command, printed: str) -> None:
    """Line by line. A line `...` stands for any lines, and `...` in a line for anything in it."""
    lines = [_tidy(line) for line in printed.splitlines()]
    at, anywhere = 0, False
    for shown in map(_tidy, command.shown or ()):
        if shown == CUT:
            anywhere = True
            continue
        fits = _pattern(shown)
        while anywhere and at < len(lines) and not fits(lines[at]):
            at += 1
        told = f"{command.told}\nthe page shows {shown!r}, which is not printed"
        assert at < len(lines), f"{told}:\n{printed}"
        assert fits(lines[at]), f"{told} behind line {at} ({lines[at]!r}):\n{printed}"
        at, anywhere = at + 1, False
    assert anywhere or not any(lines[at:]), f"{command.told}\nprints more: {lines[at:]}"


def _tidy(line: str) -> str:
    return " ".join(line.split())


def _pattern(shown: str) -> Callable[[str], bool]:
    parts = ".*".join(re.escape(part.strip()) for part in shown.split(CUT))
    found = re.compile(parts)
    return lambda line: found.fullmatch(line) is not None
