"""Bugs planted at random places of the reference: the suite kills them, or somebody has said why it can't."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from click.testing import CliRunner

from inorder.evidence import planted
from inorder.evidence.planted import (
    EQUIVALENT,
    MODULES,
    Change,
    Fate,
    all_changes,
    judge_all,
    report,
    unexplained,
)

LOCK = "reference_impl.core.broker.lock_table"


def change(function: str, was: str, becomes: str) -> Change:
    """The change of that name."""
    (found,) = [
        each
        for each in all_changes()
        if (each.function, each.was, each.becomes) == (function, was, becomes)
    ]
    return found


def test_every_module_and_every_operator_has_changes() -> None:
    """Hundreds of them; each is named by its place and differs from what was there."""
    changes = all_changes()
    assert {each.module for each in changes} == set(MODULES)
    assert {each.operator for each in changes} == {
        "comparison",
        "and/or",
        "arithmetic",
        "constant",
        "condition",
        "dropped",
        "table",
    }
    assert len(changes) > 300
    assert all(each.was != each.becomes for each in changes)


def test_a_changed_line_is_python() -> None:
    """What is said about a change can be read as code."""
    for each in all_changes():
        if each.operator not in ("table", "dropped") and not each.becomes.endswith(":"):
            ast.parse(each.becomes)


def test_the_boundary_of_a_lease_is_guarded() -> None:
    """Strictly older, or as old: one millisecond decides, and a case says so."""
    boundary = change(
        "LockTable.is_expired",
        "return now_ms - lease.since_ms > self.limit_ms",
        "return now_ms - lease.since_ms >= self.limit_ms",
    )
    (fate,) = judge_all([boundary], 1, examples=1)
    assert fate.by.startswith("case ")


def test_a_call_of_super_can_be_dropped() -> None:
    """The function knows its class through that call, and must be planted without it."""
    (fate,) = judge_all(
        [change("Leases.__init__", "super().__init__(consumer)", "")], 1, examples=1
    )
    assert fate.by.startswith(("error: AttributeError", "error: CoreFailed"))


def test_what_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """A change that loops for ever costs its time and no more."""
    monkeypatch.setattr(planted, "CPU_S", 1)
    monkeypatch.setattr(planted, "_by_cases", _for_ever)
    (fate,) = judge_all([all_changes()[0]], 1, examples=1)
    assert fate.by == "it does not end"


def _for_ever() -> str:
    while True:
        pass


@pytest.mark.parametrize(
    ("table", "least", "examples"),
    [
        pytest.param("results", 20, 8, marks=pytest.mark.long),
        pytest.param("lock_table", 31, 20, marks=pytest.mark.long),
        pytest.param("offset_table", 19, 20, marks=pytest.mark.long),
    ],
)
def test_a_table_is_guarded(
    table: str, least: int, examples: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """The lock table, the offset table and the listener's results: every change is killed, or explained."""
    fates = judge_all(
        [each for each in all_changes() if each.module.endswith(table)], 1, examples=examples
    )
    with capsys.disabled():
        print(f"\n{report(fates)}")  # noqa: T201  (the report is what this test is for)
    assert unexplained(fates) == []
    assert sum(fate.killed for fate in fates) >= least


def test_a_sample_lies_at_random_places() -> None:
    """The same for the same seed, in the order of the source."""
    assert planted.sample(9, 5) == planted.sample(9, 5) != planted.sample(9, 6)
    places = [all_changes().index(each) for each in planted.sample(9, 5)]
    assert places == sorted(places)


def test_survivors_are_reported_with_their_reason() -> None:
    """An explained one with the reason, another one as it is."""
    known = next(each for each in all_changes() if each.place in EQUIVALENT)
    other = next(each for each in all_changes() if each.place not in EQUIVALENT)
    text = report([Fate(known, ""), Fate(other, ""), Fate(other, "case lease/x")])
    assert text.splitlines()[0] == "1 of 3 planted bugs killed: 1 by a case"
    assert f"equivalent: {EQUIVALENT[known.place]}" in text
    assert "NOT EXPLAINED" in text
    assert unexplained([Fate(known, ""), Fate(other, "")]) == [other]


def test_every_explanation_is_of_a_change_that_exists() -> None:
    """When the code moves on, so does the list."""
    assert EQUIVALENT.keys() <= {each.place for each in all_changes()}


def test_a_change_that_met_its_fate_is_not_planted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By one command after the other, whose budget leaves some; then nobody has seen the whole: exit 2."""
    boundary = change(
        "LockTable.is_expired",
        "return now_ms - lease.since_ms > self.limit_ms",
        "return now_ms - lease.since_ms >= self.limit_ms",
    )
    first = judge_all([boundary], 1, examples=planted.EXAMPLES, store=tmp_path)
    monkeypatch.setattr(planted, "_limited", None)  # nobody may ask again
    assert judge_all([boundary], 1, examples=planted.EXAMPLES, store=tmp_path) == first
    result = CliRunner().invoke(planted.main, ["--budget", "0s", "--out", str(tmp_path)])
    left = len(all_changes()) - 1
    assert f"{left} of {left + 1} cells are not made yet" in " ".join(result.output.split())
    assert (result.exit_code, "1 of 1 planted bugs killed" in result.output) == (2, True)


@pytest.mark.long
def test_most_planted_bugs_are_killed_or_explained(capsys: pytest.CaptureFixture[str]) -> None:
    """Of all places and operators some; `python -m inorder.evidence.planted` makes them all."""
    fates = judge_all(planted.sample(100, 1), 1)
    with capsys.disabled():
        print(f"\n{report(fates)}")  # noqa: T201  (the report is what this test is for)
    assert unexplained(fates) == []
