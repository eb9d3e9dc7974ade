"""Reports for machines: Allure results, JUnit XML, Markdown, and the run's folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
from click.testing import CliRunner

import specs
from conformance.cli.main import root as commands
from conformance.reports import allure, cases, junit, markdown
from conformance.reports.saving import WrongReport, check, context_of, save
from conformance.reports.schemas import LIST_SCHEMA, NAMES, file_of, schema, text_of
from conformance.reports.view import VerdictView, open_run
from specs.errors import HistoryError, SpecError
from specs.history.store import write_history
from specs.history.text import parse_history
from specs.verdicts.verdict import VERDICT_SCHEMA, Verdict

Make = Callable[..., Verdict]
TWO_OWNERS = """
    0ms      alice  locks  billing/orders/b0/3   ok
    1s..2s   alice  pauses  -
    59999ms  bob    locks  billing/orders/b0/3   ok
"""


def results(folder: Path) -> dict[str, dict[str, Any]]:
    """Allure's results by the promise that each is about, `inorder.LSE-1`, with which its full name begins."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*-result.json")]
    return {result["fullName"].partition(" of ")[0]: result for result in found}


def labels(result: dict[str, Any]) -> dict[str, str]:
    return {label["name"]: label["value"] for label in result["labels"]}


# ---------------------------------------------------------------------------------------------- Allure


def test_allure_has_one_result_per_clause_and_check(refuted: VerdictView, tmp_path: Path) -> None:
    """Every line of the verdict is a test; nothing else is."""
    found = results(allure.write(refuted, tmp_path))
    expected = {f"inorder.{each.id}" for each in (*refuted.clauses, *refuted.met)}
    assert set(found) == expected


def test_allure_names_results_by_family_and_clause(refuted: VerdictView, tmp_path: Path) -> None:
    """The name is id and title, the suite is the family, the statement is the description."""
    result = results(allure.write(refuted, tmp_path))["inorder.LSE-1"]
    assert result["name"] == "LSE-1 one owner at a time"
    assert labels(result)["suite"] == "lease"
    assert labels(result)["parentSuite"] == "mutant:two-owners under as-documented"
    assert result["description"] == "No two clients hold the lease of one lane at the same time."


def test_allure_statuses_follow_the_verdicts(
    refuted: VerdictView, allowed: VerdictView, tmp_path: Path
) -> None:
    """Refuted failed, not exercised and allowed skipped, a passed check passed."""
    first = results(allure.write(refuted, tmp_path / "refuted"))
    second = results(allure.write(allowed, tmp_path / "allowed"))
    assert first["inorder.LSE-1"]["status"] == "failed"
    assert first["inorder.ORD-2"]["status"] == "skipped"
    assert first["inorder.MET-1"]["status"] == "passed"
    assert second["inorder.LSE-1"]["status"] == "skipped"
    assert (
        second["inorder.LSE-1"]["statusDetails"]["message"]
        == "allowed: this version is known for it"
    )


def test_allure_shows_an_untrusted_run_as_broken(refuted: VerdictView, tmp_path: Path) -> None:
    """Nothing of an inadmissible run counts as passed or failed."""
    from dataclasses import replace

    from specs.verdicts.verdict import RunVerdict

    found = results(allure.write(replace(refuted, verdict=RunVerdict.INADMISSIBLE), tmp_path))
    assert {result["status"] for name, result in found.items() if "MET" not in name} == {"broken"}


