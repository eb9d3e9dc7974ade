"""The table of the track record: what counts as reproduced, and how a page is refreshed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

import inorder.evidence.track_record.__main__ as command
from inorder.evidence.track_record.__main__ import PAGE
from inorder.evidence.track_record.entries import ENTRIES, Entry, as_built, as_documented
from inorder.evidence.track_record.table import BEGIN, END, HEAD, Reproduction, refresh
from specs.clauses.catalogue import by_id
from specs.errors import TargetMisbehaved, UsageError
from specs.model.rules import RULES
from specs.profiles import load
from specs.verdicts.verdict import ClauseVerdict, Judged

ENTRY = ENTRIES[0]


def judged(verdict: ClauseVerdict) -> Judged:
    return Judged(
        "DLQ-7", "", "", verdict, "broker", (), 1, 1, int(verdict is ClauseVerdict.REFUTED)
    )


RED, GREEN, IDLE = map(
    judged, (ClauseVerdict.REFUTED, ClauseVerdict.UPHELD, ClauseVerdict.NOT_EXERCISED)
)


@pytest.mark.parametrize(
    ("red", "green", "reproduced"),
    [
        ([RED], [GREEN], True),
        ([IDLE, RED], [GREEN, GREEN], True),
        ([GREEN], [GREEN], False),
        ([RED], [RED], False),
        ([RED], [GREEN, IDLE], False),
        ([RED], [], False),
    ],
)
def test_red_at_least_once_and_green_each_time(
    red: list[Judged], green: list[Judged], reproduced: bool
) -> None:
    seen = Reproduction(ENTRY, red, green, "2026-11-21")
    assert seen.reproduced is reproduced
    assert (seen.wrong() == "") is reproduced


def test_a_row_tells_the_rate_and_the_date() -> None:
    line = Reproduction(ENTRY, [IDLE, RED], [GREEN, GREEN], "2026-11-21").line()
    assert "red 1 of 2, green 2 of 2" in line
    assert "2026-11-21" in line
    assert line.count("|") == HEAD[0].count("|")


def test_a_green_side_that_is_another_use_says_so() -> None:
    entry = replace(ENTRY, green_setting="used with care")
    assert (
        f"`{ENTRY.green}`, used with care |"
        in Reproduction(entry, [RED], [GREEN], "2026-11-21").line()
    )


def test_rows_that_were_not_run_again_stay_and_keep_the_order() -> None:
    page = f"before\n{BEGIN}\n{END}\nafter"
    page = refresh(page, ["one", "two"], {"two": "| two | old |"})
    page = refresh(page, ["one", "two"], {"one": "| one | new |"})
    assert page.splitlines() == [
        "before",
        BEGIN,
        *HEAD,
        "| one | new |",
        "| two | old |",
        END,
        "after",
    ]
    assert refresh(page, ["one", "two"], {}) == page


def test_a_page_without_a_table_is_refused() -> None:
    with pytest.raises(UsageError, match="no table"):
        refresh("nothing here", [], {})


def test_the_page_has_a_row_for_every_entry() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert refresh(text, [each.id for each in ENTRIES], {}) == text
    assert [each.id for each in ENTRIES if f"| {each.id} |" not in text] == []


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda each: each.id)
def test_an_entry_is_judged_by_a_clause_that_its_profile_claims(entry: Entry) -> None:
    assert (
        entry.judged_by in RULES or load(entry.profile).claim(entry.judged_by).status == "claimed"
    )
    assert entry.judged_by in RULES or entry.judged_by in by_id()
    assert entry.red in entry.command or entry.command.endswith(f" {entry.id}")


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda each: each.id)
def test_a_bug_is_claimed_as_documented_and_excused_as_built(entry: Entry) -> None:
    """Of a release that never promised it, both profiles say so, and its promise is the next release's."""
    built, documented = load(as_built(entry.red)), load(as_documented(entry.red))
    if entry.judged_by in RULES:
        assert (built.rules[entry.judged_by].status, documented.rules) == ("allowed", {})
        return
    claim = built.claim(entry.judged_by)
    assert (claim.source.startswith("docs/sources.md#"), bool(claim.reason)) == (True, True)
    if claim.status == "not_applicable":
        assert documented.claim(entry.judged_by) == claim
    else:
        assert (claim.status, documented.claim(entry.judged_by).status) == ("allowed", "claimed")
        assert entry.profile == as_documented(entry.red)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda each: each.id)
def test_the_sides_differ(entry: Entry) -> None:
    assert entry.red != entry.green or (entry.green_setting and entry.green_trial is not None)


def test_an_entry_that_cannot_be_played_is_a_sentence_and_the_next_one_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its row stays as it was, and the exit code says that something is missing."""
    page = tmp_path / "page.md"
    page.write_text(f"{BEGIN}\n| B-17 | old |\n{END}\n", encoding="utf-8")

    def reproduce(chosen: Entry, *_: object) -> Reproduction:
        if chosen.id == "B-17":
            raise TargetMisbehaved("The broker was given 90 s and did not start.")
        return Reproduction(chosen, [replace(RED, explanation="it broke")], [GREEN], "2026-11-21")

    monkeypatch.setattr(command, "reproduce", reproduce)
    monkeypatch.setattr(command, "keep_witness", lambda *_: None)
    done = CliRunner().invoke(command.main, ["B-17", "B-28", "--page", str(page)])
    assert (
        done.exit_code,
        "B-17 could not be played: The broker was given 90 s" in done.stderr,
    ) == (1, True)
    assert [
        line[:8] for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("| B")
    ] == [
        "| B-17 |",
        "| B-28 |",
    ]
