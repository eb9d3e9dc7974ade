"""Conformance statements: what is summed, what is refused, and what each form of it says."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest

from conformance.reports import statement_pages as pages
from conformance.reports import svg
from conformance.reports.schemas import schema
from conformance.reports.statement import STATEMENT_SCHEMA, Statement, state
from conformance.reports.view import VerdictView, view
from specs.errors import UsageError
from specs.profiles import Claim
from specs.verdicts.verdict import ClauseVerdict, Coverage, Ended, RunVerdict, Search, Verdict

Make = Callable[..., Verdict]
DAY = date(2026, 11, 23)
ONE_OWNER = """
    0ms   alice  locks    billing/orders/b0/3   ok
    10ms  bob    locks    billing/orders/b0/3   refused
"""


def again(run: VerdictView, seed: int, **more: Any) -> VerdictView:
    """The same system, another search."""
    return replace(run, seed=seed, run=f"run-{seed}", **more)


def clause(run: VerdictView, name: str, **changed: Any) -> VerdictView:
    """The run, with one of its clauses otherwise."""
    clauses = tuple(replace(c, **changed) if c.id == name else c for c in run.clauses)
    return replace(run, clauses=clauses)


def line(found: Statement, name: str) -> Any:
    return next(each for each in found.lines if each.clause.id == name)


def known(run: VerdictView, state_of: str, expires: str) -> VerdictView:
    entry = {
        "clause": "LSE-1", "finding": "two-owners", "reason": "sharded", "owner": "payments",
        "issue": "T-7", "expires": expires, "state": state_of,
    }  # fmt: skip
    return replace(run, raw={**run.raw, "baseline": {"known": [entry]}})


# ------------------------------------------------------------------------------------------- summing


def test_what_was_at_stake_is_added_up(upheld: VerdictView) -> None:
    """And held against the highest floor: two searches that are idle by themselves may exercise it together."""
    idle = {"verdict": ClauseVerdict.NOT_EXERCISED, "floor": 10, "reason": "too seldom"}
    one = clause(upheld, "LSE-1", opportunities=6, **idle)
    two = clause(again(upheld, 2), "LSE-1", opportunities=5, **idle)
    assert line(state([one], DAY), "LSE-1").verdict is ClauseVerdict.NOT_EXERCISED
    both = line(state([one, two], DAY), "LSE-1")
    assert (both.verdict, both.opportunities, both.floor) == (ClauseVerdict.UPHELD, 11, 10)
    assert both.reason == ""


def test_what_was_never_at_stake_is_not_stated_as_kept(upheld: VerdictView) -> None:
    """Though a floor of 0 calls it upheld; who set that floor did not want the run to be open for it."""
    run = clause(upheld, "LSE-1", opportunities=0, floor=0)
    met = tuple(replace(c, ok=True) if c.id == "MET-6" else c for c in run.met)
    run = clause(replace(run, met=met), "LSE-8", verdict=ClauseVerdict.UPHELD, opportunities=1)
    run = replace(
        run,
        clauses=tuple(
            replace(c, floor=0) if c.verdict is ClauseVerdict.NOT_EXERCISED else c
            for c in run.clauses
        ),
    )
    found = state([run], DAY)
    assert line(found, "LSE-1").verdict is ClauseVerdict.NOT_EXERCISED
    assert line(found, "LSE-1").reason == "never at stake"
    assert found.verdict is RunVerdict.UPHELD


def test_one_refutation_counts_for_all(upheld: VerdictView, refuted: VerdictView) -> None:
    """However many others keep it, with its evidence and its command."""
    broken = replace(refuted, target=upheld.target, replay="inorder replay runs/9", seed=9)
    found = state([again(upheld, 1), again(upheld, 2), broken], DAY)
    assert (found.verdict, found.exit_code) == (RunVerdict.REFUTED, 1)
    assert line(found, "LSE-1").replay == "inorder replay runs/9"
    assert line(found, "LSE-1").happened
    assert line(found, "LSE-1").violations == 1


def test_a_run_that_cannot_be_trusted_makes_all_inadmissible(upheld: VerdictView) -> None:
    met = tuple(replace(c, ok=False) if c.id == "MET-1" else c for c in upheld.met)
    found = state([upheld, again(upheld, 2, met=met)], DAY)
    assert (found.verdict, found.exit_code) == (RunVerdict.INADMISSIBLE, 70)
    assert pages.markdown(found).startswith("# INADMISSIBLE: ")


def test_a_search_that_was_cut_short_is_told(upheld: VerdictView) -> None:
    cut = again(upheld, 2, search=Search(3, 150, Ended.INTERRUPTED))
    assert "upheld (cut short)" in pages.markdown(state([upheld, cut], DAY))
    assert state([cut], DAY).to_json()["runs"][0]["cut_short"] is True


def test_a_check_that_failed_in_one_run_leaves_all_open(upheld: VerdictView) -> None:
    met = tuple(
        replace(c, ok=False, detail="pause c1") if c.id == "MET-4" else c for c in upheld.met
    )
    found = state([upheld, again(upheld, 2, met=met)], DAY)
    assert found.verdict is RunVerdict.INCONCLUSIVE
    assert "checks of the run failed (MET-4)" in found.sentence
    assert "pause c1" in pages.markdown(found)


# ------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"target": "rocketmq:host:9876"}, "different targets"),
        ({"profile": "rocketmq-5-orderly"}, "different profiles"),
        ({"parties": {"broker": "Apache RocketMQ 5.4.0"}}, "different systems"),
        ({}, "the same run"),
    ],
)
def test_what_can_not_be_one_statement_is_refused(
    upheld: VerdictView, changed: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError, match=words) as error:
        state([upheld, replace(upheld, **changed)], DAY)
    assert error.value.exit_code == 64
    assert "\n" not in str(error.value)


def test_a_copy_of_a_run_elsewhere_is_the_same_run(upheld: VerdictView, tmp_path: Any) -> None:
    with pytest.raises(UsageError, match="the same run"):
        state([upheld, replace(upheld, folder=tmp_path)], DAY)


# ------------------------------------------------------------------------------------------ allowances


def test_an_allowance_of_the_profile_has_its_source_and_reason(allowed: VerdictView) -> None:
    found = line(state([allowed], DAY), "LSE-1")
    assert found.verdict is ClauseVerdict.ALLOWED
    assert [(each.by, each.reason) for each in found.allowed] == [
        ("profile", "this version is known for it")
    ]


def test_an_allowance_of_a_baseline_has_its_owner_and_last_day(allowed: VerdictView) -> None:
    run = clause(known(allowed, "seen", "2026-11-23"), "LSE-1", findings=("two-owners", "another"))
    told = line(state([run], DAY), "LSE-1").allowed
    assert [(each.by, each.findings) for each in told] == [
        ("baseline", ("two-owners",)),
        ("profile", ("another",)),
    ]
    assert (told[0].owner, told[0].issue, told[0].expires) == ("payments", "T-7", "2026-11-23")
    assert "known until 2026-11-23 (payments, T-7): sharded" in pages.markdown(state([run], DAY))


def test_what_is_let_pass_until_yesterday_gets_no_statement(allowed: VerdictView) -> None:
    """On its last day it does; an entry that let nothing pass is nobody's business."""
    run = known(allowed, "seen", "2026-11-23")
    state([run], DAY)
    with pytest.raises(UsageError, match="until 2026-11-23, which is over on 2026-11-24"):
        state([run], date(2026, 11, 24))
    state([known(allowed, "not_seen", "2026-11-01")], DAY)


