"""Rounds of scenarios: seeds, budgets, what is left out, and the table at the end."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from chaos import cli
from chaos.rounds import Bounds, Tried, in_rounds
from conformance.reports.view import VerdictView, view
from specs import profiles
from specs.errors import TargetMisbehaved, Unavailable, UsageError
from specs.history.text import parse_history
from specs.verdicts.baseline import read_baseline
from specs.verdicts.examine import examine
from specs.verdicts.tally import Check
from specs.verdicts.verdict import Verdict, conclude

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


UPHELD = """
2ms p sends t/b/0 offset=0 id=m1 key=k ok
3ms p sends t/b/0 offset=1 id=m2 key=k ok
"""
KNOWN = """
[[known]]
clause = "{clause}"
finding = "{finding}"
reason = "our fork"
owner = "payments"
expires = 2099-12-31
"""


@pytest.mark.parametrize(
    ("clause", "finding", "said"),
    [("LSE-1", "two-owners", (0, "seen")), ("LSE-2", "dropped-while-running", (1, "not_told"))],
)
def test_what_is_known_lets_a_scenario_pass(
    clause: str,
    finding: str,
    said: tuple[int, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The finding that the baseline names, and no other; the verdict says what came of the entry."""
    file = tmp_path / "baseline.toml"
    file.write_text(KNOWN.format(clause=clause, finding=finding), encoding="utf-8")

    def run_scenario(
        _scenario: object, _target: object, profile: profiles.Profile, **_more: object
    ) -> tuple[Verdict, None]:
        info, rows = parse_history(f"{TWO_OWNERS}\n{UPHELD}")
        found = conclude(examine(rows, info), info, profile, require_exercised=False)
        return found, None

    monkeypatch.setattr(cli, "run_scenario", run_scenario)
    known = read_baseline(file, date(2026, 1, 1))
    asked, _ = cli.prepare(["consumer-killed"], "reference+tcp", None, cli.PROCESS, known)
    told = asked.go(asked.scenarios[0])(1, tmp_path / "run")
    assert (told.exit_code, told.known[0].state) == said


def is_gone(_seed: int, _out: Path) -> VerdictView:
    raise Unavailable("no server answers")


def test_a_server_that_is_not_there_is_no_scenario_that_does_not_fit(tmp_path: Path) -> None:
    """Else everything would be left out, and the search come to its end."""
    bounds = Bounds(lenient=True)
    with pytest.raises(Unavailable, match="no server answers"):
        list(in_rounds({"killed": is_gone}, Tried(), seed=1, out=tmp_path, bounds=bounds))


def test_where_nothing_could_be_tried_nothing_is_upheld(tmp_path: Path) -> None:
    tried = Tried()
    list(in_rounds({"cut": does_not_fit}, tried, seed=1, out=tmp_path, bounds=Bounds(lenient=True)))
    assert tried.exit_code == 2


def test_what_turns_out_not_to_fit_is_left_out_where_nobody_named_it(tmp_path: Path) -> None:
    go = {"cut": does_not_fit, "killed": lambda _seed, _out: verdict(ONE_OWNER)}
    tried = Tried()
    list(in_rounds(go, tried, seed=1, out=tmp_path, bounds=Bounds(rounds=2, lenient=True)))
    assert [each.scenario for each in tried.tries] == ["killed", "killed"]
    assert tried.left_out == {"cut": "its brokers can't be put behind a proxy"}
    with pytest.raises(UsageError, match="behind a proxy"):
        list(in_rounds(go, Tried(), seed=1, out=tmp_path, bounds=Bounds()))
