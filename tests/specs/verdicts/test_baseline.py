"""A baseline lets pass what it names, until its day, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from specs.clauses.catalogue import get
from specs.errors import SpecError
from specs.history.text import parse_history
from specs.model.rules import RULES
from specs.profiles import Claim, Profile
from specs.verdicts.baseline import read_baseline
from specs.verdicts.examine import examine
from specs.verdicts.verdict import ClauseVerdict, RunVerdict, Verdict, conclude

ENTRY = """
[[known]]
clause = "LSE-1"
finding = "{finding}"
reason = "the lock table is sharded"
owner = "payments"
issue = "https://tracker.example/7"
expires = {expires}
"""
TODAY = date(2027, 3, 31)
TWO_OWNERS = get("LSE-1").shortest_violation
ONE_OWNER = """
0ms..10ms  alice  locks  billing/orders/b0/3   ok
5ms..15ms  bob    locks  billing/orders/b0/3   refused
"""
CLAIMED = Claim("claimed", "a test")
FINDING = get("LSE-1").findings[0]


def judged(
    tmp_path: Path, text: str, baseline: str, today: date = TODAY, claim: Claim = CLAIMED
) -> Verdict:
    """The history's verdict under a profile that says `claim` of LSE-1, and the baseline's."""
    path = tmp_path / "baseline.toml"
    path.write_text(baseline, encoding="utf-8")
    known = read_baseline(path, today)
    profile = known.under(Profile("mine", "mine", {"LSE-1": claim}))
    info, rows = parse_history(text)
    clauses = (get("LSE-1"),)
    verdict = conclude(
        examine(rows, info, clauses=clauses), info, profile, clauses=clauses, floor=1
    )
    assert verdict.baseline is None
    (entry,) = known.told(verdict)["known"]
    assert entry["clause"] == "LSE-1"
    return replace(verdict, baseline=known.told(verdict))


def state(verdict: Verdict) -> str:
    assert verdict.baseline is not None
    return str(verdict.baseline["known"][0]["state"])


def word(verdict: Verdict) -> ClauseVerdict:
    return verdict.clauses[0].verdict


def entry(finding: str = FINDING, expires: str = "2027-03-31") -> str:
    return ENTRY.format(finding=finding, expires=expires)


def test_what_is_known_is_allowed_to_the_last_day(tmp_path: Path) -> None:
    verdict = judged(tmp_path, TWO_OWNERS, entry())
    assert (word(verdict), state(verdict)) == (ClauseVerdict.ALLOWED, "seen")
    assert verdict.verdict is not RunVerdict.REFUTED
    reason = verdict.clauses[0].reason
    assert "until 2027-03-31 (payments, https://tracker.example/7)" in reason
    assert "the lock table is sharded" in reason


def test_the_day_after_it_is_red_again(tmp_path: Path) -> None:
    verdict = judged(tmp_path, TWO_OWNERS, entry(), date(2027, 4, 1))
    assert (word(verdict), state(verdict)) == (ClauseVerdict.REFUTED, "expired")
    assert verdict.verdict is RunVerdict.REFUTED


def test_what_could_have_been_seen_and_was_not_is_told(tmp_path: Path) -> None:
    verdict = judged(tmp_path, ONE_OWNER, entry())
    assert (word(verdict), state(verdict)) == (ClauseVerdict.UPHELD, "not_seen")


def test_where_there_was_no_occasion_nothing_is_told(tmp_path: Path) -> None:
    verdict = judged(tmp_path, "0ms alice joins billing\n", entry())
    assert state(verdict) == "not_told"


def test_a_profile_that_does_not_claim_the_clause_stays_as_it_is(tmp_path: Path) -> None:
    mute = Claim("not_applicable", "", "it has no leases")
    verdict = judged(tmp_path, TWO_OWNERS, entry(), claim=mute)
    assert (word(verdict), state(verdict)) == (ClauseVerdict.NOT_CLAIMED, "not_told")


def test_another_finding_of_the_clause_stays_red(tmp_path: Path) -> None:
    """CMT-5 has two: who commits in the middle of its work, and who does while it leaves."""
    path = tmp_path / "baseline.toml"
    path.write_text(entry("committed-while-leaving").replace("LSE-1", "CMT-5"), encoding="utf-8")
    known = read_baseline(path, TODAY)
    clause = get("CMT-5")
    profile = known.under(Profile("mine", "mine", {"CMT-5": Claim("claimed", "a test")}))
    info, rows = parse_history(clause.shortest_violation)
    verdict = conclude(examine(rows, info, clauses=(clause,)), info, profile, clauses=(clause,))
    assert word(verdict) is ClauseVerdict.REFUTED
    assert verdict.clauses[0].findings == ("committed-afterwards",)


def test_what_the_profile_allows_itself_stays_allowed(tmp_path: Path) -> None:
    path = tmp_path / "baseline.toml"
    path.write_text(entry("committed-while-leaving").replace("LSE-1", "CMT-5"), encoding="utf-8")
    own = Claim("allowed", "a test", "as released", ("committed-afterwards",))
    claim = read_baseline(path, TODAY).under(Profile("mine", "mine", {"CMT-5": own})).claim("CMT-5")
    assert claim.findings == ("committed-afterwards", "committed-while-leaving")
    assert claim.reason.startswith("as released; known until")


def test_a_wire_rule_is_named_without_a_finding(tmp_path: Path) -> None:
    rule = next(iter(RULES))
    path = tmp_path / "baseline.toml"
    text = entry().replace("LSE-1", rule).replace(f'finding = "{FINDING}"\n', "")
    path.write_text(text, encoding="utf-8")
    profile = read_baseline(path, TODAY).under(Profile("mine", "mine", {}))
    assert profile.rules[rule].status == "allowed"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (entry("two-at-once"), "LSE-1 has no finding two-at-once; it has"),
        (entry().replace("LSE-1", "LSE-99"), "there is no clause LSE-99"),
        (entry(expires='"soon"'), "must be a day, as 2027-03-31"),
        (entry(expires="2027-03-31T10:00:00Z"), "must be a day, as 2027-03-31"),
        (entry().replace('owner = "payments"\n', ""), "the field 'owner' is missing"),
        (entry().replace('"payments"', '" "'), "say whose it is"),
        (entry() + entry(), "has two entries for LSE-1"),
        (entry().replace("owner", "ownr"), "unknown field 'ownr'; did you mean 'owner'?"),
        (
            entry().replace(f'finding = "{FINDING}"\n', ""),
            "the field 'finding' is missing; LSE-1 has",
        ),
        ("[[known]", "is no TOML"),
    ],
)
def test_a_wrong_file_gets_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "baseline.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SpecError) as raised:
        read_baseline(path, TODAY)
    assert sentence in str(raised.value)
    assert "baseline.toml" in str(raised.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="there is no baseline"):
        read_baseline(tmp_path / "none.toml", TODAY)
