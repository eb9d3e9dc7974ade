"""ORD-13: after a drop, no call of that incarnation starts."""

from __future__ import annotations

from specs.plan.config import Config
from specs.vocabulary import Kind
from tests.definitions.words import Rows, began_before, calls, same_incarnation, took_effect


def broken(rows: Rows, config: Config) -> bool:
    return any(
        began_before(drop, call) and same_incarnation(rows, drop, call)
        for drop in took_effect(rows, Kind.DROP)
        for call in calls(rows)
    )
