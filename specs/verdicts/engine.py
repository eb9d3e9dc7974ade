"""The engine `python`: `judge(history, profile, options) -> Verdict`, and its two halves.

A search makes many histories and one verdict: it examines each as it is made, and concludes once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from specs.clauses.catalogue import select
from specs.clauses.clause import Clause
from specs.history.store import History
from specs.profiles import Profile
from specs.verdicts.examine import examine
from specs.verdicts.tally import Examination
from specs.verdicts.verdict import Verdict, by_python, conclude


def judge(history: History, profile: Profile, options: Mapping[str, Any] | None = None) -> Verdict:
    """Judge a stored history with the Python judges.

    options: floor (opportunities below which a clause is not exercised, default 1), require_exercised (default
    False: a recorded history need not exercise everything), clauses (the ids of those to judge, by default all; who
    asks for a clause gets it judged of our own code on a foreign target too).
    """
    options = options or {}
    chosen = None if options.get("clauses") is None else select(options["clauses"])
    return conclude(
        examined(history, chosen),
        history.info,
        profile,
        floor=int(options.get("floor", 1)),
        require_exercised=bool(options.get("require_exercised", False)),
        clauses=chosen,
        ours_too=chosen is not None,
        tool=by_python(),
    )


def examined(history: History, clauses: Sequence[Clause] | None = None) -> Examination:
    """What the judges find in a stored history, before any profile says what counts."""
    return examine(history.rows(), history.info, clauses, why_cut=history.why_cut)
