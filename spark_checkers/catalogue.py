"""All twins, found by being there: a file in a family's folder with a `TWIN`."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from types import ModuleType

import spark_checkers.clauses as package
from spark_checkers.twin import Twin
from specs.clauses.catalogue import FAMILIES, all_clauses
from specs.history.runinfo import RunInfo
from specs.vocabulary import Key


@cache
def twin_modules() -> tuple[ModuleType, ...]:
    """The modules of the twins, in catalogue order."""
    found: dict[str, ModuleType] = {}
    for family in FAMILIES:
        folder = importlib.import_module(f"{package.__name__}.{family}")
        for entry in pkgutil.iter_modules(folder.__path__):
            module = importlib.import_module(f"{folder.__name__}.{entry.name}")
            found[module.TWIN.id] = module
    return tuple(found[clause.id] for clause in all_clauses() if clause.id in found)


@cache
def all_twins() -> tuple[Twin, ...]:
    """In catalogue order."""
    return tuple(module.TWIN for module in twin_modules())


def applicable(info: RunInfo) -> tuple[Twin, ...]:
    """The twins of the clauses whose premises a run meets from its begin to its end."""
    return tuple(twin for twin in all_twins() if twin.clause.unmet(info) is None)


def twins_of(key: Key, info: RunInfo) -> tuple[Twin, ...]:
    """The applicable twins that share one pass over the rows, by key."""
    return tuple(twin for twin in applicable(info) if twin.key is key)
