"""Drawn plans as trials: one plan for both sides of an entry, and (long) each entry red and green by it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

import conformance.targets.kafka as kafka_target
import conformance.targets.nats as nats_target
import conformance.targets.redis as redis_target
from conformance.drivers.served import ServedTarget
from conformance.parts import kafka, nats, redis
from conformance.parts.doctor import why_not
from conformance.targets.base import find
from inorder.evidence.track_record.__main__ import PAGE, reproduce
from inorder.evidence.track_record.entries import ENTRIES, Entry
from inorder.evidence.track_record.planned import ByPlan, Planned, digest, digests_of
from inorder.evidence.track_record.table import Reproduction
from specs.history.runinfo import RunInfo, read_runinfo, write_runinfo
from specs.verdicts.verdict import ClauseVerdict, Judged

PLANNED = [each for each in ENTRIES if isinstance(each.trial, Planned)]
SEEDS = (1, 2, 3)
TIMES = 2
"""Seeds for each side: a plan meets a bug mostly, and not always."""


def plans(entry: Entry, side: str) -> list[str]:
    """The digests of what an entry would do on a side."""
    assert isinstance(entry.trial, Planned)
    target = find(side)
    return [digest(entry.trial.plan(target, seed).to_json()) for seed in SEEDS]


@pytest.mark.parametrize("entry", PLANNED, ids=lambda each: each.id)
def test_both_sides_do_one_plan_of_each_seed(entry: Entry) -> None:
    """And no clock is part of it: whoever draws it again draws the same."""
    assert plans(entry, entry.red) == plans(entry, entry.green) == plans(entry, entry.red)
    assert len(set(plans(entry, entry.red))) == len(SEEDS)


@pytest.mark.parametrize("entry", PLANNED, ids=lambda each: each.id)
def test_the_sides_differ_in_a_version_alone(entry: Entry) -> None:
    """What the situation needs is said to both, and so is what was promised."""
    red, green = find(entry.red), find(entry.green)
    assert isinstance(red, ServedTarget)
    assert isinstance(green, ServedTarget)
    assert red.name.partition(",")[2] == green.name.partition(",")[2]
    assert red.profile == green.profile == entry.profile
    differ = [name for name, party in red.parties.items() if party != green.parties[name]]
    assert differ in (["broker"], ["client", "producer"])


def test_which_trials_do_plans() -> None:
    """Scenes, and questions over the wire, are none."""
    does = {each.id for each in ENTRIES if isinstance(each.trial, ByPlan)}
    assert {each.id for each in PLANNED} <= does
    assert not does & {"B-17", "B-28", "B-29", "B-54", "B-77c"}


def test_the_plan_of_a_run_is_what_its_folder_says(tmp_path: Path) -> None:
    entry = PLANNED[0]
    assert isinstance(entry.trial, Planned)
    plan = entry.trial.plan(find(entry.red), 1).to_json()
    for seed, told in ((1, plan), (2, None)):
        info = RunInfo(run="r", seed=seed, target=entry.red, parties={}, plan=told)
        write_runinfo(tmp_path / f"{seed}", info)
    assert digests_of(tmp_path, (1, 2)) == (digest(plan),)


def test_other_plans_reproduce_nothing() -> None:
    """However red and green the sides are: what was done was not the same."""
    red, green = (
        Judged("LIV-1", "", "", verdict, "pair", (), 1, 1, int(verdict is ClauseVerdict.REFUTED))
        for verdict in (ClauseVerdict.REFUTED, ClauseVerdict.UPHELD)
    )
    same = Reproduction(PLANNED[0], [red], [green], "2026-11-23", (("a1",), ("a1",)))
    assert (same.reproduced, same.wrong(), ", plans `a1` |" in same.line()) == (True, "", True)
    other = Reproduction(PLANNED[0], [red], [green], "2026-11-23", (("a1",), ("b2",)))
    assert (other.reproduced, "other plans (a1; b2)" in other.wrong()) == (False, True)


@pytest.mark.parametrize("entry", PLANNED, ids=lambda each: each.id)
def test_a_witness_carries_a_plan_of_its_row(entry: Entry) -> None:
    """So that whoever has the page can do it once more."""
    folder = PAGE.with_suffix("") / entry.id
    info = read_runinfo(folder)
    assert info.plan is not None
    row = next(
        line
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if line.startswith(f"| {entry.id} |")
    )
    assert f"`{digest(info.plan)}`" in row
    assert info.replay == f"inorder replay docs/track-record/{entry.id}"


def why_not_here(entry: Entry) -> str | None:
    """What is missing to play an entry, a sentence."""
    for side in (entry.red, entry.green):
        target = find(side)
        assert isinstance(target, ServedTarget)
        version = target.parties["broker"].rpartition(" ")[2]
        there: Mapping[type[ServedTarget], Callable[[str], bool]] = {
            kafka_target.KafkaTarget: lambda version: kafka.server_jars(version).present,
            nats_target.NatsTarget: nats.present,
            redis_target.RedisTarget: redis.present,
        }
        if not there[type(target)](version):
            return f"needs the server of {side}; it is fetched or built when the entry is done once"
        if isinstance(target, kafka_target.KafkaTarget):
            for part in ("java", "maven"):
                if (reason := why_not(part)) is not None:
                    return reason
    return None


@pytest.mark.long
@pytest.mark.parametrize("entry", PLANNED, ids=lambda each: each.id)
def test_red_and_green(entry: Entry, tmp_path: Path) -> None:
    if (reason := why_not_here(entry)) is not None:
        pytest.skip(reason)
    seen = reproduce(entry, TIMES, tmp_path, lambda _: None)
    assert seen.wrong() == ""
