"""`inorder shrink`: the same failure with less of everything, as a run of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from click.testing import Result

from conformance.machines.cluster import Collector
from conformance.reports.schemas import SHRINK_SCHEMA, schema
from conformance.runner import run_machine
from reference_impl.mutants import load
from reference_impl.sim.simulate import runinfo_of, simulate
from specs.clauses.catalogue import get
from specs.history.store import write_history
from specs.plan.plan import Plan
from specs.verdicts.examine import examine

Run = Callable[..., Result]
MUTANT = "unlock-ignores-owner"


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run as a machine found it: dozens of actions, of which few are to blame."""
    bug = load(MUTANT)
    collector = Collector(lambda refuted: refuted if "LSE-8" in refuted else (), bug)
    run_machine(collector, 1, 100)
    assert collector.broken is not None
    folder = tmp_path_factory.mktemp("runs") / "large"
    write_history(folder, runinfo_of(collector.broken.plan, bug), collector.broken.rows)
    return folder


def refutes(plan: Plan) -> bool:
    """Does the mutant break the clause with this plan?"""
    info, rows = simulate(plan, load(MUTANT))
    return "LSE-8" in examine(rows, info, (get("LSE-8"),)).refuted()


def test_a_run_becomes_smaller_and_stays_refuted(run: Run, large: Path, tmp_path: Path) -> None:
    """In events, actions, messages, rules and clients; what is left is a run that can be replayed."""
    out = tmp_path / "small"
    result = run("shrink", str(large), "--out", str(out), "--format", "json")
    assert result.exit_code == 0, result.stderr
    printed = json.loads(result.stdout)
    jsonschema.validate(printed, schema(SHRINK_SCHEMA))
    before, after = printed["before"], printed["after"]
    assert printed["clause"] == "LSE-8"
    assert before["actions"] > 20
    assert after["actions"] < before["actions"] / 2
    plan = Plan.from_json(json.loads((out / "run.json").read_text(encoding="utf-8"))["plan"])
    assert refutes(plan)
    fewer = (
        replace(plan, actions=plan.actions[:n] + plan.actions[n + 1 :])
        for n in range(len(plan.actions))
    )
    assert not any(refutes(each) for each in fewer)
    assert all(after[name] <= before[name] for name in before)
    replayed = run("replay", str(out))
    assert (replayed.exit_code, "the same bytes" in replayed.stderr) == (1, True)
    assert "REFUTED  LSE-8" in replayed.stdout


def test_sizes_before_and_after_are_shown(run: Run, large: Path, tmp_path: Path) -> None:
    """For another clause that the run refutes, when it is named; the folder is beside the run by default."""
    plan = tmp_path / "plan.json"
    plan.write_text(
        json.dumps(json.loads((large / "run.json").read_text())["plan"]), encoding="utf-8"
    )
    result = run(
        "shrink", str(plan), "--target", f"mutant:{MUTANT}", "--clause", "lse-1", "--tries", "150"
    )
    assert result.exit_code == 0, result.stderr
    assert result.stdout.split()[:2] == ["before", "after"]
    assert "LSE-1 one owner at a time: " in result.stdout
    assert (tmp_path / "plan-shrunk" / "verdict.json").is_file()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--clause", "RTY-1"), "RTY-1 is not refuted by"),
        (("--target", "reference"), "nothing that is claimed"),
        (("--out", "."), "is no run of ours"),
    ],
)
def test_what_can_not_be_shrunk_is_wrong_usage(
    run: Run, large: Path, arguments: tuple[str, ...], words: str
) -> None:
    """One sentence, exit 64."""
    result = run("shrink", str(large), *arguments)
    assert (result.exit_code, words in " ".join(result.stderr.split())) == (64, True), result.stderr


def test_a_run_is_not_shrunk_into_itself(run: Run, large: Path) -> None:
    """The run stays."""
    result = run("shrink", str(large), "--out", str(large))
    assert (result.exit_code, "is the run itself" in result.stderr) == (64, True)
    assert (large / "run.json").is_file()
