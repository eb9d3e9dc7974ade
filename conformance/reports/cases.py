"""A run as test reports see it: a case for each clause and for each check of the run.

Allure and JUnit are both written from these cases, so that the two say the same.

Rules:
- a refuted clause failed; a possible one, a failed check, and everything in a run that can't be trusted is broken;
  upheld passed; the rest is skipped. A message begins with the word for it, by which Allure's categories sort;
- who a case is depends on its run's label and its own id alone, so that a series keeps its history;
- clauses are judged together: each is given the same share of the run's time, and the sum is the run's;
- no text holds a character that XML forbids.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from importlib.metadata import version

from conformance.reports import svg, swimlanes
from conformance.reports.incident import incident_of
from conformance.reports.text import WORDS, counted, events, failure, keepers, sources, times
from conformance.reports.timeline import drawing
from conformance.reports.view import CheckView, ClauseView, FaultView, VerdictView
from conformance.reports.visible import visible
from specs import links
from specs.clauses.clause import Clause
from specs.history.clock import host_clock
from specs.history.row import Row
from specs.verdicts.tally import FaultTold
from specs.verdicts.verdict import (
    EACH_FAULT_HAD_AN_EFFECT,
    ClauseVerdict,
    RunVerdict,
)

THE_RUN = Clause.FAMILIES["MET"]
NOT_TRUSTED = "not trusted"
LESS_SPECIFIC = "refuted too"
IDLE_CHECK = "nothing to check"
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MOST_LABEL = 200


class Status(StrEnum):
    """As Allure calls it; JUnit says failure, error and skipped."""

    PASSED = "passed"
    FAILED = "failed"
    BROKEN = "broken"
    SKIPPED = "skipped"


class Severity(StrEnum):
    """What it means for an application when the promise is broken."""

    BLOCKER = "blocker"
    CRITICAL = "critical"
    NORMAL = "normal"
    MINOR = "minor"


# Lost or out of order: nobody can repair it afterwards. Done twice, or standing still: somebody can.
_SEVERITY = {
    "ORD": Severity.BLOCKER,
    "SND": Severity.BLOCKER,
    "CMT": Severity.BLOCKER,
    "LSE": Severity.CRITICAL,
    "DLQ": Severity.CRITICAL,
    "LIV": Severity.CRITICAL,
    "PML": Severity.CRITICAL,
    "FLR": Severity.CRITICAL,
    "KEY": Severity.CRITICAL,
    "GEN": Severity.CRITICAL,
    "RTY": Severity.NORMAL,
    "ASG": Severity.NORMAL,
    "MET": Severity.NORMAL,
}
_STATUS = {
    ClauseVerdict.UPHELD: Status.PASSED,
    ClauseVerdict.REFUTED: Status.FAILED,
    ClauseVerdict.POSSIBLE: Status.BROKEN,
    ClauseVerdict.NOT_EXERCISED: Status.SKIPPED,
    ClauseVerdict.NOT_RECORDED: Status.SKIPPED,
    ClauseVerdict.NOT_CLAIMED: Status.SKIPPED,
    ClauseVerdict.ALLOWED: Status.SKIPPED,
}


class Form(StrEnum):
    """What an attachment holds."""

    TEXT = "text"
    JSON = "json"
    SVG = "svg"


@dataclass(frozen=True, slots=True)
class Attachment:
    """A text beside a case."""

    name: str
    text: str
    form: Form = Form.TEXT


@dataclass(frozen=True, slots=True)
class FaultStep:
    """A fault of the run. Times are in us since the run began."""

    name: str
    status: Status
    from_us: int
    to_us: int
    evidence: str


@dataclass(frozen=True, slots=True)
class Case:
    """A clause or a check of the run, and what came of it.

    word: what came of it, in words (`refuted`, `not exercised`). message: a sentence that begins with the word; empty
    for what passed. details: the story of a failure. facts: what else is to be said, by name. page: the address of
    the clause's page, where it has one. steps: of a failure, and of the check of the faults: what was broken meanwhile.
    """

    id: str
    name: str
    family: str
    status: Status
    word: str
    severity: Severity
    statement: str = ""
    message: str = ""
    details: str = ""
    evidence: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    attachments: tuple[Attachment, ...] = ()
    page: str | None = None
    begin_us: int = 0
    took_us: int = 0
    steps: tuple[FaultStep, ...] = ()


@dataclass(frozen=True, slots=True)
class CaseRun:
    """The cases of one run. label: of which series it is. began_us: since 1970, UTC. environment: what was judged, by
    name. rate: which clauses were broken again in how many tries, where somebody has tried. exposures: what stepped
    wall clocks let happen, a line each."""

    label: str
    target: str
    profile: str
    run: str
    seed: int
    verdict: str
    replay: str
    host: str
    began_us: int
    took_us: int
    environment: tuple[tuple[str, str], ...]
    cases: tuple[Case, ...]
    faults: tuple[FaultStep, ...] = ()
    rate: str = ""
    exposures: tuple[str, ...] = ()
    identity: str = field(repr=False, default="")

    @property
    def title(self) -> str:
        """The label, as long as a page can show it."""
        return shown(self.label) or "unnamed"

    def known_as(self, case_id: str) -> str:
        """Who a case is, in every run of the series: a hash of the label and of the case's id."""
        return digest(f"{self.identity}\n{case_id}")

    def case(self, name: str) -> Case | None:
        """The case of that id."""
        return next((each for each in self.cases if each.id == name), None)


