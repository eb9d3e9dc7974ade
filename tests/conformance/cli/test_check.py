"""`inorder check`: a folder, a file or stdin; all of a profile, or single clauses; and nothing that nobody promised."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from click.testing import CliRunner, Result

from conformance.cli.main import root
from conformance.cli.seam import open_source
from specs.clauses.catalogue import get
from specs.errors import HistoryError
from specs.history.files import open_any
from specs.history.runinfo import RunInfo, write_runinfo
from specs.history.store import write_history
from specs.history.text import parse_history

Run = Callable[..., Result]
TWO_OWNERS = get("LSE-1").shortest_violation
"""It refutes LSE-1 and says nothing of a profile."""
FORMS = ("text", "lines", "parquet")


def put(folder: Path, form: str, text: str = TWO_OWNERS) -> Path:
    """A history as one file, with nothing beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "mine"
    if form == "text":
        path.write_text(text, encoding="utf-8")
        return path
    info, rows = parse_history(text)
    write_history(folder / "whole", info, rows, as_text=form == "lines")
    (part,) = (folder / "whole" / "history").iterdir()
    part.replace(path)
    return path


def stdin(data: bytes, *arguments: str) -> Result:
    return CliRunner(env={"COLUMNS": "100"}).invoke(root, ["check", "-", *arguments], input=data)


def verdicts(result: Result) -> dict[str, str]:
    """Clause → verdict, as the JSON on stdout says."""
    return {each["id"]: each["verdict"] for each in json.loads(result.stdout)["clauses"]}


def sentence(result: Result) -> str:
    """The one sentence of a wrong use: 64, no traceback."""
    assert (result.exit_code, "Traceback" in result.stderr) == (64, False), result.output
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("inorder: ")]
    return line


# ------------------------------------------------------------------------------------------ one file


@pytest.mark.parametrize("form", FORMS)
def test_a_file_is_told_by_its_content(run: Run, tmp_path: Path, form: str) -> None:
    """Text, JSON lines and Parquet, whatever it is called; with --out its verdict is kept as any other."""
    path = put(tmp_path, form)
    result = run("check", str(path), "--clause", "LSE-1", "--out", str(tmp_path / "kept"))
    assert (result.exit_code, "REFUTED  LSE-1" in result.stdout) == (1, True), result.output
    assert f"inorder check {path} --engine python --clause LSE-1" in result.stdout
    assert run("explain", str(tmp_path / "kept")).stdout.startswith("REFUTED  LSE-1")


@pytest.mark.parametrize("form", ["text", "lines"])
def test_stdin_is_told_by_its_content(tmp_path: Path, form: str) -> None:
    """A byte order mark and empty lines before it change nothing."""
    data = put(tmp_path, form).read_bytes()
    for each in (data, b"\n\n" + data, b"\xef\xbb\xbf" + data):
        assert stdin(each, "--clause", "LSE-1").exit_code == 1
    assert "Parquet, which is read from its end" in sentence(
        stdin(put(tmp_path / "p", "parquet").read_bytes())
    )


def test_text_says_itself_what_was_promised_and_set(run: Run, tmp_path: Path) -> None:
    """`config` takes what a run.json would say."""
    words = "config profile=reference closed_world=no clock_bound_us=7 broker_lease_ms=1000\n"
    path = put(tmp_path, "text", words + TWO_OWNERS)
    info = open_any(path, io.BytesIO()).info
    assert (info.profile, info.closed_world, info.clock_bound_us) == ("reference", False, 7)
    assert info.config.broker_lease_ms == 1000
    printed = json.loads(run("check", str(path), "--format", "json").stdout)
    assert (printed["profile"], printed["run"]) == ("reference", "mine")


