"""What the plans of real runs can't put at stake, derived and not listed."""

from __future__ import annotations

from random import Random

from conformance.drivers.plans import DRIVEN, drawn_plan
from conformance.wire.runner import ASKED_BESIDE, SHORT_LEASES, orderly_plan
from conformance.wire.work import ROUNDS, round_config, round_plan
from specs.clauses.catalogue import catalogue
from specs.plan.plan import Plan
from specs.plan.traits import Trait
from specs.verdicts.reach import out_of_reach

FLOOR = 10


def needing(*traits: Trait) -> set[str]:
    return {
        clause.id for clause in catalogue() if {stake.trait for stake in clause.stakes} & {*traits}
    }


def rounds(*, kills: bool, fills: bool) -> list[Plan]:
    return [
        orderly_plan(SHORT_LEASES, "", 1, 240),
        *(
            round_plan(
                round_config(SHORT_LEASES, number),
                "",
                1,
                number,
                "b0",
                kills=kills or not number % 2,
                fills=fills,
            )
            for number in range(1, ROUNDS + 1)
        ),
    ]


def test_the_rounds_reach_every_clause_where_the_disk_can_be_filled() -> None:
    """No round can put everything at stake; all of them together do, but for what no broker here has: generations."""
    plans = rounds(kills=False, fills=True)
    lacking = out_of_reach(plans, floor=FLOOR, beside=ASKED_BESIDE)
    assert set(lacking) == needing(Trait.SLEEPER)
    assert out_of_reach(plans[:1], floor=FLOOR, beside=ASKED_BESIDE) != {}


def test_a_served_broker_lacks_a_full_disk_only() -> None:
    """It is killed, and its disk is not ours to fill."""
    lacking = out_of_reach(rounds(kills=True, fills=False), floor=FLOOR, beside=ASKED_BESIDE)
    assert set(lacking) == needing(Trait.FULL_DISK, Trait.SLEEPER)


def test_consumers_at_work_once_put_little_more_than_suspends_at_stake() -> None:
    """One plan of half a minute, with leases too short for a clause that wants a fresh one."""
    lacking = out_of_reach(
        [orderly_plan(SHORT_LEASES, "", 1, 240)], floor=FLOOR, beside=ASKED_BESIDE
    )
    seldom = {Trait.DEATH, Trait.MEMBER_CHANGE}
    present = {Trait.CLEAN_CHANGE, *ASKED_BESIDE}
    assert set(lacking) == needing(*(set(Trait) - present))
    assert {clause for clause, why in lacking.items() if " only " in why} == needing(*seldom)


def test_a_driven_client_is_asked_for_what_its_drawn_plans_have() -> None:
    """A plan that commits by hand puts the clauses about it at stake, whatever others do."""
    by_hand = 0
    for seed in range(12):
        draw = Random(seed)
        plans = [drawn_plan(DRIVEN, "", seed, draw, plain=number == 1) for number in (1, 2)]
        lacking = set(out_of_reach(plans, floor=5))
        assert needing(Trait.HALF, Trait.BATCH, Trait.RESET, Trait.STRANGER) <= lacking
        manual = any(rule.manual for plan in plans for rule in plan.listener)
        assert (needing(Trait.MANUAL) <= lacking) is not manual
        by_hand += manual
    assert 0 < by_hand < 12