def test_allure_attaches_witness_timeline_and_replay(refuted: VerdictView, tmp_path: Path) -> None:
    """Each attachment's file is there, with the text that its name promises."""
    result = results(allure.write(refuted, tmp_path))["inorder.LSE-1"]
    files = {
        each["name"]: (tmp_path / each["source"]).read_text(encoding="utf-8")
        for each in result["attachments"]
    }
    assert sorted(files) == [
        "replay command",
        "swim lanes",
        "timeline",
        "what happened",
        "witness",
        "witness (rows)",
    ]
    assert files["replay command"] == "inorder replay runs/7319"
    assert "bob    locks  billing/orders/b0/3  ok" in files["witness"]
    assert [row["client_id"] for row in json.loads(files["witness (rows)"])] == ["alice", "bob"]
    assert "lock ✓" in files["timeline"]
    assert ElementTree.fromstring(files["swim lanes"]).tag == "{http://www.w3.org/2000/svg}svg"


def test_allure_keeps_one_history_per_clause_and_target(
    refuted: VerdictView, tmp_path: Path
) -> None:
    """Another seed is another run of the same test."""
    from dataclasses import replace

    first = results(allure.write(refuted, tmp_path / "a"))["inorder.LSE-1"]
    second = results(allure.write(replace(refuted, seed=8), tmp_path / "b"))["inorder.LSE-1"]
    assert first["historyId"] == second["historyId"]
    assert first["uuid"] != second["uuid"]


@pytest.mark.parametrize("other", [{"target": "reference"}, {"profile": "as-built"}], ids=str)
def test_allure_tells_targets_and_profiles_apart(
    refuted: VerdictView, tmp_path: Path, other: dict[str, str]
) -> None:
    """In one folder, none of them is another's retry, whichever of the names a version of Allure goes by."""
    from dataclasses import replace

    allure.write(refuted, tmp_path)
    allure.write(replace(refuted, **other), tmp_path)
    files = [
        json.loads(path.read_text(encoding="utf-8")) for path in tmp_path.glob("*-result.json")
    ]
    assert len(files) == 2 * len((*refuted.clauses, *refuted.met))
    for name in ("uuid", "historyId", "testCaseId", "fullName"):
        assert len({result[name] for result in files}) == len(files), name


def test_allure_knows_the_environment(refuted: VerdictView, tmp_path: Path) -> None:
    """environment.properties names target, profile, seed and who made what."""
    allure.write(refuted, tmp_path)
    lines = (tmp_path / "environment.properties").read_text(encoding="utf-8").splitlines()
    assert lines[1].startswith("verdict = REFUTED: 0 upheld, 1 refuted, ")
    assert lines[2:5] == ["target = mutant:two-owners", "profile = as-documented", "seed = 7319"]
    assert "broker = inorder mutant two-owners" in lines


# ----------------------------------------------------------------------------------- JUnit and Markdown


def test_junit_counts_add_up(refuted: VerdictView, allowed: VerdictView) -> None:
    """The counts of the document are those of its cases."""
    root = ElementTree.fromstring(junit.render([refuted, allowed]).split("\n", 1)[1])
    cases = list(root.iter("testcase"))
    counted = {
        tag: sum(case.find(tag) is not None for case in cases)
        for tag in ("failure", "error", "skipped")
    }
    assert root.get("tests") == str(len(cases))
    assert [root.get("failures"), root.get("errors")] == [
        str(counted["failure"]),
        str(counted["error"]),
    ]
    skipped = [int(suite.get("skipped", "")) for suite in root]
    assert sum(skipped) == counted["skipped"] > 0
    assert counted["failure"] == 1


def test_junit_tells_the_story_of_a_failure(refuted: VerdictView) -> None:
    """A CI server shows the whole block."""
    root = ElementTree.fromstring(junit.render([refuted]).split("\n", 1)[1])
    failure = next(root.iter("failure"))
    assert (failure.text or "").startswith("REFUTED  LSE-1")
    assert "replay:     inorder replay runs/7319" in (failure.text or "")


def test_junit_survives_characters_that_xml_forbids() -> None:
    """A control character in a message becomes a sign that XML can hold."""
    assert cases.clean("a\x00b\x1bc") == "a�b�c"


ASSUMING = "; assuming that the history would tell clock step, crash, unlock"


