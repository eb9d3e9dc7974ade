"""Runs as JUnit XML, as CI servers read it: one suite per family, one case per clause and per check of a run.

Refuted is a failure; possible and whatever makes a run inconclusive is an error; the rest is skipped, with its reason.
The document keeps `specs/schemas/junit.xsd`: what both Jenkins' xUnit plugin and GitLab read. Neither the target nor
the seed is in the name of a case, so that its history goes on: they are properties of its suite. Only where somebody
named the run, or where a document holds several, does the run's name tell the cases apart.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain, count
from xml.etree import ElementTree

from conformance.reports.cases import Case, CaseRun, Status, by_family, cases_of, shown
from conformance.reports.view import VerdictView
from specs.history.row import Row

_TAGS = {Status.FAILED: "failure", Status.BROKEN: "error", Status.SKIPPED: "skipped"}
_US = 1_000_000


def render(verdicts: Sequence[VerdictView], *, context: Sequence[Row] = ()) -> str:
    """The document for one or several runs."""
    root = ElementTree.Element("testsuites", name="inorder")
    runs = [cases_of(verdict, context) for verdict in verdicts]
    several = len(verdicts) > 1
    taken: set[str] = set()
    for run, verdict in zip(runs, verdicts, strict=True):
        group = _word(run.title if several else shown(verdict.occasion.name), taken)
        for family, cases in by_family(run.cases).items():
            _add_suite(root, run, f"inorder{group}.{family}", cases)
    every = [case for run in runs for case in run.cases]
    _set(root, {"time": _seconds(every), **_counts(every)})
    ElementTree.indent(root)
    body = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{body}\n'


def _add_suite(
    root: ElementTree.Element, run: CaseRun, classname: str, cases: Sequence[Case]
) -> None:
    suite = ElementTree.SubElement(root, "testsuite", name=f"{run.title}: {cases[0].family}")
    _set(suite, {**_counts(cases), "skipped": _count(cases, Status.SKIPPED)})
    began = datetime.fromtimestamp(cases[0].begin_us / _US, tz=UTC)
    _set(suite, {"time": _seconds(cases), "timestamp": f"{began:%Y-%m-%dT%H:%M:%S}"})
    _set(suite, {"hostname": run.host or "unknown"})
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in _properties(run).items():
        ElementTree.SubElement(properties, "property", name=name, value=value)
    for case in cases:
        _add_case(suite, classname, case)


def _properties(run: CaseRun) -> Mapping[str, str]:
    known = {"target": run.target, "profile": run.profile, "seed": str(run.seed), "run": run.run}
    for number, fault in enumerate(run.faults, start=1):
        times = f"{fault.from_us / _US:.3f} s to {fault.to_us / _US:.3f} s"
        known[f"fault.{number}"] = f"{fault.name}, {times}: {fault.evidence}"
    for number, told in enumerate(run.exposures, start=1):
        known[f"exposure.{number}"] = told
    more = {"replay": run.replay, "rate": run.rate}
    return {**known, **{name: value for name, value in more.items() if value}}


def _add_case(suite: ElementTree.Element, classname: str, case: Case) -> None:
    element = ElementTree.SubElement(
        suite, "testcase", classname=classname, name=case.name, time=_seconds([case])
    )
    tag = _TAGS.get(case.status)
    if tag is None:
        return
    told = ElementTree.SubElement(element, tag, message=case.message, type=case.word)
    told.text = case.details or case.message


def _counts(cases: Sequence[Case]) -> dict[str, str]:
    failures, errors = _count(cases, Status.FAILED), _count(cases, Status.BROKEN)
    return {"tests": str(len(cases)), "failures": failures, "errors": errors}


def _count(cases: Sequence[Case], status: Status) -> str:
    return str(sum(case.status is status for case in cases))


def _seconds(cases: Sequence[Case]) -> str:
    return f"{sum(case.took_us for case in cases) / _US:.3f}"


def _word(name: str, taken: set[str]) -> str:
    """A name as a part of a class's: servers divide those at dots, and of two cases of one name GitLab shows one."""
    word = re.sub(r"[^\w+-]+", "-", name).strip("-")
    others = (f"{word}-{number}" for number in count(2))
    word = next(each for each in chain([word], others) if each not in taken)
    taken.add(word)
    return f".{word}" if word else ""


def _set(element: ElementTree.Element, values: Mapping[str, str]) -> None:
    for name, value in values.items():
        element.set(name, value)
