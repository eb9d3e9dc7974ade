"""Every profile on every body of the reference: a thin slice, and (long) the whole."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

import inorder.evidence.profile_grid.__main__ as command
from conformance.parts.processes import living
from conformance.stopping import Stop
from conformance.targets.base import find
from conformance.wire.runner import SHORT_LEASES, Worked
from conformance.wire.target import WireTarget
from conformance.wire.work import Way, configured, round_config, round_plan, way_of
from inorder.evidence.profile_grid.__main__ import main, worst
from inorder.evidence.profile_grid.cases import BODIES, CasesKept
from inorder.evidence.profile_grid.page import (
    CASES,
    PROFILES,
    REASONS,
    SUMMARY,
    WHY_NOT,
    marks,
    profile_row,
    reason_rows,
    with_profile,
    with_summary,
)
from inorder.evidence.profile_grid.profiles import TARGETS, Kept, from_json, keep, kept_by, ways
from specs import profiles
from specs.errors import (
    EXIT_INCONCLUSIVE,
    EXIT_REFUTED,
    EXIT_UPHELD,
    EXIT_USAGE,
    TargetMisbehaved,
    UsageError,
)
from specs.history.runinfo import RunInfo
from specs.plan.config import Config
from specs.plan.plan import Plan
from specs.profiles import Profile
from specs.verdicts.tally import Examination
from specs.verdicts.verdict import ClauseVerdict, RunVerdict, conclude
from specs.vocabulary import Outcome

PAGE = "\n".join(line for table in (PROFILES, REASONS) for line in marks(table)) + "\n"
WAYS = ways()


def test_every_profile_is_in_one_way_and_the_one_that_claims_most_comes_first() -> None:
    assert sorted(profile.name for each in WAYS.values() for profile in each) == sorted(
        profiles.names()
    )
    assert {str(way): each[0].name for way, each in WAYS.items()} == {
        "orderly": "reference",
        "orderly, 4.9": WAYS[Way("orderly", "clustering", "4.9")][0].name,
        "concurrent": "reference-concurrent",
        "key-ordered": "reference-key-ordered",
        "broadcasting": "reference-broadcast",
    }


def test_our_broker_answers_in_the_profiles_dialect_and_another_as_it_does() -> None:
    old = profiles.load("rocketmq-4.9-orderly")
    assert way_of(old) == Way("orderly", "clustering", "4.9")
    assert configured(SHORT_LEASES, old, our_broker=True).dialect == "4.9"
    assert configured(SHORT_LEASES, old, our_broker=False).dialect == SHORT_LEASES.dialect
    concurrent = configured(SHORT_LEASES, profiles.load("reference-concurrent"), our_broker=False)
    assert concurrent.mode == "concurrent"


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("number", [1, 2])
def test_a_rounds_plan_is_a_plan_with_everything_in_it(way: Way, number: int) -> None:
    config = round_config(configured(SHORT_LEASES, WAYS[way][0], our_broker=True), number)
    plan = round_plan(config, "r1-", 1, number, "b0", kills=True, fills=True)
    assert Plan.from_json(plan.to_json()) == plan
    assert {
        "start",
        "stop",
        "crash",
        "restart",
        "send",
        "send_half",
        "broker_crash",
        "broker_restart",
    } < {action.do for action in plan.actions}
    by_hand = {rule.manual for rule in plan.listener} == {True}
    assert by_hand == (number == 2 and config.mode == "orderly")
    assert {Outcome.SUSPEND, Outcome.NULL, Outcome.THREW} < {rule.outcome for rule in plan.listener}


def test_a_few_simulated_runs_are_judged_by_every_profile_of_their_way(tmp_path: Path) -> None:
    way = Way("concurrent", "broadcasting", "5.x")
    found = list(
        keep("reference", WAYS[way], seed=1, folder=tmp_path / "run", date="2026-11-21", examples=1)
    )
    assert [kept.profile for kept in found] == ["reference-broadcast", "rocketmq-5-broadcast"]
    assert [kept.clauses[ClauseVerdict.REFUTED] for kept in found] == [(), ()]
    assert {kept.verdict for kept in found} == {
        RunVerdict.INCONCLUSIVE
    }  # so few runs put nothing at stake often


def test_a_mutant_is_no_body_of_the_reference(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no body of the reference"):
        list(
            keep(
                "mutant:not-fifo-at-first",
                (profiles.load("reference"),),
                seed=1,
                folder=tmp_path,
                date="",
            )
        )


def some_kept(name: str = "reference-broadcast", target: str = "reference") -> Kept:
    """Of a run in which nothing happened."""
    profile = profiles.load(name)
    info = RunInfo(run="r", parties=dict.fromkeys(("broker", "client", "producer"), "inorder"))
    verdict = conclude(Examination(), replace(info, config=Config(**profile.config)), profile)
    return kept_by(profile, target, verdict, seconds=1, seed=1, date="2026-11-21")


def test_the_page_keeps_the_rows_of_what_was_not_run_again_and_the_order_of_profiles() -> None:
    first = some_kept()
    other = some_kept("reference-concurrent", "reference+tcp")
    page = with_profile(with_profile(PAGE, other), first)
    assert page == with_profile(page, first)
    assert page.index("reference-broadcast | `reference`") < page.index(
        "reference-concurrent | `reference+tcp`"
    )
    assert " | ".join(profile_row(first)) in page
    assert all(" | ".join(row) in page for row in reason_rows(other))


def test_what_a_profile_does_not_claim_is_not_told_again() -> None:
    reasons = [row[2] for row in reason_rows(some_kept())]
    assert "not claimed: nothing is given up" not in reasons
    assert any(reason.startswith("not claimed: its premise is not met") for reason in reasons)


def test_a_page_without_marks_is_told_in_a_sentence() -> None:
    with pytest.raises(UsageError, match="no table between"):
        with_profile("nothing here", some_kept())


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        ({RunVerdict.UPHELD}, EXIT_UPHELD),
        ({RunVerdict.UPHELD, RunVerdict.INCONCLUSIVE}, EXIT_INCONCLUSIVE),
        ({RunVerdict.INCONCLUSIVE, RunVerdict.REFUTED}, EXIT_REFUTED),
        (set(), EXIT_UPHELD),
    ],
)
def test_the_exit_code_is_that_of_the_worst(verdicts: set[RunVerdict], code: int) -> None:
    assert worst(verdicts) == code


def test_an_unknown_profile_is_told_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(PAGE)
    done = CliRunner().invoke(
        main, ["reference", "--profile", "nobody", "--page", str(tmp_path / "page.md")]
    )
    assert done.exit_code == EXIT_USAGE
    assert "there is no profile nobody" in done.output


def test_what_a_profile_came_to_comes_back_from_json() -> None:
    kept = some_kept()
    assert from_json(json.loads(json.dumps(kept.to_json()))) == kept


def test_a_target_is_summed_up_when_all_profiles_were_judged_on_it() -> None:
    """Of some of them the row would tell less than the one that is there."""
    page = "\n".join(marks(SUMMARY)) + "\n"
    every = [some_kept(name) for name in profiles.names()]
    assert with_summary(page, every[1:]) == with_summary(page, [])
    refuted = replace(
        every[0],
        verdict=RunVerdict.REFUTED,
        clauses={**every[0].clauses, ClauseVerdict.REFUTED: ("ORD-2",)},
        date="2026-11-20",
    )
    row = with_summary(page, [refuted, *every[1:]]).splitlines()[3]
    left = len(every) - 1
    assert row == (
        f"| `reference` | {len(every)} | 0 | {left} | 1 | ORD-2 | 2026-11-20 to 2026-11-21 |"
    )


def test_the_grid_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that fails costs no other and is made again; the rest is only told again, and every row is in the page."""
    page, out = tmp_path / "page.md", tmp_path / "out"
    page.write_text("\n".join(line for table in (SUMMARY, CASES, WHY_NOT) for line in marks(table)))
    asked: list[str] = []
    failing = ["reference"]

    def keep_some(
        target: str, chosen: Sequence[Profile], *, folder: Path, **_: object
    ) -> list[Kept]:
        asked.append(target)
        folder.mkdir(parents=True)
        if target in failing:
            raise TargetMisbehaved("it did not start")
        return [some_kept(profile.name, target) for profile in chosen]

    def keep_no_cases(body: str, **_: object) -> CasesKept:
        asked.append(body)
        return CasesKept(body, held=["a/case"], date="2026-11-21")

    monkeypatch.setattr(command, "keep", keep_some)
    monkeypatch.setattr(command, "keep_cases", keep_no_cases)
    words = ["--page", str(page), "--out", str(out)]
    first = CliRunner().invoke(main, words)
    assert "reference, orderly: it did not start" in first.stderr
    assert (first.exit_code, len(asked)) == (70, len(BODIES) + len(TARGETS) * len(WAYS))
    failing.clear()
    asked.clear()
    again = CliRunner().invoke(main, words)
    assert (again.exit_code, asked) == (EXIT_INCONCLUSIVE, ["reference"] * len(WAYS))
    assert "cells are " in again.stderr
    assert page.read_text().count(f"| {len(profiles.names())} | 0 |") == len(TARGETS)
    everything = (out / "everywhere.md").read_text()
    assert everything.count("| inconclusive |") == len(TARGETS) * len(profiles.names())
    drawn = (out / "everywhere.svg").read_text()
    assert all(
        f"{profile}: inconclusive: 0 clauses upheld" in drawn for profile in profiles.names()
    )


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("target", TARGETS)
def test_every_profile_is_kept_everywhere(target: str, way: Way, tmp_path: Path) -> None:
    """Nothing is refuted; and where a clause is claimed, it is at stake, or it is said why it can't be."""
    found = list(keep(target, WAYS[way], seed=2, folder=tmp_path / "run", date=""))
    assert living() == []
    refuted = {
        kept.profile: [kept.reasons[name] for name in kept.clauses[ClauseVerdict.REFUTED]]
        for kept in found
    }
    assert refuted == {kept.profile: [] for kept in found}
    assert {kept.verdict for kept in found} <= {RunVerdict.UPHELD, RunVerdict.INCONCLUSIVE}


def test_a_verdict_of_another_way_is_refused() -> None:
    run = find("reference+tcp")
    assert isinstance(run, WireTarget)
    worked = Worked(
        run,
        Way("orderly", "clustering", "5.x"),
        None,  # type: ignore[arg-type]
        None,  # type: ignore[arg-type]
        (),
        Stop(),
    )
    with pytest.raises(UsageError, match="speaks of concurrent"):
        worked.verdict(profiles.load("reference-concurrent"), 1)
