"""Which mutants the machines search for in every run of the tests, and which in the long ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pytest

EACH = 3
"""Every third of a machine's mutants, the first among them, so that every machine has some."""
FOUND_LATE = frozenset(
    {
        "dead-letter-failure-ignored",
        "given-up-with-its-batch-again",
        "lease-freed-at-disconnect",
        "offsets-written-once",
        "reset-only-in-memory",
        "reset-written-with-the-next-commit",
    }
)
"""After a second of work and more; the next one of the same machine is found within a moment."""


def searched(kills: Mapping[str, Sequence[str]]) -> Iterator[object]:
    """(machine, mutant): all of them, those marked as long that are not for every run."""
    for machine, names in kills.items():
        for number, name in enumerate(names):
            late = number % EACH != 0 or name in FOUND_LATE
            yield pytest.param(machine, name, marks=pytest.mark.long if late else [])
