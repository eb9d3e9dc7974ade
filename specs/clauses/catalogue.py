"""Every clause, read from its file. The order is that of the documentation.

A clause module is found by being there: a file in a family's folder with an `ID`. One with a `judge` is decided by a
history. It may name wire rules that are its facets (`RULES`, by their ids); one without a judge is decided by these, or
by a table (`VECTORS`). The wire rules that no clause names stand at the end of the one catalogue.
"""

import importlib
import pkgutil
from collections.abc import Iterable
from functools import cache
from importlib import resources
from types import ModuleType
from typing import Any

import specs.clauses as package
from specs.clauses.clause import Clause, Promise
from specs.clauses.judging import Finding, name_of
from specs.clauses.rows import REQUEST_LEVELS
from specs.clauses.transcript import read_transcript
from specs.errors import SpecError
from specs.model.rules import RULES, WireRule

FAMILIES = (
    "order",
    "lease",
    "retry",
    "dead_letter",
    "commit",
    "send",
    "assignment",
    "liveness",
    "message_lease",
    "floor",
    "key",
    "generation",
)
_FAMILY_ORDER = ("ORD", "LSE", "RTY", "DLQ", "CMT", "SND", "ASG", "LIV", "PML", "FLR", "KEY", "GEN")


def _promise(module: ModuleType) -> Promise:
    common: dict[str, Any] = {
        "id": module.ID,
        "name": module.__name__.rsplit(".", 1)[1],
        "title": module.TITLE,
        "statement": module.STATEMENT,
        "party": module.PARTY,
        "premise": tuple(module.PREMISE),
        "sources": tuple(module.SOURCES),
        "refines": tuple(getattr(module, "REFINES", ())),
        "doc": (module.__doc__ or "").strip(),
        "rules": tuple(getattr(module, "RULES", ())),
        "vectors": getattr(module, "VECTORS", None),
        "stakes": tuple(getattr(module, "STAKES", ())),
    }
    judge = getattr(module, "judge", None)
    if judge is None:
        return Promise(**common)
    return Clause(
        **common,
        key=module.KEY,
        kinds=frozenset(module.KINDS),
        levels=frozenset(getattr(module, "LEVELS", REQUEST_LEVELS)),
        judge=judge,
        columns=tuple(getattr(module, "COLUMNS", ())),
        module=module.__name__,
        explain=module.explain,
        # Beside the module, wherever that lies: Spark's workers read it from a zip.
        examples=read_transcript(
            resources.files(module.__package__ or "") / f"{module.__name__.rpartition('.')[2]}.txt"
        ),
        needs=frozenset(module.NEEDS),
        settings=frozenset(getattr(module, "SETTINGS", ())),
        named_by=frozenset(getattr(module, "NAMED_BY", ())),
        heeded=frozenset(getattr(module, "HEEDED", ())),
        excused_by=frozenset(getattr(module, "EXCUSED_BY", ())),
        excused_if=getattr(module, "EXCUSED_IF", {}),
        of_lives=frozenset(getattr(module, "EXCUSED_BY_ANOTHER_LIFE", ())),
        absence=bool(getattr(module, "CONCLUDES_FROM_ABSENCE", False)),
        looks_back=bool(getattr(module, "LOOKS_BACK", False)),
        findings=_findings(module),
        told_of_refused_commits=bool(getattr(module, "TOLD_OF_REFUSED_COMMITS", False)),
        by_clients=bool(getattr(module, "BY_CLIENTS", False)),
        only=getattr(module, "ONLY", {}),
        pick=getattr(module, "pick", None),
        apart=getattr(module, "APART", None),
    )


def _findings(module: ModuleType) -> tuple[str, ...]:
    kinds = (
        each
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, Finding)
    )
    return tuple(dict.fromkeys(name_of(kind) for kind in kinds if kind is not Finding))


def _place(clause: Promise) -> tuple[int, int]:
    family, number = clause.id.split("-")
    return _FAMILY_ORDER.index(family), int(number)


@cache
def catalogue() -> tuple[Promise, ...]:
    """Every clause, whatever judges it, in catalogue order."""
    found: list[Promise] = []
    for family in FAMILIES:
        folder = importlib.import_module(f"{package.__name__}.{family}")
        for entry in pkgutil.iter_modules(folder.__path__):
            module = importlib.import_module(f"{folder.__name__}.{entry.name}")
            if hasattr(module, "ID"):
                found.append(_promise(module))
    return tuple(sorted(found, key=_place))


@cache
def everything() -> tuple[Promise | WireRule, ...]:
    """Whatever can be broken: every clause, and behind them every wire rule that is no clause's facet."""
    facets = _clauses_by_rule()
    return (*catalogue(), *(rule for rule in RULES.values() if rule.id not in facets))


@cache
def _clauses_by_rule() -> dict[str, str]:
    return {rule: clause.id for clause in catalogue() for rule in clause.rules}


def meant_by(name: str) -> str:
    """The id that an id stands for: a facet's is an alias of its clause's."""
    return _clauses_by_rule().get(name, name)


def facets_of(clause_id: str) -> tuple[str, ...]:
    """The ids of the wire rules that are facets of a clause."""
    return tuple(rule for rule, clause in _clauses_by_rule().items() if clause == clause_id)


@cache
def all_clauses() -> tuple[Clause, ...]:
    """All clauses that can be judged from a history, in catalogue order."""
    return tuple(clause for clause in catalogue() if isinstance(clause, Clause))


@cache
def all_ids() -> frozenset[str]:
    """The ids of all clauses, whatever judges them."""
    return frozenset(clause.id for clause in catalogue())


@cache
def by_id() -> dict[str, Clause]:
    return {clause.id: clause for clause in all_clauses()}


def get(clause_id: str) -> Clause:
    """One clause. Raises SpecError for an unknown id."""
    clause = by_id().get(clause_id)
    if clause is None:
        raise SpecError(
            f"there is no clause {clause_id}; `inorder list clauses` shows all {len(by_id())}"
        )
    return clause


def select(ids: Iterable[str]) -> tuple[Clause, ...]:
    return tuple(get(clause_id) for clause_id in ids)
