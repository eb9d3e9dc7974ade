"""The report for people: a table, the story of each failure, one closing sentence."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conformance.reports import text
from conformance.reports.incident import around
from conformance.reports.view import CheckView, VerdictView
from specs.history.text import parse_history
from specs.verdicts.verdict import RunVerdict

STORY = """\
REFUTED  LSE-1 one owner at a time                                 seed 7319   2 events of 1,204,331
  promised:   No two clients hold the lease of one lane at the same time.
  owed by:    the broker inorder mutant two-owners
  happened:   bob was granted billing/orders/b0/3 at 59.999 s, 59.999 s after alice had been granted
              it at 0.000 s; alice had not given it back and its grant had not run out.
  finding:    two-owners
  timeline:           0.000 s  59.999 s
              alice │ lock ✓
              bob   │          lock ✓
  events:     0ms      alice  locks  billing/orders/b0/3  ok
              59999ms  bob    locks  billing/orders/b0/3  ok
  how often:  broken once; at stake once
  clause:     docs/clauses/LSE-1.md
  source:     docs/sources.md#lock-table
  replay:     inorder replay runs/7319"""


def test_a_failure_tells_its_whole_story(refuted: VerdictView) -> None:
    """Promise, keeper, events, drawing, source and replay: nobody has to look at code."""
    assert text.failure(refuted, refuted.failures[0], width=100) == STORY


def test_a_story_keeps_to_the_width(refuted: VerdictView) -> None:
    """Prose wraps under itself."""
    story = text.failure(refuted, refuted.failures[0], width=70).splitlines()
    assert (
        max(len(line) for line in story if not line.lstrip().startswith(("REFUTED", "replay")))
        <= 70
    )


@pytest.mark.parametrize("width", [80, 100, 160])
def test_the_report_fits_the_paper(refuted: VerdictView, width: int) -> None:
    """The table shrinks with the terminal; no line is wider."""
    printed = text.render(text.report(refuted, width=width), width=width)
    assert max(len(line) for line in printed.splitlines()) <= width
    assert "LSE-1" in printed
    assert "REFUTED" in printed


def test_the_closing_sentence_counts_by_verdict(refuted: VerdictView) -> None:
    """One sentence says what came out, of what, under which profile."""
    sentence = text.closing(refuted)
    assert sentence.startswith(
        "REFUTED  mutant:two-owners under as-documented: 0 upheld, 1 refuted, "
    )


def test_why_a_history_can_not_be_trusted_is_said_first_and_in_the_closing_sentence(
    upheld: VerdictView,
) -> None:
    """Whatever was found in it."""
    met = (CheckView("MET-1", "the history can be trusted", False, "seq 4 does not follow seq 7"),)
    verdict = replace(upheld, verdict=RunVerdict.INADMISSIBLE, met=met)
    why = "the history can't be trusted: seq 4 does not follow seq 7"
    printed = text.render(text.report(verdict, width=200), width=200)
    assert printed.startswith(f"INADMISSIBLE  {why}\n")
    last = printed.splitlines()[-1]
    assert last.startswith(
        f"INADMISSIBLE  {verdict.target} under {verdict.profile}: {why}; 1 upheld"
    )


def test_what_a_refutation_takes_for_granted_is_told(assuming: VerdictView) -> None:
    """The clause stays in the table and its story is told: an assumption is no reason to step aside."""
    (clause,) = assuming.failures
    assert clause.id == "LSE-1"
    assert (
        "  note:       assuming that the history would tell clock step, crash, unlock."
        in text.failure(assuming, clause)
    )
    printed = text.render(text.report(assuming, width=200), width=200)
    assert "REFUTED  LSE-1" in printed
    assert "not recorded   CMT-1" in printed


def test_the_closing_sentence_counts_what_is_not_recorded(assuming: VerdictView) -> None:
    assert text.closing(assuming).endswith(
        "0 upheld, 1 refuted, 1 not exercised, 18 not recorded, 1 not claimed"
    )


def test_the_numbers_of_the_closing_sentence_are_taken_apart(assuming: VerdictView) -> None:
    """What the product does not promise is not what a driver can't tell; each has its number, before that sentence."""
    *_, told, closing = text.render(text.report(assuming, width=160), width=160).splitlines()
    assert closing == text.closing(assuming)
    assert told == (
        "not judged     1 with a premise that such a run does not meet; 18 in need of rows that nobody tells; "
        "1 never at stake"
    )


def test_an_allowed_clause_shows_its_reason_and_no_story(allowed: VerdictView) -> None:
    """The profile knows the deviation: it is in the table, and nothing is red."""
    printed = text.render(text.report(allowed, width=200), width=200)
    assert "this version is known for it" in printed
    assert "REFUTED" not in printed


def test_clauses_that_are_not_claimed_share_a_line_per_reason(allowed: VerdictView) -> None:
    """They are named, not tabulated."""
    printed = text.render(text.report(allowed, width=100), width=100)
    assert "not claimed    ORD-2: the mode has no order" in printed


def test_names_with_brackets_are_printed_as_they_are(refuted: VerdictView) -> None:
    """Nothing that a target brings is taken for markup."""
    from dataclasses import replace

    odd = replace(refuted.failures[0], explanation="[bold]alice[/bold] met [/] bob")
    changed = replace(refuted, clauses=(odd,))
    assert "[bold]alice[/bold] met [/] bob." in text.render(
        text.report(changed, width=100), width=100
    )


def test_a_restarted_client_has_its_own_name_in_the_events() -> None:
    """Two clients of one process are two parties."""
    _info, rows = parse_history("0ms  c1  locks  billing/orders/b0/3  ok")
    renamed = [row._replace(client_id="c1.2") for row in rows]
    assert "c1.2" in text.events(renamed)


def test_what_befell_the_parties_is_context_and_what_befell_others_is_not() -> None:
    """Only pauses, crashes and faults in the time of the witness, of its own parties."""
    _info, rows = parse_history(
        """
        0ms        alice  locks    billing/orders/b0/3  ok
        1ms..5ms   alice  pauses   -
        2ms        zoe    crashes  -
        10ms       bob    locks    billing/orders/b0/3  ok
        20ms       bob    crashes  -
        """
    )
    witness = [rows[0], rows[3]]
    assert [row.client_id for row in around(witness, rows[1:3] + rows[4:])] == ["alice"]
