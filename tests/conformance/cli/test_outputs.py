"""Where a command writes is looked at before the work; what can't be written then loses no verdict."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from conformance.cli.main import COMMAND_GROUP, root
from conformance.cli.options import OutFile, OutFolder
from specs.errors import EXIT_REFUTED, EXIT_USAGE

REFUTED = """\
0ms  alice  locks  billing/orders/b0/3   ok
5ms  bob    locks  billing/orders/b0/3   ok
"""
CONFORM = ("conform", "--target", "mutant:suspend-ignored", "--seed", "1", "--examples", "3")
WRITTEN = {"alluredir", "badge", "findings", "out"}
BY_THEMSELVES = {"compact", "generate", "hunt", "mutants", "serve"}
"""Look at it in another way: by a function that they call first, or as a folder that is a store."""


def inorder(*words: str, cwd: Path, **more: object) -> subprocess.CompletedProcess[str]:
    """The program, in a process of its own."""
    with (cwd / "stderr.txt").open("w+") as told:
        options = {"stdout": subprocess.PIPE, "stderr": told, "cwd": cwd, "text": True, **more}
        done = subprocess.run([sys.executable, "-m", "inorder", *words], check=False, **options)  # type: ignore[call-overload]
        told.seek(0)
        done.stderr = told.read()
    return done  # type: ignore[no-any-return]


def is_one_sentence(told: str) -> bool:
    """Of the lines that are the program's own, one says what is wrong, and nothing is a traceback."""
    own = [line for line in told.splitlines() if line.startswith("inorder: ")]
    return len(own) == 1 and "Traceback" not in told and "suite itself failed" not in told


def _written() -> Iterator[tuple[str, click.Parameter]]:
    for entry in entry_points(group=COMMAND_GROUP):
        command: click.Command = entry.load()
        for parameter in command.params:
            if parameter.name in WRITTEN:
                yield entry.name, parameter


def test_every_command_looks_at_what_it_writes() -> None:
    """By the type of the option, which is the one place where it is done."""
    unlooked = [
        f"{name} --{parameter.name}"
        for name, parameter in _written()
        if not isinstance(parameter.type, OutFile | OutFolder) and name not in BY_THEMSELVES
    ]
    assert unlooked == []


@pytest.mark.parametrize(
    "words",
    [
        (*CONFORM, "--out", "{}"),
        (*CONFORM, "--alluredir", "{}"),
        ("check", "h.txt", "--clause", "LSE-1", "--out", "{}"),
        ("check", "h.txt", "--clause", "LSE-1", "--engine", "arrow", "--findings", "{}"),
        ("hunt", "--target", "reference", "--out", "{}"),
        ("chaos", "consumer-killed", "--target", "reference", "--out", "{}"),
        ("import", "csv", "--map", "m.toml", "log", "--out", "{}"),
        ("tap", "--upstream", "127.0.0.1:1", "--out", "{}"),
        ("generate", "--events", "100", "--out", "{}"),
        ("replay", "plan.json", "--out", "{}"),
        ("mutants", "suspend-ignored", "--out", "{}"),
    ],
    ids=lambda words: f"{words[0]} {words[-2]}",
)
@pytest.mark.parametrize("place", ["/proc/nope/run", "/proc/self", "file/below", "{long}"])
def test_a_folder_that_cannot_be_written_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], place: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    (tmp_path / "h.txt").write_text(REFUTED)
    given = place.format(long="x" * 300)
    done = CliRunner().invoke(root, [word.format(given) for word in words])
    assert (done.exit_code, is_one_sentence(done.stderr)) == (EXIT_USAGE, True), done.stderr
    assert "can't be" in done.stderr
    assert "judging" not in done.stderr


def test_what_is_looked_at_leaves_nothing_behind(tmp_path: Path) -> None:
    """A folder that is refused for another reason was not made."""
    (tmp_path / "h.txt").write_text(REFUTED)
    done = inorder("check", "nothing", "--out", "deep/er", cwd=tmp_path)
    assert (done.returncode, (tmp_path / "deep").exists()) == (EXIT_USAGE, False)


UNMEASURED = {**os.environ, "COVERAGE_PROCESS_CONFIG": ""}
"""Coverage would have to write a file as well, and tells a traceback where it can't."""


def _small_files(limit: int) -> None:
    """As a disk that becomes full: no file grows beyond it."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))


@pytest.mark.parametrize("limit", [1_000, 60_000])
def test_a_disk_that_fills_up_takes_no_verdict_away(tmp_path: Path, limit: int) -> None:
    """One sentence with the place and the verdict; a refutation stays one, and nothing else passes for done."""
    (tmp_path / "h.txt").write_text(REFUTED)
    words = ("check", "h.txt", "--profile", "reference", "--out", "kept")
    small = {"preexec_fn": lambda: _small_files(limit), "env": UNMEASURED}
    done = inorder(*words, cwd=tmp_path, **small)
    assert (done.returncode, is_one_sentence(done.stderr)) == (EXIT_REFUTED, True), done.stderr
    assert "kept can't be written: File too large; the verdict is REFUTED" in done.stderr


def test_what_was_recorded_before_the_disk_filled_up_is_kept(tmp_path: Path) -> None:
    small = {"preexec_fn": lambda: _small_files(60_000), "env": UNMEASURED}
    done = inorder(*CONFORM, "--out", "run", cwd=tmp_path, **small)
    assert (done.returncode in (EXIT_REFUTED, EXIT_USAGE), is_one_sentence(done.stderr)) == (
        True,
        True,
    ), done.stderr
    assert (tmp_path / "run" / "run.json").is_file()


@pytest.mark.parametrize("form", ["human", "json"])
def test_a_standard_output_that_is_full_takes_no_verdict_away(tmp_path: Path, form: str) -> None:
    (tmp_path / "h.txt").write_text(REFUTED)
    with open("/dev/full", "w") as full:
        words = ("check", "h.txt", "--profile", "reference", "--format", form)
        done = inorder(*words, cwd=tmp_path, stdout=full)
        assert (done.returncode, is_one_sentence(done.stderr)) == (EXIT_REFUTED, True), done.stderr
        assert (
            "standard output can't be written: No space left on device; the verdict is REFUTED"
            in done.stderr
        )
        listed = inorder("list", "words", cwd=tmp_path, stdout=full)
        assert (listed.returncode, is_one_sentence(listed.stderr)) == (EXIT_USAGE, True)


def test_a_reader_that_is_gone_takes_no_verdict_away(tmp_path: Path) -> None:
    (tmp_path / "h.txt").write_text(REFUTED)
    read, write = os.pipe()
    os.close(read)
    done = inorder("check", "h.txt", "--profile", "reference", cwd=tmp_path, stdout=write)
    os.close(write)
    assert (done.returncode, is_one_sentence(done.stderr)) == (EXIT_REFUTED, True), done.stderr
    assert "the verdict is REFUTED" in done.stderr
