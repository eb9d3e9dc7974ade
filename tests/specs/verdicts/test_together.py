"""Several searches' verdicts are one: the first refutation shows its evidence, opportunities and floors add up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specs.clauses.catalogue import by_id
from specs.history.runinfo import RunInfo
from specs.profiles import load
from specs.verdicts.tally import Check, Examination, Found, Tally
from specs.verdicts.together import together
from specs.verdicts.verdict import ClauseVerdict, RunVerdict, Verdict, conclude

CLAUSE = by_id()["LSE-8"]
OTHER = by_id()["ORD-1"]
PROFILE = load("reference")
INFO = RunInfo("a", seed=1)


def verdict(times: int, floor: int, *, broken: str = "", **more: object) -> Verdict:
    """Of a search in which both clauses were at stake so often; broken: how the one was refuted, in words."""
    found = {broken: Found(1)} if broken else {}
    tallies = {CLAUSE.id: Tally(times, found), OTHER.id: Tally(times)}
    examination = Examination(tallies)
    made = conclude(examination, INFO, PROFILE, floor=floor, clauses=(CLAUSE, OTHER))
    first = replace(made.clauses[0], explanation=broken)
    made = replace(made, clauses=(first, made.clauses[1]))
    return replace(made, **more)  # type: ignore[arg-type]


def of(whole: Verdict, clause: str) -> tuple[ClauseVerdict, int, int]:
    judged = next(each for each in whole.clauses if each.id == clause)
    return judged.verdict, judged.opportunities, judged.floor


def test_what_was_at_stake_too_seldom_in_one_is_upheld_by_all() -> None:
    whole = together([verdict(3, 5), verdict(7, 5)])
    assert of(whole, CLAUSE.id) == (ClauseVerdict.UPHELD, 10, 10)
    assert whole.verdict is RunVerdict.UPHELD
    assert all(check.ok is not False for check in whole.met)


def test_what_was_at_stake_too_seldom_in_all_is_not_exercised() -> None:
    whole = together([verdict(3, 5), verdict(6, 5)])
    assert of(whole, CLAUSE.id) == (ClauseVerdict.NOT_EXERCISED, 9, 10)
    assert whole.verdict is RunVerdict.INCONCLUSIVE
    assert "9 times, the floor is 10" in whole.clauses[0].reason
    met = next(check for check in whole.met if check.id == "MET-6")
    assert (met.ok, met.detail) == (False, f"{CLAUSE.id}, {OTHER.id}")


def test_one_refutation_refutes_and_the_first_one_s_is_shown() -> None:
    whole = together([verdict(9, 5), verdict(9, 5, broken="b"), verdict(9, 5, broken="c")])
    judged = whole.clauses[0]
    assert (judged.verdict, judged.explanation, judged.violations) == (
        ClauseVerdict.REFUTED,
        "b",
        2,
    )
    assert judged.findings == ("b", "c")
    assert (of(whole, OTHER.id)[0], whole.verdict) == (ClauseVerdict.UPHELD, RunVerdict.REFUTED)


def test_what_only_one_of_them_claims_is_judged_by_that_one() -> None:
    first = verdict(9, 5)
    unclaimed = replace(first.clauses[0], verdict=ClauseVerdict.NOT_CLAIMED, reason="no half")
    whole = together([replace(first, clauses=(unclaimed, first.clauses[1])), verdict(9, 5)])
    assert of(whole, CLAUSE.id) == (ClauseVerdict.UPHELD, 18, 10)


def test_a_check_that_failed_in_one_failed() -> None:
    torn = Check("MET-1", "the history can be trusted", False, "torn")
    cut = Check("MET-9", "the search was not cut short", False, "Ctrl-C")
    first = verdict(9, 5)
    met = (torn, *first.met[1:], cut)
    whole = together([first, replace(first, met=met, cut=("c1",), faults=(("crash c1", True),))])
    assert whole.verdict is RunVerdict.INADMISSIBLE
    assert torn in whole.met
    assert cut in whole.met
    assert (whole.cut, whole.faults) == (("c1",), (("crash c1", True),))


def test_verdicts_of_other_clauses_are_not_put_together() -> None:
    first = verdict(9, 5)
    with pytest.raises(ValueError, match="different clauses"):
        together([first, replace(first, clauses=first.clauses[:1])])
