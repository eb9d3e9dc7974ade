"""Allure results of a run's cases, written by Allure's own model and file writer.

One result per case (`conformance.reports.cases`), suites and behaviours by family. Both ways into Allure end here: the
command line writes the results (`write`), and under pytest those that allure-pytest is about to write get the same
content (`fill`). Who a result is stays the same in every run of a series, so that Allure shows a trend; another label
is another series, so that two targets in one folder are two suites, and not a try and its retry.

Beside the results lie `environment.properties` (each series of the folder has its entries), `categories.json` (what
somebody else wrote there stays) and `executor.json` (of which build they are).
"""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from allure_commons.logger import AllureFileLogger
from allure_commons.model2 import (
    ATTACHMENT_PATTERN,
    Label,
    Link,
    StatusDetails,
    TestResult,
    TestStepResult,
)
from allure_commons.model2 import Attachment as AllureAttachment
from allure_commons.types import AttachmentType, LabelType

from conformance.reports.cases import (
    LESS_SPECIFIC,
    NOT_TRUSTED,
    THE_RUN,
    Case,
    CaseRun,
    FaultStep,
    Form,
    Status,
    cases_of,
)
from conformance.reports.text import WORDS
from conformance.reports.view import VerdictView
from specs.documents import json_in
from specs.errors import UsageError
from specs.history.row import Row
from specs.verdicts.verdict import ClauseVerdict

FOLDER = "allure-results"
_NAMESPACE = uuid.UUID("7a3b9c52-6f0e-5d41-9b58-2c7f1e0d4a66")
_FORMS = {
    Form.TEXT: AttachmentType.TEXT,
    Form.JSON: AttachmentType.JSON,
    Form.SVG: AttachmentType.SVG,
}
_ENVIRONMENT, _CATEGORIES, _EXECUTOR = (
    "environment.properties",
    "categories.json",
    "executor.json",
)
_BLOCK = re.compile(r"(?:(\d+)\.)?series = (.*)")


def write(
    verdict: VerdictView, folder: Path, *, context: Sequence[Row] = (), fresh: bool = False
) -> Path:
    """Write the results of one verdict into `folder` (made if missing) and return it.

    Results of other runs in the folder stay, unless `fresh`: Allure merges them.
    """
    writer = AllureFileLogger(str(folder), clean=fresh)
    run = cases_of(verdict, context)
    for case in run.cases:
        result = TestResult()
        fill(result, run, case, writer)
        writer.report_result(result)
    write_beside(run, folder)
    return folder


def fill(result: TestResult, run: CaseRun, case: Case, writer: AllureFileLogger) -> None:
    """Make the result that of the case, and write what is attached to it."""
    identify(result, run, case.id)
    # The same run written twice is one result; another run of the series is another.
    result.uuid = str(uuid.uuid5(_NAMESPACE, f"{run.run}|{run.began_us}|{result.historyId}"))
    result.file_pattern = f"{result.uuid}-result.json"
    result.name, result.stage, result.status = case.name, "finished", case.status.value
    result.start = case.begin_us // 1000
    result.stop = (case.begin_us + case.took_us) // 1000
    result.description, result.descriptionHtml = case.statement, _described(case)
    result.statusDetails = _details(case)
    result.titlePath = [run.title, case.family]
    result.parameters = []
    result.steps = [_step(run, fault) for fault in case.steps]
    result.labels = [Label(name=name, value=value) for name, value in _labels(run, case)]
    result.links = [Link(type="link", url=case.page, name=case.id)] if case.page else []
    result.attachments = []
    for attachment in case.attachments:
        attach(writer, result, attachment.name, attachment.text, _FORMS[attachment.form])


def identify(result: TestResult, run: CaseRun, case_id: str) -> None:
    """Say who a result is: this clause or check, in every run of this series.

    All names tell series apart: Allure 2 goes by `historyId`, Allure 3 makes its own of the other two.
    """
    result.fullName = f"inorder.{case_id} of {run.title}"
    result.historyId = result.testCaseId = run.known_as(case_id)


