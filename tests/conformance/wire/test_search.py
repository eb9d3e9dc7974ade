"""When a search on sockets ends: between two plans, and what was done until then is kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance.stopping import Bounds, Stop
from conformance.targets import reference_tcp
from conformance.wire import runner
from conformance.wire.runner import Part, work
from conformance.wire.work import ROUNDS
from specs import profiles
from specs.history.runinfo import RunInfo
from specs.history.store import write_history
from specs.verdicts.online import OnlineFindings
from specs.verdicts.tally import Examination

Done = Callable[..., int]


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Done:
    """How many plans a search does whose parts are done at once. interrupts: at which plan Ctrl-C comes."""
    part = Part(write_history(tmp_path / "part", RunInfo(run="r"), []), Examination())

    def searched(stop: Stop, interrupts: int = 0, **options: Any) -> int:
        plans = 0

        def do(*_: Any) -> Part:
            nonlocal plans
            plans += 1
            if plans == interrupts:
                stop.interrupted = True
                raise KeyboardInterrupt
            return part

        monkeypatch.setattr(runner, "ask", lambda *_, **__: (OnlineFindings(), part))
        monkeypatch.setattr(runner, "_done", do)
        found = work(
            reference_tcp.target(None),
            profiles.load("reference"),
            seed=1,
            examples=1,
            out=tmp_path / "run",
            stop=stop,
            **options,
        )
        return len(found.rounds)

    return searched


def test_the_first_plan_and_the_targets_rounds_are_done(done: Done) -> None:
    assert done(Stop()) == 1 + ROUNDS
    assert done(Stop(), rounds=0) == 1


def test_workers_make_each_round_once(done: Done) -> None:
    """Each begins with a plan of its own, and makes its part of the rounds."""
    made = [done(Stop(), part=(which, 2)) for which in range(2)]
    assert sum(made) == 2 + ROUNDS
    assert max(made) - min(made) <= 1


def test_a_budget_begins_no_further_plan_once_it_is_over(done: Done) -> None:
    assert done(Stop(Bounds(budget_s=0.0))) == 1


def test_a_ctrl_c_leaves_out_only_what_was_begun(done: Done) -> None:
    assert done(Stop(), interrupts=2) == 1
