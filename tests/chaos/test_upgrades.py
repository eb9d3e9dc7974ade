"""Upgrades: the next version goes on with what the last one left, brokers say which they are, and it is undone.

Clients are upgraded too: a mixed group has members of two versions.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from chaos.cli import find_target, why_not
from chaos.runner import run_scenario
from chaos.scenario import load
from conformance.drivers.target import DriverTarget
from conformance.parts import jars, nats
from conformance.parts.processes import living
from conformance.targets import upgrades
from conformance.targets.base import Run, find
from conformance.targets.driven import JavaTarget
from specs import profiles
from specs.clauses.catalogue import catalogue
from specs.clauses.clause import Party
from specs.errors import UsageError
from specs.history.store import open_history
from specs.plan.ability import Ability
from specs.plan.plan import ClientPlan, Plan
from specs.verdicts.verdict import RunVerdict, Verdict
from specs.vocabulary import Kind, Outcome

MIXED = "rocketmq-local:5.1.0+java:4.9.8,mixed=5.4.0,upgrade=5.4.0"
KINDS = {"s": "producer", "c": "consumer"}
SAME = """
why = "The same version begins again: nothing was upgraded."
[[fault]]
do = "upgrade"
client = "c1"
for_ms = 600
same = true
"""
FOR_GOOD = """
why = "A broker is upgraded, and nobody goes back."
[workload]
messages = 80
poison_every = 1000
[[fault]]
do = "upgrade"
client = "c1"
for_ms = 100
restart = false
"""


def run(text: str, target: str, out: Path) -> tuple[Verdict, list[str | None]]:
    """The verdict of a scenario of that name or text, and what brokers said of their versions at each end."""
    name = text
    if "\n" in text:
        path = out.with_suffix(".toml")
        path.write_text(text)
        name = str(path)
    found = find_target(target, "process")
    try:
        profile = profiles.load(found.profile)
        verdict, history = run_scenario(load(name), found, profile, seed=1, out=out)
    finally:
        found.release()
    assert history.why_cut == ()
    ends = [row for row in history.rows() if row.kind is Kind.CRASH and row.broker is not None]
    assert all(row.outcome is Outcome.OK for row in ends)
    return verdict, [row.view for row in ends]


def test_the_same_version_again_is_no_upgrade(tmp_path: Path) -> None:
    """The twin without effect: a run with it shows nothing."""
    verdict, _views = run(SAME, "reference", tmp_path / "run")
    assert verdict.verdict is RunVerdict.INCONCLUSIVE
    assert [effective for _fault, effective in verdict.faults] == [False]


def test_an_upgrade_for_good_is_told_by_the_broker_that_came(tmp_path: Path) -> None:
    """On sockets; what no consumer asked for stays as it was, and nobody takes the store back at the end."""
    verdict, views = run(FOR_GOOD, "reference+tcp", tmp_path / "run")
    assert verdict.verdict is RunVerdict.UPHELD
    assert views == ["inorder (5.x) → inorder (5.x, next release)"]
    assert living() == []


@pytest.mark.parametrize(
    "name", ["rocketmq-local:5.1.0", "rocketmq-local:5.1.0+java:5.4.0", "nats-local:2.10.9"]
)
def test_nobody_guesses_to_which_version(name: str) -> None:
    found = find(name)
    assert Ability.UPGRADE_BROKER not in found.abilities
    assert f"{name},upgrade=" in found.hindered[Ability.UPGRADE_BROKER]
    assert Ability.UPGRADE_BROKER in find(f"{name},upgrade={_newer(name)}").abilities


def _newer(name: str) -> str:
    return "2.15.2" if name.startswith("nats") else "5.4.0"


def test_what_is_missing_is_told_before_anything_starts() -> None:
    name = "rocketmq-local:5.1.0"
    told = why_not(load("broker-upgraded"), find_target(name, "process"), name, "process")
    assert told is not None
    assert "write rocketmq-local:5.1.0,upgrade=" in told


@pytest.mark.parametrize("name", ["rocketmq-local:5.1.0,upgrade=9", "nats-local:2.10.9,upgrade=9"])
def test_an_unknown_version_is_told_with_the_known_ones(name: str) -> None:
    with pytest.raises(UsageError, match="known"):
        find(name)


def test_a_server_that_runs_already_is_upgraded_by_nobody_here() -> None:
    with pytest.raises(UsageError, match="no option 'upgrade'"):
        find("nats:127.0.0.1:4222,upgrade=2.15.2")


@pytest.mark.parametrize(
    ("version", "newer", "expected"),
    [("5.1.0", "5.4.0", "5.1.0"), ("5.4.0", "4.9.7", "4.9.7"), ("2.9.1", "2.10.9", "2.9.1")],
)
def test_a_run_is_judged_by_what_the_older_one_promises(
    version: str, newer: str, expected: str
) -> None:
    assert upgrades.older(version, newer) == expected


@pytest.mark.long
@pytest.mark.skipif(
    not (jars.present("4.9.7") and jars.present("5.4.0")), reason="the jars are not here"
)
def test_apaches_broker_goes_from_4_9_to_5_4_and_back(tmp_path: Path) -> None:
    verdict, views = run("broker-upgraded", "rocketmq-local:4.9.7,upgrade=5.4.0", tmp_path / "run")
    assert verdict.verdict is RunVerdict.UPHELD
    assert views == ["V4_9_7 → V5_4_0", "V5_4_0 → V4_9_7"]


@pytest.mark.long
@pytest.mark.skipif(
    not (nats.present("2.10.9") and nats.present("2.15.2")), reason="the servers are not built"
)
def test_a_nats_server_is_upgraded_and_taken_back(tmp_path: Path) -> None:
    verdict, views = run("broker-upgraded", "nats-local:2.10.9,upgrade=2.15.2", tmp_path / "run")
    assert verdict.verdict is RunVerdict.UPHELD
    assert views == ["2.10.9 → 2.15.2", "2.15.2 → 2.10.9"]


def test_a_mixed_group_is_judged_by_what_the_weakest_of_three_promises() -> None:
    """What either version of its clients is known for is allowed, and nothing that neither is."""
    target = find(MIXED)
    assert (target.name, target.parties["client"]) == (MIXED, "Apache Java client 4.9.8 and 5.4.0")
    profile = profiles.load(target.profile)
    old, new = profiles.load("rocketmq-4.9-orderly"), profiles.load("rocketmq-5.2-orderly")
    for promise in catalogue():
        if promise.party is not Party.CLIENT:
            continue
        claims = {profile.claim(promise.id).status for profile in (old, new)}
        expected = min(claims, key=("not_applicable", "allowed", "claimed").index)
        assert profile.claim(promise.id).status == expected, promise.id


def test_who_comes_again_into_a_mixed_group_is_of_the_other_version(tmp_path: Path) -> None:
    target = find(MIXED)
    assert isinstance(target, JavaTarget)
    plan = Plan(clients=tuple(ClientPlan(name, KINDS[name[0]]) for name in ("s", "c1", "c2", "c3")))
    asyncio.run(DriverTarget.prepare(target, Run(plan, tmp_path)))
    first = [target.version_of(name) for name in ("s", "c1", "c2", "c3")]
    target._lives = {"s": 2, "c1": 2, "c2": 3}  # as if they were killed and came again
    again = [target.version_of(name) for name in ("s", "c1", "c2", "c3")]
    assert first == ["4.9.8", "4.9.8", "5.4.0", "4.9.8"]
    assert again == ["4.9.8", "5.4.0", "5.4.0", "4.9.8"]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("rocketmq-local:5.4.0,mixed=5.1.0", "names Java clients"),
        ("rocketmq-local:5.4.0+go:2.1.2,mixed=5.1.0", "only Java clients"),
        ("rocketmq-local:5.4.0+java:5.4.0,mixed=9", "no Java client"),
    ],
)
def test_only_java_clients_of_known_versions_are_mixed(name: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        find(name)


@pytest.mark.long
@pytest.mark.skipif(
    not (jars.present("5.1.0") and jars.present("5.4.0")), reason="the jars are not here"
)
def test_a_mixed_group_lives_through_an_upgrade(tmp_path: Path) -> None:
    verdict, views = run("broker-upgraded", MIXED, tmp_path / "run")
    assert verdict.verdict is RunVerdict.UPHELD
    assert views == ["V5_1_0 → V5_4_0", "V5_4_0 → V5_1_0"]
    rows = open_history(tmp_path / "run").rows()
    came = {(row.client_id, row.detail) for row in rows if row.kind is Kind.JOIN}
    versions = {f"Apache Java client {version}" for version in ("4.9.8", "5.4.0")}
    assert came == {(client, version) for client in ("c1", "c2") for version in versions}
