"""Real bugs, one per file: each replaces one method of the correct reference and names the clause that catches it.

A mutant's file holds NAME (kebab case, the file's name), BUG (what went wrong), SOURCE (where it was met),
KILLED_BY (the id of a clause, or of a wire rule) and one or more of `broker`, `consumer`, `producer`, or `queue`, or of
`coordinator` and `log`: the class to be used instead of the correct one. Optional: ORACLE (see `Mutant`), CONFIG (what
a plan has to say so that the bug can show).
The docstring says how a run meets it. Files that begin with an underscore are helpers.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType, ModuleType
from typing import Any

from reference_impl.core.broker import Broker
from reference_impl.core.coordinator import Coordinator
from reference_impl.core.leased_queue import LeasedQueue
from reference_impl.core.sequenced_log import SequencedLog
from specs.errors import UsageError

HISTORY = "history"
MODEL = "model"
VECTORS = "vectors"
LEASED = "leased"
SMALL = frozenset({"queue", "coordinator", "log"})
"""What only worlds of their own run."""
ORACLES = (HISTORY, MODEL, VECTORS, LEASED)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One bug.

    broker, consumer, producer: the classes to run; None for consumer and producer means the correct one.
    queue: of a queue whose messages are leased one by one, the class to run. coordinator, log: those of a group with
    generations, and of its queues.
    oracle: HISTORY when a judge finds it in the history of a cluster at work, LEASED in that of such a queue or group;
    MODEL when well-behaved clients never notice, and only a comparison of each answer with the allowed ones shows it;
    VECTORS when a table of what a function has to give does.
    config: names and values of `specs.plan.config.Config` without which the bug has no occasion.
    """

    name: str
    bug: str
    source: str
    killed_by: str
    doc: str
    broker: type[Broker] = Broker
    consumer: type[Any] | None = None
    producer: type[Any] | None = None
    queue: type[LeasedQueue] | None = None
    coordinator: type[Coordinator] | None = None
    log: type[SequencedLog] | None = None
    oracle: str = HISTORY
    config: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def is_of_a_group(self) -> bool:
        return self.coordinator is not None or self.log is not None


@cache
def _by_name() -> Mapping[str, Mutant]:
    found = {}
    for entry in pkgutil.iter_modules(__path__):
        if not entry.name.startswith("_"):
            mutant = _read(importlib.import_module(f"{__name__}.{entry.name}"))
            found[mutant.name] = mutant
    return MappingProxyType(dict(sorted(found.items())))


def _read(module: ModuleType) -> Mutant:
    names = vars(module)
    return Mutant(
        name=module.NAME,
        bug=module.BUG,
        source=module.SOURCE,
        killed_by=module.KILLED_BY,
        doc=(module.__doc__ or "").strip(),
        broker=names.get("broker", Broker),
        consumer=names.get("consumer"),
        producer=names.get("producer"),
        queue=names.get("queue"),
        coordinator=names.get("coordinator"),
        log=names.get("log"),
        oracle=names.get("ORACLE", LEASED if names.keys() & SMALL else HISTORY),
        config=MappingProxyType(dict(names.get("CONFIG", {}))),
    )


def all_mutants(oracle: str = HISTORY) -> tuple[Mutant, ...]:
    """The mutants that this oracle kills, by name."""
    return tuple(mutant for mutant in _by_name().values() if mutant.oracle == oracle)


def every_mutant() -> tuple[Mutant, ...]:
    """The mutants of all oracles, by name."""
    return tuple(_by_name().values())


def load(name: str) -> Mutant:
    """The mutant of that name. Raises UsageError for any other."""
    try:
        return _by_name()[name]
    except KeyError:
        raise UsageError(
            f"there is no mutant {name}; `inorder list mutants` shows all {len(_by_name())}"
        ) from None
