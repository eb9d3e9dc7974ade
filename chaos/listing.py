"""What `inorder list scenarios` and `inorder list faults` show: the names, and why they are there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from chaos.faults import FAULTS
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
            "faults": [fault.NAME for fault in scenario.faults],
            "backends": list(scenario.backends),
        }


def faults() -> Iterator[Mapping[str, Any]]:
    """Every fault, with the first sentence of its class."""
    for name, fault in sorted(FAULTS.items()):
        doc = (fault.__doc__ or "").strip().splitlines()
        yield {"name": name, "why": doc[0] if doc else "", "needs_proxy": fault.NEEDS_PROXY}
