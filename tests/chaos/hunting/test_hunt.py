"""Hunts: what is drawn can be read back, what is found is small and comes again, the same seed finds the same."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from random import Random

import jsonschema
import pytest
from click.testing import CliRunner

from chaos.hunting import cli
from chaos.hunting.draw import (
    BACKLOG,
    MESSAGES_REAL,
    WORKS_MS,
    as_toml,
    choice_of,
    drawn,
    varied,
)
from chaos.hunting.find import Twin, smaller
from chaos.hunting.reached import states_of
from chaos.hunting.search import Example, Search, hunt
from chaos.runner import twin_plan
from chaos.scenario import Scenario, load
from conformance.replay import repeat
from conformance.reports.schemas import HUNT_SCHEMA, schema
from conformance.stopping import Bounds, Stop
from conformance.targets.base import find
from reference_impl.mutants import load as load_mutant
from specs.errors import UsageError
from specs.history.text import parse_history
from specs.plan.ability import Ability
from specs.plan.config import IN_SYNC, OF_BROKERS

TOGETHER_S = 20.0
ALL = choice_of(find("reference").abilities, takes_config=True)
SOME = choice_of(frozenset({Ability.CRASH_CLIENT, Ability.BREAK_LINK}), takes_config=False)


def scenarios(number: int) -> list[Scenario]:
    dice = Random(1)
    made = [drawn(dice, ALL, f"drawn-{n}") for n in range(number)]
    return made + [varied(dice, ALL, one, dice.choice(made), "varied") for one in made]


def test_whatever_is_drawn_is_a_scenario_that_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "drawn.toml"
    for scenario in scenarios(60):
        text = as_toml(scenario, "why")
        if scenario.faults:
            path.write_text(text)
            again = load(str(path))
            assert (again.workload, again.faults) == (scenario.workload, scenario.faults)


def test_only_what_a_target_can_have_is_drawn() -> None:
    dice = Random(2)
    made = [drawn(dice, SOME, "drawn") for _ in range(60)]
    verbs = {fault.do for scenario in made for fault in scenario.faults}
    assert {Ability.BREAK_ONE_LINK, Ability.MORE_BROKERS} & set().union(
        *(scenario.needs for scenario in made)
    ) == set()
    assert verbs == {"crash", "cut", "hold", "delay", "start", "stop"}
    assert all(not scenario.config for scenario in made)
    assert any(not scenario.faults for scenario in made)
    assert any(fault.table.get("beside") for each in made for fault in each.faults)


def test_disks_are_full_and_slow_where_the_target_can_have_it_with_a_broker_that_waits() -> None:
    can = frozenset({Ability.CRASH_CLIENT, Ability.FILL_DISK, Ability.SLOW_DISK})
    choice = choice_of(can, takes_config=False, only=["disk_full", "slow_disk"])
    made = [drawn(Random(seed), choice, "drawn") for seed in range(20)]
    assert {fault.do for each in made for fault in each.faults} == {"disk_full", "slow_disk"}
    for each in made:
        is_slow = any(fault.do == "slow_disk" for fault in each.faults)
        assert (twin_plan(each, 1).config.flush == IN_SYNC) is is_slow


def test_a_fault_that_the_target_can_not_have_is_refused() -> None:
    with pytest.raises(UsageError, match="can't have 'disk_full'"):
        choice_of(SOME.abilities, takes_config=False, only=["disk_full"])


def example(number: int, scenario: Scenario, seed: int, *states: str, refuted: str = "") -> Example:
    return Example(number, scenario, seed, frozenset(states), (refuted,) if refuted else ())


def test_what_reaches_something_new_is_varied_and_the_first_refutation_ends_it() -> None:
    asked: list[tuple[str, int]] = []

    def make(number: int, scenario: Scenario, seed: int) -> Example:
        asked.append((as_toml(scenario, ""), seed))
        return example(
            number, scenario, seed, "a", f"{number // 4}", refuted="LSE-1" if number == 9 else ""
        )

    searches = []
    for _ in range(2):
        search = Search()
        stop = Stop(Bounds())
        hunt(search, [make], ALL, seed=3, most=20, stop=stop, keep_going=False)
        searches.append(search)
    first, second = searches
    assert (first.examples, first.curve) == (9, [2, 2, 2, 3, 3, 3, 3, 4, 4])
    assert len(first.corpus) == 3
    assert list(first.found) == ["LSE-1"]
    assert "9 examples reached 4 states" in first.saturation
    assert first.growth == "states reached by example 2: 2, 4: 3, 6: 3, 9: 4"
    assert asked[:9] == asked[9:]
    assert second.curve == first.curve


def test_examples_are_made_side_by_side_and_each_is_taken() -> None:
    together = threading.Barrier(2)

    def make(number: int, scenario: Scenario, seed: int) -> Example:
        together.wait(TOGETHER_S)
        return example(number, scenario, seed, f"{number}")

    search = Search()
    hunt(search, [make, make], ALL, seed=3, most=6, stop=Stop(Bounds()), keep_going=False)
    assert (search.curve, set(search.seen)) == ([1, 2, 3, 4, 5, 6], set("123456"))


def test_what_an_example_raises_ends_a_search_side_by_side() -> None:
    def make(number: int, scenario: Scenario, seed: int) -> Example:
        if number == 2:
            raise UsageError("nobody is there")
        return example(number, scenario, seed, f"{number}")

    search = Search()
    with pytest.raises(UsageError, match="nobody is there"):
        hunt(search, [make, make], ALL, seed=3, most=99, stop=Stop(Bounds()), keep_going=False)
    assert search.examples < 99


def test_in_real_time_no_example_works_for_minutes_and_no_broker_is_told_anything() -> None:
    choice = choice_of(ALL.abilities, takes_config=True, keeps_brokers=True, in_real_time=True)
    dice = Random(1)
    made = [drawn(dice, choice, "drawn") for _ in range(60)]
    made += [varied(dice, choice, one, one, "varied") for one in made]
    for work in (each.workload for each in made):
        assert work.work_ms * work.keys <= max(WORKS_MS[0], BACKLOG * work.pace_ms) * work.queues
        assert work.messages == MESSAGES_REAL
    assert {name for each in made for name in each.config} & OF_BROKERS == set()
    assert len({work.work_ms for work in (each.workload for each in made)}) > 3


@pytest.mark.parametrize("target", ["reference+tcp", "nats-local:2.15.2"])
def test_examples_side_by_side_need_brokers_that_are_lent(target: str) -> None:
    quarry = cli.Quarry.of(target, None)
    if quarry.kept is None:
        with pytest.raises(UsageError, match="one after the other"):
            quarry.workers(2)
    assert len(quarry.workers(None)) == (1 if quarry.kept is None else cli.WORKERS)


def test_a_find_is_made_small_and_still_breaks_the_clause() -> None:
    scenario = load("paused-and-killed")
    twin = Twin(load_mutant("stale-commit-after-release"))
    small = smaller(scenario, lambda candidate: twin.breaks(candidate, 1, "CMT-5"))
    assert twin.breaks(small, 1, "CMT-5")
    assert len(small.faults) == 1
    assert small.workload.messages < scenario.workload.messages


def test_rows_tell_what_a_lane_was_at_and_which_faults_there_were() -> None:
    text = "0ms a locks g/t/b/0 ok\n5ms..9ms a delivers g/t/b/0 offset=1 id=m1 success"
    info, rows = parse_history(text)
    assert set(states_of(rows, info.config)) == {
        ("lock", "ok", 0, "none", ()),
        ("deliver", "success", 0, "fresh", ()),
    }


def test_a_hunt_finds_a_bug_and_keeps_a_run_that_repeats_to_the_byte(tmp_path: Path) -> None:
    bug = "mutant:commit-covers-running-call"
    words = ["--target", bug, "--examples", "6", "--seed", "1", "--times", "2", "--quiet"]
    result = CliRunner().invoke(cli.command, [*words, "--out", str(tmp_path / "hunt")])
    data = json.loads((tmp_path / "hunt" / "hunt.json").read_text())
    jsonschema.validate(data, schema(HUNT_SCHEMA))
    (found,) = data["finds"]
    assert "CMT-1" in result.output
    assert (found["clause"], found["faults"], found["rate"]["of"]) == ("CMT-1", 0, 2)
    assert repeat(Path(found["folder"])).difference is None


def test_a_hunt_that_is_ended_while_it_confirms_keeps_its_find(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As it was found: not made smaller, and tried no more."""

    def is_ended(*_: object) -> None:
        raise SystemExit(143)

    monkeypatch.setattr(cli, "simulated", is_ended)
    bug = "mutant:commit-covers-running-call"
    words = ["--target", bug, "--examples", "6", "--seed", "1", "--quiet"]
    result = CliRunner().invoke(cli.command, [*words, "--out", str(tmp_path / "hunt")])
    data = json.loads((tmp_path / "hunt" / "hunt.json").read_text())
    jsonschema.validate(data, schema(HUNT_SCHEMA))
    (found,) = data["finds"]
    assert result.exit_code == 143
    assert (found["clause"], found["rate"]["of"]) == ("CMT-1", 0)
    assert repeat(Path(found["folder"])).difference is None


def test_a_hunt_on_the_correct_cluster_finds_nothing(tmp_path: Path) -> None:
    words = [
        "--target",
        "reference",
        "--examples",
        "1",
        "--faults",
        "crash",
        "--at-once",
        "1",
        "--seed",
        "4",
        "--quiet",
    ]
    result = CliRunner().invoke(
        cli.command, [*words, "--out", str(tmp_path)], standalone_mode=False
    )
    assert result.return_value == 0, result.output
    data = json.loads((tmp_path / "hunt.json").read_text())
    jsonschema.validate(data, schema(HUNT_SCHEMA))
    assert (data["finds"], len(data["curve"]), data["failed"]) == ([], 1, [])
