"""Every scenario on real parts: the promises hold, every fault had its effect, the scenario reached what it must."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from chaos.cli import find_target, why_not
from chaos.hosted import hosted
from chaos.runner import lacks, run_scenario
from chaos.scenario import load, names
from conformance.parts import docker_engine, own_disk, toxiproxy_binary
from conformance.parts.processes import living
from conformance.targets.mutant_tcp import mutant
from specs import profiles
from specs.errors import InorderError, UsageError
from specs.plan.ability import Ability
from specs.verdicts.verdict import ClauseVerdict, RunVerdict
from specs.vocabulary import Kind, Outcome
from tests.conformance.test_records import undeclared

NO_ENGINE = docker_engine.why_not()
needs_toxiproxy = pytest.mark.skipif(
    not toxiproxy_binary.present(), reason="the toxiproxy server is not built; run `make setup`"
)
needs_docker = pytest.mark.skipif(NO_ENGINE is not None, reason=str(NO_ENGINE))


def run(name: str, backend: str, out: Path) -> None:
    target = find_target("reference+tcp", backend)
    profile = profiles.load(target.profile)
    verdict, history = run_scenario(load(name), target, profile, seed=1, out=out)
    story = [(check.id, check.detail) for check in verdict.met if check.ok is False]
    assert (verdict.verdict, story) == (RunVerdict.UPHELD, [])
    assert all(effective for _fault, effective in verdict.faults)
    assert history.why_cut == ()
    assert undeclared(list(history.rows()), history.info.records or {}) == set()
    assert living() == []


@pytest.mark.long
def test_a_killed_consumer_is_succeeded(tmp_path: Path) -> None:
    run("consumer-killed", "process", tmp_path / "run")


def test_a_stopped_consumer_is_succeeded_and_commits_late(tmp_path: Path) -> None:
    run("consumer-paused", "process", tmp_path / "run")


@pytest.mark.toxiproxy
@needs_toxiproxy
def test_order_survives_a_slow_and_then_a_lost_link(tmp_path: Path) -> None:
    run("link-down", "process", tmp_path / "run")


def test_a_broker_is_too_busy_to_take_a_message(tmp_path: Path) -> None:
    """Nothing but the proxy that reads frames is needed."""
    run("send-refused", "process", tmp_path / "run")


@pytest.mark.docker
@needs_docker
def test_a_paused_container_is_succeeded_and_commits_late(tmp_path: Path) -> None:
    run("consumer-paused", "docker", tmp_path / "run")


@pytest.mark.docker
@needs_docker
def test_a_killed_container_is_succeeded(tmp_path: Path) -> None:
    run("consumer-killed", "docker", tmp_path / "run")


def test_every_scenario_says_why_and_what_it_must_reach() -> None:
    for name in names():
        scenario = load(name)
        assert scenario.name == name
        assert scenario.why.strip()
        assert scenario.must_reach


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "bug"), [(name, bug) for name in names() for bug in load(name).shows]
)
def test_a_scenario_can_fail(tmp_path: Path, name: str, bug: str) -> None:
    """It is refuted where the cluster or its clients have the bug that it shows."""
    scenario = load(name)
    if Ability.BREAK_LINK in scenario.needs and not toxiproxy_binary.present():
        pytest.skip("the toxiproxy server is not built; run `make setup`")
    target = hosted(mutant(bug), in_containers=False)
    if "process" not in scenario.backends:
        pytest.skip("its fault can't befall a process; tests/inorder/evidence tries it simulated")
    if missing := lacks(scenario, target):
        pytest.skip(
            f"on sockets nobody can {missing[0]}; tests/inorder/evidence tries it simulated"
        )
    profile = profiles.load(target.profile)
    verdict, _history = run_scenario(scenario, target, profile, seed=1, out=tmp_path / "run")
    assert verdict.verdict is RunVerdict.REFUTED


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('clauses = ["ORD-2"]', "says why"),
        ('why = "x"', r"needs a \[\[fault\]\]"),
        ('why = "x"\n[[fault]]\ndo = "earthquake"', "no fault 'earthquake'"),
        ('why = "x"\n[[fault]]\ndo = "kill_consumer"\nclient = "c1"\nwho = 2', "kill_consumer"),
        ('why = "x"\n[[fault]]\ndo = "crash"\nclient = "c9"', "no consumer 'c9'"),
        ('why = "x"\n[[fault]]\ndo = "crash"\nclient = "c1"\nfor_ms = "3"', "whole number"),
        ('why = "x"\n[[fault]]\ndo = "crash"\nclient = "c1"\nfor_ms = [3, 1]', "ends before"),
        ('why = "x"\n[workload]\nmessages = "many"', "messages is a whole number"),
        ("why = 3", "says why"),
        ('why = "x"\nfault = 3', "table of its own"),
        ('why = "x"\nmust_reach = ["the moon"]', "must_reach knows"),
        ('why = "x"\nclauses = ["ORD-99"]', "no clause ORD-99"),
        ('why = "x"\nshows = "a-bug"', "no mutant 'a-bug'"),
        ('why = "x"\nshows = ["expiry-ignored", "a-bug"]', "no mutant 'a-bug'"),
        ('why = "x"\nshows = 3', "shows is a list of words"),
        ("why = ", "no TOML"),
        ('why = "x"\nweather = "bad"', "unknown weather"),
    ],
)
def test_a_wrong_scenario_is_told_in_a_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(InorderError, match=sentence):
        load(str(path))


def test_an_unknown_scenario_is_told_with_those_that_are_known() -> None:
    with pytest.raises(UsageError, match="consumer-killed"):
        load("consumer-kiled")


@pytest.mark.parametrize(
    ("table", "told", "need"),
    [
        ('do = "kill_consumer"\nclient = "c1"', "crash c1", Ability.CRASH_CLIENT),
        ('do = "crash"\nclient = "c1"', "crash c1", Ability.CRASH_CLIENT),
        ('do = "pause_consumer"\nclient = "c1"', "pause c1", Ability.PAUSE_CLIENT),
        ('do = "latency"\nclient = "c1"\nms = 60', "latency", Ability.BREAK_LINK),
        ('do = "link_down"\nclient = "c1"', "link_down", Ability.BREAK_LINK),
        ('do = "disk_full"\nclient = "c1"', "disk_full b0", Ability.FILL_DISK),
        ('do = "broker_crash"\nclient = "c1"', "broker_crash b0", Ability.CRASH_BROKER),
    ],
)
def test_a_scenarios_fault_is_a_verb_by_whichever_name(
    tmp_path: Path, table: str, told: str, need: Ability
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f'why = "x"\n[[fault]]\n{table}')
    (template,) = load(str(path)).faults
    (step,) = template.steps(Random(0), ("b0",))
    assert (step.detail, step.needs) == (told, (need,))


def test_a_fault_comes_so_many_times_each_with_numbers_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    table = 'do = "pause"\nclient = "c1"\ntimes = 12\nfor_ms = [1, 1000000]'
    path.write_text(f'why = "x"\n[[fault]]\n{table}')
    (template,) = load(str(path)).faults
    steps = list(template.steps(Random(0), ("b0",)))
    assert len(steps) == len({step.for_ms for step in steps}) == 12


def test_a_fault_that_no_chaos_run_can_do_is_refused_before_anything_starts(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('why = "x"\n[[fault]]\ndo = "lose"\nclient = "c1"\nalone = true')
    target = find_target("reference+tcp:sync", "process")
    profile = profiles.load(target.profile)
    with pytest.raises(UsageError, match="lose, double and reorder"):
        run_scenario(load(str(path)), target, profile, seed=1, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("why", [None, "only root may mount a disk image"])
def test_a_power_cut_is_refused_where_it_can_not_be_done(
    monkeypatch: pytest.MonkeyPatch, why: str | None
) -> None:
    monkeypatch.setattr(own_disk, "why_not", lambda: why)
    scenario, name = load("power-cut"), "reference+tcp:async"
    told = why_not(scenario, find_target(name, "process"), name, "process")
    assert told == (None if why is None else f"can't be done here: {why}")


@pytest.mark.long
def test_a_brokers_disk_is_full_while_its_consumers_work(tmp_path: Path) -> None:
    """A verb of the registry that had no chaos fault before works in a scenario, and shows in the history."""
    path = tmp_path / "disk.toml"
    path.write_text(
        'why = "x"\n[workload]\nmessages = 120\n[[fault]]\ndo = "disk_full"\nclient = "c1"\nfor_ms = 600'
    )
    target = find_target("reference+tcp", "process")
    profile = profiles.load(target.profile)
    out = tmp_path / "run"
    verdict, history = run_scenario(load(str(path)), target, profile, seed=1, out=out)
    assert verdict.verdict is not RunVerdict.REFUTED
    (fault,) = (row for row in history.rows() if row.kind is Kind.FAULT)
    assert (fault.detail, fault.outcome) == ("disk_full b0", Outcome.OK)


@pytest.mark.long
def test_a_lane_that_nobody_takes_over_is_refuted_and_no_failure_of_the_suite(
    tmp_path: Path,
) -> None:
    """What the run waits for never comes, and the history says why."""
    path = tmp_path / "killed.toml"
    path.write_text(
        'why = "x"\nmust_reach = ["takeover"]\n[[fault]]\ndo = "crash"\nclient = "c1"\ndeadline_s = 8'
    )
    target = hosted(mutant("expired-not-freed"), in_containers=False)
    profile = profiles.load(target.profile)
    verdict, _history = run_scenario(load(str(path)), target, profile, seed=1, out=tmp_path / "run")
    assert verdict.verdict is RunVerdict.REFUTED
    assert "LSE-4" in {clause.id for clause in verdict.of(ClauseVerdict.REFUTED)}


def test_a_listener_that_outlasts_its_message_is_left_out_where_nobody_renews() -> None:
    """NATS hands a message out again that is not acknowledged in time; RocketMQ's clients renew while they work."""
    slow = load("slow-listener-joined")
    words = [
        why_not(slow, find_target(name, "process"), name, "process")
        for name in ("nats-local:2.15.2", "rocketmq-local:5.4.0", "reference+tcp")
    ]
    told = "works 1300 ms on a message; with nats-local:2.15.2 it is another's after 1000 ms"
    assert words == [told, None, None]


def test_a_scenario_whose_setting_is_not_the_targets_to_take_is_left_out() -> None:
    """RocketMQ 4 forgets who is silent after two minutes: nobody is taken over from a sleeper of seconds."""
    sleeps = load("paused-among-three")
    words = [
        why_not(sleeps, find_target(name, "process"), name, "process")
        for name in ("rocketmq-local:4.9.7", "rocketmq-local:5.4.0", "reference+tcp")
    ]
    told = "needs channel_expiry_ms = 2000; with rocketmq-local:4.9.7 it is 120000, whatever a plan says"
    assert words == [told, None, None]
