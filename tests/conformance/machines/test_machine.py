"""The machine finds what is wrong, leaves alone what is right, and does so the same way each time."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from conformance.machines.cluster import Collector, Run
from conformance.replay import difference, repeat, replay
from conformance.runner import conform_simulated, run_machine, search
from conformance.shrink import shrink, without_actions
from conformance.wire.work import way_of
from inorder.evidence.kill_matrix.minimal import is_minimal
from reference_impl.mutants import Mutant, all_mutants, load
from reference_impl.sim.simulate import simulate
from specs.clauses.catalogue import get
from specs.errors import UsageError
from specs.history.store import open_history, write_history
from specs.plan.plan import Action, ClientPlan, ListenerRule, Plan, TopicPlan, Topology
from specs.profiles import load as load_profile
from specs.verdicts.examine import examine
from specs.verdicts.verdict import ClauseVerdict, RunVerdict
from specs.vocabulary import Outcome

PROFILE = load_profile("reference")
SEED = 7


def test_the_reference_is_not_refuted_and_most_clauses_are_at_stake_within_a_few_runs() -> None:
    seen: list[tuple[int, int]] = []
    result = conform_simulated(
        None,
        SEED,
        PROFILE,
        examples=12,
        floor=1,
        progress=lambda done, most, words: seen.append((done, most)),
    )
    assert result.found == ()
    assert result.verdict.of(ClauseVerdict.REFUTED) == ()
    assert len(result.verdict.of(ClauseVerdict.UPHELD)) >= 15
    assert all(check.ok is not False for check in result.verdict.met if check.id != "MET-6")
    assert (12, 12) in seen
    assert result.verdict.info.seed == SEED


def test_the_same_seed_makes_the_same_runs() -> None:
    def plans() -> list[Plan]:
        found: list[Plan] = []
        collector = Collector(lambda refuted: (), on_run=lambda run: found.append(run.plan))
        run_machine(collector, SEED, 4)
        return found

    assert plans() == plans()


def test_every_run_of_the_machine_replays_from_its_plan_to_the_byte() -> None:
    differences: list[str | None] = []

    def compare(run: Run) -> None:
        again = Plan.from_json(run.plan.to_json())
        assert again == run.plan
        info, rows = simulate(again)
        differences.append(difference(run.rows, rows) if info == run.info else "another run.json")

    run_machine(Collector(lambda refuted: (), on_run=compare), SEED, 5)
    assert set(differences) == {None}


def test_a_core_that_raises_ends_the_search_with_its_own_error() -> None:
    class Falling:
        def __init__(self, *_: object) -> None:
            raise ZeroDivisionError("on purpose")

    broken = replace(load("unlock-ignores-owner"), consumer=Falling)
    with pytest.raises(ZeroDivisionError):
        run_machine(Collector(lambda refuted: (), broken), SEED, 3)


AT_ONCE = {
    "queues-sorted-downwards",  # ASG, client
    "offsets-written-once",  # CMT, broker
    "commit-one-too-far",  # CMT, client
    "failed-query-taken-for-missing",  # CMT, pair
    "dead-letter-of-another-group",  # DLQ, broker
    "given-up-but-kept",  # DLQ, client
    "dead-letters-swapped",  # DLQ, pair
    "woken-one-message-late",  # LIV, broker
    "idle-lane-looked-at-later",  # LIV, client
    "lane-stands-still",  # LIV, pair
    "own-lock-refused-when-asked-again",  # LSE, broker
    "handover-keeps-lease",  # LSE, client
    "unlock-while-listener-runs",  # LSE, pair
    "offset-given-twice",  # ORD, broker
    "newest-first",  # ORD, client
    "starts-at-end",  # ORD, pair
    "queues-in-the-order-of-a-map",  # ORD, producer
    "suspend-ignored",  # RTY, client
    "send-back-without-delay",  # RTY, pair
    "delay-of-the-level-below",  # SND, broker
    "body-of-another",  # SND, pair
    "selector-send-retried",  # SND, producer
}
"""One mutant for each family of clauses and each party, that is found within a second or so: searched for in every run
of the tests, all the others in the long ones and in the kill matrix (`inorder mutants`)."""
SHRUNK_AT_ONCE = {
    "offset-given-twice",
    "handover-keeps-lease",
    "starts-at-end",
    "selector-send-retried",
}
"""One for each party: the whole of a verdict, with its run shrunk."""
EACH = 16
"""Of the long ones every sixteenth is shrunk too."""


def kind_of(mutant: Mutant) -> tuple[str, str]:
    """(family, party) of the clause that finds it."""
    clause = get(mutant.killed_by)
    return clause.id.partition("-")[0], clause.party


def test_every_family_and_party_has_a_mutant_that_is_searched_for_at_once() -> None:
    searched = [mutant for mutant in all_mutants() if mutant.name in AT_ONCE]
    assert len(searched) == len(AT_ONCE)
    assert {kind_of(mutant) for mutant in searched} == {kind_of(each) for each in all_mutants()}
    assert AT_ONCE >= SHRUNK_AT_ONCE


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(mutant.name, marks=[] if mutant.name in AT_ONCE else pytest.mark.long)
        for mutant in all_mutants()
    ],
)
def test_each_mutant_is_killed_by_the_clause_that_it_names(name: str) -> None:
    """Within as many runs as the kill matrix makes; the run's plan does it again, to the row.

    Judged by the one clause, which is several times as fast; the verdict of all of them is the next test's.
    """
    mutant = load(name)
    clause = get(mutant.killed_by)
    asked = {**PROFILE.config, "dialect": way_of(PROFILE).dialect}
    collector = Collector(
        lambda refuted: refuted, mutant, judge=partial(examine, clauses=(clause,)), config=asked
    )
    search(collector, SEED, 300)
    run = collector.broken
    assert run is not None
    found = run.examination.tallies[clause.id]
    assert 1 <= len(found.witness) <= 10
    assert found.explanation
    assert is_minimal(clause, found.witness, run.info)
    assert difference(run.rows, simulate(run.plan, mutant)[1]) is None


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(mutant.name, marks=[] if mutant.name in SHRUNK_AT_ONCE else pytest.mark.long)
        for number, mutant in enumerate(all_mutants())
        if mutant.name in SHRUNK_AT_ONCE or number % EACH == 0
    ],
)
def test_a_mutant_s_verdict_is_that_of_its_shrunk_run(name: str) -> None:
    result = conform_simulated(name, SEED, PROFILE, examples=300, shrink_runs=30)
    mutant = load(name)
    assert mutant.killed_by in result.found
    assert result.verdict.verdict is RunVerdict.REFUTED
    judged = next(each for each in result.verdict.clauses if each.id == mutant.killed_by)
    assert 1 <= len(judged.witness) <= 10
    assert judged.explanation
    assert is_minimal(get(mutant.killed_by), judged.witness, result.info)
    assert result.info.plan == result.plan.to_json()
    assert difference(result.rows, simulate(result.plan, name)[1]) is None


# ---------------------------------------------------------------- shrinking


def plan_with(*actions: Action, rules: tuple[ListenerRule, ...] = ()) -> Plan:
    return Plan(
        topology=Topology(("b0", "b1"), (TopicPlan("orders", 4),), ("billing",)),
        clients=(
            ClientPlan("alice", "consumer", "billing", ("orders",)),
            ClientPlan("bob", "consumer", "billing", ("orders",)),
            ClientPlan("p", "producer", topics=("orders",)),
        ),
        actions=actions,
        listener=rules,
        until_ms=99_999,
    )


def send(at_ms: int, count: int) -> Action:
    return Action(at_ms, "send", {"client": "p", "topic": "orders", "count": count})


def test_rules_follow_their_messages_when_an_action_goes() -> None:
    plan = plan_with(
        send(1, 2),
        send(2, 3),
        send(3, 1),
        rules=(
            ListenerRule(number=1),
            ListenerRule(number=4),
            ListenerRule(number=6, manual=True),
            ListenerRule(duration_ms=9),
        ),
    )
    shorter = without_actions(plan, 1, 2)
    assert [action.at_ms for action in shorter.actions] == [1, 3]
    assert shorter.listener == (
        ListenerRule(number=1),
        ListenerRule(number=3, manual=True),
        ListenerRule(duration_ms=9),
    )
    assert shorter.until_ms == 4


def test_a_plan_shrinks_to_what_is_needed() -> None:
    """Needed: a burst of two after a crash of alice, with a rule for its second message."""
    plan = plan_with(
        Action(0, "start", {"client": "alice"}),
        Action(0, "start", {"client": "bob"}),
        send(5, 3),
        Action(700, "crash", {"client": "alice"}),
        Action(701, "pause", {"node": "bob"}),
        send(9_000, 5),
        rules=(
            ListenerRule(duration_ms=4),
            ListenerRule(outcome=Outcome.NULL, number=2),
            ListenerRule(outcome=Outcome.THREW, number=5),
        ),
    )

    def broken(candidate: Plan) -> bool:
        crashed = number = 0
        for action in candidate.actions:
            if action.do == "send":
                named = [
                    rule.number for rule in candidate.listener if rule.outcome is Outcome.THREW
                ]
                if crashed and number + 2 in named and action.args["count"] >= 2:
                    return True
                number += action.args["count"]
            crashed += action.do == "crash"
        return False

    assert broken(plan)
    shrunk = shrink(plan, broken)
    assert broken(shrunk)
    assert [(action.at_ms, action.do) for action in shrunk.actions] == [(0, "crash"), (1, "send")]
    assert shrunk.actions[1].args["count"] == 2
    assert shrunk.listener == (ListenerRule(outcome=Outcome.THREW, number=2),)
    assert [client.id for client in shrunk.clients] == ["alice", "p"]
    assert shrunk.topology == Topology(("b0",), (TopicPlan("orders", 1),), ("billing",))


def test_shrinking_stops_at_its_budget() -> None:
    runs: list[Plan] = []

    def broken(candidate: Plan) -> bool:
        runs.append(candidate)
        return True

    shrink(plan_with(*(send(at_ms, 3) for at_ms in range(50))), broken, budget=5)
    assert len(runs) <= 5


# ---------------------------------------------------------------- replay


def test_a_saved_run_replays_to_the_byte_and_says_how_a_changed_one_differs(tmp_path: Path) -> None:
    result = conform_simulated("own-lock-refused-when-asked-again", SEED, PROFILE, shrink_runs=10)
    folder = tmp_path / "run"
    result.save(folder)
    assert list(open_history(folder).rows()) == result.rows
    assert (repeat(folder).compared, repeat(folder).difference) == (True, None)
    said: list[str] = []
    verdict = replay(folder, out=tmp_path / "again", say=said.append)
    assert said == [f"replayed {len(result.rows)} rows: the same bytes"]
    assert verdict.verdict is RunVerdict.REFUTED
    assert verdict.tool["replay"] == "the same bytes"
    assert list(open_history(tmp_path / "again").rows()) == result.rows

    changed = [*result.rows[:3], result.rows[3]._replace(value=77), *result.rows[4:]]
    write_history(tmp_path / "changed", result.info, changed)
    assert "value was 77" in str(repeat(tmp_path / "changed").difference)
    write_history(tmp_path / "cut", result.info, result.rows[:-1])
    assert f"the replay has {len(result.rows)}" in str(repeat(tmp_path / "cut").difference)
    correct = repeat(folder, "reference")
    assert (correct.compared, correct.info.target) == (False, "reference")


@pytest.mark.long
@pytest.mark.parametrize("flush", ["sync", "async"])
def test_brokers_on_disks_that_lose_what_was_not_synced_keep_every_clause(
    flush: str, tmp_path: Path
) -> None:
    """And a run on them replays to the byte; on other brokers it is another run."""
    result = conform_simulated(None, SEED, PROFILE, examples=12, floor=0, config={"flush": flush})
    assert (result.found, result.info.target) == ((), f"reference:{flush}")
    assert any(fault.startswith("broker_crash") for fault, _ in result.examination.facts.faults)
    assert result.examination.tallies["SND-1"].opportunities > 0
    result.save(tmp_path / "run")
    assert (repeat(tmp_path / "run").compared, repeat(tmp_path / "run").difference) == (True, None)
    other = repeat(tmp_path / "run", "reference:sync" if flush == "async" else "reference:async")
    assert (other.compared, other.plan.config.flush != flush) == (False, True)


def test_a_broker_that_does_not_wait_for_the_sync_is_refuted() -> None:
    """It says that it flushes in sync, so the clause expects it to."""
    result = conform_simulated(
        "acknowledged-before-the-sync", SEED, PROFILE, examples=40, shrink_runs=60
    )
    assert result.found == ("SND-1",)
    assert {action.do for action in result.plan.actions} >= {"start", "send", "broker_crash"}


def test_a_plan_file_is_run_on_the_reference(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan_with(send(1, 1)).to_json()), encoding="utf-8")
    verdict = replay(path, profile="reference")
    assert (verdict.info.target, verdict.tool["replay"]) == ("reference", "nothing to compare with")


def test_what_can_not_be_replayed_is_told(tmp_path: Path) -> None:
    result = simulate(plan_with())
    write_history(tmp_path / "foreign", replace(result[0], target="rocketmq:h:1"), result[1])
    write_history(tmp_path / "planless", replace(result[0], plan=None), result[1])
    with pytest.raises(UsageError, match="only simulated ones"):
        replay(tmp_path / "foreign")
    with pytest.raises(UsageError, match="has no plan"):
        replay(tmp_path / "planless")
    with pytest.raises(UsageError, match="does not exist"):
        replay(tmp_path / "missing")
