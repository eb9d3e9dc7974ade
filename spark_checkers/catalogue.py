"""Which judges apply to a run, which of them share a pass, and the modules of what is planted."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from functools import cache
from types import ModuleType

import spark_checkers.clauses as package
from specs.clauses.catalogue import FAMILIES, all_clauses
from specs.clauses.certainty import told_of
from specs.facts.groupings import Grouping
from specs.facts.judges import Judge, judges_of
from specs.history.runinfo import RunInfo
from specs.vocabulary import Level


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


def grouped(judges: Iterable[Judge]) -> list[tuple[Grouping, tuple[Judge, ...]]]:
    """The judges that share one pass, by what they need together and the levels that they look at; one that picks its
    rows stands alone."""
    found: dict[tuple[Grouping, str, frozenset[Level]], list[Judge]] = {}
    for judge in judges:
        alone = judge.id if judge.pick is not None else ""
        found.setdefault((judge.grouping, alone, judge.clause.levels), []).append(judge)
    return [(grouping, tuple(some)) for (grouping, _, _), some in found.items()]