def test_junit_tells_what_a_refutation_takes_for_granted_and_what_is_not_recorded(
    assuming: VerdictView,
) -> None:
    root = ElementTree.fromstring(junit.render([assuming]).split("\n", 1)[1])
    (failure,) = root.iter("failure")
    assert failure.get("message", "").endswith(ASSUMING)
    assert "finding:    two-owners" in (failure.text or "")
    (case,) = (case for case in root.iter("testcase") if case.get("name", "").startswith("CMT-4"))
    assert [each.get("message") for each in case] == [
        "not recorded: the history does not tell commit"
    ]


def test_markdown_tells_what_a_refutation_takes_for_granted_and_what_is_not_recorded(
    assuming: VerdictView,
) -> None:
    document = markdown.render([assuming])
    assert "18 not recorded, 1 not claimed." in document
    row = next(line for line in document.splitlines() if line.startswith("| LSE-1"))
    assert row.endswith(f"{ASSUMING} |")
    row = next(line for line in document.splitlines() if line.startswith("| CMT-4"))
    assert row.endswith("| not recorded | 0 | the history does not tell commit |")


def test_allure_names_the_finding_and_skips_what_is_not_recorded(
    assuming: VerdictView, tmp_path: Path
) -> None:
    allure.write(assuming, tmp_path)
    found = results(tmp_path)
    lse = found["inorder.LSE-1"]
    assert "<b>finding:</b> two-owners" in lse["descriptionHtml"]
    assert lse["statusDetails"]["message"].endswith(ASSUMING)
    cmt = found["inorder.CMT-4"]
    assert (cmt["status"], cmt["statusDetails"]["message"]) == (
        "skipped",
        "not recorded: the history does not tell commit",
    )


def test_markdown_has_a_row_per_clause_and_a_story_per_failure(refuted: VerdictView) -> None:
    """Cells can't break the table."""
    document = markdown.render([refuted])
    assert (
        "| LSE-1 | No two clients hold the lease of one lane at the same time. | broker |"
        in document
    )
    assert document.count("````text") == 1
    assert all(line.count("|") == 8 for line in document.splitlines() if line.startswith("| LSE"))


# --------------------------------------------------------------------------------------------- folders


@pytest.fixture
def saved(make_verdict: Make, tmp_path: Path) -> Path:
    """A run's folder with its history, verdict and reports."""
    info, rows = parse_history(TWO_OWNERS)
    write_history(tmp_path / "run", info, rows)
    save(make_verdict(TWO_OWNERS), tmp_path / "run")
    return tmp_path / "run"


def test_a_saved_run_holds_every_report(saved: Path) -> None:
    """One folder has it all."""
    assert sorted(path.name for path in saved.iterdir()) == [
        "allure-results",
        "history",
        "junit.xml",
        "pictures",
        "report.html",
        "report.md",
        "report.txt",
        "run.json",
        "verdict.json",
    ]


def test_a_saved_verdict_reads_as_it_was(saved: Path, make_verdict: Make) -> None:
    """verdict.json is the verdict's own JSON, and keeps its schema."""
    data = json.loads((saved / "verdict.json").read_text(encoding="utf-8"))
    assert data == json.loads(json.dumps(make_verdict(TWO_OWNERS).to_json()))
    jsonschema.validate(data, schema(VERDICT_SCHEMA))
    assert [each.id for each in open_run(saved).failures] == ["LSE-1"]
    assert open_run(saved).events == 3


def test_a_verdict_of_an_older_version_names_no_findings(saved: Path) -> None:
    """It is explained and reported all the same."""
    path = saved / "verdict.json"
    data = json.loads(path.read_text(encoding="utf-8"))
    assert [each.pop("findings") for each in data["clauses"] if each["id"] == "LSE-1"] == [
        ["two-owners"]
    ]
    for each in data["clauses"]:
        each.pop("findings", None)
    path.write_text(json.dumps(data), encoding="utf-8")
    for command in (["explain", str(saved)], ["report", str(saved)]):
        done = CliRunner().invoke(commands, command)
        assert done.exit_code == 0, done.output
        assert "LSE-1" in done.stdout
        assert "finding:" not in done.stdout


