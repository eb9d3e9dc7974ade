"""The witnesses that are kept: small, refuted by themselves, and explained."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from conformance.cli.main import root
from conformance.track_record.__main__ import PAGE
from conformance.track_record.entries import ENTRIES, as_built, as_documented
from conformance.track_record.witness import keep_witness
from specs.clauses.catalogue import by_id
from specs.errors import SpecError
from specs.history.row import Row
from specs.history.store import open_history, write_history
from specs.history.text import parse_history
from specs.profiles import load
from specs.verdicts.examine import examine
from specs.verdicts.verdict import ClauseVerdict, Judged, conclude

KEPT = sorted(path.parent for path in PAGE.with_suffix("").glob("*/run.json"))


def test_bugs_of_the_java_client_have_one() -> None:
    assert {path.name for path in KEPT} >= {"B-54", "B-61", "B-77b", "B-77c", "B-77e", "lock-after-release"}
    assert {path.name for path in KEPT} <= {each.id for each in ENTRIES}


@pytest.mark.parametrize("folder", KEPT, ids=lambda folder: folder.name)
def test_a_kept_witness_is_refuted_again_and_explained(folder: Path) -> None:
    entry = next(each for each in ENTRIES if each.id == folder.name)
    assert len(list(open_history(folder).rows())) <= 10
    judged = CliRunner().invoke(root, ["check", str(folder), "--engine", "python", "--format", "json"])
    assert judged.exit_code == 1
    refuted = [each["id"] for each in json.loads(judged.stdout)["clauses"] if each["verdict"] == "refuted"]
    assert refuted == [entry.judged_by]
    told = CliRunner().invoke(root, ["explain", str(folder)])
    assert f"REFUTED  {entry.judged_by}" in told.stdout


@pytest.mark.parametrize("folder", KEPT, ids=lambda folder: folder.name)
def test_a_kept_witness_is_excused_by_the_releases_profile_as_built(folder: Path) -> None:
    """A gate on that release stays green: the bug is no news. It shows where its users' words are the measure.

    Of what its release promises nothing at all (B-29), no profile of it says anything.
    """
    entry = next(each for each in ENTRIES if each.id == folder.name)
    promised = load(as_documented(entry.red)).claim(entry.judged_by).status != "not_applicable"
    assert promised is (entry.id != "B-29")
    expected = [ClauseVerdict.ALLOWED, ClauseVerdict.REFUTED] if promised else [ClauseVerdict.NOT_CLAIMED] * 2
    seen = {}
    for name in (as_built(entry.red), as_documented(entry.red)):
        history = open_history(folder)
        clause = by_id()[entry.judged_by]
        examination = examine(history.rows(), history.info, (clause,))
        verdict = conclude(examination, history.info, load(name), require_exercised=False, clauses=(clause,))
        seen[name] = verdict.clauses[0].verdict
    assert list(seen.values()) == expected


def judged(rows: tuple[Row, ...]) -> Judged:
    return Judged("LSE-2", "", "", ClauseVerdict.REFUTED, "pair", (), 1, 1, 1, rows)


def test_a_witness_is_cut_out_of_its_run_and_begins_at_zero(tmp_path: Path) -> None:
    info, rows = parse_history(by_id()["LSE-2"].shortest_violation)
    later = [
        row._replace(started_us=row.started_us + 5_000_000, ended_us=(row.ended_us or 0) + 5_000_000) for row in rows
    ]
    write_history(tmp_path / "run", replace(info, profile="rocketmq-5-orderly-documented"), later)
    keep_witness(judged(tuple(later)), tmp_path / "run", tmp_path / "kept")
    kept = list(open_history(tmp_path / "kept").rows())
    assert [(row.kind, row.started_us, row.ended_us) for row in kept] == [
        (row.kind, row.started_us, row.ended_us) for row in rows
    ]
    with pytest.raises(SpecError, match="alone is"):
        keep_witness(judged((later[0],)), tmp_path / "run", tmp_path / "kept")
