"""A find on real parts: done again for its rate, made smaller by tries that may miss it, and kept as it comes again."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from chaos.hunting import find as finding
from chaos.hunting.draw import MESSAGES_REAL
from chaos.hunting.find import Again, Find, real
from chaos.hunting.search import Example
from chaos.scenario import Scenario, Workload, load
from chaos.step import StepTemplate
from conformance.reports.saving import save
from conformance.targets.base import find
from specs.errors import TargetMisbehaved
from specs.history.store import write_history
from specs.history.text import parse_history
from specs.profiles import load as load_profile
from specs.verdicts.engine import of_one_run
from specs.verdicts.examine import examine
from specs.verdicts.verdict import Verdict

CLAUSE = "LSE-14"
HELD = "0ms alice locks billing/orders/b0/3 ok"
BROKEN = f"{HELD}\n59999ms bob locks billing/orders/b0/3 ok"
PROFILE = load_profile("reference")
SCENARIO = Scenario(
    "drawn-1",
    "Drawn.",
    (),
    (),
    Workload(consumers=3, messages=MESSAGES_REAL),
    tuple(
        StepTemplate(do, {"client": "c1", "after_messages": n, "for_ms": 300})
        for n, do in enumerate(("pause", "cut", "crash", "delay", "stop"))
    ),
    config={"batch": 3},
)


class _Parts:
    """In the place of brokers: what breaks where a client crashes, with this chance."""

    def __init__(self, chance: float) -> None:
        self._chance = chance
        self._dice = Random(1)
        self.asked: list[Scenario] = []
        self.fails_at: int | None = None

    def run_scenario(
        self, scenario: Scenario, target: object, profile: object, *, out: Path, **_: Any
    ) -> tuple[Verdict, None]:
        self.asked.append(scenario)
        if self.fails_at == len(self.asked):
            raise TargetMisbehaved("a broker did not come up")
        crashes = any(fault.do == "crash" for fault in scenario.faults)
        return written(out, broken=crashes and self._dice.random() < self._chance), None


def written(folder: Path, *, broken: bool) -> Verdict:
    folder.mkdir()
    info, rows = parse_history(BROKEN if broken else HELD)
    write_history(folder, info, rows)
    return of_one_run(examine(rows, info), info, PROFILE)


def found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, parts: _Parts, small_s: float = 60.0
) -> Find:
    monkeypatch.setattr(finding, "run_scenario", parts.run_scenario)
    kept = tmp_path / "example"
    example = Example(
        1, SCENARIO, 7, refuted=(CLAUSE,), kept=(kept, save(written(kept, broken=True), kept))
    )
    how = Again([find("reference")], PROFILE, 5, small_s, lambda: False, lambda words: None)
    return real(example, CLAUSE, None, tmp_path / "find", how)


def test_what_is_not_needed_goes_though_it_does_not_break_each_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its scenario can be read back, its rate is of tries made afterwards, and only its own run stays."""
    parts = _Parts(0.7)
    made = found(monkeypatch, tmp_path, parts)
    assert [fault.do for fault in made.scenario.faults] == ["crash"]
    work = made.scenario.workload
    assert (work.consumers, work.messages, made.scenario.config) == (1, finding.FEWER[0], {})
    assert load(str(made.folder / "scenario.toml")).faults == made.scenario.faults
    assert len(made.rate.tries) == 5
    assert parts.asked[-5:] == [made.scenario] * 5
    assert json.loads((made.folder / "rate.json").read_text())["of"] == 5
    assert [path for path in (tmp_path / "find").iterdir() if path.is_dir()] == [made.folder]


def test_what_never_comes_again_is_kept_as_it_was_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = found(monkeypatch, tmp_path, _Parts(0.0))
    assert (made.scenario, made.folder, made.rate.broken) == (SCENARIO, tmp_path / "example", 0)
    assert len(made.rate.tries) == 5


def test_without_minutes_it_is_only_tried_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    parts = _Parts(1.0)
    made = found(monkeypatch, tmp_path, parts, small_s=0)
    assert (made.scenario, made.rate.broken, len(parts.asked)) == (SCENARIO, 5, 5)


def test_a_try_that_fails_breaks_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    parts = _Parts(1.0)
    parts.fails_at = 2
    made = found(monkeypatch, tmp_path, parts, small_s=0)
    assert made.rate.tries == (True, False, True, True, True)