def test_saving_twice_leaves_one_set_of_results(saved: Path, make_verdict: Make) -> None:
    """Allure shows the run once."""
    before = len(list((saved / "allure-results").glob("*-result.json")))
    save(make_verdict(TWO_OWNERS), saved)
    assert len(list((saved / "allure-results").glob("*-result.json"))) == before


def test_the_context_of_a_run_is_read_from_its_history(saved: Path) -> None:
    """Pauses are found without the rest of the rows."""
    assert [row.client_id for row in context_of(saved, open_run(saved))] == ["alice"]
    assert "paused" in (saved / "report.txt").read_text(encoding="utf-8")


def test_the_document_shows_the_pictures_that_lie_beside_it(saved: Path) -> None:
    """report.md links the swim lanes of each failure; JUnit has no pictures."""
    assert "![swim lanes of LSE-1](pictures/LSE-1.svg)" in (saved / "report.md").read_text("utf-8")
    assert [path.name for path in (saved / "pictures").iterdir()] == ["LSE-1.svg"]
    assert "svg" not in (saved / "junit.xml").read_text("utf-8")


def test_a_verdict_without_a_failure_leaves_no_picture_of_an_earlier_one(
    saved: Path, make_verdict: Make
) -> None:
    """What is in the folder is of the verdict that lies there."""
    save(make_verdict("0ms  alice  locks  billing/orders/b0/3  ok"), saved)
    assert list((saved / "pictures").iterdir()) == []
    assert "swim lanes" not in (saved / "report.md").read_text("utf-8")


def test_a_report_that_breaks_its_schema_is_our_fault(make_verdict: Make) -> None:
    """WrongReport says where."""
    data = {**make_verdict(TWO_OWNERS).to_json(), "seed": "seven"}
    with pytest.raises(WrongReport, match=r"at seed: 'seven' is not of type 'integer'"):
        check(data, VERDICT_SCHEMA)


def test_schemas_are_schemas() -> None:
    """Both are valid in the draft that they name."""
    for name in (VERDICT_SCHEMA, LIST_SCHEMA):
        jsonschema.Draft202012Validator.check_schema(schema(name))
    with pytest.raises(SpecError):
        schema("inorder/unheard-of/v1")


@pytest.mark.parametrize("name", NAMES)
def test_the_schema_file_is_the_generated_one(name: str) -> None:
    """Otherwise run `python -m conformance.reports.schemas`."""
    path = Path(specs.__file__).parent / "schemas" / file_of(name)
    assert path.read_text(encoding="utf-8") == text_of(name)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{", "is not JSON"),
        ("[]", "holds no JSON object"),
        ('{"schema": "inorder/verdict/v9"}', "this version reads inorder/verdict/v1"),
        ('{"schema": "inorder/verdict/v1"}', "can't be read as a verdict"),
    ],
)
def test_a_verdict_that_cannot_be_read_is_one_sentence(
    tmp_path: Path, content: str, sentence: str
) -> None:
    """Torn, empty, of another version, of another shape."""
    (tmp_path / "verdict.json").write_text(content, encoding="utf-8")
    with pytest.raises(HistoryError, match=sentence):
        open_run(tmp_path)


def test_a_general_clause_steps_behind_the_specific_one(refuted: VerdictView) -> None:
    """It stays refuted in the JSON, and is left out of reports for people."""
    from dataclasses import replace

    general = replace(refuted.failures[0], id="LSE-2", reason="shown as LSE-1")
    changed = replace(refuted, clauses=(*refuted.clauses[:1], general, *refuted.failures))
    assert [each.id for each in changed.failures] == ["LSE-1"]
