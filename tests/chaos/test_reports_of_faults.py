"""What reports tell of a chaos run's faults: which, when, what shows its effect, and how the lanes went on."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from chaos.cli import find_target
from chaos.runner import run_scenario
from chaos.scenario import load
from conformance.reports import allure, junit, markdown
from conformance.reports.text import render, report
from conformance.reports.view import VerdictView, parse
from specs import profiles

TARGET = "mutant:takeover-keeps-old-owner"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> VerdictView:
    target = find_target(TARGET, "process")
    out = tmp_path_factory.mktemp("chaos") / "run"
    verdict, _history = run_scenario(
        load("consumer-paused"), target, profiles.load("reference"), seed=1, out=out
    )
    return parse(verdict.to_json(), where="the run")


def test_a_fault_has_its_time_its_evidence_and_a_recovery(made: VerdictView) -> None:
    (fault,) = made.faults
    assert fault.told is not None
    assert fault.told.to_ms is not None
    assert 0 < fault.told.from_ms < fault.told.to_ms
    assert fault.told.lanes > 0
    assert fault.told.recovered_ms is not None
    assert "went on within" in fault.evidence


def test_every_report_tells_of_it(made: VerdictView, tmp_path: Path) -> None:
    (fault,) = made.faults
    assert f"pause c1, {fault.lasted}: {fault.evidence}" in " ".join(
        render(report(made, width=1000), width=1000).split()
    )
    assert f"| pause c1 | {fault.lasted} | {fault.evidence} |" in markdown.render([made])
    properties = {
        each.get("name"): each.get("value")
        for each in ElementTree.fromstring(junit.render([made])).iter("property")
    }
    assert properties["fault.1"] == f"pause c1, {fault.lasted}: {fault.evidence}"
    allure.write(made, tmp_path)
    results = [json.loads(path.read_text()) for path in tmp_path.glob("*-result.json")]
    stepped = {each["name"]: each["steps"] for each in results if each.get("steps")}
    assert any(name.startswith("LSE-1 ") for name in stepped)
    assert any("each fault had an effect" in name for name in stepped)
    (step,) = next(iter(stepped.values()))
    assert (step["name"], step["status"]) == ("pause c1", "passed")
    assert step["statusDetails"]["message"] == fault.evidence
    assert step["start"] < step["stop"]
