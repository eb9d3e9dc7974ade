"""What Allure and JUnit say of a run: the same, under names that last, whatever the run's own names hold."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import specs
from conformance.reports import allure, junit
from conformance.reports.cases import Status, cases_of
from conformance.reports.occasion import Occasion, begin, read_occasion
from conformance.reports.view import VerdictView, view
from specs.clauses.clause import Clause
from specs.errors import HistoryError
from specs.history.text import parse_history
from specs.verdicts.verdict import ClauseVerdict, RunVerdict, Verdict
from tests.conformance.reports import hostile

Make = Callable[..., Verdict]
BEGAN_US = 1_795_429_106_434_803
OCCASION = Occasion("nightly", BEGAN_US, 42_000_001, "ci-7")
NASTY = {
    "markup": "</testcase><script>alert(1)</script> & \"x\" 'y' ]]>",
    "control": "a\x00b\x07c\x1bd\nnext\ttab\r\x85\u2028",
    "emoji": "🐇🐇\u200d \U0001f9ea \u202e desrever",
    "surrogate": "half \ud83d of a pair",
    "long": "x" * 10_000,
    "empty": "",
    "blank": " \n ",
}


def results(folder: Path) -> list[dict[str, Any]]:
    """In the order in which they began."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*-result.json")]
    return sorted(found, key=lambda each: each["start"])


def cases_in(text: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(text.split("\n", 1)[1]).iter("testcase"))


def ended(case: ElementTree.Element) -> tuple[str, str, str]:
    """Its name, how it ended, and why, in Allure's words."""
    words = {"failure": "failed", "error": "broken", "skipped": "skipped"}
    for each in case:
        return case.get("name", ""), words[each.tag], each.get("message", "")
    return case.get("name", ""), "passed", ""


def keep_the_schema(document: str) -> None:
    etree = pytest.importorskip("lxml.etree", reason="lxml is a dev dependency")
    path = Path(specs.__file__).parent / "schemas" / "junit.xsd"
    etree.XMLSchema(etree.parse(str(path))).assertValid(etree.fromstring(document.encode()))


@pytest.fixture(scope="module")
def every_verdict(make_verdict: Make) -> VerdictView:
    """A clause of each verdict, one that steps behind another, and a check of each kind."""
    verdict = view(make_verdict("0ms  alice  locks  billing/orders/b0/3  ok", exercised=True))
    first, *others = verdict.clauses
    named = [
        replace(clause, verdict=word, reason=f"for {word.value}", explanation=f"seen {word.value}")
        for clause, word in zip(others, ClauseVerdict, strict=False)
    ]
    behind = replace(first, verdict=ClauseVerdict.REFUTED, reason="shown as LSE-1")
    return replace(verdict, clauses=(behind, *named), verdict=RunVerdict.REFUTED)


# ------------------------------------------------------------------------------------------ the same


def test_allure_and_junit_say_the_same(every_verdict: VerdictView, tmp_path: Path) -> None:
    """Case by case: name, how it ended, why; and both give it the same time."""
    verdict = replace(every_verdict, occasion=OCCASION)
    written = results(allure.write(verdict, tmp_path))
    one = [
        (each["name"], each["status"], each.get("statusDetails", {}).get("message", ""))
        for each in written
    ]
    document = cases_in(junit.render([verdict]))
    assert sorted(one) == sorted(ended(case) for case in document)
    assert {word for _, word, _ in one} == {each.value for each in Status}
    total = sum(float(case.get("time", "")) for case in document)
    assert total == pytest.approx(42, abs=0.1)
    assert written[0]["start"] == BEGAN_US // 1000
    assert max(each["stop"] for each in written) == (BEGAN_US + 42_000_001) // 1000


@pytest.mark.parametrize("word", ClauseVerdict)
def test_each_verdict_has_a_category_of_its_own(
    every_verdict: VerdictView, tmp_path: Path, word: ClauseVerdict
) -> None:
    """And so has a check that failed; a message of somebody else's test has none of ours."""
    clause = next(
        each for each in every_verdict.clauses if each.verdict is word and not each.hidden
    )
    allure.write(every_verdict, tmp_path)
    categories = json.loads((tmp_path / "categories.json").read_text(encoding="utf-8"))
    (found,) = [each for each in results(tmp_path) if each["name"] == clause.name]

    def category(status: str, message: str) -> list[str]:
        return [
            each["name"].partition(":")[0].lower()
            for each in categories
            if status in each["matchedStatuses"] and re.fullmatch(each["messageRegex"], message)
        ]

    message = found.get("statusDetails", {}).get("message", "")
    words = [] if word is ClauseVerdict.UPHELD else [word.value.replace("_", " ")]
    assert category(found["status"], message) == words
    assert category("failed", "AssertionError: assert 1 == 2") == []
    assert category("broken", "the run itself: not met: claimed clauses exercised: ORD-2") == [
        "the run itself"
    ]


