"""Wrong input and wrong luck: one sentence on stderr, the right exit code, never a traceback."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from conformance.cli.main import Root
from specs.errors import InorderError, TargetMisbehaved, Unavailable, UsageError
from specs.history.store import write_history
from specs.history.text import parse_history

Run = Callable[..., Result]
Start = Callable[..., "subprocess.CompletedProcess[str]"]
USAGE, UNAVAILABLE, SUITE = 64, 69, 70


def is_one_sentence(stderr: str) -> bool:
    """Is the complaint one line, without a traceback? Lines before it tell what was begun."""
    lines = [line for line in stderr.splitlines() if line.startswith("inorder: ")]
    return len(lines) == 1 and "Traceback" not in stderr and stderr.splitlines()[-1] == lines[0]


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """A good history of two rows."""
    info, rows = parse_history(
        "0ms alice locks billing/orders/b0/3 ok\n1ms bob locks billing/orders/b0/3 refused"
    )
    write_history(tmp_path / "history", info, rows)
    return tmp_path / "history"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["bogus"], "there is no command 'bogus'"),
        (["conformance"], "did you mean conform or confirm?"),
        (["kafka-local:4.3.1"], "`inorder conform --target kafka-local:4.3.1` judges it"),
        (["conform", "kafka-local:4.3.1"], "a target follows --target: --target kafka-local:4.3.1"),
        (["replay", "."], "it has no run.json"),
        (["conform"], "Missing option '--target'"),
        (["conform", "--target", "reference", "--seed", "seven"], "'seven' is not a valid integer"),
        (["conform", "--target", "reference", "--examples", "0"], "Invalid value for '--examples'"),
        (["conform", "--nonsense"], "No such option"),
        (["conform", "--target", "refrence"], "did you mean reference"),
        (["conform", "--target", "mutant:nobody"], "there is no mutant 'nobody'"),
        (["conform", "--target", "mutant"], "name the mutant"),
        (["conform", "--target", "reference:5"], "takes no argument"),
        (["conform", "--target", "reference", "--profile", "nobody"], "there is no profile nobody"),
        (["conform", "--target", "rocketmq-local:1.2.3"], "1.2.3"),
        (["conform", "--target", "rocketmq-local"], "needs a version"),
        (["conform", "--target", "rocketmq:here"], "rocketmq:127.0.0.1:9876"),
        (["check", "/nowhere/at/all"], "there is no such folder"),
        (["check", "/", "--engine", "abacus"], "there is no engine 'abacus'"),
        (["explain", "/nowhere/at/all"], "there is no such folder"),
        (["report", "/nowhere/at/all"], "there is no such folder"),
        (["report"], "Missing argument"),
        (["replay", "/nowhere/at/all"], "does not exist"),
        (["list", "planets"], "Invalid value"),
        (["list", "clauses", "--format", "xml"], "Invalid value for '--format'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_usage_is_64(run: Run, arguments: list[str], words: str) -> None:
    """What does not exist or can't be meant is the user's to mend, and 2 stays free for `inconclusive`."""
    result = run(*arguments)
    assert (result.exit_code, words in result.stderr, is_one_sentence(result.stderr)) == (
        USAGE,
        True,
        True,
    ), result.stderr


def test_a_folder_that_is_no_history(run: Run, tmp_path: Path) -> None:
    """It says which file is missing."""
    result = run("check", str(tmp_path))
    assert (result.exit_code, is_one_sentence(result.stderr)) == (USAGE, True)
    assert "is no history: it has no run.json" in result.stderr


def test_torn_parquet(run: Run, history: Path) -> None:
    """A file without its end is named."""
    (part,) = (history / "history").glob("*.parquet")
    part.write_bytes(part.read_bytes()[:-20])
    result = run("check", str(history))
    assert (result.exit_code, is_one_sentence(result.stderr)) == (USAGE, True)
    assert part.name in result.stderr


def test_a_history_of_another_version(run: Run, history: Path) -> None:
    """An unknown version is one clear error."""
    info = history / "run.json"
    info.write_text(
        info.read_text(encoding="utf-8").replace("inorder/run/v2", "inorder/run/v9"),
        encoding="utf-8",
    )
    result = run("check", str(history))
    assert (result.exit_code, is_one_sentence(result.stderr)) == (USAGE, True)
    assert "inorder/run/v9" in result.stderr


def test_a_profile_that_is_wrong(run: Run, history: Path, tmp_path: Path) -> None:
    """A profile file with a clause that does not exist, and one that is no TOML."""
    for text, words in (
        ('[clauses]\nXYZ-1 = {status = "claimed", source = "x"}', "XYZ-1"),
        ("[clauses", "is no TOML"),
    ):
        path = tmp_path / "profile.toml"
        path.write_text(text, encoding="utf-8")
        result = run("check", str(history), "--profile", str(path))
        assert (result.exit_code, words in result.stderr, is_one_sentence(result.stderr)) == (
            USAGE,
            True,
            True,
        )


@pytest.mark.parametrize("system", ["rocketmq", "kafka", "nats", "redis", "rabbitmq", "sqs"])
def test_an_address_where_nobody_listens(run: Run, system: str, tmp_path: Path) -> None:
    """A port that was just free: the sentence names it, and nothing was begun."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        # Bound but not listening: nobody else gets the port, and nobody answers.
        result = run(
            "conform",
            "--target",
            f"{system}:{'http://' if system == 'sqs' else ''}127.0.0.1:{port}",
            "--out",
            str(tmp_path / "o"),
        )
    assert result.exit_code == UNAVAILABLE
    assert f"answers at 127.0.0.1:{port} (" in result.stderr
    assert not list(tmp_path.rglob("*.log"))
    assert is_one_sentence(result.stderr)
    assert f"127.0.0.1:{port}" in result.stderr


