"""A lane on its way in: wanted since a rebalance, and not added yet."""

from __future__ import annotations

from dataclasses import dataclass

from reference_impl.core.consumer.lane_life import Phase
from specs.vocabulary import Queue


@dataclass(slots=True, eq=False)
class Candidate:
    """phase: moved by `Consumer.move`. locked_ms: when its lease was granted.

    unwanted: a later rebalance gave it to somebody else.
    """

    queue: Queue
    phase: Phase = Phase.ELSEWHERE
    locked_ms: int = 0
    unwanted: bool = False
