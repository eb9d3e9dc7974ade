"""The world of a group with generations: the correct one keeps every promise, whatever befalls its members."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from inorder.evidence import laws
from reference_impl.sim.grouped import grouped_info, simulate_grouped
from reference_impl.sim.leased_plans import drawn_plan
from specs import profiles
from specs.clauses.catalogue import all_clauses
from specs.history.row import Row
from specs.verdicts.engine import of_one_run
from specs.verdicts.examine import examine
from specs.verdicts.tally import merged
from specs.verdicts.verdict import RunVerdict
from specs.vocabulary import Kind, Outcome

PLANS = 12
OWN = {"ORD-15", "GEN-1"}


def run(seed: int) -> list[Row]:
    return simulate_grouped(drawn_plan(Random(seed), seed))


def test_the_same_plan_gives_the_same_rows() -> None:
    assert run(3) == run(3)


def test_everything_that_can_befall_a_member_happens() -> None:
    seen = Counter((row.kind, row.outcome) for seed in range(PLANS) for row in run(seed))
    wanted = [
        (Kind.COMMIT, Outcome.REFUSED),
        (Kind.COMMIT, Outcome.UNKNOWN),
        (Kind.DROP, Outcome.OK),
        (Kind.CRASH, Outcome.OK),
        (Kind.PAUSE, Outcome.OK),
    ]
    assert [each for each in wanted if not seen[each]] == []


def test_the_correct_one_is_upheld() -> None:
    """With every claimed clause at stake."""
    plans = [drawn_plan(Random(seed), seed) for seed in range(PLANS)]
    total = merged(examine(simulate_grouped(plan), grouped_info(plan)) for plan in plans)
    verdict = of_one_run(total, grouped_info(plans[0]), profiles.load("grouped"))
    assert verdict.verdict is RunVerdict.UPHELD


def test_its_clauses_keep_the_laws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is refuted in a valid history of which rows, ends or answers were taken away."""
    mine = tuple(clause for clause in all_clauses() if clause.id in OWN)
    monkeypatch.setattr(laws, "all_clauses", lambda: mine)
    hearing = laws.Hearing()
    for seed in (0, 2):
        plan = drawn_plan(Random(seed), seed)
        laws.hear_valid((grouped_info(plan), simulate_grouped(plan)), hearing)
    assert {clause for clause, _law in hearing.counts} == OWN
    assert {key: count for key, count in hearing.counts.items() if count.broken} == {}