def attach(
    writer: AllureFileLogger, result: TestResult, name: str, text: str, kind: AttachmentType
) -> None:
    """Write a text beside the results and name it in one of them; the same every time."""
    identity = uuid.uuid5(_NAMESPACE, f"{result.uuid}|{name}")
    file_name = ATTACHMENT_PATTERN.format(prefix=identity, ext=kind.extension)
    writer.report_attached_data(text, file_name)
    result.attachments.append(AllureAttachment(name=name, source=file_name, type=kind.mime_type))


def has_series(folder: Path, verdict: VerdictView) -> bool:
    """Does the folder hold results of the same series? Allure takes the newest for the last try of one test."""
    return _escaped(cases_of(verdict).title) in _blocks(_lines(folder / _ENVIRONMENT))


def write_beside(run: CaseRun, folder: Path) -> None:
    """What Allure reads besides the results."""
    folder.mkdir(parents=True, exist_ok=True)
    _write_environment(run, folder / _ENVIRONMENT)
    _write_categories(folder / _CATEGORIES)
    text = json.dumps(executor(run), indent=2, sort_keys=True)
    (folder / _EXECUTOR).write_text(text + "\n", encoding="utf-8")


# ------------------------------------------------------------------------------------------- one result


def _step(run: CaseRun, fault: FaultStep) -> TestStepResult:
    """A fault, at the time that it had by the run's clock."""
    return TestStepResult(
        name=fault.name,
        status=fault.status.value,
        stage="finished",
        statusDetails=StatusDetails(message=fault.evidence),
        start=(run.began_us + fault.from_us) // 1000,
        stop=(run.began_us + fault.to_us) // 1000,
    )


def _labels(run: CaseRun, case: Case) -> list[tuple[str, str]]:
    return [
        (LabelType.PARENT_SUITE, run.title),
        (LabelType.SUITE, case.family),
        (LabelType.EPIC, run.title),
        (LabelType.FEATURE, case.family),
        (LabelType.STORY, case.name),
        (LabelType.SEVERITY, case.severity.value),
        (LabelType.TAG, case.word),
        (LabelType.FRAMEWORK, "inorder"),
        (LabelType.LANGUAGE, "python"),
        *([(LabelType.HOST, run.host)] if run.host else []),
    ]


def _details(case: Case) -> StatusDetails | None:
    if not case.message:
        return None
    known = case.word == WORDS[ClauseVerdict.ALLOWED] or None
    return StatusDetails(message=case.message, trace=case.details or None, known=known)


def _described(case: Case) -> str:
    """The statement and the facts as HTML: a run's names are text in it, whatever they hold."""
    facts = "<br>".join(f"<b>{escape(name)}:</b> {escape(value)}" for name, value in case.facts)
    return f"<p>{escape(case.statement)}</p>" + (f"<p><br>{facts}</p>" if facts else "")


# -------------------------------------------------------------------------------------- beside the results


def _write_environment(run: CaseRun, path: Path) -> None:
    """Each series has a block of entries: the first without a number, and further ones begin with theirs."""
    lines = _lines(path)
    blocks = _blocks(lines)
    number = blocks.get(_escaped(run.title), max(blocks.values(), default=0) + 1)
    ours = f"{number}." if number > 1 else ""
    exposed = [(f"exposure.{number}", told) for number, told in enumerate(run.exposures, start=1)]
    values = [("series", run.title), *run.environment, *exposed]
    block = [f"{ours}{_key(name)} = {_escaped(value)}" for name, value in values]
    kept = [line for line in lines if not _is_of(line, block, ours)]
    path.write_text("\n".join([*kept, *block]) + "\n", encoding="latin-1")


def _is_of(line: str, block: Sequence[str], ours: str) -> bool:
    """Does the line belong to the block, as it was or is? What others wrote has no name of ours."""
    name = line.partition(" = ")[0]
    told = {each.partition(" = ")[0] for each in block}
    return name in told or name.startswith((f"{ours}tool.", f"{ours}exposure."))


def _lines(path: Path) -> list[str]:
    if not path.is_file():
        return []
    # Somebody else's lines may be in any encoding; what Java reads there is Latin 1.
    return path.read_text(encoding="latin-1").splitlines()


