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


def test_what_the_sieve_found_counts_only_where_the_clause_applies() -> None:
    """ORD-12 is decided within each queue before anybody asks for the group's mode."""
    examiner: Any = object.__new__(engine._Examiner)
    examiner.sums = {
        "ORD-12": engine.Sum(opportunities=3, found={"key-overtaken": engine.Named(violations=1)})
    }
    broken = Tally(3, {"key-overtaken": Found(1)})
    seen: Any = SimpleNamespace(kinds=frozenset(Kind))
    for mode, expected in (("orderly", broken), ("key_ordered", broken), ("concurrent", Tally())):
        examiner.history = SimpleNamespace(info=RunInfo(run="r", config=Config(mode=mode)))
        assert examiner._tally(get("ORD-12"), seen) == expected
