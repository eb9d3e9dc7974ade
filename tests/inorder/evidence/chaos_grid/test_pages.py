"""The tables say what was not upheld, what was thin, and how soon lanes went on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from inorder.evidence.chaos_grid import pages
from inorder.evidence.chaos_grid.runs import Run

RUN = Run(
    target="a",
    scenario="x",
    seed=1,
    profile="p",
    date="2026-01-01",
    word="upheld",
    refuted=(),
    missed=(),
    messages=240,
    at_stake={"SND-1": 240, "ORD-4": 12},
    faults=(("cut", 2, 300), ("crash", 0, None)),
    stood_still={"crash": 1100.0},
)


def test_what_a_target_was_not_given_has_a_dash() -> None:
    runs = [
        replace(RUN, word="inconclusive", missed=("not met: it",)),
        replace(RUN, target="b", scenario="y"),
    ]
    head, rows = pages.by_scenario(runs, pages.whole)
    assert head == ("scenario", "a", "b")
    assert rows == [("x", "inconclusive (not met: it)", "–"), ("y", "–", "upheld")]


def test_a_clause_that_was_seldom_at_stake_is_named_with_its_least_run() -> None:
    runs = [RUN, replace(RUN, seed=2, at_stake={"SND-1": 240, "ORD-4": 4})]
    assert pages.thin(runs)[2:] == ["| x | ORD-4 | `a` 4 |"]
    assert pages.thin([RUN]) == ["None."]


def test_recovery_tells_the_median_the_worst_and_of_how_many() -> None:
    runs = [
        RUN,
        replace(RUN, seed=2, faults=(("cut", 1, 500),)),
        replace(RUN, target="b", faults=(("cut", 1, None), ("cut", 2, 100))),
        replace(RUN, target="b", word="refuted", faults=(("cut", 1, 9999),)),
    ]
    assert pages.recovery(runs, pages.after_healing) == [
        "| fault | `a` | `b` |",
        "|---|---:|---:|",
        "| `cut` | 400 / 500 (2) | 100 / never (2) |",
    ]
    assert pages.recovery([RUN], pages.standing_still)[2:] == ["| `crash` | 1,100 / 1,100 (1) |"]


def test_the_summary_counts_what_runs_came_to() -> None:
    runs = [RUN, replace(RUN, seed=2, word="failed", messages=0, at_stake={})]
    assert pages.summary(runs)[2:] == [
        "| `a` | `p` | 1 | 2 | 1 | 0 | 0 | 1 | 240, median 240 | 12, median 12 |"
    ]


@pytest.mark.parametrize("times", [(), (None,), (5.0, 1500.0, None)])
def test_waits_in_words(times: tuple[float | None, ...]) -> None:
    expected = {0: "–", 1: "never / never (1)", 3: "752 / never (3)"}
    assert pages.waited(times) == expected[len(times)]
