"""The command that a verdict ends with is carried out as it is printed, and leads to the same verdict."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

import chaos
from chaos.scenario import load
from conformance import again

Run = Callable[..., Result]
SCENARIOS = Path(chaos.__file__).parent / "scenarios"
Judged = dict[str, tuple[str, int, int]]


def clauses(printed: str) -> Judged:
    return {
        each["id"]: (each["verdict"], each["opportunities"], each["violations"])
        for each in json.loads(printed)["clauses"]
    }


def carry_out(run: Run, line: str, *more: str) -> Result:
    """A printed line, as a shell would take it."""
    program, *words = shlex.split(line)
    assert program == "inorder"
    return run(*words, *more)


@pytest.mark.parametrize(
    "options",
    [
        (),
        pytest.param(
            ("--defect", "commit-rewinds", "--edge", "file", "--queues", "9"),
            marks=pytest.mark.long,
        ),
        pytest.param(("--defect", "second-owner"), marks=pytest.mark.long),
        pytest.param(("--queues", "6"), marks=pytest.mark.long),
        pytest.param(("--groups", "2", "--order", "time")),
    ],
    ids=" ".join,
)
def test_a_generated_history_is_written_again(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    """With its defect, at its place, in as many queues: the same bytes, so the same verdict.

    The second has all options at once; with some of them alone it is in the long tests.
    """
    monkeypatch.chdir(tmp_path)
    assert (
        run("generate", "--events", "8000", "--seed", "3", "--out", "first", *options).exit_code
        == 0
    )
    judged = run("check", "first", "--format", "json")
    line = json.loads(judged.stdout)["replay"]
    assert carry_out(run, line).exit_code == 0, line
    assert run("check", "DIR", "--format", "json").stdout == judged.stdout
    assert judged.exit_code == (1 if "--defect" in options else 0)
    names = sorted(path.name for path in Path("first/history").iterdir())
    assert names == sorted(path.name for path in Path("DIR/history").iterdir())
    for name in names:
        assert Path("first/history", name).read_bytes() == Path("DIR/history", name).read_bytes(), (
            name
        )


def test_a_simulated_run_is_done_again(
    run: Run, profile: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where its folder's name has a blank: the line is quoted."""
    monkeypatch.chdir(tmp_path)
    target = ["--target", "mutant:expiry-ignored", "--profile", profile]
    judged = run("conform", *target, "--seed", "5", "--out", "my run", "--format", "json")
    assert judged.exit_code == 1, judged.stderr
    line = json.loads(judged.stdout)["replay"]
    assert f"replay: {line}" in judged.stderr.splitlines()
    repeated = carry_out(run, line, "--format", "json")
    assert (repeated.exit_code, clauses(repeated.stdout)) == (1, clauses(judged.stdout)), line


def test_a_checked_history_is_checked_again(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a file, for single clauses."""
    monkeypatch.chdir(tmp_path)
    Path("two owners.txt").write_text(
        "0ms a locks g/t/b/0 ok\n1ms b locks g/t/b/0 ok", encoding="utf-8"
    )
    judged = run("check", "two owners.txt", "--clause", "LSE-1", "--format", "json")
    line = json.loads(judged.stdout)["replay"]
    assert carry_out(run, line, "--format", "json").stdout == judged.stdout


@pytest.mark.long
def test_a_chaos_run_is_done_again(run: Run, tmp_path: Path) -> None:
    """The scenario by its file, if it came from one, and the profile: both decide what is judged."""
    scenario = tmp_path / "my kill.toml"
    scenario.write_text(
        (SCENARIOS / "consumer-killed.toml").read_text(encoding="utf-8"), encoding="utf-8"
    )
    mine = tmp_path / "mine.toml"
    mine.write_text(
        '[clauses]\nLSE-1 = { status = "claimed", source = "a test" }', encoding="utf-8"
    )
    assert load(str(scenario)).asked_for == str(scenario)
    out = ["--out", str(tmp_path / "runs"), "--format", "json"]
    judged = run("chaos", str(scenario), "--profile", str(mine), "--seed", "4", *out)
    assert judged.exit_code in (0, 1, 2), judged.output
    first = json.loads(judged.stdout)
    assert f"again: {first['replay']}" in judged.stderr.splitlines()
    second = json.loads(carry_out(run, first["replay"], *out).stdout)
    for name in ("target", "profile", "seed", "run", "replay"):
        assert second[name] == first[name], name


def test_a_profile_of_two_products_stays_one_word() -> None:
    """And so does a path with a blank."""
    line = again.command(
        "conform", "--profile", "reference + rocketmq-4.9-orderly", "--seed", 4, Path("a b")
    )
    words = ["--profile", "reference + rocketmq-4.9-orderly", "--seed", "4", "a b"]
    assert shlex.split(line) == ["inorder", "conform", *words]
