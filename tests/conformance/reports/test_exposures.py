"""Reports tell what a stepped wall clock let happen, with its events."""

from __future__ import annotations

from conformance.reports.cases import cases_of
from conformance.reports.markdown import render
from conformance.reports.text import render as as_text
from conformance.reports.text import report
from conformance.reports.view import view
from tests.specs.verdicts.test_exposures import GRANT, STEP, STRANGER, judged


def test_a_page_shows_the_step_and_what_came_of_it() -> None:
    seen = view(judged(GRANT + STEP + STRANGER))
    for page in (as_text(report(seen, width=100)), render([seen])):
        assert "EXPOSED  LSE-1 one owner at a time" in page
        assert "b0's clock was set by +70000 ms, 51 ms before" in page
        assert "harness  steps-clock  b0" in page


def test_machines_are_told_in_a_line() -> None:
    (told,) = cases_of(view(judged(GRANT + STEP + STRANGER))).exposures
    assert told.startswith("LSE-1 one owner at a time: 51 ms after b0's clock was set")


def test_without_exposures_nothing_is_said() -> None:
    seen = view(judged(GRANT + STEP))
    assert "EXPOSED" not in as_text(report(seen, width=100)) + render([seen])