def test_the_severity_is_the_clauses_and_not_its_verdicts(every_verdict: VerdictView) -> None:
    """Every family has one, so that what is lost or out of order stands before what is only late."""
    upheld = replace(
        every_verdict,
        clauses=tuple(
            replace(each, verdict=ClauseVerdict.UPHELD) for each in every_verdict.clauses
        ),
    )
    told = {case.id: case.severity for case in cases_of(every_verdict).cases}
    assert told == {case.id: case.severity for case in cases_of(upheld).cases}
    one = every_verdict.clauses[0]
    for family in Clause.FAMILIES:
        made = replace(every_verdict, clauses=(replace(one, id=f"{family}-1"),), met=())
        (case,) = cases_of(made).cases
        assert case.severity.value != "minor", family


# ------------------------------------------------------------------------------------------ who is who


def ids(folder: Path) -> dict[str, set[str]]:
    names = ("historyId", "testCaseId", "fullName")
    return {name: {each[name] for each in results(folder)} for name in names}


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 8},
        {"run": "another"},
        {"target": "rocketmq:127.0.0.1:40123"},
        {"profile": "as-built"},
        {"parties": {"broker": "Apache RocketMQ 5.5.0"}},
    ],
    ids=lambda each: next(iter(each)),
)
def test_a_name_keeps_the_series(
    refuted: VerdictView, tmp_path: Path, change: dict[str, Any]
) -> None:
    """Whatever else is different the second time; and JUnit's names stay too."""
    first = replace(refuted, occasion=OCCASION)
    second = replace(first, **change, occasion=replace(OCCASION, began_us=BEGAN_US + 10**9))
    allure.write(first, tmp_path / "a")
    allure.write(second, tmp_path / "b")
    assert ids(tmp_path / "a") == ids(tmp_path / "b")
    assert not {each["uuid"] for each in results(tmp_path / "a")} & {
        each["uuid"] for each in results(tmp_path / "b")
    }

    def named(verdict: VerdictView) -> list[tuple[str, str]]:
        return [
            (each.get("classname", ""), each.get("name", ""))
            for each in cases_in(junit.render([verdict]))
        ]

    assert named(first) == named(second)
    assert named(first)[0][0] == "inorder.nightly.order"


def test_junit_names_no_target_where_nobody_named_the_run(refuted: VerdictView) -> None:
    """The history of a case does not begin anew with each port; the target is a property."""
    root = ElementTree.fromstring(junit.render([refuted]).split("\n", 1)[1])
    assert {case.get("classname", "") for case in root.iter("testcase")} == {
        f"inorder.{family}"
        for family in (*(clause.family for clause in refuted.clauses), "the run itself")
    }
    told = {each.get("name"): each.get("value") for each in root.iter("property")}
    assert (told["target"], told["seed"]) == ("mutant:two-owners", "7319")


def test_another_name_is_another_series(refuted: VerdictView, tmp_path: Path) -> None:
    """One target twice in a folder: neither is the other's retry; a document of both has each case once."""
    again = replace(refuted, occasion=OCCASION)
    for verdict in (refuted, again):
        allure.write(verdict, tmp_path)
    number = len((*refuted.clauses, *refuted.met))
    assert {name: len(found) for name, found in ids(tmp_path).items()} == dict.fromkeys(
        ("historyId", "testCaseId", "fullName"), 2 * number
    )
    environment = (tmp_path / "environment.properties").read_text(encoding="ascii").splitlines()
    series = [line for line in environment if "series" in line]
    assert series == ["series = mutant:two-owners under as-documented", "2.series = nightly"]
    allure.write(again, tmp_path)
    told = (tmp_path / "environment.properties").read_text(encoding="ascii").splitlines()
    assert sorted(told) == sorted(environment), "a series has one block"


