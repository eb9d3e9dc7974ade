"""The engine `python`: `judge(history, profile, options) -> Verdict`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specs.history.store import History
from specs.profiles import Profile
from specs.verdicts.examine import examine
from specs.verdicts.verdict import Verdict, conclude


def judge(history: History, profile: Profile, options: Mapping[str, Any] | None = None) -> Verdict:
    """Judge a stored history with the Python judges.

    options: floor (opportunities below which a clause is not exercised, default 1), require_exercised (default
    False: a recorded history need not exercise everything).
    """
    options = options or {}
    examination = examine(history.rows(), history.info, why_cut=history.why_cut)
    return conclude(
        examination,
        history.info,
        profile,
        floor=int(options.get("floor", 1)),
        require_exercised=bool(options.get("require_exercised", False)),
        tool={"engine": "python"},
    )
