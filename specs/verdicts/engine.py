"""The engine `python`: `judge(history, profile, options) -> Verdict`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specs.clauses.catalogue import select
from specs.history.store import History
from specs.profiles import Profile
from specs.verdicts.examine import examine
from specs.verdicts.verdict import Verdict, conclude


def judge(history: History, profile: Profile, options: Mapping[str, Any] | None = None) -> Verdict:
    """Judge a stored history with the Python judges.

    options: floor (opportunities below which a clause is not exercised, default 1), require_exercised (default
    False: a recorded history need not exercise everything), clauses (the ids of those to judge, by default all; who
    asks for a clause gets it judged of our own code on a foreign target too).
    """
    options = options or {}
    chosen = select(options["clauses"]) if options.get("clauses") else None
    examination = examine(history.rows(), history.info, chosen, why_cut=history.why_cut)
    return conclude(
        examination,
        history.info,
        profile,
        floor=int(options.get("floor", 1)),
        require_exercised=bool(options.get("require_exercised", False)),
        clauses=chosen,
        ours_too=chosen is not None,
        tool={"engine": "python"},
    )