@pytest.mark.parametrize("targets", [("a", "b"), ("a", "a"), ("a b", "a-b"), ("", " ")], ids=str)
def test_a_document_of_several_runs_names_each_case_once(
    refuted: VerdictView, targets: tuple[str, str]
) -> None:
    """Of two cases of one class and name GitLab shows one."""
    document = junit.render([replace(refuted, target=target) for target in targets])
    names = [(case.get("classname"), case.get("name")) for case in cases_in(document)]
    assert len(set(names)) == len(names)
    keep_the_schema(document)


def test_the_same_run_written_twice_is_one_result(refuted: VerdictView, tmp_path: Path) -> None:
    """As by `inorder report` of a run that is there already."""
    verdict = replace(refuted, occasion=OCCASION)
    allure.write(verdict, tmp_path)
    before = sorted(path.name for path in tmp_path.iterdir())
    allure.write(verdict, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == before


# ------------------------------------------------------------------------------- beside others' files


def test_what_others_wrote_beside_the_results_stays(refuted: VerdictView, tmp_path: Path) -> None:
    """Their categories come first, their environment keeps its lines, Allure's history of earlier reports stays."""
    (tmp_path / "history").mkdir()
    (tmp_path / "history" / "history.json").write_text("{}", encoding="utf-8")
    theirs = {"name": "Slow", "matchedStatuses": ["broken"]}
    (tmp_path / "categories.json").write_text(json.dumps([theirs]), encoding="utf-8")
    (tmp_path / "environment.properties").write_text("Käse = ja\n", encoding="latin-1")
    for _ in range(2):
        allure.write(refuted, tmp_path)
    categories = json.loads((tmp_path / "categories.json").read_text(encoding="utf-8"))
    assert categories[0] == theirs
    assert len({each["name"] for each in categories}) == len(categories)
    lines = (tmp_path / "environment.properties").read_text(encoding="latin-1").splitlines()
    assert lines[0] == "Käse = ja"
    assert lines.count("target = mutant:two-owners") == 1
    assert (tmp_path / "history" / "history.json").is_file()


@pytest.mark.parametrize("text", ["{", "[1, 2", '{"name": 1}', "\x00"])
def test_categories_that_nobody_can_read_are_replaced(
    refuted: VerdictView, tmp_path: Path, text: str
) -> None:
    (tmp_path / "categories.json").write_text(text, encoding="utf-8")
    allure.write(refuted, tmp_path)
    categories = json.loads((tmp_path / "categories.json").read_text(encoding="utf-8"))
    assert categories[0]["name"].startswith("Refuted")


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({}, ("inorder", None, None)),
        (
            {
                "GITHUB_ACTIONS": "true",
                "GITHUB_SERVER_URL": "https://g",
                "GITHUB_REPOSITORY": "o/r",
                "GITHUB_RUN_ID": "9",
                "GITHUB_RUN_NUMBER": "12",
                "GITHUB_WORKFLOW": "order",
            },
            ("github", 12, "https://g/o/r/actions/runs/9"),
        ),
        (
            {
                "GITLAB_CI": "true",
                "CI_PIPELINE_IID": "3",
                "CI_JOB_URL": "https://l/-/jobs/1",
                "CI_JOB_NAME": "gate",
            },
            ("gitlab", 3, "https://l/-/jobs/1"),
        ),
        (
            {"JENKINS_URL": "https://j", "BUILD_NUMBER": "x", "BUILD_URL": "https://j/7"},
            ("jenkins", None, "https://j/7"),
        ),
    ],
    ids=["at home", "GitHub", "GitLab", "Jenkins"],
)
def test_the_executor_is_the_build(
    refuted: VerdictView, told: dict[str, str], expected: tuple[str, int | None, str | None]
) -> None:
    found = allure.executor(cases_of(refuted), told)
    assert (found["type"], found.get("buildOrder"), found.get("buildUrl")) == expected


# ------------------------------------------------------------------------------------------- attacks


def nasty(verdict: VerdictView, name: str, folder: Path) -> VerdictView:
    """The verdict with the attack in all that a system under test or a user names."""
    rows = [row for clause in verdict.clauses for row in clause.witness]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(hostile, "NAME", name)
        patched.setattr(hostile.row, "__defaults__", (name,))
        patched.setattr(hostile, "write_history", lambda *_: None)
        made, _ = hostile.run(verdict, rows, folder)
    return replace(made, occasion=Occasion(name, BEGAN_US, 1, name))


