"""The registry of faults: every file of the folder is one, and all that speaks of faults follows from it."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from specs import faults
from specs.errors import UsageError
from specs.faults import FAULTS, HEALINGS, FaultFileWrong, cut, named, perform
from specs.plan.ability import Ability
from specs.plan.plan import VERBS
from specs.plan.rig import Trouble
from specs.plan.schema import plan_schema

FOLDER = Path(faults.__file__).parent


class Heard:
    """A rig that writes down what it is asked for."""

    def __init__(self, *abilities: Ability) -> None:
        self.verb = ""
        self.abilities = frozenset(abilities)
        self.brokers = ("b0",)
        self.asked: list[tuple[Any, ...]] = []

    def kill(self, node: str, *, silent: bool = False) -> None:
        self.asked.append((self.verb, "kill", node, silent))

    def revive(self, node: str) -> None:
        self.asked.append((self.verb, "revive", node))

    def cut_power(self, broker: str, *, synced: bool = False) -> None:
        self.asked.append((self.verb, "cut_power", broker, synced))

    def exchange(self, broker: str, *, newer: bool) -> None:
        self.asked.append((self.verb, "exchange", broker, newer))

    def pause(self, node: str) -> None:
        self.asked.append((self.verb, "pause", node))

    def resume(self, node: str) -> None:
        self.asked.append((self.verb, "resume", node))

    def trouble(
        self,
        kind: Trouble,
        a: str,
        b: str,
        number: int = 0,
        *,
        answer: bool = False,
        error: int = 0,
    ) -> None:
        self.asked.append((self.verb, str(kind), a, b, number, answer, error))

    def mend(self, a: str, b: str) -> None:
        self.asked.append((self.verb, "mend", a, b))

    def starve(self, node: str, percent: int) -> None:
        self.asked.append((self.verb, "starve", node, percent))

    def fill_disk(self, broker: str) -> None:
        self.asked.append((self.verb, "fill_disk", broker))

    def make_room(self, broker: str) -> None:
        self.asked.append((self.verb, "make_room", broker))

    def slow_disk(self, broker: str, ms: int) -> None:
        self.asked.append((self.verb, "slow_disk", broker, ms))

    def quicken_disk(self, broker: str) -> None:
        self.asked.append((self.verb, "quicken_disk", broker))

    def step_clock(self, node: str, ms: int) -> None:
        self.asked.append((self.verb, "step_clock", node, ms))


EXAMPLES: dict[str, Any] = {
    "client": "alice",
    "broker": "b0",
    "node": "alice",
    "a": "alice",
    "b": "b0",
    "ms": 5,
    "percent": 50,
    "code": 41,
    "answer": True,
    "silent": True,
}


def arguments_of(verb: str) -> dict[str, Any]:
    return {
        name: EXAMPLES.get(name, 7 if kind == "integer" else True)
        for name, (kind, _) in VERBS[verb].items()
    }


def test_every_file_of_the_folder_is_a_fault() -> None:
    files = {path.stem for path in FOLDER.glob("*.py")} - {"__init__"}
    assert {fault.inject.__module__.rpartition(".")[2] for fault in FAULTS.values()} == files
    assert {fault.verb for fault in FAULTS.values()} == files


def test_a_file_without_a_part_of_a_fault_is_told_with_the_part() -> None:
    module = ModuleType("specs.faults.half")
    module.__dict__.update({name: value for name, value in vars(cut).items() if name != "NEEDS"})
    with pytest.raises(FaultFileWrong, match=r"specs\.faults\.cut has no NEEDS"):
        faults._read(module)


def test_every_fault_and_what_ends_it_is_a_verb_of_the_plan() -> None:
    assert {*FAULTS, *HEALINGS} <= set(VERBS)
    assert all(VERBS[verb] == fault.arguments for verb, fault in FAULTS.items())


def test_the_schema_of_a_plan_knows_each_verb_once() -> None:
    actions = plan_schema()["properties"]["actions"]["items"]["oneOf"]
    said = [action["properties"]["do"]["const"] for action in actions]
    assert said == list(VERBS)
    assert json.dumps(actions)


def test_no_two_faults_go_by_one_name() -> None:
    names = [name for fault in FAULTS.values() for name in fault.names]
    assert sorted(set(names)) == sorted(names)
    assert len({fault.rank for fault in FAULTS.values()}) == len(FAULTS)


def test_a_fault_is_found_by_each_of_its_names() -> None:
    assert named("link_down") is FAULTS["cut"]
    assert named("cut") is FAULTS["cut"]
    assert named("earthquake") is None


@pytest.mark.parametrize("verb", [*FAULTS, *HEALINGS])
def test_each_verb_asks_its_rig_for_something_under_its_own_name(verb: str) -> None:
    rig = Heard(*Ability)
    assert perform(rig, verb, arguments_of(verb))
    assert [asked[0] for asked in rig.asked] == [verb]


@pytest.mark.parametrize("verb", list(FAULTS))
def test_a_rig_that_lacks_the_ability_is_asked_for_nothing(verb: str) -> None:
    fault = FAULTS[verb]
    need = fault.ability(of_broker="broker" in fault.arguments)
    rig = Heard(*(ability for ability in Ability if ability is not need))
    with pytest.raises(UsageError, match=need.value):
        perform(rig, verb, arguments_of(verb))
    assert rig.asked == []


def test_what_ends_several_faults_needs_the_ability_of_one_of_them() -> None:
    rig = Heard(Ability.BREAK_LINK)
    perform(rig, "heal", {"a": "alice", "b": "b0"})
    assert rig.asked == [("heal", "mend", "alice", "b0")]


def test_a_pause_of_a_broker_needs_more_than_one_of_a_client() -> None:
    rig = Heard(Ability.PAUSE_CLIENT)
    perform(rig, "pause", {"node": "alice"})
    with pytest.raises(UsageError, match="stop a broker"):
        perform(rig, "pause", {"node": "b0"})
    assert rig.asked == [("pause", "pause", "alice")]


def test_a_fault_of_a_client_does_nothing_to_a_broker_nor_the_other_way_round() -> None:
    rig = Heard(*Ability)
    assert perform(rig, "crash", {"client": "b0"})
    assert perform(rig, "broker_crash", {"broker": "alice"})
    assert rig.asked == []


def test_work_is_no_fault() -> None:
    rig = Heard(*Ability)
    assert not perform(rig, "start", {"client": "alice"})
