"""The target of leased messages: upheld, refuted with a bug, and done again by its plan."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from conformance.run import judge, run, run_again
from conformance.targets.base import Asked
from conformance.targets.leased import LeasedTarget, target
from specs import profiles
from specs.errors import UsageError
from specs.verdicts.verdict import ClauseVerdict, RunVerdict


def folder(tmp_path: Path, name: str) -> Path:
    made = tmp_path / name
    made.mkdir()
    return made


def test_a_search_upholds_the_reference(tmp_path: Path) -> None:
    """Each of its rounds is a plan of its own."""
    asked = Asked(seed=1, examples=6, floor=1, out=tmp_path / "run")
    found = LeasedTarget().search(profiles.load("leased"), asked)
    assert found.verdict.verdict is RunVerdict.UPHELD


def test_a_run_with_a_bug_is_refuted_and_done_again(tmp_path: Path) -> None:
    """By the plan in its run.json, with the same rows."""
    bugged = target("message-has-two-holders")
    plan = bugged.own_plan("", 1, Random(1))
    first = run(plan, bugged, folder(tmp_path, "first"))
    verdict = judge(first, profiles.load("leased"))
    assert verdict.verdict is RunVerdict.REFUTED
    assert "PML-1" in {judged.id for judged in verdict.of(ClauseVerdict.REFUTED)}
    again = run_again(first.info, bugged, folder(tmp_path, "again"))
    assert list(again.rows()) == list(first.rows())


@pytest.mark.parametrize(
    ("bug", "clause"),
    [("former-member-may-commit", "GEN-1"), ("sends-taken-as-they-come", "ORD-15")],
)
def test_a_group_with_a_bug_is_refuted_and_without_one_upheld(
    tmp_path: Path, bug: str, clause: str
) -> None:
    """Its world is another one of the same target."""
    asked = Asked(seed=1, examples=6, floor=1, out=tmp_path / "run")
    right, wrong = (
        each.search(profiles.load(each.profile), asked) for each in (target("grouped"), target(bug))
    )
    assert right.verdict.verdict is RunVerdict.UPHELD
    assert clause in {judged.id for judged in wrong.verdict.of(ClauseVerdict.REFUTED)}


def test_an_unknown_bug_is_one_sentence() -> None:
    with pytest.raises(UsageError, match="did you mean message-has-two-holders"):
        target("message-has-two-holder")