@pytest.mark.parametrize("form", ["lines", "parquet"])
def test_rows_alone_are_an_open_world(
    tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody says who else was at work; a run.json beside the file does."""
    path = put(tmp_path, form)
    assert open_any(path, io.BytesIO()).info == RunInfo(run="example", closed_world=False)
    beside = RunInfo(run="example", profile="reference", seed=4)
    write_runinfo(tmp_path, beside)
    assert open_any(path, io.BytesIO()).info == beside
    monkeypatch.chdir(tmp_path)
    assert open_any(Path(path.name), io.BytesIO()).info == beside


def test_rows_of_a_pipe_take_no_run_json_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What lies in the current folder has nothing to do with them."""
    data = put(tmp_path, "lines").read_bytes()
    write_runinfo(tmp_path, RunInfo(run="other", profile="reference"))
    monkeypatch.chdir(tmp_path)
    assert "names no profile" in sentence(stdin(data))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "holds no events"),
        (b"# nothing but this\n", "holds no events"),
        (b"config closed_world=no\n", "holds no events"),
        (b"config closed_world=perhaps\n", "line 1: closed_world is yes or no, not 'perhaps'"),
        (
            b"config clock_bound_us=wide\n",
            "line 1: clock_bound_us must be a whole number, not 'wide'",
        ),
        (b"config lease=4\n", "line 1: unknown configuration: lease"),
        (b"config profile='a\n", "line 1: a quotation mark is open"),
        (b"0ms alice locks billing/orders/b0/3 level=moon", "line 1: 'moon' is no level"),
        (b"0ms alice locks billing/orders/b0/3 kind=send", "line 1: kind follows from"),
        (b"0ms alice locks billing/orders/b0/3 seq_begin=4", "line 1: seq_begin follows from"),
        (
            b"0ms alice locks billing/orders/b0/3 value=99999999999999999999",
            "line 1: value must be an int64",
        ),
        (b"infs alice locks billing/orders/b0/3", "line 1: 'infs' is no time"),
        (b"hello", "line 1: expected time, who, what, where"),
        (b"\xff\xfe\x00\x01", "neither Parquet nor text in UTF-8"),
        (b"PAR1 and no more", "is torn or no Parquet file"),
        (
            b"{}",
            "line 1 is no history row: it lacks run, seq_begin, op_id, kind, level, outcome, started_us",
        ),
        (b"[" * 100_000, "line 1 is no history row"),
    ],
    ids=lambda value: value[:40].decode("utf-8", "replace") if isinstance(value, bytes) else "",
)
def test_a_file_that_is_none(run: Run, tmp_path: Path, data: bytes, words: str) -> None:
    """One sentence that names the file and the place."""
    path = tmp_path / "mine"
    path.write_bytes(data)
    said = sentence(run("check", str(path), "--clause", "LSE-1"))
    assert (str(path) in said, words in said) == (True, True), said


