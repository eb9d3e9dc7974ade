"""Allure results of a verdict, written by Allure's own model and file writer.

One result per clause and per check of the run. Suites and behaviours by family; the name is the clause's id and
title; the statement is the description. Status: upheld is passed, refuted is failed, possible (and everything in a
run that can't be trusted) is broken, the rest is skipped with its reason. Who a result is (`identify`) is the same
for the same clause, target and profile, so that Allure shows a trend, and another one for each other target and
profile, so that two of them in one folder are two suites, and not a try and its retry.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from allure_commons.logger import AllureFileLogger
from allure_commons.model2 import (
    ATTACHMENT_PATTERN,
    Attachment,
    Label,
    Parameter,
    Status,
    StatusDetails,
    TestResult,
)
from allure_commons.types import AttachmentType, LabelType, Severity
from allure_commons.utils import now

from conformance.reports import svg, swimlanes
from conformance.reports.incident import incident_of
from conformance.reports.text import WORDS, events, failure
from conformance.reports.timeline import drawing
from conformance.reports.view import CheckView, ClauseView, VerdictView
from specs.history.row import Row
from specs.verdicts.verdict import ClauseVerdict, RunVerdict, row_to_json

FOLDER = "allure-results"
_NAMESPACE = uuid.UUID("7a3b9c52-6f0e-5d41-9b58-2c7f1e0d4a66")
_BROKEN: str = Status.BROKEN
_STATUS: dict[ClauseVerdict, str] = {
    ClauseVerdict.UPHELD: Status.PASSED,
    ClauseVerdict.REFUTED: Status.FAILED,
    ClauseVerdict.POSSIBLE: Status.BROKEN,
    ClauseVerdict.NOT_EXERCISED: Status.SKIPPED,
    ClauseVerdict.NOT_CLAIMED: Status.SKIPPED,
    ClauseVerdict.NOT_RECORDED: Status.SKIPPED,
    ClauseVerdict.ALLOWED: Status.SKIPPED,
}
_SUITE_OF_CHECKS = "the run itself"


def write(
    verdict: VerdictView, folder: Path, *, context: Sequence[Row] = (), fresh: bool = False
) -> Path:
    """Write the results of one verdict into `folder` (made if missing) and return it.

    Results of other runs in the folder stay, unless `fresh`: Allure merges them. `environment.properties` is the
    last run's.
    """
    writer = AllureFileLogger(str(folder), clean=fresh)
    moment = now()
    for clause in verdict.clauses:
        if not clause.hidden:
            _write_clause(writer, verdict, clause, moment, context)
    for check in verdict.met:
        _write_check(writer, verdict, check, moment)
    write_environment(verdict, folder)
    return folder


def status_of(verdict: VerdictView, clause: ClauseView) -> str:
    """Allure's word for a clause's verdict."""
    if verdict.verdict is RunVerdict.INADMISSIBLE:
        return _BROKEN
    return _STATUS[clause.verdict]


def attachments(
    verdict: VerdictView, clause: ClauseView, context: Sequence[Row] = ()
) -> list[tuple[str, str, AttachmentType]]:
    """What a clause with a witness carries: (name, text, type)."""
    found: list[tuple[str, str, AttachmentType]] = []
    if clause.witness:
        what = incident_of(clause.witness, context)
        found += [
            ("what happened", failure(verdict, clause, context=context), AttachmentType.TEXT),
            ("swim lanes", svg.render(swimlanes.picture(clause, context)), AttachmentType.SVG),
            ("timeline", drawing(what), AttachmentType.TEXT),
            ("witness", events(clause.witness), AttachmentType.TEXT),
            (
                "witness (rows)",
                json.dumps([row_to_json(row) for row in clause.witness], indent=2, sort_keys=True),
                AttachmentType.JSON,
            ),
        ]
        if verdict.replay:
            found.append(("replay command", verdict.replay, AttachmentType.TEXT))
    return found


def write_environment(verdict: VerdictView, folder: Path) -> None:
    """`environment.properties`: what was judged, under which profile, with which seed."""
    values = {
        "target": verdict.target,
        "profile": verdict.profile,
        "seed": str(verdict.seed),
        "verdict": verdict.verdict.value,
        **{f"implementation.{role}": name for role, name in sorted(verdict.parties.items())},
        "levels": ", ".join(verdict.levels),
        **{f"tool.{name}": str(value) for name, value in sorted(verdict.tool.items())},
        "inorder": version("inorder"),
    }
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"{name} = {value}" for name, value in values.items()]
    (folder / "environment.properties").write_text("\n".join(lines) + "\n", encoding="utf-8")


def identify(result: TestResult, promise: str, target: str, profile: str) -> None:
    """Say who a result is: this promise (a clause or a check of the run), of this target, under this profile.

    All three names tell targets apart: Allure 2 goes by `historyId`, Allure 3 makes its own of the other two.
    """
    result.fullName = f"inorder.{promise} of {target} under {profile}"
    result.historyId = result.testCaseId = hashlib.md5(
        result.fullName.encode(), usedforsecurity=False
    ).hexdigest()


def _write_clause(
    writer: AllureFileLogger,
    verdict: VerdictView,
    clause: ClauseView,
    moment: int,
    context: Sequence[Row],
) -> None:
    result = _result(verdict, clause.id, clause.name, clause.family, moment)
    result.status = status_of(verdict, clause)
    result.description = clause.statement
    result.statusDetails = _details(clause)
    result.labels.append(Label(name=LabelType.SEVERITY, value=_severity(clause)))
    result.labels.append(Label(name=LabelType.TAG, value=WORDS[clause.verdict].lower()))
    result.parameters += [
        Parameter(name="kept by", value=clause.party),
        Parameter(name="made by", value=", ".join(clause.implementations)),
        # Counts differ from run to run; they must not make another test out of the same one.
        Parameter(name="at stake", value=str(clause.opportunities), excluded=True),
        Parameter(name="seed", value=str(verdict.seed), excluded=True),
    ]
    if clause.findings:
        result.parameters.append(
            Parameter(name="finding", value=", ".join(clause.findings), excluded=True)
        )
    for name, text, kind in attachments(verdict, clause, context):
        attach(writer, result, name, text, kind)
    writer.report_result(result)


def _write_check(
    writer: AllureFileLogger, verdict: VerdictView, check: CheckView, moment: int
) -> None:
    result = _result(verdict, check.id, f"{check.id} {check.title}", _SUITE_OF_CHECKS, moment)
    result.status = {True: Status.PASSED, False: Status.BROKEN, None: Status.SKIPPED}[check.ok]
    message = check.detail or ("" if check.ok is not None else "nothing to check")
    if message:
        result.statusDetails = StatusDetails(message=message)
    writer.report_result(result)


def _result(verdict: VerdictView, identity: str, name: str, suite: str, moment: int) -> TestResult:
    result = TestResult(name=name, stage="finished", start=moment, stop=moment)
    identify(result, identity, verdict.target, verdict.profile)
    result.uuid = str(uuid.uuid5(_NAMESPACE, f"{verdict.run}|{verdict.seed}|{result.historyId}"))
    result.labels += [
        Label(name=LabelType.PARENT_SUITE, value=verdict.target),
        Label(name=LabelType.SUITE, value=suite),
        Label(name=LabelType.EPIC, value=verdict.profile),
        Label(name=LabelType.FEATURE, value=suite),
        Label(name=LabelType.STORY, value=name),
        Label(name=LabelType.FRAMEWORK, value="inorder"),
    ]
    result.titlePath += [verdict.target, suite]
    return result


def _details(clause: ClauseView) -> StatusDetails | None:
    message = clause.happened or clause.reason
    if not message:
        return None
    if clause.verdict is ClauseVerdict.ALLOWED:
        return StatusDetails(
            message=f"allowed: {clause.reason}", trace=clause.explanation, known=True
        )
    return StatusDetails(message=message, trace=events(clause.witness) if clause.witness else None)


def _severity(clause: ClauseView) -> str:
    severity: str = (
        Severity.CRITICAL.value
        if clause.verdict is ClauseVerdict.REFUTED
        else Severity.NORMAL.value
    )
    return severity


def attach(
    writer: AllureFileLogger, result: TestResult, name: str, text: str, kind: AttachmentType
) -> None:
    """Write a text beside the results and name it in one of them; the same every time."""
    identity = uuid.uuid5(_NAMESPACE, f"{result.uuid}|{name}")
    file_name = ATTACHMENT_PATTERN.format(prefix=identity, ext=kind.extension)
    writer.report_attached_data(text, file_name)
    result.attachments.append(Attachment(name=name, source=file_name, type=kind.mime_type))
