"""A verdict as GitHub's workflow commands: lines on a job's log that its pages show as errors and warnings.

The format and its escapes: GitHub's documentation, "Workflow commands for GitHub Actions".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conformance.reports.text import closing
from conformance.reports.view import VerdictView
from conformance.reports.visible import visible
from specs.verdicts.baseline import State
from specs.verdicts.verdict import ClauseVerdict, RunVerdict

ERROR, WARNING, NOTICE = "error", "warning", "notice"


def render(verdicts: Sequence[VerdictView]) -> str:
    """One line for each failure, each stale entry of a baseline, and each verdict."""
    return visible("".join(f"{line}\n" for verdict in verdicts for line in _of(verdict)))


def _of(verdict: VerdictView) -> Iterator[str]:
    for clause in verdict.failures:
        level = ERROR if clause.verdict is ClauseVerdict.REFUTED else WARNING
        again = f" Replay: {verdict.replay}" if verdict.replay else ""
        yield _line(level, f"{clause.name} ({verdict.target})", f"{clause.happened}{again}")
    for check in verdict.met:
        if check.ok is False:
            yield _line(ERROR, f"{check.id} {check.title} ({verdict.target})", check.detail)
    for entry in verdict.known:
        if entry.state in (State.EXPIRED, State.NOT_SEEN):
            yield _line(WARNING, f"Baseline ({verdict.target})", entry.told)
    level = NOTICE if verdict.verdict is RunVerdict.UPHELD else ERROR
    yield _line(level, f"{verdict.target}: {verdict.verdict.value}", f"{closing(verdict)}.")


def _line(level: str, title: str, message: str) -> str:
    return f"::{level} title={_property(title)}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
