"""Which judges apply to a run, which of them share a pass, and the modules of what is planted."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from types import ModuleType

import spark_checkers.clauses as package
from specs.clauses.catalogue import FAMILIES, all_clauses
from specs.clauses.certainty import told_of
from specs.facts.judges import Judge, judges_of
from specs.history.runinfo import RunInfo


@cache
def planted_modules() -> tuple[ModuleType, ...]:
    """The modules of what is planted, by the `CLAUSE` that it breaks, in catalogue order."""
    found: dict[str, ModuleType] = {}
    for family in FAMILIES:
        folder = importlib.import_module(f"{package.__name__}.{family}")
        for entry in pkgutil.iter_modules(folder.__path__):
            module = importlib.import_module(f"{folder.__name__}.{entry.name}")
            found[module.CLAUSE] = module
    return tuple(found[clause.id] for clause in all_clauses() if clause.id in found)


@cache
def all_judges() -> tuple[Judge, ...]:
    """In catalogue order."""
    return judges_of(all_clauses())


def applicable(info: RunInfo) -> tuple[Judge, ...]:
    """The judges of the clauses whose premises a run meets from its begin to its end, and that need nothing of which
    somebody says that it is not recorded."""
    known = told_of(info)
    return tuple(
        judge
        for judge in all_judges()
        if judge.clause.unmet(info) is None and (known is None or not judge.clause.missing(known))
    )
