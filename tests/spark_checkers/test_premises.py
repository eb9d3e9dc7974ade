"""What a run's premises leave out, the Spark engine leaves out as well."""

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
    examiner: Any = object.__new__(engine._Examiner)
    examiner.sums = {
        "ORD-12": engine.Sum(opportunities=3, found={"key-overtaken": engine.Named(violations=1)})
    }
    broken = Tally(3, {"key-overtaken": Found(1)})
    examiner.paths = ()
    seen: Any = SimpleNamespace(kinds=frozenset(Kind))
    for mode, expected in (("orderly", broken), ("key_ordered", broken), ("concurrent", Tally())):
        examiner.history = SimpleNamespace(info=RunInfo(run="r", config=Config(mode=mode)))
        assert examiner._tallies([get("ORD-12")], seen) == {"ORD-12": expected}
