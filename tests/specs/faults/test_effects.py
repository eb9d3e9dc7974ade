"""Each fault in a simulated run: its file finds what it did in the history, and nothing where it did nothing."""

from __future__ import annotations

from typing import Any

import pytest

from specs.faults import FAULTS
from specs.plan.fault import Subject
from specs.vocabulary import Outcome
from tests.specs.faults.simulated import IDLE, run_with

LOCK = 41
AT_WORK: dict[str, Any] = {
    "client": "c1",
    "broker": "b0",
    "node": "c1",
    "a": "c1",
    "b": "b0",
    "ms": 400,
    "percent": 60,
    "kb_per_s": 2,
    "piece_bytes": 20,
    "after_bytes": 2_000,
    "code": LOCK,
}
OF_THE_PRODUCER = {"duplicate": {"a": "p1", "percent": 100}, "reorder": {"a": "p1"}}
"""Some show in sends only, or best there."""


def arguments_of(verb: str) -> dict[str, Any]:
    fault = FAULTS[verb]
    args = {name: AT_WORK[name] for name, (_, needed) in fault.arguments.items() if needed}
    return {**args, **OF_THE_PRODUCER.get(verb, {})}


@pytest.mark.parametrize("verb", list(FAULTS))
def test_a_fault_at_work_shows_in_the_history(verb: str) -> None:
    rows, fault = run_with(verb, 2_500, **arguments_of(verb))
    assert fault is not None
    assert (fault.detail or "").split()[0] == verb
    assert fault.outcome is Outcome.OK
    assert FAULTS[verb].attest(rows, fault) is not None


@pytest.mark.parametrize("verb", [verb for verb, fault in FAULTS.items() if fault.twin])
def test_the_twin_of_a_fault_has_no_effect(verb: str) -> None:
    rows, fault = run_with(verb, 2_500, **{**arguments_of(verb), **FAULTS[verb].twin})
    assert fault is not None
    assert fault.outcome is Outcome.REFUSED
    assert FAULTS[verb].attest(rows, fault) is None


@pytest.mark.parametrize(
    "verb", [verb for verb, fault in FAULTS.items() if fault.subject is Subject.LINK]
)
def test_a_fault_of_an_idle_link_has_no_effect(verb: str) -> None:
    rows, fault = run_with(verb, 2_500, **{**arguments_of(verb), "a": IDLE})
    assert fault is not None
    assert fault.outcome is Outcome.REFUSED
    assert FAULTS[verb].attest(rows, fault) is None
