"""What a raw client finds in a broker's answers lies in the run's folder, and who judges the folder says it again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from conformance.cli.main import root
from conformance.run import judge
from conformance.targets.base import find
from conformance.wire.runner import conform_wire
from conformance.wire.target import WireTarget
from specs.history.store import open_history
from specs.profiles import load
from specs.verdicts.online import ONLINE_FILE
from specs.verdicts.verdict import ClauseVerdict, Judged, Verdict

BUG = "offset-overflow-to-min"
RULE = "WIR-9"


def refuted(verdict: Verdict) -> list[Judged]:
    return list(verdict.of(ClauseVerdict.REFUTED))


@pytest.fixture(scope="module")
def run_of_a_mutant(tmp_path_factory: pytest.TempPathFactory) -> tuple[Verdict, Path]:
    """A broker that sends a pull beyond the end back to 0: only its answer shows it."""
    target, out = find(f"mutant+tcp:{BUG}"), tmp_path_factory.mktemp("online") / "run"
    assert isinstance(target, WireTarget)
    verdict, _ = conform_wire(target, load("reference"), seed=1, examples=4, out=out, floor=1)
    return verdict, out


def test_the_folder_alone_says_the_same_finding(run_of_a_mutant: tuple[Verdict, Path]) -> None:
    """By every engine: the rows say nothing of it."""
    verdict, out = run_of_a_mutant
    assert [line.id for line in refuted(verdict)] == [RULE]
    for folder in (out, out / "asked"):
        for engine in ("python", "arrow"):
            again = judge(open_history(folder), load("reference"), engine)
            assert refuted(again) == refuted(verdict)


@pytest.fixture
def run() -> Callable[..., Result]:
    def call(*words: Any) -> Result:
        return CliRunner().invoke(root, [str(word) for word in words])

    return call


def test_a_user_finds_it_by_check_and_by_explain(
    run_of_a_mutant: tuple[Verdict, Path], run: Callable[..., Result], tmp_path: Path
) -> None:
    verdict, out = run_of_a_mutant
    why = refuted(verdict)[0].explanation.split(" was answered")[0]
    for words in (("check", out), ("check", out, "--clause", RULE)):
        checked = run(*words, "--format", "json")
        assert (checked.exit_code, why in checked.stdout) == (1, True)
    assert run("check", out, "--out", tmp_path / "kept").exit_code == 1
    explained = run("explain", tmp_path / "kept", "--clause", RULE)
    assert (explained.exit_code, "a pull beyond the end" in explained.stdout) == (0, True)
    # A facet's id is an alias: the clause is judged, by the rows too.
    facet = run("check", out, "--clause", "WIR-13")
    assert (facet.exit_code, "CMT-9" in facet.stdout, "WIR-13" in facet.stdout) == (0, True, True)


def test_a_folder_that_lost_its_findings_says_nothing_of_it(
    run_of_a_mutant: tuple[Verdict, Path], run: Callable[..., Result], tmp_path: Path
) -> None:
    """And a question for a rule alone is told why nobody can answer it."""
    _, out = run_of_a_mutant
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "history").symlink_to(out / "history")
    (bare / "run.json").write_bytes((out / "run.json").read_bytes())
    assert not (bare / ONLINE_FILE).exists()
    assert run("check", bare).exit_code == 0
    asked = run("check", bare, "--clause", RULE)
    assert f"no {ONLINE_FILE} in" in asked.stderr
