"""The engine `python`: `judge(history, profile, options) -> Verdict`, and its two halves.

A search makes many histories and one verdict: it examines each as it is made, and concludes once. From what was found
to a verdict there is a way for each of three questions: what an engine is asked about a history (`concluded`), what a
run comes to by itself (`of_one_run`), and what all runs of a search come to (`of_a_search`).
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from specs.clauses.catalogue import select
from specs.clauses.clause import Clause
from specs.history.runinfo import RunInfo
from specs.history.store import History
from specs.plan.plan import Plan
from specs.plan.traits import Trait
from specs.profiles import Profile
from specs.verdicts.examine import examine
from specs.verdicts.reach import out_of_reach
from specs.verdicts.tally import Check, Examination
from specs.verdicts.verdict import Verdict, by_python, conclude, with_exposures


def judge(history: History, profile: Profile, options: Mapping[str, Any] | None = None) -> Verdict:
    """Judge a stored history with the Python judges.

    options: floor (opportunities below which a clause is not exercised, default 1), require_exercised (default
    False: a recorded history need not exercise everything), clauses (the ids of those to judge, by default all; who
    asks for a clause gets it judged of our own code on a foreign target too).
    """
    options = options or {}
    chosen = chosen_by(options)
    found = examined(history, chosen)
    verdict = concluded(found, history.info, profile, options, by_python())
    return with_exposures(verdict, history.rows()) if found.clock_stepped else verdict


def chosen_by(options: Mapping[str, Any]) -> tuple[Clause, ...] | None:
    """The clauses that an engine is asked for; None for all."""
    return None if options.get("clauses") is None else select(options["clauses"])


def concluded(
    examination: Examination,
    info: RunInfo,
    profile: Profile,
    options: Mapping[str, Any],
    tool: Mapping[str, str],
) -> Verdict:
    """What an engine's examination comes to, by the options that `judge` says."""
    chosen = chosen_by(options)
    return conclude(
        examination,
        info,
        profile,
        floor=int(options.get("floor", 1)),
        require_exercised=bool(options.get("require_exercised", False)),
        clauses=chosen,
        ours_too=chosen is not None,
        tool=tool,
    )


def of_one_run(
    examination: Examination,
    info: RunInfo,
    profile: Profile,
    *,
    more: Sequence[Check] = (),
    ours_too: bool = False,
    tool: Mapping[str, str] | None = None,
) -> Verdict:
    """What a run comes to by itself: nothing that it did not put at stake is held against it."""
    return conclude(
        examination,
        info,
        profile,
        require_exercised=False,
        more=more,
        ours_too=ours_too,
        tool=by_python() if tool is None else tool,
    )


def of_a_search(
    examination: Examination,
    info: RunInfo,
    profile: Profile,
    *,
    floor: int,
    plans: Sequence[Plan] | None = None,
    beside: Collection[Trait] = (),
    more: Sequence[Check] = (),
    ours_too: bool = False,
    require_exercised: bool = True,
    tool: Mapping[str, str] | None = None,
) -> Verdict:
    """What all runs of a search come to together. examination: of all of them.

    plans: what the runs were of, where what they can't reach is not claimed (`specs.verdicts.reach`); beside: what they
    had besides. more: the checks of the search itself.
    """
    return conclude(
        examination,
        info,
        profile,
        floor=floor,
        require_exercised=require_exercised,
        out_of_reach=None if plans is None else out_of_reach(plans, floor=floor, beside=beside),
        more=more,
        ours_too=ours_too,
        tool=by_python() if tool is None else tool,
    )


def examined(history: History, clauses: Sequence[Clause] | None = None) -> Examination:
    """What the judges find in a stored history, before any profile says what counts."""
    return examine(history.rows(), history.info, clauses, why_cut=history.why_cut)
