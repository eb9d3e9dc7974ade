"""The demo: each step runs its commands, is held against what is expected of it, or is skipped with the remedy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from conformance.cli.main import Root
from conformance.reports.view import VerdictView, open_run
from inorder.evidence import demo
from specs.history.runinfo import RunInfo, write_runinfo
from specs.verdicts.verdict import ClauseVerdict

Run = Callable[..., Result]


@pytest.fixture
def caught(profile: str) -> demo.Step:
    """A short step: a mutant under a profile of one clause."""
    command = f"conform --target mutant:expiry-ignored --profile {profile} --seed 5 --out {{out}}"
    return demo.Step("mutant", "A bug is caught", "why", (command,), demo.refuted_in("LSE-1"))


def run_demo(monkeypatch: pytest.MonkeyPatch, out: Path, *steps: demo.Step) -> Result:
    monkeypatch.setattr(demo, "STEPS", steps)
    return CliRunner(env={"COLUMNS": "100"}).invoke(
        demo._Alone(name="make"), ["demo", "--out", str(out)]
    )


def test_it_ends_well_when_all_is_as_expected(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caught: demo.Step
) -> None:
    """The command, its report, the closing table, where the reports lie, exit 0."""
    result = run_demo(monkeypatch, tmp_path, caught)
    assert result.exit_code == 0, result.output
    assert "$ inorder conform --target mutant:expiry-ignored" in result.stdout
    assert "REFUTED  LSE-1" in result.stdout
    assert "as expected, after" in result.stdout
    assert str(tmp_path / "mutant") in result.stdout
    assert "Everything came out as expected" in result.stdout


def test_it_ends_with_1_when_a_step_is_not_as_expected(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caught: demo.Step
) -> None:
    """The sentence names the step and both verdicts."""
    result = run_demo(monkeypatch, tmp_path, replace(caught, expect=demo.upheld))
    assert result.exit_code == 1
    assert (
        "Not as expected: A bug is caught: expected to be upheld, it is refuted (LSE-1)"
        in " ".join(result.stdout.split())
    )


def test_a_step_without_its_part_is_skipped_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caught: demo.Step
) -> None:
    """Which part, why, and how to mend it; the demo goes on and ends well."""
    monkeypatch.setattr(
        demo, "why_not", lambda part: f"{part} is missing: not here; to mend it: make setup"
    )
    result = run_demo(monkeypatch, tmp_path, replace(caught, parts=("java",)))
    assert result.exit_code == 0, result.output
    assert "skipped: java is missing: not here; to mend it: make setup" in result.stdout
    assert "Skipped: A bug is caught: java is missing" in result.stdout


def test_a_command_that_is_not_there_is_a_missing_part(caught: demo.Step) -> None:
    """The seam to other parts is the command line."""
    absent = replace(caught, commands=("levitate --out {out}",))
    assert (
        demo.missing(absent)
        == "the command `inorder levitate` is not installed; to mend it: make setup"
    )
    assert demo.missing(caught) is None


def test_a_step_that_fails_does_not_end_the_story(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caught: demo.Step
) -> None:
    """A target that can't be judged is not as expected, in a sentence; later steps still run."""
    broken = replace(
        caught, name="broken", commands=("conform --target mutant:nobody --out {out}",)
    )
    result = run_demo(monkeypatch, tmp_path, broken, caught)
    assert result.exit_code == 1
    assert "it could not be judged: there is no mutant 'nobody'" in result.stdout
    assert "REFUTED  LSE-1" in result.stdout


def test_an_unknown_step_is_wrong_usage() -> None:
    """It names the steps."""
    result = CliRunner().invoke(demo._Alone(name="make"), ["demo", "--only", "nothing"])
    assert (result.exit_code, "the steps are reference, mutant, chaos" in result.stderr) == (
        64,
        True,
    )


def test_the_steps_tell_the_story_in_order() -> None:
    """Reference, mutant, chaos, two releases, a million events; every command is one of ours."""
    assert [step.name for step in demo.STEPS] == [
        "reference",
        "mutant",
        "chaos",
        "rocketmq-5.4.0",
        "rocketmq-4.9.7",
        "million",
    ]
    first_words = {line[0] for step in demo.STEPS for line in step.lines(Path("out"))}
    assert first_words <= set(Root.list_commands(demo.root, None))  # type: ignore[arg-type]


def test_expectations_of_a_broker(refuted_run: tuple[Result, Path]) -> None:
    """Nothing refuted, the gate's clause upheld, and enough that only the broker keeps."""
    verdict = open_run(refuted_run[1])
    expect = demo.a_broker_that_keeps("DLQ-7")
    assert expect(verdict) == "expected to break nothing, it is refuted in LSE-1"
    one = verdict.clauses[0]
    kept = [
        replace(one, id=f"WIR-{n}", party="broker", verdict=ClauseVerdict.UPHELD)
        for n in range(1, 11)
    ]
    without: VerdictView = replace(verdict, clauses=tuple(kept))
    assert expect(without) == "expected to keep DLQ-7, which was not upheld"
    gate = replace(kept[0], id="DLQ-7")
    assert expect(replace(verdict, clauses=(*kept[:5], gate))) == (
        "expected at least 10 broker promises to be upheld, there were 6"
    )
    assert expect(replace(verdict, clauses=(*kept, gate))) is None


def test_a_second_demo_makes_room_for_its_history(tmp_path: Path) -> None:
    """What an earlier one generated goes; what somebody recorded stays."""
    for target in ("generated", "rocketmq:127.0.0.1:9876"):
        write_runinfo(tmp_path / target, RunInfo("r", target=target))
        demo._remove_generated(tmp_path / target)
    demo._remove_generated(tmp_path / "nothing")
    assert [path.name for path in tmp_path.iterdir()] == ["rocketmq:127.0.0.1:9876"]