def by_family(cases: Sequence[Case]) -> dict[str, list[Case]]:
    """Cases by family, families in the order of their first case."""
    found: dict[str, list[Case]] = {}
    for case in cases:
        found.setdefault(case.family, []).append(case)
    return found


def digest(text: str) -> str:
    """A short name for a long one; as Allure makes them."""
    return hashlib.md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


def clean(text: str) -> str:
    """Text without the characters that XML 1.0 can't hold, and with those spelt out that command a terminal."""
    return visible(_NOT_XML.sub("�", text))


def shown(text: str) -> str:
    """A name on one line, as long as a page can show it; two long ones that differ stay two."""
    line = " ".join(clean(text).split())
    return line if len(line) <= _MOST_LABEL else f"{line[:_MOST_LABEL]}… {digest(text)[:8]}"


def _page_of(clause_id: str) -> str | None:
    """The address of a clause's page, for what is read on another machine; None where the project has none."""
    page = links.clause_page(clause_id)
    return None if page is None else links.web(page)


def cases_of(verdict: VerdictView, context: Sequence[Row] = ()) -> CaseRun:
    """The cases of a run. context: rows that a picture shows beside the evidence."""
    occasion = verdict.occasion
    cases = [
        *(_of_clause(verdict, clause, context) for clause in verdict.clauses),
        *(_of_check(check) for check in verdict.met),
    ]
    faults = tuple(_step(fault.told) for fault in verdict.told_faults if fault.told is not None)
    cases = [
        replace(case, steps=faults)
        if case.status is Status.FAILED or case.id == EACH_FAULT_HAD_AN_EFFECT
        else case
        for case in cases
    ]
    began_us = occasion.began_us or host_clock().wall_us()
    share, rest = divmod(occasion.took_us, len(cases) or 1)
    timed, begin_us = [], began_us
    for number, case in enumerate(cases):
        took_us = share + (number < rest)
        timed.append(replace(case, begin_us=begin_us, took_us=took_us))
        begin_us += took_us
    return CaseRun(
        label=clean(verdict.label),
        target=clean(verdict.target),
        profile=clean(verdict.profile),
        run=clean(verdict.run),
        seed=verdict.seed,
        verdict=verdict.verdict.value,
        replay=clean(verdict.replay or ""),
        host=shown(occasion.host),
        began_us=began_us,
        took_us=occasion.took_us,
        environment=tuple((name, clean(value)) for name, value in _environment(verdict)),
        cases=tuple(timed),
        faults=faults,
        rate=_rate(verdict),
        exposures=tuple(clean(each.told) for each in verdict.exposures),
        identity=verdict.label,
    )


def _rate(verdict: VerdictView) -> str:
    if verdict.rate is None:
        return ""
    return f"{', '.join(verdict.rate.clauses)} broken again in {verdict.rate}"


def _step(told: FaultTold) -> FaultStep:
    """A fault that lasted to the end of the run has no end of its own."""
    end_ms = told.from_ms if told.to_ms is None else told.to_ms
    status = Status.PASSED if told.effective else Status.BROKEN
    evidence = clean(FaultView(told.name, told.effective, told).evidence)
    return FaultStep(shown(told.name), status, told.from_ms * 1000, end_ms * 1000, evidence)


