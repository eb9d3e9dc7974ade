"""How good `upheld` is: the arithmetic, the words, and the file from which both come."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace

import jsonschema
import pytest

from conformance.reports import power
from conformance.reports.power import (
    FILE,
    POWER_SCHEMA,
    Chance,
    Planted,
    Power,
    interval,
    percent,
    rate_seen,
)
from conformance.reports.schemas import schema
from conformance.reports.view import VerdictView, view
from reference_impl.mutants import every_mutant
from specs.verdicts.verdict import Coverage, Verdict

Make = Callable[..., Verdict]


def below(a: int, b: int, limit: float) -> float:
    """The share of the beta distribution below a limit, by adding up its density."""
    steps = 200_000
    width = limit / steps
    places = ((n + 0.5) * width for n in range(steps))
    area = math.fsum(x ** (a - 1) * (1 - x) ** (b - 1) for x in places) * width
    return area * math.gamma(a + b) / math.gamma(a) / math.gamma(b)


@pytest.mark.parametrize(("kills", "trials"), [(1, 10), (3, 30), (4, 9)])
def test_the_interval_is_the_exact_one(kills: int, trials: int) -> None:
    """Its ends are quantiles of two beta distributions: r kills, the last of them in trial n."""
    low, high = interval(kills, trials)
    assert below(kills, trials - kills + 1, low) == pytest.approx(0.025, abs=1e-6)
    assert below(kills, trials - kills, high) == pytest.approx(0.975, abs=1e-6)
    assert interval(3, 3) == (pytest.approx(0.025 ** (1 / 3)), 1.0)


def test_without_a_kill_the_interval_ends_where_one_would_have_shown() -> None:
    assert interval(0, 300) == (0.0, pytest.approx(0.009936, abs=1e-6))


@pytest.mark.parametrize("times", [1, 10, 300, 100_000])
def test_the_rate_seen_is_the_rule_of_three(times: int) -> None:
    """With this rate so many tries show it with 95 %; for many tries it is about 3/n."""
    assert (1 - rate_seen(times)) ** times == pytest.approx(0.05)
    assert rate_seen(times) <= 3 / times
    assert rate_seen(0) == 1.0


def test_the_interval_holds_the_true_chance_as_often_as_it_says() -> None:
    """Exactly, over all counts of runs that a geometric search may need: at least 95 % of the time."""
    true = 0.05
    held = 0.0
    for run in range(1, 400):
        low, high = interval(1, run)
        if low <= true <= high:
            held += true * (1 - true) ** (run - 1)
    assert 0.95 <= held <= 0.99


def bug(*runs: int | None, most: int = 300) -> Planted:
    return Planted("some-bug", "history", runs, most)


def test_the_simplest_run_is_the_same_for_every_search() -> None:
    """A bug that it shows is always shown; of every other one it tells nothing."""
    assert bug(1, 1).chance(1) == Chance(1, 1.0, 1.0, 1.0)
    assert bug(2, 3).chance(1) == Chance(1, 0.0, 0.0, 0.0)
    assert bug(2, 3).chance(2).estimate == pytest.approx(2 / 3)


def test_a_search_of_more_runs_finds_more() -> None:
    chances = [bug(41, 30).chance(runs) for runs in (2, 50, 150, 1_000)]
    for name in ("estimate", "low", "high"):
        values = [getattr(chance, name) for chance in chances]
        assert values == sorted(values)
    assert all(chance.low < chance.estimate < chance.high for chance in chances)


def test_a_bug_that_no_search_found_lowers_what_is_said() -> None:
    both = Power("LSE-1", (bug(2, 2), bug(None, None)))
    assert (both.found, both.slowest) == (1, 2)
    assert both.chance(150).estimate == pytest.approx(0.5)
    assert both.words(150).startswith(
        "such searches found 1 of 2 planted bugs, the slowest after 2 runs; 150 runs find one with "
    )


def test_words_for_one_bug_and_for_several() -> None:
    assert Power("X", (bug(1, 1),)).words(150) == (
        "such searches found the planted bug after 1 run at most; "
        "150 runs find one with more than 99.9 %"
    )
    words = Power("X", (bug(2, 3), bug(41, 12))).words(1_500)
    assert words.startswith("such searches found 2 of 2 planted bugs, the slowest")
    assert "searches of 300 runs did not all find the planted bug" in Power(
        "X", (bug(3, None),)
    ).words(10)


def test_percents_are_rounded_down() -> None:
    assert percent(Chance(9, 1.0, 0.419, 1.0)) == "99.9 % (at least 41 %)"
    assert percent(Chance(9, 0.979, 0.9, 0.996)) == "97 % (at least 90 %)"
    assert percent(Chance(9, 1.0, 0.9956, 1.0)) == "99.9 % (at least 99.5 %)"


# ------------------------------------------------------------------------------------------- the file


def data() -> dict[str, object]:
    found: dict[str, object] = json.loads(
        (power.resources.files("conformance.reports") / FILE).read_text(encoding="utf-8")
    )
    return found


def test_the_file_is_of_its_schema() -> None:
    jsonschema.validate(data(), schema(POWER_SCHEMA))


def test_every_mutant_and_every_clause_with_one_is_in_the_file() -> None:
    """Otherwise run `python -m inorder.evidence.kill_matrix.power MUTANT`, which adds it."""
    there = {(clause, each.name) for clause, bugs in power.planted().items() for each in bugs}
    assert there == {(mutant.killed_by, mutant.name) for mutant in every_mutant()}


def test_every_planted_bug_was_searched_for_by_some_seeds() -> None:
    bugs = [each for bugs in power.planted().values() for each in bugs]
    assert all(each.runs for each in bugs)
    assert all(run is None or 1 <= run <= each.most for each in bugs for run in each.runs)
    assert all(math.isfinite(each.chance(150).estimate) for each in bugs)


# --------------------------------------------------------------------------------- beside a verdict


@pytest.fixture
def searched(upheld: VerdictView) -> VerdictView:
    """As the search of a simulated target comes to it."""
    return replace(upheld, target="reference", profile="reference", coverage=Coverage(10, 150, 0))


def test_an_upheld_clause_says_what_it_is_worth(searched: VerdictView) -> None:
    clause = next(each for each in searched.clauses if each.id == "LSE-1")
    assert "planted bugs, the slowest after" in power.worth(searched, clause)
    assert "; 150 runs find one with" in power.worth(searched, clause)


def test_what_is_not_such_a_search_says_nothing(searched: VerdictView, make_verdict: Make) -> None:
    """A history that was checked, a profile that nobody has any more, a clause that was not at stake."""
    clause = next(each for each in searched.clauses if each.id == "LSE-1")
    idle = next(each for each in searched.clauses if each.id == "ORD-2")
    checked = view(make_verdict("0ms alice locks billing/orders/b0/3 ok"))
    assert power.worth(replace(checked, profile="reference"), clause) == ""
    assert power.worth(replace(searched, profile="gone.toml"), clause) == ""
    assert power.worth(searched, idle) == ""


def test_a_bug_counts_where_the_search_gives_it_an_occasion(searched: VerdictView) -> None:
    """By how the profile's groups consume, and by how the target's disk flushes."""

    def names(profile: str, clause: str, target: str = "reference") -> set[str]:
        found = power.power_of(replace(searched, profile=profile, target=target), clause)
        return set() if found is None else {each.name for each in found.bugs}

    assert "broadcast-forgets-its-file" in names("reference-broadcast", "CMT-12")
    assert names("reference", "CMT-12") == set()
    assert names("reference-concurrent", "LSE-1") == set()
    assert "acknowledged-before-the-sync" not in names("reference", "SND-1")
    assert "acknowledged-before-the-sync" in names("reference", "SND-1", "reference:sync")