# --------------------------------------------------------------------------------------- what it says


@pytest.fixture
def searched(upheld: VerdictView) -> VerdictView:
    run = replace(upheld, target="reference", profile="reference", coverage=Coverage(9, 150, 0))
    return replace(run, tool={"inorder": "0.1.0", "code": "0123456789abcdef", "engine": "python"})


def test_the_data_is_of_its_schema(
    searched: VerdictView, refuted: VerdictView, allowed: VerdictView, assuming: VerdictView
) -> None:
    for run in (searched, refuted, allowed, assuming):
        jsonschema.validate(state([run], DAY).to_json(), schema(STATEMENT_SCHEMA))


def test_it_names_system_tool_code_and_day(searched: VerdictView) -> None:
    data = state([searched, again(searched, 2)], DAY).to_json()
    assert data["date"] == "2026-11-23"
    assert data["system"]["parties"]["broker"] == "inorder mutant two-owners"
    assert data["tool"] == {"inorder": "0.1.0", "code": "0123456789abcdef", "engine": "python"}
    assert [each["seed"] for each in data["runs"]] == [7319, 2]
    assert len(data["written_by"]["code"]) == 16
    old = state([replace(searched, tool={})], DAY).to_json()
    assert old["tool"]["code"] == "not told"


def test_an_upheld_clause_says_how_good_that_is(searched: VerdictView) -> None:
    """By the bugs that such searches find in all runs together, and by the rate that would have shown."""
    both = state([clause(searched, "LSE-1", opportunities=100), again(searched, 2)], DAY)
    told = next(each for each in both.to_json()["clauses"] if each["id"] == "LSE-1")
    assert told["rate_seen"] == pytest.approx(0.0292, abs=1e-4)
    such = told["planted"]["in_such_searches"]
    assert such["chance"]["runs"] == 300
    assert such["bugs"] >= such["found"] >= 1
    written = pages.markdown(both)
    assert "| one in 34 |" in written
    assert f"| {such['found']} of {such['bugs']}, the slowest after {such['slowest']} |" in written


