"""All defects that can be planted into a valid history, and all lookalikes, of every clause."""

from __future__ import annotations

from spark_checkers.catalogue import planted_modules
from spark_checkers.planting import Mutant, Planted, Trace, plant, spread
from specs.errors import UsageError

__all__ = ["DEFECTS", "LOOKALIKES", "Mutant", "Planted", "Trace", "named", "plant", "spread"]


def _planted(table: str) -> dict[str, Mutant]:
    """The changes of this table of every clause, by their names."""
    found = [mutant for module in planted_modules() for mutant in getattr(module, table, ())]
    return {mutant.name: mutant for mutant in found}


DEFECTS = _planted("DEFECTS")
"""Each breaks the clause that it names."""
LOOKALIKES = _planted("LOOKALIKES")
"""Each looks like a defect of the clause in whose file it lies, and breaks nothing."""


def named(name: str) -> Mutant:
    """A defect or lookalike. Raises UsageError for an unknown name."""
    found = DEFECTS.get(name) or LOOKALIKES.get(name)
    if found is None:
        known = ", ".join([*DEFECTS, *LOOKALIKES])
        raise UsageError(f"there is no defect {name}; known are {known}")
    return found
