"""What a run can't put at stake follows from its plans and from what each clause needs; no run keeps a list."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specs.clauses.catalogue import by_id, catalogue
from specs.plan.config import Config
from specs.plan.plan import Action, ClientPlan, ListenerRule, Plan, TopicPlan, Topology
from specs.plan.traits import Trait, count
from specs.verdicts.reach import out_of_reach
from specs.vocabulary import Outcome

SHOP, OTHER, C1, C2 = "shop", "other", "c1", "c2"


def act(at_ms: int, do: str, **args: object) -> Action:
    return Action(at_ms, do, args)


def send(at_ms: int, client: str, **more: object) -> Action:
    return act(at_ms, "send", client=client, topic="orders", count=1, **more)


def half(at_ms: int) -> Action:
    more = {"ends": "commit", "checked": "commit"}
    return act(at_ms, "send_half", client=SHOP, topic="orders", count=1, **more)


LANE = {"client": OTHER, "group": "billing", "topic": "orders", "broker": "b0"}
RICH = Plan(
    topology=Topology(topics=(TopicPlan("orders", 4),)),
    config=Config(threads=1, client_lease_ms=1_500, broker_lease_ms=3_000, rebalance_ms=500),
    clients=(
        ClientPlan(SHOP, "producer"),
        ClientPlan(OTHER, "producer"),
        ClientPlan(C1, "consumer", "billing", ("orders",)),
        ClientPlan(C2, "consumer", "billing", ("orders",)),
    ),
    actions=(
        act(0, "start", client=C1),
        act(0, "start", client=C2),
        send(100, SHOP, key="k"),
        send(200, OTHER, key="k"),
        send(300, SHOP),
        send(400, SHOP, batch=True),
        send(500, SHOP, delay_level=1),
        half(600),
        act(700, "disk_full", broker="b0"),
        act(800, "reset", **LANE, queue=0, offset=0),
        act(900, "probe_unlock", **LANE, queues=[0]),
        act(950, "pause", node=C2),
        act(990, "resume", node=C2),
        act(1_000, "stop", client=C2),
        act(2_000, "restart", client=C2),
        act(3_000, "crash", client=C2),
        act(9_000, "broker_crash", broker="b0"),
    ),
    listener=(
        ListenerRule(Outcome.THREW, number=1),
        ListenerRule(Outcome.ROLLBACK, manual=True, number=2),
        ListenerRule(Outcome.SUSPEND, suspend_ms=600, duration_ms=300, number=3),
    ),
    until_ms=10_000,
)
"""A plan that has every trait but a broker that lives on."""
CALM = replace(
    RICH, actions=tuple(action for action in RICH.actions if action.do != "broker_crash")
)


def needing(*traits: Trait) -> set[str]:
    return {
        clause.id for clause in catalogue() if {stake.trait for stake in clause.stakes} & {*traits}
    }


@pytest.mark.parametrize("trait", Trait)
def test_a_clause_needs_it(trait: Trait) -> None:
    """A trait that no clause rests on would be counted for nobody."""
    assert needing(trait)


@pytest.mark.parametrize("trait", Trait)
def test_a_plan_is_asked_for_it(trait: Trait) -> None:
    """The empty plan has none of what is planned, the rich one has all of it."""
    of_every_plan = {Trait.LIVING_BROKER, Trait.FRESH_LEASE}
    assert count(trait, CALM if trait is Trait.LIVING_BROKER else RICH) > 0
    bare = Plan(config=Config(client_lease_ms=Config().schedule_slack_ms))
    assert (count(trait, bare) > 0) is (trait in of_every_plan - {Trait.FRESH_LEASE})


def test_runs_that_have_everything_between_them_reach_every_clause() -> None:
    """One plan's broker dies, another one's does not."""
    assert out_of_reach([RICH, CALM], floor=1) == {}


def test_what_a_run_lacks_is_said_of_the_clauses_that_need_it() -> None:
    """Of these and of no others, with the trait in words."""
    poorer = replace(CALM, actions=tuple(a for a in CALM.actions if a.do != "send_half"))
    lacking = out_of_reach([poorer], floor=1)
    assert set(lacking) == needing(Trait.HALF, Trait.BROKER_KILL)
    assert lacking["SND-13"] == "such a run lacks a half message"


def test_what_a_run_has_too_seldom_is_said_with_its_number() -> None:
    """One death brings so many lanes that somebody else must take over, and the floor wants more."""
    (stake,) = by_id()["LSE-5"].stakes
    assert stake.brings is not None
    assert "LSE-5" not in out_of_reach([RICH], floor=stake.brings)
    assert out_of_reach([RICH], floor=stake.brings + 1)["LSE-5"] == (
        "such a run has a consumer that dies while another one works only once, and that brings about 4 "
        "opportunities"
    )
    assert "LSE-5" not in out_of_reach([RICH, RICH], floor=stake.brings + 1)


def test_what_a_run_has_beside_its_plans_is_not_lacking() -> None:
    """A raw client asks before the plan begins."""
    assert needing(Trait.STRANGER) <= set(out_of_reach([Plan()], floor=1))
    assert not needing(Trait.STRANGER) & set(
        out_of_reach([Plan()], floor=1, beside={Trait.STRANGER})
    )


def test_a_change_near_the_kill_of_a_broker_is_not_clean() -> None:
    """For a lease before it and after it nobody is promised a handover."""
    kill = act(1_500, "broker_crash", broker="b0")
    killed = sorted([*CALM.actions, kill], key=lambda action: action.at_ms)
    assert count(Trait.CLEAN_CHANGE, CALM) == 3
    assert count(Trait.CLEAN_CHANGE, replace(CALM, actions=tuple(killed))) == 0


def test_who_works_alone_or_is_gone_changes_nothing() -> None:
    """A second start is none, and a death of the only member leaves nobody to take over."""
    actions = (
        act(0, "start", client=C1),
        act(1, "restart", client=C1),
        act(2, "crash", client=C1),
        act(3, "stop", client=C1),
    )
    alone = replace(CALM, actions=actions)
    assert count(Trait.MEMBER_CHANGE, alone) == 2
    assert count(Trait.DEATH, alone) == 0
