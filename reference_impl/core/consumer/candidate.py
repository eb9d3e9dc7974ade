"""A lane on its way in: wanted since a rebalance, and not added yet."""

from __future__ import annotations

from dataclasses import dataclass

from specs.vocabulary import Queue


@dataclass(slots=True, eq=False)
class Candidate:
    """locked_ms: when its lease was granted; 0 before. unwanted: a later rebalance gave it to somebody else."""

    queue: Queue
    locked_ms: int = 0
    unwanted: bool = False