def _environment(verdict: VerdictView) -> list[tuple[str, str]]:
    """What came of it, in words; what was judged, under which profile, with which seed."""
    return [
        ("verdict", counted(verdict)),
        ("target", verdict.target),
        ("profile", verdict.profile),
        ("seed", str(verdict.seed)),
        *sorted(verdict.parties.items()),
        ("levels", ", ".join(verdict.levels)),
        *((f"tool.{name}", str(value)) for name, value in sorted(verdict.tool.items())),
        ("inorder", version("inorder")),
    ]


def _of_clause(verdict: VerdictView, clause: ClauseView, context: Sequence[Row]) -> Case:
    status, word, why = _came_to(verdict, clause)
    said_in = sources(clause.id)
    facts = [
        ("owed by", keepers(verdict, clause)),
        ("at stake", f"{times(clause.opportunities)} (floor {clause.floor:,})"),
    ]
    if clause.violations:
        facts.append(("broken", times(clause.violations)))
    if verdict.rate is not None and clause.id in verdict.rate.clauses:
        facts.append(("broken again in", str(verdict.rate)))
    if clause.findings:
        facts.append(("finding", ", ".join(clause.findings)))
    if said_in:
        facts.append(("source", ", ".join(said_in)))
    facts.append(("seed", str(verdict.seed)))
    if verdict.replay and clause.witness:
        facts.append(("replay", verdict.replay))
    return Case(
        id=clause.id,
        name=shown(clause.name),
        family=clause.family,
        status=status,
        word=word,
        severity=_SEVERITY.get(clause.id.partition("-")[0], Severity.MINOR),
        statement=clean(clause.statement),
        message=clean(f"{word}: {why}") if why else "",
        details=clean(failure(verdict, clause, context=context)) if clause.witness else "",
        evidence=clean(events(clause.witness)) if clause.witness else "",
        facts=tuple((name, clean(value)) for name, value in facts),
        attachments=_attachments(verdict, clause, context),
        page=_page_of(clause.id),
    )


def _came_to(verdict: VerdictView, clause: ClauseView) -> tuple[Status, str, str]:
    """Its status, the word for it, and why."""
    word = WORDS[clause.verdict].lower()
    if verdict.verdict is RunVerdict.INADMISSIBLE:
        return Status.BROKEN, NOT_TRUSTED, "the run can't be trusted, see the checks of the run"
    if clause.hidden:
        return Status.SKIPPED, LESS_SPECIFIC, clause.reason
    match clause.verdict:
        case ClauseVerdict.UPHELD:
            return Status.PASSED, word, ""
        case ClauseVerdict.REFUTED:
            return Status.FAILED, word, clause.happened or "no evidence was kept"
        case ClauseVerdict.POSSIBLE:
            why = "; ".join(filter(None, (clause.happened.rstrip("."), clause.reason)))
            return Status.BROKEN, word, why
        case other:
            return _STATUS[other], word, clause.reason or "no reason was given"


def _of_check(check: CheckView) -> Case:
    status = {True: Status.PASSED, False: Status.BROKEN, None: Status.SKIPPED}[check.ok]
    word = {True: "passed", False: THE_RUN, None: IDLE_CHECK}[check.ok]
    told = ": ".join(filter(None, (check.title, check.detail)))
    why = f"not met: {told}" if check.ok is False else told
    return Case(
        id=check.id,
        name=shown(f"{check.id} {check.title}"),
        family=THE_RUN,
        status=status,
        word=word,
        severity=_SEVERITY["MET"],
        statement=clean(f"A check of the run, not of what was judged: {check.title}."),
        message="" if check.ok else clean(f"{word}: {why}"),
    )


def _attachments(
    verdict: VerdictView, clause: ClauseView, context: Sequence[Row]
) -> tuple[Attachment, ...]:
    """What a clause with evidence carries, the picture first."""
    if not clause.witness:
        return ()
    rows = [row.to_json() for row in clause.witness]
    found = [
        Attachment("swim lanes", svg.render(swimlanes.picture(clause, context)), Form.SVG),
        Attachment("what happened", failure(verdict, clause, context=context)),
        Attachment("timeline", drawing(incident_of(clause.witness, context))),
        Attachment("witness", events(clause.witness)),
        Attachment("witness (rows)", json.dumps(rows, indent=2, sort_keys=True), Form.JSON),
    ]
    if verdict.replay:
        found.append(Attachment("replay command", verdict.replay))
    return tuple(
        each if each.form is Form.SVG else replace(each, text=clean(each.text)) for each in found
    )