@pytest.mark.parametrize("attack", NASTY)
def test_no_name_breaks_a_report(refuted: VerdictView, tmp_path: Path, attack: str) -> None:
    """The document keeps its schema, every file of Allure's can be read, and no text is longer than a page can show."""
    verdict = nasty(refuted, NASTY[attack], tmp_path)
    document = junit.render([verdict, refuted])
    ElementTree.fromstring(document.split("\n", 1)[1])
    keep_the_schema(document)
    found = results(allure.write(verdict, tmp_path / "allure"))
    assert len(found) == len((*refuted.clauses, *refuted.met))
    shown = [label["value"] for each in found for label in each["labels"]]
    shown += [each["name"] for each in found] + [each["fullName"] for each in found]
    assert max(map(len, shown)) < 300
    assert all("<script" not in each["descriptionHtml"] for each in found)
    lines = (tmp_path / "allure" / "environment.properties").read_text("ascii").splitlines()
    assert all(" = " in line and line.isprintable() for line in lines)


def test_two_long_names_that_differ_at_their_end_stay_two(
    refuted: VerdictView, tmp_path: Path
) -> None:
    for last in "ab":
        long = replace(OCCASION, name="x" * 10_000 + last)
        allure.write(replace(refuted, occasion=long), tmp_path)
    number = len((*refuted.clauses, *refuted.met))
    assert {len(found) for found in ids(tmp_path).values()} == {2 * number}


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"verdict": RunVerdict.INADMISSIBLE},
        {"clauses": ()},
        {"clauses": (), "met": ()},
        {"replay": None, "parties": {}},
    ],
    ids=["as it is", "inadmissible", "no clause", "nothing at all", "no replay"],
)
def test_junit_keeps_its_schema(every_verdict: VerdictView, change: dict[str, Any]) -> None:
    """Also of a run that came to nothing."""
    keep_the_schema(junit.render([replace(every_verdict, **change)]))


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ('time="', 'took="'),
        ('classname="', 'class="'),
        (' errors="', ' skipped="0" errors="'),
        ("</testsuites>", "<testcase/></testsuites>"),
    ],
)
def test_the_schema_refuses_what_servers_refuse(
    refuted: VerdictView, wrong: str, right: str
) -> None:
    etree = pytest.importorskip("lxml.etree", reason="lxml is a dev dependency")
    document = junit.render([refuted])
    assert wrong in document
    with pytest.raises((etree.DocumentInvalid, etree.XMLSyntaxError)):
        keep_the_schema(document.replace(wrong, right, 1))


def test_a_run_without_an_event_is_reported(make_verdict: Make, tmp_path: Path) -> None:
    """Everything is skipped, nothing is green."""
    verdict = view(make_verdict(""))
    found = results(allure.write(verdict, tmp_path))
    assert {each["status"] for each in found if not each["name"].startswith("MET")} == {"skipped"}
    keep_the_schema(junit.render([verdict]))


# ---------------------------------------------------------------------------------------- the occasion


def test_an_occasion_reads_as_it_was_written(tmp_path: Path) -> None:
    """And a folder without one says nothing of it."""
    assert read_occasion(tmp_path) == Occasion()
    occasion = begin("nightly")()
    occasion.write(tmp_path)
    assert read_occasion(tmp_path) == occasion
    assert (occasion.name, occasion.began_us > 0, bool(occasion.host)) == ("nightly", True, True)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "is not JSON"),
        ("[]", "must be a JSON object"),
        ('{"schema": "inorder/occasion/v9"}', "a newer inorder wrote it"),
        ('{"schema": "inorder/occasion/v1", "nmae": "x"}', "name"),
    ],
)
def test_an_occasion_that_cannot_be_read_is_one_sentence(
    tmp_path: Path, text: str, sentence: str
) -> None:
    (tmp_path / "occasion.json").write_text(text, encoding="utf-8")
    with pytest.raises(HistoryError, match=sentence):
        read_occasion(tmp_path)


def test_parse_history_of_nothing_is_a_run() -> None:
    """What the test of an empty run rests on."""
    assert parse_history("")[1] == []
