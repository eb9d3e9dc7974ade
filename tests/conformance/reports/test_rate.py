"""Rates: Wilson's interval, kept try by try, gone on with, and shown with the failure."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from conformance.cli.confirm import command
from conformance.cli.report import command as report
from conformance.replay import mutant_of
from conformance.reports import junit
from conformance.reports.cases import cases_of
from conformance.reports.rate import FILE, Rate, read, wilson, write
from conformance.reports.saving import save
from conformance.reports.view import open_run
from reference_impl.sim.simulate import simulate
from specs import profiles
from specs.errors import UsageError
from specs.history.store import write_history
from specs.plan.plan import Action, ClientPlan, Plan
from specs.verdicts.engine import of_one_run
from specs.verdicts.examine import examine

PLAN = Plan(
    seed=1,
    clients=(ClientPlan("p", "producer"), ClientPlan("c1", "consumer", "billing", ("orders",))),
    actions=(
        Action(0, "start", {"client": "p"}),
        Action(0, "start", {"client": "c1"}),
        Action(500, "send", {"client": "p", "topic": "orders", "key": "k", "count": 3}),
    ),
    until_ms=1_000,
)


def run_in(folder: Path, target: str) -> Path:
    """A judged run of the plan."""
    info, rows = simulate(PLAN, mutant_of(target))
    write_history(folder, info, rows)
    save(of_one_run(examine(rows, info), info, profiles.load("reference")), folder)
    return folder


@pytest.mark.parametrize(
    ("broken", "of", "told"),
    [
        (7, 20, "7 of 20 (18 to 57 %)"),
        (0, 20, "0 of 20 (0 to 16 %)"),
        (20, 20, "20 of 20 (84 to 100 %)"),
        (0, 0, "0 of 0 (0 to 100 %)"),
    ],
)
def test_a_rate_says_how_sure_it_is(broken: int, of: int, told: str) -> None:
    rate = Rate(("LSE-1",), tuple(number < broken for number in range(of)))
    assert str(rate) == told
    assert rate.interval == wilson(broken, of)


def test_a_rate_is_read_back(tmp_path: Path) -> None:
    rate = Rate(("LSE-1",), (True, False))
    write(tmp_path, rate)
    assert read(tmp_path) == rate
    assert read(tmp_path / "elsewhere") is None
    (tmp_path / FILE).write_text("{")
    with pytest.raises(UsageError, match="delete it"):
        read(tmp_path)


def test_a_failure_is_tried_again_and_its_rate_shown_with_it(tmp_path: Path) -> None:
    run = run_in(tmp_path / "run", "mutant:commit-covers-running-call")
    words = [str(run), "--clause", "cmt-1", "--times"]
    first = CliRunner().invoke(command, [*words, "2"], standalone_mode=False)
    assert (first.return_value, read(run)) == (1, Rate(("CMT-1",), (True, True))), first.output
    write(run, Rate(("CMT-1",), (True, False)))  # as if it were a rarer one
    again = CliRunner().invoke(command, [*words, "3"], standalone_mode=False)
    assert "CMT-1 broken in 2 of 3" in again.output
    assert "broken again in 2 of 3" in CliRunner().invoke(report, [str(run)]).output
    verdict = open_run(run)
    failed = cases_of(verdict).case("CMT-1")
    assert failed is not None
    assert dict(failed.facts)["broken again in"] == "2 of 3 (21 to 94 %)"
    assert 'name="rate" value="CMT-1 broken again in 2 of 3 (21 to 94 %)"' in junit.render(
        [verdict]
    )


def test_a_run_that_refutes_nothing_has_no_rate(tmp_path: Path) -> None:
    run = run_in(tmp_path / "run", "reference")
    result = CliRunner().invoke(command, [str(run)])
    assert isinstance(result.exception, UsageError)