def test_a_folder_of_somebody_else_is_left_alone(run: Run, profile: str, tmp_path: Path) -> None:
    """--out never removes what is not a run."""
    (tmp_path / "thesis.txt").write_text("years of work", encoding="utf-8")
    result = run("conform", "--target", "reference", "--profile", profile, "--out", str(tmp_path))
    assert (result.exit_code, is_one_sentence(result.stderr)) == (USAGE, True)
    assert (tmp_path / "thesis.txt").read_text(encoding="utf-8") == "years of work"


# ------------------------------------------------------------------------------- every kind of failure


def failing(error: BaseException) -> Root:
    """A root whose only command raises."""

    @click.command(name="fail")
    def fail() -> None:
        raise error

    class One(Root):
        def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
            return fail

    return One(name="inorder")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("no such thing."), USAGE),
        (Unavailable("no broker answers"), UNAVAILABLE),
        (ModuleNotFoundError("No module named 'pyspark'", name="pyspark.sql"), UNAVAILABLE),
        (ModuleNotFoundError("No module named 'ours'", name="ours"), SUITE),
        (TargetMisbehaved("the broker died"), SUITE),
        (InorderError("first line\nsecond line"), SUITE),
        (click.FileError("x", "unreadable"), USAGE),
        (KeyboardInterrupt(), 130),
        (click.Abort(), 130),
        (SystemExit(143), 143),
        (ExceptionGroup("tasks", [UsageError("a"), TargetMisbehaved("b")]), USAGE),
        (BaseExceptionGroup("tasks", [UsageError("a"), KeyboardInterrupt()]), 130),
    ],
    ids=repr,
)
def test_each_error_has_its_code(error: BaseException, code: int) -> None:
    """Known errors carry their own exit code; an interruption wins over errors of other tasks."""
    result = CliRunner().invoke(failing(error), ["fail"])
    assert result.exit_code == code
    assert len(result.stderr.split()) == 0 or is_one_sentence(result.stderr.lstrip())


