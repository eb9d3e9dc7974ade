"""The table of the track record: what counts as reproduced, and how a page is refreshed."""

from __future__ import annotations

import json
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
from specs.history.row import make_row
from specs.model.rules import RULES
from specs.profiles import load
from specs.verdicts.verdict import ClauseVerdict, Judged
from specs.vocabulary import Kind, Level, Outcome

ENTRY = ENTRIES[0]


def judged(verdict: ClauseVerdict) -> Judged:
    return Judged(
        "DLQ-7", "", "", verdict, "broker", (), 1, 1, int(verdict is ClauseVerdict.REFUTED)
    )


WITNESS = (
    make_row(
        run="r", seq_begin=1, seq_end=2, op_id=1, kind=Kind.COMMIT, level=Level.CLIENT, process="p",
        outcome=Outcome.OK, started_us=1, ended_us=2, clock="host", value=7,
    ),
)  # fmt: skip
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
    """Of a release that never promised it, both profiles say so, and its promise is the next release's.

    A system whose profile excuses no release has one for all of them, and promises it in so many words.
    """
    built, documented = load(as_built(entry.red)), load(as_documented(entry.red))
    if entry.judged_by in RULES:
        assert (built.rules[entry.judged_by].status, documented.rules) == ("allowed", {})
        return
    claim = built.claim(entry.judged_by)
    if built == documented:
        assert (claim.status, claim.source.startswith("docs/sources.md#")) == ("claimed", True)
        assert entry.profile == as_documented(entry.red) == as_documented(entry.green)
        return
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


def test_an_entry_that_was_reproduced_is_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told again with the date of its run; one that failed is tried again, one that is left is said to be."""
    page, out = tmp_path / "page.md", tmp_path / "out"
    page.write_text(f"{BEGIN}\n{END}\n", encoding="utf-8")
    failing, asked = ["B-17"], list[str]()

    def reproduce(chosen: Entry, _: int, folder: Path, say: object) -> Reproduction:
        asked.append(chosen.id)
        (folder / chosen.id).mkdir(parents=True)
        if chosen.id in failing:
            raise TargetMisbehaved("The broker did not start.")
        red = replace(RED, explanation="it broke", implementations=("a", "b"), witness=WITNESS)
        return Reproduction(chosen, [red], [GREEN], "2026-11-21")

    monkeypatch.setattr(command, "reproduce", reproduce)
    monkeypatch.setattr(command, "keep_witness", lambda *_: None)
    words = ["B-17", "B-28", "--page", str(page), "--out", str(out)]
    assert CliRunner().invoke(command.main, words).exit_code == 1
    failing.clear()
    asked.clear()
    page.write_text(f"{BEGIN}\n{END}\n", encoding="utf-8")
    again = CliRunner().invoke(command.main, words)
    assert (again.exit_code, asked) == (0, ["B-17"])
    assert page.read_text(encoding="utf-8").count("| red 1 of 1, green 1 of 1 | 2026-11-21 |") == 2
    told = (out / command.PICTURE).read_text(encoding="utf-8")
    assert "refuted 1 of 1 times: red; upheld 1 of 1 times: green" in told
    cut = CliRunner().invoke(command.main, [*words, "--fresh", "--budget", "0s"])
    assert (cut.exit_code, "2 of 2 cells are not made yet" in cut.stderr) == (2, True)


def test_a_reproduction_comes_back_from_json() -> None:
    red = replace(RED, explanation="it broke", implementations=("a", "b"), witness=WITNESS)
    told = Reproduction(ENTRY, [red, IDLE], [GREEN], "2026-11-21")
    assert Reproduction.from_json(ENTRY, json.loads(json.dumps(told.to_json()))) == told


def test_runs_of_somebody_else_are_not_written_over(tmp_path: Path) -> None:
    """Without the cells beside it, a folder of that name is not ours to remove."""
    (tmp_path / "B-17").mkdir()
    done = CliRunner().invoke(command.main, ["B-17", "--out", str(tmp_path)])
    assert (done.exit_code, "is there already" in done.stderr) == (64, True)
