"""Which profile a release of Apache RocketMQ is held to, when nobody names one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conformance.targets.rocketmq import local, remote
from conformance.wire.target import WireTarget
from specs.clauses.catalogue import all_clauses
from specs.errors import UsageError
from specs.history.runinfo import RunInfo
from specs.plan.plan import Plan


@pytest.mark.parametrize(
    ("version", "profile"),
    [
        ("4.9.3", "rocketmq-4.0-orderly"),
        ("4.9.7", "rocketmq-4.9-orderly"),
        ("5.0.0", "rocketmq-5.0-orderly"),
        ("5.1.4", "rocketmq-5.0-orderly"),
        ("5.2.0", "rocketmq-5.2-orderly"),
        ("5.4.0", "rocketmq-5.2-orderly"),
    ],
)
def test_a_release_has_the_profile_of_its_line(version: str, profile: str) -> None:
    assert local(version).profile == profile


def test_what_somebodys_brokers_were_told_is_not_known() -> None:
    """What rests on a guessed lease is not claimed, and the plan says what was taken for it."""
    target = remote("127.0.0.1:9876")
    assert isinstance(target, WireTarget)
    plan = Plan(config=target.config)
    info = RunInfo(run="r", config=target.settings(plan))
    assert plan.config.broker_lease_ms == 60_000
    unknown = {clause.id for clause in all_clauses() if clause.unmet(info) is not None}
    assert {"LSE-1", "LSE-7", "LIV-2", "SND-7"} <= unknown
    assert not {"ORD-2", "DLQ-2", "CMT-8", "SND-1"} & unknown
    assert RunInfo.from_json(info.to_json()).config.untold == info.config.untold
    told = remote("127.0.0.1:9876,broker_lease_ms=30000")
    known = RunInfo(run="r", config=told.settings(Plan(config=told.config)))
    assert (told.config.broker_lease_ms, told.name) == (
        30_000,
        "rocketmq:127.0.0.1:9876,broker_lease_ms=30000",
    )
    now = {clause.id for clause in all_clauses() if clause.unmet(known) is not None}
    assert unknown - now >= {"LSE-1", "LSE-7"}
    assert "SND-7" in now
    mine = replace(target, lease_known=True)
    assert mine.settings(plan) == plan.config


@pytest.mark.parametrize(
    ("argument", "sentence"),
    [
        ("127.0.0.1:9876,broker_lease=1", "did you mean broker_lease_ms"),
        ("127.0.0.1:9876,broker_lease_ms=soon", "needs a number of ms for broker_lease_ms"),
        ("127.0.0.1:9876+java:5.4.0,keep_ms=1", "with a Java client it takes no options"),
        ("nowhere", "name server's address"),
        (None, "name server's address"),
    ],
)
def test_what_is_wrong_about_a_cluster_is_told_in_a_sentence(
    argument: str | None, sentence: str
) -> None:
    with pytest.raises(UsageError, match=sentence):
        remote(argument)


@pytest.mark.parametrize(
    ("target", "expiry_ms"),
    [
        ("4.9.7", 120_000),
        ("4.9.7,upgrade=5.4.0", 120_000),
        ("4.9.7+java:4.9.8", 120_000),
        ("5.4.0", 2_000),
        ("5.4.0+java:5.4.0", 2_000),
    ],
)
def test_release_4_forgets_who_is_silent_when_it_likes(target: str, expiry_ms: int) -> None:
    """After two minutes; what a plan says is passed over, so no plan says anything else."""
    plan = Plan(config=replace(local(target).config, channel_expiry_ms=2_000))
    assert local(target).suited(plan).config.channel_expiry_ms == expiry_ms
