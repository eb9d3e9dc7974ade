"""A search that does not stop short: further runs for the claimed clauses that were not at stake often enough.

A machine draws blindly, so that one search in eight leaves some rare clause a little below its floor. Instead of
ending without an answer it goes on, round by round: each round is for one of the clauses below their floor, draws its
runs from what puts that clause at stake (`conformance.machines.steering`), and ends when it is there. The floor is the
same, and only what a history showed counts. At most `FURTHER` times as many examples are added as were asked for. All
of it follows from the seed.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable

from conformance.machines.cluster import Collector
from conformance.machines.steering import ingredients_for
from specs.verdicts.verdict import Further

FURTHER = 1
"""So many times as many further examples as were asked for, at most."""
ROUND = 10
"""Examples for one clause, before another one that is below its floor has its turn."""

Draw = Callable[[int, int, tuple[str, ...]], None]
"""(seed, examples, ingredients): have the machine make so many runs."""


def go_on(
    collector: Collector, seed: int, most: int, short: Callable[[], tuple[str, ...]], draw: Draw
) -> Further | None:
    """Up to `most` further runs, until no clause is short or a wanted one was broken; None when there is no need.

    short: the claimed clauses that are below their floor by now, in the catalogue's order.
    """
    sought, began = short(), collector.runs
    if not sought:
        return None
    turns: Counter[str] = Counter()

    def made() -> int:
        return collector.runs - began

    while (
        (lacking := short())
        and made() < most
        and turns.total() < most
        and collector.broken is None
        and not collector.is_over()
    ):
        clause = min(lacking, key=lambda name: turns[name])
        turns[clause] += 1
        collector.enough = lambda clause=clause: made() >= most or clause not in short()  # type: ignore[misc]
        draw(seed_of(seed, turns.total()), ROUND, ingredients_for(clause))
    return Further(made(), most, sought)


def seed_of(seed: int, turn: int) -> int:
    """The seed of a round, the same each time and another one for each round of each seed."""
    return int.from_bytes(hashlib.sha256(f"{seed} {turn}".encode()).digest()[:8])
