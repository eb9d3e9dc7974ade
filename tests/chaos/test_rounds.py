"""Rounds of scenarios: seeds, budgets, what is left out, and the table at the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.rounds import Bounds, Tried, in_rounds
from conformance.reports.view import VerdictView, view
from specs import profiles
from specs.errors import TargetMisbehaved, UsageError
from specs.history.text import parse_history
from specs.verdicts.examine import examine
from specs.verdicts.tally import Check
from specs.verdicts.verdict import conclude

TWO_OWNERS = "0ms a locks g/t/b/0 ok\n1ms b locks g/t/b/0 ok"
ONE_OWNER = "0ms a locks g/t/b/0 ok\n1ms b locks g/t/b/0 refused"
MISSED = Check("MET-7", "the scenario reached what it must", False, "takeover")


def verdict(text: str, *more: Check) -> VerdictView:
    """Of a history in the text notation."""
    info, rows = parse_history(text)
    found, reference = examine(rows, info), profiles.load("reference")
    return view(conclude(found, info, reference, require_exercised=False, more=more))


def misbehaves(_seed: int, _out: Path) -> VerdictView:
    raise TargetMisbehaved("consumer c1 died")


def does_not_fit(_seed: int, _out: Path) -> VerdictView:
    raise UsageError("its brokers can't be put behind a proxy")


def test_each_round_has_the_next_seed_and_a_folder_of_its_own(tmp_path: Path) -> None:
    asked: list[tuple[int, Path]] = []

    def go(seed: int, out: Path) -> VerdictView:
        asked.append((seed, out))
        return verdict(ONE_OWNER)

    tried = Tried()
    list(in_rounds({"killed": go}, tried, seed=7, out=tmp_path, bounds=Bounds(rounds=2)))
    assert asked == [(7, tmp_path / "killed" / "1"), (8, tmp_path / "killed" / "2")]
    assert tried.exit_code == 0


def test_a_time_that_is_over_lets_one_run_begin(tmp_path: Path) -> None:
    tried = Tried()
    go = {"a": lambda _seed, _out: verdict(ONE_OWNER), "b": misbehaves}
    list(in_rounds(go, tried, seed=1, out=tmp_path, bounds=Bounds(None, budget_s=0.0)))
    assert [each.scenario for each in tried.tries] == ["a"]


def test_the_table_says_what_broke_in_how_many_tries(tmp_path: Path) -> None:
    tried = Tried(left_out={"link-down": "needs a proxy"})
    go = {
        "killed": lambda seed, _out: verdict(TWO_OWNERS if seed == 1 else ONE_OWNER),
        "paused": lambda _seed, _out: verdict(ONE_OWNER, MISSED),
        "frozen": misbehaves,
    }
    list(in_rounds(go, tried, seed=1, out=tmp_path, bounds=Bounds(rounds=2)))
    assert list(tried.rows()) == [
        ("killed", "2", "1 refuted, 1 upheld", "LSE-1 in 1 of 2"),
        (
            "paused",
            "2",
            "2 inconclusive",
            "not met: the scenario reached what it must: takeover (2 of 2)",
        ),
        ("frozen", "2", "2 failed", "consumer c1 died (2 of 2)"),
        ("link-down", "0", "left out", "needs a proxy"),
    ]
    assert tried.exit_code == 70


def test_what_turns_out_not_to_fit_is_left_out_where_nobody_named_it(tmp_path: Path) -> None:
    go = {"cut": does_not_fit, "killed": lambda _seed, _out: verdict(ONE_OWNER)}
    tried = Tried()
    list(in_rounds(go, tried, seed=1, out=tmp_path, bounds=Bounds(rounds=2, lenient=True)))
    assert [each.scenario for each in tried.tries] == ["killed", "killed"]
    assert tried.left_out == {"cut": "its brokers can't be put behind a proxy"}
    with pytest.raises(UsageError, match="behind a proxy"):
        list(in_rounds(go, Tried(), seed=1, out=tmp_path, bounds=Bounds()))
