"""The world of leased messages: the correct one keeps every promise, each bug breaks the one that it names."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from inorder.evidence import laws
from inorder.evidence.kill_matrix.kill import kill
from reference_impl.mutants import LEASED, Mutant, all_mutants
from reference_impl.sim.leased import leased_info, simulate_leased
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
SLOW = ("ended-lease-keeps-the-message", "late-acknowledgement-taken")
"""Whose smallest witness is looked for longest."""


def run(seed: int) -> list[Row]:
    return simulate_leased(drawn_plan(Random(seed), seed))


def test_the_same_plan_gives_the_same_rows() -> None:
    assert run(3) == run(3)


def test_everything_that_can_befall_a_lease_happens() -> None:
    """Redeliveries, late and lost acknowledgements, renewals, messages put back and given up, deaths and pauses."""
    seen = Counter((row.kind, row.outcome) for seed in range(PLANS) for row in run(seed))
    wanted = [
        (Kind.RECEIVE, Outcome.UNKNOWN),
        (Kind.ACK, Outcome.REFUSED),
        (Kind.ACK, Outcome.UNKNOWN),
        (Kind.RELEASE, Outcome.OK),
        (Kind.RENEW, Outcome.OK),
        (Kind.DEAD_LETTER, Outcome.OK),
        (Kind.CRASH, Outcome.OK),
        (Kind.PAUSE, Outcome.OK),
    ]
    assert [each for each in wanted if not seen[each]] == []


def test_the_correct_one_is_upheld() -> None:
    """With every claimed clause at stake."""
    plans = [drawn_plan(Random(seed), seed) for seed in range(PLANS)]
    total = merged(examine(simulate_leased(plan), leased_info(plan)) for plan in plans)
    verdict = of_one_run(total, leased_info(plans[0]), profiles.load("leased"))
    assert verdict.verdict is RunVerdict.UPHELD


@pytest.mark.parametrize(
    "bug",
    [
        pytest.param(bug, id=bug.name, marks=[pytest.mark.long] if bug.name in SLOW else [])
        for bug in all_mutants(LEASED)
    ],
)
def test_each_bug_is_killed_by_the_clause_that_it_names(bug: Mutant) -> None:
    """In a few plans, with a witness that is minimal."""
    assert kill(bug.name, 1, examples=PLANS).is_good


def test_the_clauses_of_leases_keep_the_laws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is refuted in a valid history of which rows, ends or answers were taken away."""
    mine = tuple(clause for clause in all_clauses() if clause.family in ("PML", "FLR", "KEY"))
    monkeypatch.setattr(laws, "all_clauses", lambda: mine)
    hearing = laws.Hearing()
    for seed in (0, 2):
        plan = drawn_plan(Random(seed), seed)
        laws.hear_valid((leased_info(plan), simulate_leased(plan)), hearing)
    heard = {clause for clause, _law in hearing.counts}
    assert heard == {clause.id for clause in mine}
    assert {key: count for key, count in hearing.counts.items() if count.broken} == {}
