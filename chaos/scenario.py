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

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from importlib import resources
from pathlib import Path
from typing import Any

from chaos.reached import CONDITIONS
from chaos.step import Step
from specs.clauses.catalogue import get
from specs.errors import UsageError

FOLDER = "scenarios"


@dataclass(frozen=True, slots=True)
class Workload:
    """What the clients do. work_ms: how long a listener works on a message. pace_ms: between two sends of a key."""

    consumers: int = 2
    queues: int = 4
    keys: int = 8
    messages: int = 240
    work_ms: int = 15
    pace_ms: int = 120
    poison_every: int = 40


@dataclass(frozen=True, slots=True)
class Scenario:
    """asked_for: the word that `load` finds it by, a name or a file; None where it was not loaded."""

    name: str
    why: str
    clauses: tuple[str, ...]
    must_reach: tuple[str, ...]
    workload: Workload
    faults: tuple[Step, ...]
    backends: tuple[str, ...] = ("process", "docker")
    config: Mapping[str, Any] = field(default_factory=dict)
    asked_for: str | None = None

    @property
    def needs_proxy(self) -> bool:
        return any(step.needs_proxy for step in self.faults)


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
        text = path.read_text(encoding="utf-8")
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"scenario {name} is no TOML: {error}") from error
    return replace(_scenario(Path(name).stem, data), asked_for=name)


def _scenario(name: str, data: dict[str, Any]) -> Scenario:
    where = f"scenario {name}"
    known = {"why", "clauses", "must_reach", "workload", "fault", "backends", "config"}
    unknown = sorted(set(data) - known)
    if unknown:
        raise UsageError(
            f"{where}: unknown {', '.join(unknown)}; known are {', '.join(sorted(known))}"
        )
    if not data.get("why"):
        raise UsageError(f"{where}: a scenario says why it is there (`why`)")
    for clause_id in data.get("clauses", ()):
        get(clause_id)
    for condition in data.get("must_reach", ()):
        if condition not in CONDITIONS:
            raise UsageError(
                f"{where}: must_reach knows {', '.join(sorted(CONDITIONS))}, not {condition!r}"
            )
    workload = data.get("workload", {})
    wrong = sorted(set(workload) - {each.name for each in fields(Workload)})
    if wrong:
        raise UsageError(f"{where}: unknown workload {', '.join(wrong)}")
    faults = []
    for number, table in enumerate(data.get("fault", ())):
        arguments = dict(table)
        do = str(arguments.pop("do", ""))
        faults.append(Step.of(do, arguments, f"{where}, fault {number + 1}"))
    if not faults:
        raise UsageError(f"{where}: a scenario breaks something: it needs a [[fault]]")
    return Scenario(
        name,
        str(data["why"]),
        tuple(data.get("clauses", ())),
        tuple(data.get("must_reach", ())),
        Workload(**workload),
        tuple(faults),
        tuple(data.get("backends", ("process", "docker"))),
        dict(data.get("config", {})),
    )
