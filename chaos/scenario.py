"""Scenarios: TOML files that say why, what is to be done, what breaks, and what must be reached.

why = "A consumer dies while it holds the lease: ..."
clauses = ["LSE-1", "ORD-4"]          # to be exercised
must_reach = ["takeover", "caught_up"]
[workload]
consumers = 2
messages = 240
[[fault]]
do = "crash"
client = "c1"
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from importlib import resources
from pathlib import Path
from random import Random
from typing import Any

from chaos.reached import CONDITIONS
from chaos.step import StepTemplate
from reference_impl.mutants import every_mutant
from specs.clauses.catalogue import get
from specs.documents import from_toml_of, text_in
from specs.errors import UsageError
from specs.plan.ability import Ability
from specs.plan.config import Config

FOLDER = "scenarios"
_ANY_TIME_MS = 3_600_000
_MOST = {
    "consumers": 100,
    "at_first": 100,
    "brokers": 20,
    "queues": 1_000,
    "keys": 100_000,
    "messages": 1_000_000,
    "poison_every": 1_000_000,
    "work_ms": _ANY_TIME_MS,
    "pace_ms": _ANY_TIME_MS,
}
"""A workload's numbers at most: each party, queue and message of it is made before a run begins."""
BACKENDS = ("process", "docker", "simulated")


@dataclass(frozen=True, slots=True)
class Workload:
    """What the clients do. at_first: how many consumers start with the run, 0 for all; the others by a step.

    work_ms: how long a listener works on a message. pace_ms: between two sends of a key. poison_every: each such
    message fails until it is given up; where nobody gives up, once.
    """

    consumers: int = 2
    at_first: int = 0
    brokers: int = 1
    queues: int = 4
    keys: int = 8
    messages: int = 240
    work_ms: int = 15
    pace_ms: int = 120
    poison_every: int = 40

    @property
    def clients(self) -> tuple[str, ...]:
        """The consumers' names."""
        return tuple(f"c{number}" for number in range(1, self.consumers + 1))

    @property
    def broker_names(self) -> tuple[str, ...]:
        """b0, b1, ..."""
        return tuple(f"b{number}" for number in range(self.brokers))


@dataclass(frozen=True, slots=True)
class Scenario:
    """shows: the mutants that it must refute.

    backends: what may host the consumers, where the target lends its system to clients of ours, or that all of it is
    simulated. asked_for: the word
    that `load` finds it by, a name or a file; None where it was not loaded.
    """

    name: str
    why: str
    clauses: tuple[str, ...]
    must_reach: tuple[str, ...]
    workload: Workload
    faults: tuple[StepTemplate, ...]
    backends: tuple[str, ...] = BACKENDS
    config: Mapping[str, Any] = field(default_factory=dict)
    shows: tuple[str, ...] = ()
    asked_for: str | None = None

    @property
    def needs(self) -> tuple[Ability, ...]:
        """What a target must be able to have done to it."""
        brokers = self.workload.broker_names
        steps = (step for fault in self.faults for step in fault.steps(Random(0), brokers))
        more = (Ability.MORE_BROKERS,) if self.workload.brokers > 1 else ()
        needed = (need for step in steps for need in step.needs)
        return tuple(dict.fromkeys([*needed, *more]))


def names() -> tuple[str, ...]:
    """The scenarios that come with the project."""
    folder = resources.files("chaos") / FOLDER
    return tuple(
        sorted(
            entry.name[: -len(".toml")]
            for entry in folder.iterdir()
            if entry.name.endswith(".toml")
        )
    )


def load(name: str) -> Scenario:
    """A scenario by name or by path. Raises UsageError (exit 64) for an unknown or a wrong one."""
    if name in names():
        text = (resources.files("chaos") / FOLDER / f"{name}.toml").read_text(encoding="utf-8")
    else:
        path = Path(name)
        if not path.is_file():
            raise UsageError(
                f"there is no scenario {name!r}; known are {', '.join(names())}, or give a file"
            )
        text = text_in(path, name=f"scenario {name}")
    data = from_toml_of(text, f"scenario {name}", UsageError)
    return replace(scenario_of(Path(name).stem, data), asked_for=name)


