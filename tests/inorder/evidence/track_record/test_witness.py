"""The witnesses that are kept: small, refuted by themselves, and explained."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from conformance.cli.main import root
from inorder.evidence.track_record.__main__ import PAGE
from inorder.evidence.track_record.entries import ENTRIES, as_built, as_documented
from inorder.evidence.track_record.witness import keep_witness
from specs.clauses.catalogue import by_id
from specs.errors import SpecError
from specs.history.row import Row
from specs.history.runinfo import declared
from specs.history.store import open_history, write_history
from specs.history.text import parse_history
from specs.profiles import load
from specs.verdicts.examine import examine
from specs.verdicts.verdict import ClauseVerdict, Judged, conclude
from specs.vocabulary import Kind

KEPT = sorted(path.parent for path in PAGE.with_suffix("").glob("*/run.json"))


def test_bugs_of_the_java_client_have_one() -> None:
    assert {path.name for path in KEPT} >= {
        "B-54",
        "B-61",
        "B-77b",
        "B-77c",
        "B-77e",
        "lock-after-release",
    }
    assert {path.name for path in KEPT} <= {each.id for each in ENTRIES}


PASSED = frozenset({"ORD-3", "RTY-4", "RTY-7"})
"""One deed that each of them forbids: a call goes beyond a message that failed."""
BESIDE_EACH_OTHER = frozenset({"LSE-2", "ORD-16"})
"""Likewise: two work on one lane, under a lease or whatever hands lanes out."""
STORED_TWICE = frozenset({"ORD-15", "SND-2"})
"""Likewise: a second copy lies behind what came after the first."""


@pytest.mark.parametrize("folder", KEPT, ids=lambda folder: folder.name)
def test_a_kept_witness_is_refuted_again_and_explained(folder: Path) -> None:
    entry = next(each for each in ENTRIES if each.id == folder.name)
    assert len(list(open_history(folder).rows())) <= 10
    judged = CliRunner().invoke(
        root, ["check", str(folder), "--engine", "python", "--format", "json"]
    )
    assert judged.exit_code == 1
    refuted = [
        each["id"] for each in json.loads(judged.stdout)["clauses"] if each["verdict"] == "refuted"
    ]
    same = next(
        (each for each in (PASSED, BESIDE_EACH_OTHER, STORED_TWICE) if entry.judged_by in each),
        frozenset(),
    )
    assert entry.judged_by in refuted
    assert set(refuted) - same <= {entry.judged_by}
    told = CliRunner().invoke(root, ["explain", str(folder)])
    assert f"REFUTED  {entry.judged_by}" in told.stdout


@pytest.mark.parametrize("folder", KEPT, ids=lambda folder: folder.name)
def test_a_kept_witness_is_excused_by_the_releases_profile_as_built(folder: Path) -> None:
    """A gate on that release stays green: the bug is no news. It shows where its users' words are the measure.

    Of what its release promises nothing at all (B-29), no profile of it says anything. A system whose profile excuses
    no release has one for all, and is red.
    """
    entry = next(each for each in ENTRIES if each.id == folder.name)
    promised = load(as_documented(entry.red)).claim(entry.judged_by).status != "not_applicable"
    assert promised is (entry.id != "B-29")
    expected = (
        [ClauseVerdict.ALLOWED, ClauseVerdict.REFUTED]
        if promised
        else [ClauseVerdict.NOT_CLAIMED] * 2
    )
    seen = {}
    for name in (as_built(entry.red), as_documented(entry.red)):
        history = open_history(folder)
        clause = by_id()[entry.judged_by]
        examination = examine(history.rows(), history.info, (clause,))
        verdict = conclude(
            examination, history.info, load(name), require_exercised=False, clauses=(clause,)
        )
        seen[name] = verdict.clauses[0].verdict
    if entry.id in NAMED_BY_NOBODY:
        expected = [ClauseVerdict.REFUTED] * 2
    if len(seen) == 1:
        expected = [ClauseVerdict.REFUTED]
    assert list(seen.values()) == expected


NAMED_BY_NOBODY = ("B-77c",)
"""What tells the allowed shape is a drop, of which a tap sees nothing."""


def judged(rows: tuple[Row, ...]) -> Judged:
    return Judged("LSE-2", "", "", ClauseVerdict.REFUTED, "pair", (), 1, 1, 1, rows)


def test_a_witness_is_cut_out_of_its_run_and_begins_at_zero(tmp_path: Path) -> None:
    info, rows = parse_history(by_id()["LSE-2"].shortest_violation)
    later = [
        row._replace(
            started_us=row.started_us + 5_000_000, ended_us=(row.ended_us or 0) + 5_000_000
        )
        for row in rows
    ]
    write_history(tmp_path / "run", replace(info, profile="rocketmq-5-orderly-documented"), later)
    keep_witness(judged(tuple(later)), tmp_path / "run", tmp_path / "kept")
    kept = list(open_history(tmp_path / "kept").rows())
    assert [(row.kind, row.started_us, row.ended_us) for row in kept] == [
        (row.kind, row.started_us, row.ended_us) for row in rows
    ]
    with pytest.raises(SpecError, match="alone is"):
        keep_witness(judged((later[0],)), tmp_path / "run", tmp_path / "kept")


def test_a_witness_keeps_what_its_run_declared(tmp_path: Path) -> None:
    """A clause that needs what the cut happens to hold no row of, or concludes from absence, refutes it again.

    The sends of its messages come along: in a closed world they would be missed.
    """
    text = """
        config guard_slack_ms=0
        0ms         shop   sends     orders/b0/3           offset=17 id=m17 ok
        1ms         alice  locks     billing/orders/b0/3   ok
        2ms         alice  adds      billing/orders/b0/3   value=17
        3ms..5ms    alice  delivers  billing/orders/b0/3   offset=17 id=m17 success
        6ms         alice  unlocks   billing/orders/b0/3   inc=1 sent
    """
    info, rows = parse_history(text)
    info = replace(info, profile="reference", records=declared(client=set(Kind)))
    write_history(tmp_path / "run", info, rows)
    clause = by_id()["CMT-13"]
    found = conclude(
        examine(rows, info, (clause,)), info, load("reference"), clauses=(clause,)
    ).clauses[0]
    assert (found.verdict, Kind.COMMIT in {row.kind for row in found.witness}) == (
        ClauseVerdict.REFUTED,
        False,
    )
    assert Kind.SEND not in {row.kind for row in found.witness}
    keep_witness(found, tmp_path / "run", tmp_path / "kept")
    kept = open_history(tmp_path / "kept")
    assert (kept.info.closed_world, kept.info.records) == (True, info.records)
    assert [row.message_id for row in kept.rows() if row.kind is Kind.SEND] == ["m17"]
    examination = examine(kept.rows(), kept.info)
    assert examination.refuted() == ("CMT-13",)
