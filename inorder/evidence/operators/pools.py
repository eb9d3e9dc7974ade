"""Which modules judge, on either side, which of their functions do not, and which clauses rest on which module.

Left out is what decides nothing about a history: how a finding is told, how a catalogue is read, which of several
findings is shown, the planting of defects that lies with the twins, and what only carries rows to Spark or reads them
from files (`spark_checkers.ordered`), cuts long queues into pieces (`spark_checkers.pieces`) or codes what a first look
asks for (`spark_checkers.coding`), each of which its own tests hold.
"""

from __future__ import annotations

import ast
import pkgutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from spark_checkers.catalogue import clause_of, twin_modules
from specs.clauses.catalogue import FAMILIES, all_clauses


class Side(StrEnum):
    """Whose text is changed."""

    JUDGES = "judges"
    KERNELS = "kernels"


EXAMINER = "specs.verdicts.examine"
"""Leads the judges through a history: no judge imports it."""
SHARED: Mapping[Side, tuple[str, ...]] = {
    Side.JUDGES: (
        "specs.clauses.certainty",
        "specs.clauses.clause",
        "specs.clauses.context",
        "specs.clauses.grants",
        "specs.clauses.incarnations",
        "specs.clauses.intervals",
        "specs.clauses.judging",
        "specs.clauses.keys",
        "specs.clauses.links",
        "specs.clauses.message_leases",
        "specs.clauses.premises",
        "specs.clauses.progress",
        "specs.clauses.readings",
        "specs.clauses.rows",
        "specs.clauses.settled",
        "specs.clauses.shares",
        "specs.clauses.stored",
        EXAMINER,
    ),
    Side.KERNELS: (
        "specs.facts.batches",
        "specs.facts.grants",
        "spark_checkers.keyed",
        "specs.facts.lanes",
        "specs.facts.message_leases",
        "specs.facts.presence",
        "specs.facts.progress",
        "specs.facts.readings",
        "specs.facts.ready",
        "specs.facts.calls",
        "specs.facts.gone",
        "specs.facts.judged",
        "specs.facts.moments",
        "specs.facts.pulls",
        "specs.facts.rows",
        "specs.facts.segments",
        "specs.facts.tenures",
        "specs.facts.tries",
        "specs.facts.settled",
        "specs.facts.shares",
        "specs.facts.stored",
        "spark_checkers.twin",
    ),
}
"""The modules that several clauses share for judging."""
FOLDERS = {Side.JUDGES: "specs.clauses", Side.KERNELS: "spark_checkers.clauses"}
TELLING = ("explain",)
PREMISES = "specs.clauses.premises"
"""A clause's premises are declared once, for both."""
PLANTING = ("DEFECTS", "LOOKALIKES")
NOT_JUDGING: Mapping[str, tuple[str, ...]] = {
    # How a clause is documented.
    "specs.clauses.clause": (
        "Promise.family",
        "Promise.judged_by",
        "Promise.BY_HISTORY",
        "Clause.shortest_violation",
        "Clause.lookalike",
    ),
    # How a premise is shown and compared.
    "specs.clauses.premises": ("Premise",),
    # Which of the findings is shown, and whether the file can be trusted at all.
    "specs.clauses.judging": ("Finding.place", "name_of"),
    EXAMINER: (
        "_Sum.take",
        "_Bench.best",
        "_as_recorded",
        "_rank",
        "Examiner.first_finding",
        "Examiner._check",
        "Examiner._broken",
        "Examiner._begin_run",
        "witness",
        "examine",
        "find_violations",
    ),
    # What carries rows to Spark and back.
    "spark_checkers.keyed": (
        "by_key",
        "_together",
        "_judge_batches",
        "_pick_batches",
        "picked",
        "picked_anew",
        "_long_one",
        "length_of",
    ),
    "spark_checkers.twin": ("Twin.find", "relevant_where", "_quoted", "to_batch"),
    # What queues hand on; rows that are in memory need no picking.
    "spark_checkers.clauses.dead_letter.exhausted_message_reaches_dead_letters": ("relevant",),
}


