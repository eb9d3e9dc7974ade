"""Which modules judge, which of their functions do not, and which clauses rest on which module.

Left out is what decides nothing about a history: how a finding is told, how a catalogue is read, what a search is told
to look for, which of several findings is shown, and what brings rows together from files and on Spark, which its own
tests hold.
"""

from __future__ import annotations

import ast
import pkgutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from specs.clauses.catalogue import FAMILIES, all_clauses

EXAMINER = "specs.verdicts.examine"
"""Leads the clauses through a history: no clause imports it."""
CLAUSES, FACTS = "specs.clauses", "specs.facts"
SHARED = (
    "specs.clauses.certainty",
    "specs.clauses.clause",
    "specs.clauses.judging",
    "specs.clauses.links",
    "specs.clauses.premises",
    "specs.clauses.rows",
    "specs.clauses.terms",
    EXAMINER,
)
"""The modules beside the facts that several clauses share for judging."""
TELLING = "explain"
STEERING = "STAKES"
"""What a clause asks of the plans of a search."""
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
        "_rank",
        "Examiner.first_finding",
        "Examiner._check",
        "Examiner._broken",
        "Examiner._begin_run",
        "witness",
        "examine",
        "find_violations",
    ),
    # Which are needed of long queues only.
    "specs.clauses.dead_letter.exhausted_message_reaches_dead_letters": ("pick",),
}


@cache
def modules() -> tuple[str, ...]:
    """Every module that judges, those of the clauses in the catalogue's order of families."""
    facts = pkgutil.iter_modules([str(source_of(FACTS).parent)])
    return (*SHARED, *(f"{FACTS}.{each.name}" for each in facts), *_of_clauses())


def _of_clauses() -> Iterator[str]:
    for family in FAMILIES:
        package = f"{CLAUSES}.{family}"
        for entry in pkgutil.iter_modules([str(source_of(package).parent)]):
            tree = ast.parse(source_of(f"{package}.{entry.name}").read_text(encoding="utf-8"))
            defined = _defined(tree)
            if "ID" not in defined or "judge" in defined:  # others are decided by a table
                yield f"{package}.{entry.name}"


@cache
def left_out(module: str) -> frozenset[str]:
    """The functions of a module that judge nothing, by their qualified names."""
    tree = ast.parse(source_of(module).read_text(encoding="utf-8"))
    defined = _defined(tree)
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    judging = _reached((defined.keys() - functions) | (defined.keys() & {"judge"}), defined)
    aside = _reached(defined.keys() & {TELLING}, defined)
    judges_not = {STEERING, *NOT_JUDGING.get(module, ())}
    return frozenset((aside & functions) - judging).union(judges_not)


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
    """The ids of the clauses that rest on the module, in the catalogue's order.

    What no clause imports leads all of them.
    """
    found = tuple(clause.id for clause in all_clauses() if module in rests_on(clause.module))
    return found or tuple(clause.id for clause in all_clauses())


@cache
def rests_on(module: str) -> frozenset[str]:
    """The module, and those that judge and that it imports, by whatever way."""
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
    known = set(modules())
    tree = ast.parse(source_of(module).read_text(encoding="utf-8"))
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
    return frozenset(found & known)


@cache
def source_of(module: str) -> Path:
    """The file of a module."""
    spec = find_spec(module)
    assert spec is not None, module
    return Path(str(spec.origin))