def test_elsewhere_only_the_rate_is_told(upheld: VerdictView) -> None:
    """A system that is no simulated cluster: the bugs were not searched for there."""
    told = state([upheld], DAY).to_json()
    lease = next(each for each in told["clauses"] if each["id"] == "LSE-1")
    assert lease["planted"]["in_such_searches"] is None
    assert lease["planted"]["bugs"] >= 1
    assert lease["rate_seen"] is not None


def test_the_first_line_says_the_verdict(searched: VerdictView, refuted: VerdictView) -> None:
    first = pages.markdown(state([searched], DAY)).splitlines()[0]
    assert first == "# UPHELD: reference under the profile reference"
    first = pages.markdown(state([refuted], DAY)).splitlines()[0]
    assert first == "# REFUTED: mutant:two-owners under the profile as-documented"


def test_what_is_not_said_is_said(assuming: VerdictView, allowed: VerdictView) -> None:
    """Each group with its reason; no clause is missing."""
    written = pages.markdown(state([assuming], DAY))
    assert "## Not recorded" in written
    written = pages.markdown(state([allowed], DAY))
    assert "- ORD-2: the mode has no order." in written
    for each in allowed.clauses:
        assert each.id in written


def test_a_clause_that_a_specific_one_tells_is_not_told_twice(refuted: VerdictView) -> None:
    run = clause(refuted, "LSE-1", reason="shown as LSE-2")
    written = pages.markdown(state([run], DAY))
    assert "## Refuted: LSE-1" not in written
    assert "Broken by the same events: LSE-1." in written


class _Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_has_no_script_and_escapes_what_a_system_named(
    refuted: VerdictView, make_verdict: Make
) -> None:
    evil = replace(refuted, target="<script>alert(1)</script>", parties={"broker": "a\u202eb|c"})
    page = _Page(pages.html(state([evil], DAY)))
    assert "script" not in page.tags
    assert "<script>alert(1)</script>" in page.text
    assert "a\\u202eb|c" in page.text
    written = pages.markdown(state([evil], DAY))
    assert "<script>" not in written
    claims = {"LSE-1": Claim("allowed", "measured", "because | <b>")}
    told = view(make_verdict(ONE_OWNER, claims))
    assert pages.html(state([told], DAY))


def test_the_same_runs_give_the_same_bytes(searched: VerdictView) -> None:
    runs = [searched, again(searched, 2)]
    assert pages.html(state(runs, DAY)) == pages.html(state(runs, DAY))
    assert json.dumps(state(runs, DAY).to_json()) == json.dumps(state(runs, DAY).to_json())


def test_a_badge_says_the_word_beside_its_colour(
    searched: VerdictView, refuted: VerdictView
) -> None:
    red = state([refuted], DAY)
    assert pages.endpoint(red) == {
        "schemaVersion": 1,
        "label": "message order",
        "message": "refuted, 1 promise",
        "color": "red",
        "isError": True,
    }
    drawn = ElementTree.fromstring(svg.render(pages.badge(red)))
    assert drawn.get("aria-label") == "message order: refuted, 1 promise"
    assert pages.endpoint(state([searched], DAY))["isError"] is False
