"""A run on real parts becomes smaller by tries that say how often it breaks; every try and the smallest are kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from click.testing import Result

from conformance import shrink_real
from conformance.confirm import failure_of
from conformance.reports.saving import save
from conformance.reports.schemas import SHRINK_SCHEMA, schema
from conformance.run import SAY
from conformance.shrink_run import Shrunk
from conformance.stopping import Bounds, Stop
from conformance.targets.base import Target, find
from specs.errors import UsageError
from specs.history.runinfo import RunInfo
from specs.history.store import History, write_history
from specs.history.text import parse_history
from specs.plan.plan import Action, ClientPlan, Plan
from specs.plan.step import Step
from specs.profiles import load as load_profile
from specs.verdicts.engine import of_one_run
from specs.verdicts.examine import examine

Run = Callable[..., Result]
CLAUSE, TARGET = "LSE-14", "mutant+tcp:guard-ignores-expiry"
HELD = "0ms alice locks billing/orders/b0/3 ok"
BROKEN = f"{HELD}\n59999ms bob locks billing/orders/b0/3 ok"
STEPS = tuple(
    Step(do, {"client": name} if do == "crash" else {"node": name}, client=name)
    for do, name in (("pause", "c1"), ("pause", "c2"), ("crash", "c2"), ("pause", "c1"))
)
PLAN = Plan(
    clients=tuple(
        ClientPlan(name, "consumer", "billing", ("orders",)) for name in ("c1", "c2", "c3")
    ),
    actions=tuple(Action(0, "start", {"client": name}) for name in ("c1", "c2", "c3")),
    steps=STEPS,
)


class _Parts:
    """In the place of brokers: what breaks where a client crashes, and of its runs every third does not."""

    def __init__(self, every: int = 3) -> None:
        self.every = every
        self.asked: list[Plan] = []
        self.ends_after: int | None = None

    def run_again(self, info: RunInfo, target: Target, folder: Path, say: SAY) -> History:
        plan = Plan.from_json(info.plan or {}, "the plan")
        self.asked.append(plan)
        if self.ends_after is not None and len(self.asked) > self.ends_after:
            raise KeyboardInterrupt
        crashes = any(step.do == "crash" for step in plan.steps)
        breaks = crashes and len(self.asked) % self.every != 0
        return written(plan, folder, BROKEN if breaks else HELD)


def written(plan: Plan, folder: Path, text: str) -> History:
    info, rows = parse_history(text)
    told = replace(info, target=TARGET, plan=plan.to_json(), profile="reference")
    return write_history(folder, told, rows)


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> _Parts:
    made = _Parts()
    monkeypatch.setattr(shrink_real, "run_again", made.run_again)
    return made


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A run with faults of which one is needed."""
    folder = tmp_path / "run"
    folder.mkdir()
    history = written(PLAN, folder, BROKEN)
    rows = list(history.rows())
    save(of_one_run(examine(rows, history.info), history.info, load_profile("reference")), folder)
    return folder


def steps_of(folder: Path) -> int:
    return len(json.loads((folder / "run.json").read_text())["plan"].get("steps", []))


def shrunk(run: Path, out: Path, stop: Stop | None = None) -> Shrunk | None:
    stop = Stop(Bounds(60)) if stop is None else stop
    return shrink_real.shrink_real(
        run, out, find(TARGET), stop, lambda words: None, clause_id=CLAUSE
    )


class _After(Stop):
    """Over when so many tries were made."""

    def __init__(self, parts: _Parts, tries: int) -> None:
        super().__init__(Bounds(1))
        self._parts, self._tries = parts, tries

    @property
    def passed_s(self) -> float:
        return 2.0 if len(self._parts.asked) >= self._tries else 0.0


def test_a_plan_becomes_smaller_though_it_does_not_break_in_every_run(
    parts: _Parts, broken: Path, tmp_path: Path
) -> None:
    """What is left is a run that breaks the clause, with its rate, and nothing else stays but the tries."""
    out = tmp_path / "small"
    made = shrunk(broken, out)
    assert made is not None
    assert (made.before.faults, made.after.faults, made.after.clients) == (4, 1, 1)
    assert (steps_of(out), made.clause.id) == (1, CLAUSE)
    assert CLAUSE in failure_of(out, CLAUSE).clauses
    assert json.loads((out / "rate.json").read_text())["broken"] >= 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "small", "small.tries.json"]


def test_the_smallest_is_not_told_as_smaller_when_nothing_is(
    parts: _Parts, broken: Path, tmp_path: Path
) -> None:
    """The time is over after the run itself was tried."""
    out = tmp_path / "small"
    assert shrunk(broken, out, _After(parts, 5)) is None
    assert (len(parts.asked), out.exists()) == (5, False)


def test_a_ctrl_c_keeps_the_smallest_so_far_and_the_same_again_goes_on(
    run: Run, parts: _Parts, broken: Path, tmp_path: Path
) -> None:
    """It asks for nothing that was tried before."""
    out = tmp_path / "small"
    words = ("shrink", str(broken), "--clause", CLAUSE, "--out", str(out), "--format", "json")
    parts.ends_after = 11
    with pytest.raises(KeyboardInterrupt):
        shrunk(broken, out)
    before, asked = steps_of(out), [plan.to_json() for plan in parts.asked[:11]]
    assert 1 <= before < len(STEPS)
    parts.ends_after = None
    result = run(*words)
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    jsonschema.validate(printed, schema(SHRINK_SCHEMA))
    later = [plan.to_json() for plan in parts.asked[12:]]
    decided = [plan for plan in asked if plan != asked[-1]]
    assert [plan for plan in later if plan in decided] == []
    assert (printed["after"]["faults"], steps_of(out)) == (1, 1)


def test_another_folder_is_never_written_over(parts: _Parts, broken: Path, tmp_path: Path) -> None:
    out = tmp_path / "letters"
    out.mkdir()
    (out / "letter.txt").write_text("Dear all")
    with pytest.raises(UsageError, match="no run of ours"):
        shrunk(broken, out)
    assert (out / "letter.txt").read_text() == "Dear all"


def test_what_never_comes_again_is_not_made_smaller(
    parts: _Parts, broken: Path, tmp_path: Path
) -> None:
    parts.every = 1
    with pytest.raises(shrink_real.NeverAgain, match=r"0 of 5 .*inorder confirm"):
        shrunk(broken, tmp_path / "small")
    assert len(parts.asked) == shrink_real.TIMES


@pytest.mark.long
def test_a_chaos_run_on_sockets_is_made_smaller(run: Run, tmp_path: Path) -> None:
    """Of two faults the one that the bug does not need goes."""
    scenario = tmp_path / "two-faults.toml"
    scenario.write_text(
        """
why = "A consumer is back at once and begins at the end, and before that a link is slow."
clauses = []
must_reach = []
[workload]
consumers = 2
messages = 120
[[fault]]
do = "delay"
client = "c1"
ms = 30
for_ms = 300
after_messages = 3
[[fault]]
do = "crash"
client = "c1"
after_messages = 8
for_ms = 50
"""
    )
    found, bug = tmp_path / "runs", "mutant+tcp:starts-at-end"
    words = ("--target", bug, "--seed", "1", "--out", str(found), "--quiet")
    first = run("chaos", str(scenario), *words)
    assert first.exit_code == 1, first.output
    (folder,) = (path.parent for path in found.rglob("verdict.json"))
    out = tmp_path / "small"
    result = run("shrink", str(folder), "--clause", "ORD-4", "--minutes", "3", "--out", str(out))
    assert result.exit_code == 0, result.output
    assert steps_of(out) == 1
