"""All defects that can be planted into a valid history, and all lookalikes, of every clause."""

from dataclasses import replace

from spark_checkers.catalogue import planted_modules
from spark_checkers.changes import Planted, spread
from spark_checkers.planting import Mutant, Trace, plant
from specs.clauses.catalogue import all_clauses
from specs.errors import UsageError

__all__ = ["DEFECTS", "LOOKALIKES", "Mutant", "Planted", "Trace", "named", "plant", "spread"]

_DECLARED = [
    (clause.id, each)
    for clause, module in zip(all_clauses(), planted_modules(), strict=True)
    for each in vars(module).values()
    if isinstance(each, Mutant)
]
DEFECTS = {each.name: replace(each, clause=clause) for clause, each in _DECLARED if each.breaks}
"""By their names. Each breaks the clause that it names."""
LOOKALIKES = {each.name: each for _clause, each in _DECLARED if not each.breaks}
"""Each looks like a defect of the clause in whose file it lies, and breaks nothing."""


def named(name: str) -> Mutant:
    """A defect or lookalike. Raises UsageError for an unknown name."""
    known = DEFECTS | LOOKALIKES
    if name not in known:
        raise UsageError(f"there is no defect {name}; known are {', '.join(known)}")
    return known[name]