def _blocks(lines: Sequence[str]) -> dict[str, int]:
    """By the title of a series, which block is its own."""
    found = (_BLOCK.fullmatch(line) for line in lines)
    return {each[2]: int(each[1] or 1) for each in found if each is not None}


def _key(name: str) -> str:
    return re.sub(r"[^\w.-]+", "-", name, flags=re.ASCII)


def _escaped(value: str) -> str:
    """A value as a Java properties file holds it, on one line of ASCII."""
    value = " ".join(value.split()).replace("\\", "\\\\")
    wide = value.encode("utf-16-be", "surrogatepass")
    units = [int.from_bytes(wide[at : at + 2]) for at in range(0, len(wide), 2)]
    return "".join(chr(unit) if 32 <= unit < 127 else f"\\u{unit:04x}" for unit in units)


def _write_categories(path: Path) -> None:
    """Ours, behind those of somebody else, who knows better where a failure belongs."""
    known = _known_categories(path)
    names = {category["name"] for category in _OURS}
    others = [each for each in known if not (isinstance(each, dict) and each.get("name") in names)]
    text = json.dumps([*others, *_OURS], indent=2, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def _known_categories(path: Path) -> list[object]:
    try:
        found = json_in(path)
    except UsageError:  # none, or none that Allure could read
        return []
    return found if isinstance(found, list) else []


def _category(name: str, status: Status, *words: str) -> dict[str, object]:
    told = "|".join(word.lower() for word in words)
    return {
        "name": name,
        "messageRegex": f"(?s)(?:{told}): .*",
        "matchedStatuses": [status.value],
    }


# Short: Allure breaks a long name in the middle of a word.
_OURS = [
    _category("Refuted: a promise was broken", Status.FAILED, WORDS[ClauseVerdict.REFUTED]),
    _category("Possible: perhaps broken", Status.BROKEN, WORDS[ClauseVerdict.POSSIBLE]),
    _category("The run itself: not enough, or wrong", Status.BROKEN, THE_RUN, NOT_TRUSTED),
    _category(
        "Not exercised: too seldom at stake", Status.SKIPPED, WORDS[ClauseVerdict.NOT_EXERCISED]
    ),
    _category("Not recorded: nobody can tell", Status.SKIPPED, WORDS[ClauseVerdict.NOT_RECORDED]),
    _category("Not claimed: does not apply", Status.SKIPPED, WORDS[ClauseVerdict.NOT_CLAIMED]),
    _category("Allowed: broken and known", Status.SKIPPED, WORDS[ClauseVerdict.ALLOWED]),
    _category("Refuted too: by the same event", Status.SKIPPED, LESS_SPECIFIC),
]


def executor(run: CaseRun, environment: Mapping[str, str] = os.environ) -> dict[str, object]:
    """Which build the results are of, as the three best-known servers say it; else the run itself."""
    told = environment.get
    if told("GITHUB_ACTIONS"):
        address = f"{told('GITHUB_SERVER_URL')}/{told('GITHUB_REPOSITORY')}/actions/runs/{told('GITHUB_RUN_ID')}"
        name, kind, order = "GitHub Actions", "github", told("GITHUB_RUN_NUMBER")
        build = f"{told('GITHUB_WORKFLOW')} #{order}"
    elif told("GITLAB_CI"):
        name, kind, order = "GitLab CI", "gitlab", told("CI_PIPELINE_IID")
        address, build = told("CI_JOB_URL") or "", f"{told('CI_JOB_NAME')} #{order}"
    elif told("JENKINS_URL"):
        name, kind, order = "Jenkins", "jenkins", told("BUILD_NUMBER")
        address, build = told("BUILD_URL") or "", told("BUILD_TAG") or f"#{order}"
    else:
        return {"name": "inorder", "type": "inorder", "buildName": f"seed {run.seed}"}
    found: dict[str, object] = {"name": name, "type": kind, "buildName": build, "buildUrl": address}
    if order is not None and order.isdigit():
        found["buildOrder"] = int(order)
    return found
