"""What a run's premises leave out, the columnar engines leave out as well."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from spark_checkers import engine
from specs.clauses.catalogue import get
from specs.history.runinfo import RunInfo
from specs.plan.config import Config
from specs.verdicts.tally import Found, Tally
from specs.vocabulary import Kind


def test_what_was_found_counts_only_where_the_clause_applies() -> None:
    """Whatever the passes add up, a clause whose premise the run does not meet has no tally."""
    sums = {"ORD-12": engine.Sum(3, {"key-overtaken": engine.Named(violations=1)})}
    broken = Tally(3, {"key-overtaken": Found(1)})
    seen: Any = SimpleNamespace(kinds=frozenset(Kind))
    for mode, expected in (("orderly", broken), ("key_ordered", broken), ("concurrent", Tally())):
        info = RunInfo(run="r", config=Config(mode=mode))
        found = engine.tallies_of([get("ORD-12")], info, sums, seen, lambda _: {})
        assert found == {"ORD-12": expected}
