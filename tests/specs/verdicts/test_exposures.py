"""Exposures: what a stepped wall clock let happen is told with its events, and nothing is held against anybody."""

from __future__ import annotations

import json

from specs.history.runinfo import RunInfo
from specs.history.text import parse_history
from specs.plan.config import Config
from specs.profiles import load
from specs.verdicts.engine import concluded
from specs.verdicts.examine import examine
from specs.verdicts.verdict import RunVerdict, Verdict, with_exposures

OURS = dict.fromkeys(("broker", "client", "producer"), "inorder reference")
GRANT = "0ms..1ms  alice  locks  billing/orders/b0/3  ok\n"
STEP = "50ms  harness  steps-clock  b0  value=70000\n"
STRANGER = "100ms..101ms  bob  locks  billing/orders/b0/3  ok\n"
KEPT = "60001ms..60002ms  bob  locks  billing/orders/b0/3  ok\n"


def judged(text: str, parties: dict[str, str] = OURS, profile: str = "reference") -> Verdict:
    info = RunInfo(run="r", parties=parties, config=Config(broker_lease_ms=60_000))
    _info, rows = parse_history(text)
    found = examine(rows, info)
    verdict = concluded(found, info, load(profile), {}, {})
    return with_exposures(verdict, rows) if found.clock_stepped else verdict


def test_a_stranger_who_is_granted_a_lane_after_a_step_is_an_exposure() -> None:
    verdict = judged(GRANT + STEP + STRANGER)
    (found,) = verdict.exposures
    assert (found.clause, found.after_ms, found.times) == ("LSE-1", 51, 1)
    assert found.stepped == "b0's clock was set by +70000 ms"
    told = json.loads(json.dumps(verdict.to_json()))["exposures"][0]
    assert [row["kind"] for row in told["rows"]] == ["lock", "clock_step", "lock"]
    assert told["explanation"].startswith("bob was granted billing/orders/b0/3")


def test_it_changes_neither_the_verdict_nor_the_exit_code() -> None:
    verdict, without = judged(GRANT + STEP + STRANGER), judged(GRANT + STEP)
    assert verdict.verdict is not RunVerdict.REFUTED
    assert (verdict.verdict, verdict.exit_code) == (without.verdict, without.exit_code)


def test_without_a_step_the_same_events_are_a_violation_and_no_exposure() -> None:
    verdict = judged(GRANT + STRANGER)
    assert (verdict.verdict, verdict.exposures) == (RunVerdict.REFUTED, ())


def test_what_came_before_the_step_is_a_violation_and_no_exposure() -> None:
    verdict = judged(GRANT + STRANGER + STEP.replace("50ms", "200ms"))
    assert (verdict.verdict, verdict.exposures) == (RunVerdict.REFUTED, ())


def test_a_step_that_lets_nothing_happen_exposes_nothing() -> None:
    assert judged(GRANT + STEP + KEPT).exposures == ()
    assert judged(GRANT + STEP.replace("70000", "0") + STRANGER).exposures == ()


def test_what_a_profile_does_not_promise_is_no_exposure() -> None:
    assert judged(GRANT + STEP + STRANGER, profile="minimal-fifo").exposures == ()
