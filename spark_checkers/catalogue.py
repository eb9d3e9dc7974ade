"""All twins, found by being there: a file in a family's folder with a `TWIN`, or with a `CLAUSE` that is a relation."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from types import ModuleType

import spark_checkers.clauses as package
from spark_checkers.twin import Twin
from specs.clauses.catalogue import FAMILIES, all_clauses, get
from specs.clauses.certainty import told_of
from specs.clauses.clause import Clause
from specs.facts.groupings import CLIENTS, Grouping
from specs.history.runinfo import RunInfo
from specs.vocabulary import Level


@cache
def twin_modules() -> tuple[ModuleType, ...]:
    """The modules of the twins and of what is planted, in catalogue order."""
    found: dict[str, ModuleType] = {}
    for family in FAMILIES:
        folder = importlib.import_module(f"{package.__name__}.{family}")
        for entry in pkgutil.iter_modules(folder.__path__):
            module = importlib.import_module(f"{folder.__name__}.{entry.name}")
            found[clause_of(module)] = module
    return tuple(found[clause.id] for clause in all_clauses() if clause.id in found)


def clause_of(module: ModuleType) -> str:
    """The id of the clause whose twin, or whose planted defects, stand in the module."""
    return module.CLAUSE if hasattr(module, "CLAUSE") else str(module.TWIN.id)


@cache
def all_twins() -> tuple[Twin, ...]:
    """In catalogue order."""
    return tuple(
        module.TWIN if hasattr(module, "TWIN") else _of_clause(get(module.CLAUSE))
        for module in twin_modules()
    )


def _of_clause(clause: Clause) -> Twin:
    """Of a clause that is a relation itself."""
    assert clause.relation is not None, clause.id
    apart = clause.apart
    return Twin(
        clause.id,
        clause.columns,
        clause.relation,
        by=CLIENTS if clause.by_clients else None,
        only=clause.only,
        pick=clause.pick,
        also=()
        if apart is None
        else (Twin(clause.id, clause.columns, apart.judge, kinds=apart.kinds, only=apart.only),),
    )


def applicable(info: RunInfo) -> tuple[Twin, ...]:
    """The twins of the clauses whose premises a run meets from its begin to its end, and that need nothing of which
    somebody says that it is not recorded."""
    known = told_of(info)
    return tuple(
        twin
        for twin in all_twins()
        if twin.clause.unmet(info) is None and (known is None or not twin.clause.missing(known))
    )


def kernels(twins: Iterable[Twin]) -> tuple[Twin, ...]:
    """The twins, each with what finds the rest for it under another key."""
    return tuple(each for twin in twins for each in (replace(twin, also=()), *twin.also))


def grouped(twins: Iterable[Twin]) -> list[tuple[Grouping, tuple[Twin, ...]]]:
    """The twins' kernels that share one pass, by what they need together and the levels that they look at; one that
    picks its rows stands alone."""
    found: dict[tuple[Grouping, str, frozenset[Level]], list[Twin]] = {}
    for twin in kernels(twins):
        alone = twin.id if twin.pick is not None else ""
        found.setdefault((twin.grouping, alone, twin.clause.levels), []).append(twin)
    return [(grouping, tuple(some)) for (grouping, _, _), some in found.items()]