@pytest.mark.parametrize(
    "error", [ValueError("odd\nthing"), ExceptionGroup("tasks", [ValueError("odd thing")])]
)
def test_an_unexpected_error_keeps_its_traceback_in_a_file(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 70, one sentence, and the traceback where the sentence says."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    result = CliRunner().invoke(failing(error), ["fail"])
    assert (result.exit_code, is_one_sentence(result.stderr)) == (SUITE, True)
    assert "unexpected ValueError: odd thing; the suite itself failed" in result.stderr
    (kept,) = tmp_path.glob("inorder-traceback-*.txt")
    assert str(kept) in result.stderr
    assert "Traceback (most recent call last)" in kept.read_text(encoding="utf-8")


def test_a_command_whose_part_is_missing_does_not_hide_the_others(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--help` lists all; the broken one says why, and exits with 70 when called."""
    from importlib.metadata import EntryPoint

    from conformance.cli import main

    broken = EntryPoint("serve", "nowhere.cli:command", main.COMMAND_GROUP)
    real = main._registered()
    monkeypatch.setattr(main, "_registered", lambda: {**real, "serve": broken})
    shown, called = run("--help"), run("serve")
    assert shown.exit_code == 0
    assert "not available: `inorder serve` can't be loaded" in " ".join(shown.stdout.split())
    assert (called.exit_code, is_one_sentence(called.stderr)) == (UNAVAILABLE, True)


# ------------------------------------------------------------------------------------- as a process


def test_the_process_exits_with_our_codes(start: Start, tmp_path: Path) -> None:
    """No traceback reaches a user, whichever way the program is started."""
    version, usage, history = start("--version"), start("bogus"), start("check", str(tmp_path))
    assert (version.returncode, version.stdout) == (0, "inorder 0.1.0\n")
    assert (usage.returncode, is_one_sentence(usage.stderr)) == (USAGE, True)
    assert (history.returncode, is_one_sentence(history.stderr)) == (USAGE, True)


def test_nothing_to_do_is_wrong_usage(start: Start) -> None:
    """`inorder` alone prints the help for people, on stderr."""
    done = start()
    assert (done.returncode, done.stdout, "Commands:" in done.stderr) == (USAGE, "", True)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 2), (signal.SIGTERM, 143)])
def test_an_interrupted_run_says_so(
    profile: str, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    """Ctrl-C ends the search, and what was searched is inconclusive; SIGTERM has its own code. No traceback."""
    command = ["conform", "--target", "reference", "--profile", profile, "--examples", "100000"]
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "inorder", *command, "--out", str(tmp_path / "o")],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONUTF8": "1"},
    ) as process:
        assert process.stderr is not None
        head = [process.stderr.readline() for _ in range(2)]  # the seed, and the first progress
        process.send_signal(number)
        try:
            _, rest = process.communicate(timeout=60)
        finally:
            process.kill()
    assert "seed" in head[0]
    assert process.returncode == code
    assert "Traceback" not in rest


@pytest.mark.parametrize("form", ["human", pytest.param("json", marks=pytest.mark.long)])
def test_an_output_of_ascii_alone_loses_no_line(start: Start, tmp_path: Path, form: str) -> None:
    """Arrows become `?` for people and escapes in JSON; the exit code stays the verdict's."""
    (tmp_path / "mine.txt").write_text(
        "0ms ä locks g/t/b/0 ok\n1ms b locks g/t/b/0 ok\n", encoding="utf-8"
    )
    arguments = ["check", str(tmp_path / "mine.txt"), "--clause", "LSE-1", "--format", form]
    plain, ascii_only = (
        start(*arguments),
        start(*arguments, PYTHONUTF8="0", PYTHONIOENCODING="ascii"),
    )
    assert (plain.returncode, ascii_only.returncode) == (1, 1), ascii_only.stderr
    if form == "json":
        assert json.loads(ascii_only.stdout) == json.loads(plain.stdout)
    else:
        assert len(ascii_only.stdout.splitlines()) == len(plain.stdout.splitlines())
    assert ascii_only.stdout.isascii()


def test_a_reader_that_goes_away_is_no_error(profile: str) -> None:
    """`inorder list mutants | head -1` prints no complaint."""
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "inorder", "list", "mutants", "--format", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUTF8": "1"},
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        stderr = process.stderr.read()
    assert (process.returncode, stderr) == (141, "")
