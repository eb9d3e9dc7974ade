"""What a run's premises leave out, the Spark engine leaves out as well."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from spark_checkers import engine
from specs.clauses.catalogue import get
from specs.history.runinfo import RunInfo
from specs.plan.config import Config
from specs.verdicts.tally import Tally


def test_what_the_sieve_found_counts_only_where_the_clause_applies() -> None:
    """ORD-12 is decided within each queue before anybody asks for the group's mode."""
    examiner: Any = object.__new__(engine._Examiner)
    examiner.sums = {"ORD-12": engine.Sum(opportunities=3, violations=1)}
    for mode, expected in (("orderly", Tally(3, 1)), ("key_ordered", Tally(3, 1)), ("concurrent", Tally())):
        examiner.history = SimpleNamespace(info=RunInfo(run="r", config=Config(mode=mode)))
        assert examiner._tally(get("ORD-12")) == expected
