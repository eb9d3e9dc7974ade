"""Which judges apply to a run, which of them share a pass, and the modules of what is planted."""

import importlib
from functools import cache
from types import ModuleType

from spark_checkers import clauses as planted
from specs import clauses
from specs.clauses.catalogue import all_clauses
from specs.clauses.certainty import told_of
from specs.facts.judges import Judge, judges_of
from specs.history.runinfo import RunInfo


@cache
def planted_modules() -> tuple[ModuleType, ...]:
    """Of each clause the module of what is planted, which lies here as the clause's does in `specs`."""
    names = (clause.module.removeprefix(clauses.__name__) for clause in all_clauses())
    return tuple(importlib.import_module(f"{planted.__name__}{name}") for name in names)


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