def scenario_of(name: str, data: dict[str, Any]) -> Scenario:
    """The scenario that a file's tables tell of. Raises UsageError or SpecError (exit 64) for what is wrong in them."""
    where = f"scenario {name}"
    known = {"why", "clauses", "must_reach", "shows", "workload", "fault", "backends", "config"}
    unknown = sorted(set(data) - known)
    if unknown:
        raise UsageError(
            f"{where}: unknown {', '.join(unknown)}; known are {', '.join(sorted(known))}"
        )
    if not isinstance(data.get("why"), str) or not data["why"]:
        raise UsageError(f"{where}: a scenario says why it is there (`why`)")
    for clause_id in _words(data, "clauses", (), where):
        get(clause_id)
    for condition in _words(data, "must_reach", (), where):
        if condition not in CONDITIONS:
            raise UsageError(
                f"{where}: must_reach knows {', '.join(sorted(CONDITIONS))}, not {condition!r}"
            )
    backends = _words(data, "backends", BACKENDS, where)
    if strange := sorted(set(backends) - set(BACKENDS)):
        raise UsageError(f"{where}: backends knows {', '.join(BACKENDS)}, not {strange[0]!r}")
    shows = _shows(data, where)
    workload = _workload(_table(data, "workload", where), where)
    config = _table(data, "config", where)
    Config.from_json(config)
    tables = data.get("fault", ())
    if not isinstance(tables, list | tuple) or not all(isinstance(each, dict) for each in tables):
        raise UsageError(f"{where}: each fault is a table of its own, [[fault]]")
    faults = tuple(
        StepTemplate.of(table, workload.clients, workload.broker_names, f"{where}, fault {number}")
        for number, table in enumerate(tables, start=1)
    )
    if not faults:
        raise UsageError(f"{where}: a scenario breaks something: it needs a [[fault]]")
    return Scenario(
        name,
        data["why"],
        _words(data, "clauses", (), where),
        _words(data, "must_reach", (), where),
        workload,
        faults,
        backends,
        config,
        shows,
    )


def _shows(data: dict[str, Any], where: str) -> tuple[str, ...]:
    """One mutant, or a list of them."""
    told = data.get("shows", [])
    named = _words({"shows": [told] if isinstance(told, str) else told}, "shows", (), where)
    if strange := sorted(set(named) - {mutant.name for mutant in every_mutant()}):
        raise UsageError(
            f"{where}: there is no mutant {strange[0]!r}; `inorder list mutants` shows all"
        )
    return named


def _words(data: dict[str, Any], name: str, usual: tuple[str, ...], where: str) -> tuple[str, ...]:
    found = data.get(name, usual)
    if not isinstance(found, list | tuple) or not all(isinstance(word, str) for word in found):
        raise UsageError(f"{where}: {name} is a list of words")
    return tuple(found)


def _table(data: dict[str, Any], name: str, where: str) -> dict[str, Any]:
    found = data.get(name, {})
    if not isinstance(found, dict):
        raise UsageError(f"{where}: {name} is a table, [{name}]")
    return dict(found)


def _workload(data: dict[str, Any], where: str) -> Workload:
    wrong = sorted(set(data) - {each.name for each in fields(Workload)})
    if wrong:
        raise UsageError(f"{where}: unknown workload {', '.join(wrong)}")
    for name, value in data.items():
        least, most = 0 if name in ("work_ms", "at_first") else 1, _MOST[name]
        if type(value) is not int or not least <= value <= most:
            raise UsageError(
                f"{where}: the workload's {name} is a whole number from {least} to {most:,}"
            )
    workload = Workload(**data)
    if workload.at_first > workload.consumers:
        raise UsageError(f"{where}: at_first is more than there are consumers")
    return workload
