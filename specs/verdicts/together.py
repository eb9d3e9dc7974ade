"""One verdict of several searches of the same target under the same profile, in the order in which they are given.

Each search was asked for its share of the floor, so the shares' sum is the floor of all. A clause is refuted if one of
them refutes it, and shows the first one's evidence; it was at stake as often as in all of them together. A check of
the run fails if it failed in one of them.
"""

from collections.abc import Sequence
from dataclasses import replace

from specs.verdicts.tally import Check
from specs.verdicts.verdict import ClauseVerdict, Judged, Verdict, exercised_check, run_verdict

_DECIDING = (ClauseVerdict.REFUTED, ClauseVerdict.POSSIBLE, ClauseVerdict.ALLOWED)
"""One search that says so says it for all; the first of these first."""
_COUNTED = (ClauseVerdict.UPHELD, ClauseVerdict.NOT_EXERCISED)
"""What their opportunities together decide."""


def together(verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict of all of them: who was judged, and the run's own words, are the first one's.

    Raises ValueError where they do not judge the same clauses.
    """
    first = verdicts[0]
    ids = {tuple(sorted(each.id for each in verdict.clauses)) for verdict in verdicts}
    if len(ids) > 1:
        raise ValueError("the verdicts judge different clauses")
    by_id = [{each.id: each for each in verdict.clauses} for verdict in verdicts]
    judged = [_one([clauses[each.id] for clauses in by_id]) for each in first.clauses]
    met = _checks(verdicts, judged)
    return replace(
        first,
        verdict=run_verdict(judged, met),
        clauses=tuple(judged),
        met=met,
        faults=tuple(fault for verdict in verdicts for fault in verdict.faults),
        cut=tuple(why for verdict in verdicts for why in verdict.cut),
    )


def _one(found: Sequence[Judged]) -> Judged:
    """A clause in all verdicts."""
    opportunities = sum(each.opportunities for each in found)
    floor = sum(each.floor for each in found)
    shown = _shown(found)
    if shown.verdict in _COUNTED:
        enough = opportunities >= floor
        shown = replace(
            shown,
            verdict=ClauseVerdict.UPHELD if enough else ClauseVerdict.NOT_EXERCISED,
            reason="" if enough else f"at stake {opportunities} times, the floor is {floor}",
        )
    return replace(
        shown,
        opportunities=opportunities,
        floor=floor,
        violations=sum(each.violations for each in found),
        findings=tuple(dict.fromkeys(name for each in found for name in each.findings)),
    )


def _shown(found: Sequence[Judged]) -> Judged:
    """Whose word and evidence count."""
    for words in ((word,) for word in _DECIDING):
        for each in found:
            if each.verdict in words:
                return each
    for each in found:
        if each.verdict in _COUNTED:
            return each
    return found[0]


def _checks(verdicts: Sequence[Verdict], judged: Sequence[Judged]) -> tuple[Check, ...]:
    found: dict[str, list[Check]] = {}
    for verdict in verdicts:
        for check in verdict.met:
            found.setdefault(check.id, []).append(check)
    return tuple(_check(checks, judged) for checks in found.values())


def _check(found: Sequence[Check], judged: Sequence[Judged]) -> Check:
    """One that failed, with all that failed of it; else one that was made."""
    made = [check for check in found if check.ok is not None]
    if not made:
        return found[0]
    exercised = exercised_check(judged)
    if found[0].id == exercised.id:
        return exercised
    failed = [check for check in made if check.ok is False]
    if not failed:
        return made[0]
    return replace(failed[0], detail="; ".join(dict.fromkeys(check.detail for check in failed)))