def test_what_can_not_be_opened(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Missing, forbidden, empty, or a part of a history that lies around it."""
    assert "there is no such folder or file" in sentence(run("check", str(tmp_path / "nowhere")))
    assert "is no history: it has no run.json" in sentence(run("check", str(tmp_path)))
    info, rows = parse_history(TWO_OWNERS)
    (whole,) = write_history(tmp_path / "h", info, rows).parquet
    assert f"is a part of the history {tmp_path / 'h'}" in sentence(run("check", str(whole)))
    empty = write_history(tmp_path / "e", info, [])
    empty.parquet[0].replace(tmp_path / "none.parquet")
    assert "holds no events" in sentence(run("check", str(tmp_path / "none.parquet")))
    path = put(tmp_path / "f", "text")

    opens = Path.open

    def forbidden(self: Path, *arguments: Any, **named: Any) -> Any:
        if self == path:
            raise PermissionError(13, "Permission denied")
        return opens(self, *arguments, **named)

    monkeypatch.setattr(Path, "open", forbidden)
    assert f"{path} can't be read: Permission denied" in sentence(run("check", str(path)))


# ------------------------------------------------------------------------------------- single clauses


def test_single_clauses_need_no_profile(run: Run, tmp_path: Path) -> None:
    """Only they are judged; in catalogue order, each once, however they are written."""
    path = str(put(tmp_path, "text"))
    result = run(
        "check",
        path,
        "--clause",
        "ord-2",
        "--clause",
        "LSE-1",
        "--clause",
        "lse-1",
        "--format",
        "json",
    )
    assert verdicts(result) == {"ORD-2": "not_exercised", "LSE-1": "refuted"}
    assert result.exit_code == 1


@pytest.mark.parametrize("status", ["allowed", "not_applicable"])
def test_a_profile_counts_only_where_the_user_names_it(
    run: Run, tmp_path: Path, status: str
) -> None:
    """What it allows is allowed; what it does not speak about is judged all the same, since somebody asks."""
    profile = tmp_path / "mine.toml"
    profile.write_text(
        f'[clauses]\nLSE-1 = {{ status = "{status}", source = "x", reason = "y" }}',
        encoding="utf-8",
    )
    path = str(put(tmp_path, "text", f"config profile={profile}\n{TWO_OWNERS}"))
    of_the_history = run("check", path, "--clause", "LSE-1", "--format", "json")
    assert verdicts(of_the_history) == {"LSE-1": "refuted"}
    named = run("check", path, "--profile", str(profile), "--clause", "LSE-1", "--format", "json")
    assert verdicts(named) == {"LSE-1": "allowed" if status == "allowed" else "refuted"}
    assert (of_the_history.exit_code, named.exit_code) == (1, 2 if status == "allowed" else 1)


def test_our_own_code_is_judged_where_somebody_asks(run: Run, tmp_path: Path) -> None:
    """On a foreign broker our client's promises are not claimed, unless they are asked for."""
    info, rows = parse_history(get("ORD-2").shortest_violation)
    parties = {
        "broker": "Apache RocketMQ",
        "client": "inorder reference",
        "producer": "inorder reference",
    }
    write_history(
        tmp_path,
        RunInfo(run=info.run, settles=True, profile="rocketmq-5-orderly", parties=parties),
        rows,
    )
    client = next(each for each in ("ORD-3", "RTY-1", "CMT-1") if get(each).party.value == "client")
    assert verdicts(run("check", str(tmp_path), "--format", "json"))[client] == "not_claimed"
    assert (
        verdicts(run("check", str(tmp_path), "--clause", client, "--format", "json"))[client]
        != "not_claimed"
    )


@pytest.mark.parametrize(
    ("clause", "words"),
    [
        ("LES-1", "there is no clause LES-1; did you mean LSE-1?"),
        ("one owner", "there is no clause one owner; `inorder list clauses` shows all"),
        ("ASG-3", "ASG-3 is judged by vectors: no history shows whether it was kept"),
    ],
)
def test_a_clause_that_no_history_decides(
    run: Run, tmp_path: Path, clause: str, words: str
) -> None:
    """Also when there is one that does."""
    assert words in sentence(
        run("check", str(put(tmp_path, "text")), "--clause", "LSE-1", "--clause", clause)
    )


# ------------------------------------------------------------------------------------ nobody's promise


@pytest.mark.parametrize("form", FORMS)
def test_a_history_without_a_profile_is_judged_by_none(run: Run, tmp_path: Path, form: str) -> None:
    """Not by RocketMQ's: the sentence names the ways out, and they are ways out."""
    path = str(put(tmp_path, form))
    said = sentence(run("check", path))
    for way in ("--profile NAME", "`inorder list profiles`", "--clause ID"):
        assert way in said
    assert run("check", path, "--profile", "reference").exit_code == 1
    assert run("check", path, "--clause", "LSE-1").exit_code == 1


# ------------------------------------------------------------------------------------------ a URI


@pytest.mark.parametrize("engine", ["python", "arrow"])
def test_a_history_on_another_file_system_has_the_same_verdict(
    run: Run, tmp_path: Path, engine: str
) -> None:
    info, rows = parse_history(TWO_OWNERS)
    write_history(tmp_path / "h", info, rows)
    asked = ("--clause", "LSE-1", "--engine", engine, "--format", "json")
    here, there = (
        run("check", str(source), *asked) for source in (tmp_path / "h", f"file://{tmp_path / 'h'}")
    )
    assert (here.exit_code, there.exit_code) == (1, 1), there.output
    assert verdicts(there) == verdicts(here) == {"LSE-1": "refuted"}
    again = json.loads(there.stdout)["replay"]
    assert again == f"inorder check file://{tmp_path / 'h'} --engine {engine} --clause LSE-1"


def test_a_place_that_nobody_can_read_is_one_sentence(run: Run) -> None:
    result = run("check", "nowhere://bucket/history", "--clause", "LSE-1")
    assert "nowhere://bucket/history can't be read" in sentence(result)


@pytest.mark.parametrize("begin", [b'{"run": "', b"0ms  alice  locks  "])
def test_a_line_without_an_end_is_refused_before_it_fills_the_memory(begin: bytes) -> None:
    """Of a pipe no more is read than the longest line that there may be."""
    source = Endless(begin)
    with (
        mock.patch.object(sys, "stdin", mock.Mock(buffer=io.BufferedReader(source))),
        pytest.raises(
            HistoryError, match="standard input is no history: its line 1 is longer than 4 MiB"
        ),
    ):
        open_source(Path("-"))
    assert source.given < 16 << 20


@pytest.mark.parametrize("name", ["history.jsonl", "history.txt"])
def test_a_long_line_of_a_file_is_refused(run: Run, tmp_path: Path, name: str) -> None:
    with (tmp_path / name).open("wb") as file:
        file.write(b"{")
        file.truncate(600 << 20)
    told = sentence(run("check", str(tmp_path / name), "--clause", "LSE-1"))
    assert "its line 1 is longer than 4 MiB" in told


def test_a_device_without_an_end_is_no_history(run: Run) -> None:
    assert "its line 1 is longer than 4 MiB" in sentence(
        run("check", "/dev/zero", "--clause", "LSE-1")
    )


class Endless(io.RawIOBase):
    """A pipe whose first line never ends. given: how many bytes were read."""

    def __init__(self, begin: bytes) -> None:
        self._begin, self.given = begin, 0

    def readable(self) -> bool:
        return True

    def readinto(self, into: memoryview) -> int:  # type: ignore[override]
        data = (self._begin + b"x" * len(into))[: len(into)]
        self._begin = b""
        into[:] = data
        self.given += len(data)
        return len(data)
