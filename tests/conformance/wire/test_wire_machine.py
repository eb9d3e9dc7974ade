"""The wire machine on our own broker: silent on the correct one, and it names the rule that a broken one breaks."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.waiting import pass_time
from conformance.wire.client import WireClient
from conformance.wire.machine import run_machine
from conformance.wire.session import Session
from reference_impl.core.broker import BrokerConfig
from reference_impl.mutants import MODEL, all_mutants, load
from reference_impl.shell.cluster import ThreadedCluster
from specs.history.journal import Journal
from specs.history.runinfo import RunInfo
from specs.plan.config import Config
from specs.profiles import load as profile
from specs.verdicts.verdict import ClauseVerdict
from specs.vocabulary import Level

WIRE_5 = {
    "queue_out_of_range_code": 29,
    "commit_unknown_group_code": 26,
    "commit_unknown_topic_code": 17,
    "empty_queue_offset_query": "not_found",
    "retry_send_diverts_under_live_lock": True,
}
LEASE_MS = 300


def broken_rules(
    tmp_path: Path, mutant: str | None, examples: int, wire: dict[str, object] | None = None
) -> set[str]:
    """The wire rules that a broker breaks within some examples."""
    config = Config(broker_lease_ms=LEASE_MS)
    options = {} if mutant is None else {"make_broker": load(mutant).broker}
    with (
        ThreadedCluster(BrokerConfig.from_plan(config), **options) as cluster,
        Journal(tmp_path, "wire", common={"level": Level.WIRE}) as journal,
    ):
        session = Session(cluster.brokers["b0"], "b0", journal, config, wire or WIRE_5, "t")
        run_machine(session, 11, examples, steps=40)
        return {rule for rule, tally in session.tallies.items() if tally.violations}


def test_the_correct_broker_breaks_no_rule(tmp_path: Path) -> None:
    assert broken_rules(tmp_path, None, 8) == set()


def test_a_member_who_was_silent_for_long_is_not_missed(tmp_path: Path) -> None:
    """On a busy host an example lasts longer than a broker waits for heartbeats."""
    config = Config(channel_expiry_ms=400)
    with (
        ThreadedCluster(BrokerConfig.from_plan(config)) as cluster,
        Journal(tmp_path, "wire", common={"level": Level.WIRE}) as journal,
    ):
        session = Session(cluster.brokers["b0"], "b0", journal, config, WIRE_5, "t")
        world = session.world()
        world.join("bob", world.groups[0])
        pass_time(1.0)
        world.list_members("carol", world.groups[0])
        world.join("carol", world.groups[0])
        world.close()
    assert [rule for rule, tally in session.tallies.items() if tally.violations] == []


SLOW = ("gone-member-listed",)
"""Their bug shows once a broker has forgotten a member, which takes real time. Of the others every third is quick."""


@pytest.mark.parametrize(
    ("mutant", "rule"),
    [
        ("expiry-ignored", "WIR-3"),
        ("unlock-ignores-owner", "WIR-2"),
        ("own-lock-refused-when-asked-again", "WIR-2"),
        *(
            pytest.param(
                mutant.name,
                mutant.killed_by,
                marks=[pytest.mark.long] if number % 3 or mutant.name in SLOW else [],
            )
            for number, mutant in enumerate(all_mutants(MODEL))
        ),
    ],
)
def test_a_broken_broker_breaks_its_rule(tmp_path: Path, mutant: str, rule: str) -> None:
    """Also the bugs that no well-behaved client ever notices: only a comparison of each answer shows them."""
    found = broken_rules(tmp_path, mutant, 8)
    assert rule in found or (rule == "WIR-2" and "WIR-3" in found)


@pytest.mark.long
def test_a_broker_of_the_other_dialect_is_told_apart(tmp_path: Path) -> None:
    """The version's codes are asserted: a 5.x broker breaks the rules of 4.9 and no others."""
    wire_4 = {
        "queue_out_of_range_code": 1,
        "commit_unknown_group_code": 0,
        "commit_unknown_topic_code": 0,
        "empty_queue_offset_query": "zero",
        "retry_send_diverts_under_live_lock": False,
    }
    found = broken_rules(tmp_path, None, 15, wire_4)
    assert found <= {"WIR-6", "WIR-10", "WIR-15", "WIR-16", "WIR-17", "WIR-20"}
    assert {"WIR-6", "WIR-15"} <= found


def test_a_broken_rule_that_the_profile_excuses_is_allowed(tmp_path: Path) -> None:
    """What a release is known to answer wrongly is reported with the reason, and is no news; other rules are held."""
    with Journal(tmp_path, "wire", common={"level": Level.WIRE}) as journal:
        old = profile("rocketmq-4.0-orderly")
        session = Session("127.0.0.1:1", "b0", journal, Config(), WIRE_5, "t")
        session.check("WIR-9", False, "it answered 0")
        session.check("WIR-8", False, "it answered 0")
        seen = {each.id: each for each in session.found().judged(RunInfo(run="r"), old, 1)}
    assert (seen["WIR-9"].verdict, seen["WIR-8"].verdict) == (
        ClauseVerdict.ALLOWED,
        ClauseVerdict.REFUTED,
    )
    assert (seen["WIR-9"].reason, seen["WIR-8"].reason) == (old.rules["WIR-9"].reason, "")


def test_a_late_notice_of_another_group_is_passed_over(tmp_path: Path) -> None:
    """A member of two groups hears of the one that was asked for, whatever else arrives first."""
    with (
        ThreadedCluster(BrokerConfig.from_plan(Config())) as cluster,
        Journal(tmp_path, "wire", common={"level": Level.WIRE}) as journal,
    ):
        names = ("alice", "bob", "carol")
        clients = {name: WireClient(name, cluster.brokers["b0"], "b0", journal) for name in names}
        for name, group in (("alice", "audit"), ("alice", "billing")):
            clients[name].heartbeat(group, "orders")
            assert clients[name].hears_of(group, 5)
        for name, group in (("bob", "audit"), ("carol", "billing")):
            clients[name].heartbeat(group, "orders")
        assert clients["alice"].hears_of("billing", 5)
        for client in clients.values():
            client.close()