@cache
def modules(side: Side) -> tuple[str, ...]:
    """Every module of a side that judges, those of the clauses in the catalogue's order of families."""
    return (*SHARED[side], *_of_clauses(side))


def _of_clauses(side: Side) -> Iterator[str]:
    for family in FAMILIES:
        package = f"{FOLDERS[side]}.{family}"
        for entry in pkgutil.iter_modules([str(source_of(package).parent)]):
            tree = ast.parse(source_of(f"{package}.{entry.name}").read_text(encoding="utf-8"))
            defined = _defined(tree)
            if "ID" not in defined or "judge" in defined:  # others are decided by a table
                yield f"{package}.{entry.name}"


@cache
def left_out(module: str) -> frozenset[str]:
    """The functions of a module that judge nothing, by their qualified names; and what is planted."""
    tree = ast.parse(source_of(module).read_text(encoding="utf-8"))
    defined = _defined(tree)
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    judging = _reached(defined.keys() - functions - set(PLANTING), defined)
    aside = _reached(defined.keys() & {*TELLING, *PLANTING}, defined)
    return frozenset((aside & functions) - judging).union(NOT_JUDGING.get(module, ()), PLANTING)


def _defined(tree: ast.Module) -> dict[str, set[str]]:
    """What a module defines at its top, with the names that each definition uses."""
    found: dict[str, set[str]] = {}
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names = [name]
            case ast.Assign(targets=targets):
                names = [each.id for each in targets if isinstance(each, ast.Name)]
            case ast.AnnAssign(target=ast.Name(id=name)):
                names = [name]
            case _:
                continue
        used = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        for name in names:
            found[name] = used
    return found


def _reached(roots: Iterable[str], uses: Mapping[str, Collection[str]]) -> set[str]:
    """These names, and all that they use, and so on."""
    waiting, found = list(roots), set[str]()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += uses.get(name, ())
    return found


# ------------------------------------------------------------------------------------------ who rests on whom


def concerned(module: str) -> tuple[str, ...]:
    """The ids of the clauses of which the judge or the twin rests on the module, in the catalogue's order.

    What no judge imports leads all of them.
    """
    if module == EXAMINER:
        return tuple(clause.id for clause in all_clauses())
    twins = {clause_of(each): each.__name__ for each in twin_modules()}
    return tuple(
        clause.id
        for clause in all_clauses()
        if module in rests_on(clause.module) or module in rests_on(twins[clause.id])
    )


@cache
def rests_on(module: str) -> frozenset[str]:
    """The module, and those of both sides that it imports, by whatever way."""
    found: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += _imports(name)
    return frozenset(found)


@cache
def _imports(module: str) -> frozenset[str]:
    """The modules of a pool that a module imports, without the catalogues, which know everybody."""
    known = {*modules(Side.JUDGES), *modules(Side.KERNELS)}
    tree = ast.parse(source_of(module).read_text(encoding="utf-8"))
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
    return frozenset(found & known)


def is_common(module: str, function: str) -> bool:
    """Do kernels use this text of the judges' side too? Then no comparison of the two can tell that it is wrong."""
    name = function.partition(".")[0]
    return name in _used_by_kernels(module) or module == PREMISES


@cache
def _used_by_kernels(module: str) -> frozenset[str]:
    """The names of a module of the judges' side that modules of the kernels' import, and all that these use there."""
    taken: set[str] = set()
    for each in modules(Side.KERNELS):
        for node in ast.walk(ast.parse(source_of(each).read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == module:
                taken |= {name.name for name in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                whole = {f"{node.module}.{name.name}" for name in node.names}
                taken |= {"*"} if module in whole else set()
    defined = _defined(ast.parse(source_of(module).read_text(encoding="utf-8")))
    return frozenset(defined if "*" in taken else _reached(taken & defined.keys(), defined))


@cache
def source_of(module: str) -> Path:
    """The file of a module."""
    spec = find_spec(module)
    assert spec is not None, module
    return Path(str(spec.origin))
