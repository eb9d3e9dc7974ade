"""A verdict as JUnit XML, as CI servers read it: one suite per family, one case per clause.

Refuted is a failure; possible is an error, and so is everything in a run that can't be trusted; clauses that were
not claimed, not recorded, not exercised or allowed are skipped with their reason.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree

from conformance.reports.text import failure
from conformance.reports.view import CheckView, ClauseView, VerdictView, families
from specs.history.row import Row
from specs.verdicts.verdict import ClauseVerdict, RunVerdict

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SKIPPED = {
    ClauseVerdict.NOT_CLAIMED,
    ClauseVerdict.NOT_EXERCISED,
    ClauseVerdict.NOT_RECORDED,
    ClauseVerdict.ALLOWED,
}


def render(verdicts: Sequence[VerdictView], *, context: Sequence[Row] = ()) -> str:
    """The document for one or several runs."""
    root = ElementTree.Element("testsuites", name="inorder")
    for verdict in verdicts:
        _add(root, verdict, context)
    _count(root, list(root.iter("testcase")))
    ElementTree.indent(root)
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        + ElementTree.tostring(root, encoding="unicode")
        + "\n"
    )


def _add(root: ElementTree.Element, verdict: VerdictView, context: Sequence[Row]) -> None:
    for family, clauses in families([clause for clause in verdict.clauses if not clause.hidden]):
        suite = _suite(root, verdict, family)
        for clause in clauses:
            _add_clause(suite, verdict, clause, context)
        _count(suite, list(suite))
    if verdict.met:
        suite = _suite(root, verdict, "the run itself")
        for check in verdict.met:
            _add_check(suite, verdict, check)
        _count(suite, list(suite))


def _suite(root: ElementTree.Element, verdict: VerdictView, family: str) -> ElementTree.Element:
    suite = ElementTree.SubElement(root, "testsuite", name=f"{verdict.target}: {family}")
    properties = ElementTree.SubElement(suite, "properties")
    values = {
        "target": verdict.target,
        "profile": verdict.profile,
        "seed": str(verdict.seed),
        "run": verdict.run,
    }
    if verdict.replay:
        values["replay"] = verdict.replay
    for name, value in values.items():
        ElementTree.SubElement(properties, "property", name=name, value=clean(value))
    return suite


def _case(
    suite: ElementTree.Element, verdict: VerdictView, name: str, group: str
) -> ElementTree.Element:
    return ElementTree.SubElement(
        suite,
        "testcase",
        classname=clean(f"inorder.{verdict.target}.{group}"),
        name=clean(name),
        time="0",
    )


def _add_clause(
    suite: ElementTree.Element, verdict: VerdictView, clause: ClauseView, context: Sequence[Row]
) -> None:
    case = _case(suite, verdict, clause.name, clause.family)
    if verdict.verdict is RunVerdict.INADMISSIBLE:
        ElementTree.SubElement(
            case, "error", message="the run can't be trusted", type="inadmissible"
        )
    elif clause.verdict in _SKIPPED:
        ElementTree.SubElement(
            case, "skipped", message=clean(f"{clause.verdict.value}: {clause.reason}")
        )
    elif clause.verdict in (ClauseVerdict.REFUTED, ClauseVerdict.POSSIBLE):
        tag = "failure" if clause.verdict is ClauseVerdict.REFUTED else "error"
        told = ElementTree.SubElement(
            case, tag, message=clean(clause.happened), type=clause.verdict.value
        )
        told.text = clean(failure(verdict, clause, context=context))


def _add_check(suite: ElementTree.Element, verdict: VerdictView, check: CheckView) -> None:
    case = _case(suite, verdict, f"{check.id} {check.title}", "run")
    if check.ok is False:
        ElementTree.SubElement(case, "error", message=clean(check.detail), type="check")
    elif check.ok is None:
        ElementTree.SubElement(case, "skipped", message="nothing to check")


def _count(element: ElementTree.Element, below: Sequence[ElementTree.Element]) -> None:
    cases = [each for each in below if each.tag == "testcase"]
    element.set("tests", str(len(cases)))
    for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        element.set(attribute, str(sum(case.find(tag) is not None for case in cases)))


def clean(text: str) -> str:
    """Text without the characters that XML 1.0 can't hold."""
    return _NOT_XML.sub("�", text)
