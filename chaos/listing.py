"""What `inorder list scenarios` shows: the names, and why they are there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from chaos.scenario import load, names


def scenarios() -> Iterator[Mapping[str, Any]]:
    """Every scenario that comes with the project."""
    for name in names():
        scenario = load(name)
        yield {
            "name": name,
            "why": " ".join(scenario.why.split()),
            "clauses": list(scenario.clauses),
            "must_reach": list(scenario.must_reach),
            "faults": [step.do for step in scenario.faults],
            "shows": list(scenario.shows),
            "backends": list(scenario.backends),
        }
