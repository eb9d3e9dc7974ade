"""A search keeps its bounds: a budget, a Ctrl-C, a refutation that does not end it, several workers."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from conformance import rounds as rounds_module
from conformance.cli.main import root
from conformance.cli.seam import Watch, prepare
from conformance.reports.text import report
from conformance.reports.view import VerdictView, open_run
from conformance.rounds import Round, conform_rounds
from conformance.runner import Result, conform_simulated
from conformance.stopping import UNBOUND, Bounds, Stop, listening
from conformance.targets.base import Asked
from conformance.targets.simulated import SimulatedTarget
from conformance.workers import seed_of_worker
from reference_impl.mutants import load
from reference_impl.sim.simulate import simulate
from specs.errors import UsageError
from specs.history.store import History, write_history
from specs.plan.plan import Action, ClientPlan, Plan
from specs.profiles import Profile
from specs.profiles import load as load_profile
from specs.verdicts.verdict import ClauseVerdict, Ended, RunVerdict, Search, Verdict

PROFILE = load_profile("reference")
SEED = 7
LOSES = "acknowledged-send-dropped"


class Ending(Stop):
    """A search whose time is over, or in which somebody presses Ctrl-C, after so many looks at the clock."""

    def __init__(self, bounds: Bounds, looks: int, *, ctrl_c: bool = False) -> None:
        super().__init__(bounds)
        self._looks, self._ctrl_c = looks, ctrl_c

    @property
    def why(self) -> Ended | None:
        self._looks -= 1
        self.interrupted = self.interrupted or (self._looks < 0 and self._ctrl_c)
        return super().why

    @property
    def passed_s(self) -> float:
        return 100.0 if self._looks < 0 else 0.0


def simulated(
    stop: Stop, examples: int | None = 40, mutant: str | None = None, profile: Profile = PROFILE
) -> Result:
    return conform_simulated(
        mutant, SEED, profile, examples=examples, floor=0, shrink_runs=5, stop=stop
    )


# ------------------------------------------------------------------------------------------ a simulated target


def test_no_run_begins_after_the_budget_but_there_is_one() -> None:
    result = simulated(Stop(Bounds(budget_s=0)))
    assert result.verdict.search == Search(1, 40, Ended.BUDGET, 0)
    assert result.runs == 1
    assert result.verdict.verdict is RunVerdict.UPHELD


def test_a_budget_alone_says_how_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is made then goes on beyond the usual number of runs, each from a seed of its own."""
    monkeypatch.setattr("conformance.runner.EXAMPLES", 2)
    result = simulated(Ending(Bounds(budget_s=50), looks=12), examples=None)
    assert result.verdict.search is not None
    assert (result.verdict.search.most, result.verdict.search.ended) == (None, Ended.BUDGET)
    assert result.runs > 4
    assert len(set(result.reached)) > 3


def test_what_was_searched_before_a_ctrl_c_is_judged_and_inconclusive() -> None:
    result = simulated(Ending(Bounds(), looks=2, ctrl_c=True))
    assert result.verdict.search == Search(result.runs, 40, Ended.INTERRUPTED)
    assert 1 < result.runs < 6
    assert result.verdict.verdict is RunVerdict.INCONCLUSIVE
    (cut,) = (check for check in result.verdict.met if check.ok is False)
    assert (cut.id, cut.detail) == ("MET-9", f"Ctrl-C after {result.runs} runs")


def test_a_search_that_goes_on_keeps_a_run_for_each_refuted_clause(tmp_path: Path) -> None:
    claims = {clause: PROFILE.claim(clause) for clause in ("ORD-7", "SND-1")}
    only = replace(PROFILE, claims=claims)
    result = simulated(Stop(Bounds(keep_going=True)), 2, LOSES, only)
    refuted = tuple(judged.id for judged in result.verdict.of(ClauseVerdict.REFUTED))
    assert result.verdict.verdict is RunVerdict.REFUTED
    assert result.verdict.search is not None
    assert (refuted, result.runs >= 2) == (tuple(claims), True)
    assert result.verdict.search.kept == {clause: f"refuted/{clause}" for clause in refuted}
    result.save(tmp_path)
    for clause, folder in result.verdict.search.kept.items():
        alone = open_run(tmp_path / folder)
        assert clause in {judged.id for judged in alone.failures} | {
            judged.id for judged in alone.clauses if judged.hidden
        }
        assert alone.replay == f"inorder replay {tmp_path / folder}"


def test_a_refutation_ends_a_search_that_is_not_to_go_on() -> None:
    result = simulated(Stop(Bounds(budget_s=1_000)), 40, LOSES)
    assert result.verdict.search is not None
    assert result.verdict.search.ended is Ended.REFUTED
    assert result.runs < 40


def test_a_search_that_is_told_nothing_says_nothing() -> None:
    assert simulated(Stop(), 1).verdict.search is None


# ------------------------------------------------------------------------------------------ in real time

PLAN = Plan(
    clients=(ClientPlan("alice", "consumer", "billing", ("orders",)), ClientPlan("p", "producer")),
    actions=(
        Action(0, "start", {"client": "alice"}),
        Action(0, "start", {"client": "p"}),
        *(
            Action(50 + n, "send", {"client": "p", "topic": "orders", "key": "k", "count": 3})
            for n in range(4)
        ),
    ),
    until_ms=9_000,
)


class Rounds:
    """In place of `run`: each round is a small simulated run, of the mutant where it is to be broken."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *broken: int, ctrl_c: int = 0) -> None:
        self.made = 0
        self._broken, self._ctrl_c = broken, ctrl_c
        self.stop = Stop()
        monkeypatch.setattr(rounds_module, "run", self.run)

    def run(
        self, plan: Plan, target: object, folder: Path, *, info: Mapping[str, Any], **_: object
    ) -> History:
        self.made += 1
        if self.made == self._ctrl_c:
            os.kill(os.getpid(), signal.SIGINT)
        told, rows = simulate(PLAN, load(LOSES) if self.made in self._broken else None)
        rows = [row._replace(run=info["run"]) for row in rows]
        return write_history(folder, replace(told, **info), rows)

    def judge(
        self, out: Path, rounds: int | None, bounds: Bounds = UNBOUND
    ) -> tuple[Verdict, list[Round]]:
        self.stop = Stop(bounds)
        with listening(self.stop, lambda _: None):
            return conform_rounds(
                SimulatedTarget(),
                PROFILE,
                seed=SEED,
                rounds=rounds,
                out=out,
                floor=0,
                stop=self.stop,
            )


def test_the_first_round_that_refutes_is_the_last(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rounds = Rounds(monkeypatch, 2)
    verdict, done = rounds.judge(tmp_path / "run", 5)
    assert (verdict.verdict, len(done), rounds.made) == (RunVerdict.REFUTED, 2, 2)
    assert verdict.info.run.endswith("-2")


def test_rounds_that_go_on_keep_the_first_that_refutes_each_clause(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    verdict, done = Rounds(monkeypatch, 2, 3).judge(tmp_path / "run", 4, Bounds(keep_going=True))
    assert len(done) == 4
    assert verdict.search is not None
    assert verdict.search.kept["SND-1"] == "refuted/SND-1"
    assert open_run(tmp_path / "run/refuted/SND-1").run.endswith("-2")


def test_no_round_begins_after_the_budget(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    verdict, done = Rounds(monkeypatch).judge(tmp_path / "run", None, Bounds(budget_s=0))
    assert verdict.search == Search(1, None, Ended.BUDGET, 0)
    assert (len(done), verdict.verdict) == (1, RunVerdict.UPHELD)


def test_a_round_that_a_ctrl_c_breaks_off_does_not_count(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    verdict, done = Rounds(monkeypatch, ctrl_c=3).judge(tmp_path / "run", 9)
    assert verdict.search == Search(2, 9, Ended.INTERRUPTED)
    assert (len(done), verdict.verdict) == (2, RunVerdict.INCONCLUSIVE)


def test_a_refutation_before_a_ctrl_c_is_a_refutation(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rounds = Rounds(monkeypatch, 1, ctrl_c=2)
    verdict, _ = rounds.judge(tmp_path / "run", 9, Bounds(keep_going=True))
    assert verdict.verdict is RunVerdict.REFUTED
    assert verdict.exit_code == 1


def test_before_the_first_round_is_done_there_is_nothing_to_judge(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(KeyboardInterrupt):
        Rounds(monkeypatch, ctrl_c=1).judge(tmp_path / "run", 9)


# ------------------------------------------------------------------------------------------ Ctrl-C


def test_the_first_ctrl_c_is_noted_and_the_second_ends_at_once() -> None:
    stop, told = Stop(), list[str]()
    with listening(stop, told.append):
        os.kill(os.getpid(), signal.SIGINT)
        assert (stop.why, stop.again) == (Ended.INTERRUPTED, False)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert (stop.again, len(told)) == (True, 1)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_who_waits_in_real_time_is_broken_in_upon() -> None:
    stop = Stop()
    stop.breaks_in = True
    with listening(stop, lambda _: None), pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
    assert (stop.interrupted, stop.again) == (True, False)


# ------------------------------------------------------------------------------------------ workers


class Silent(Watch):
    def say(self, line: str) -> None: ...

    def progress(self, done: int, total: int, what: str) -> None: ...


def by_workers(out: Path, target: str, examples: int, **bounds: Any) -> VerdictView:
    bound = Bounds(workers=2, **bounds)
    ready = prepare(target, "reference", bound)
    return ready.run(
        seed=SEED, examples=examples, floor=0, out=out, watch=Silent(), stop=Stop(bound)
    )


def bytes_of(out: Path) -> dict[str, bytes]:
    """What the run came to; its own place is in its replay line."""
    here = str(out).encode()
    return {
        name: (out / name).read_bytes().replace(here, b"")
        for name in ("verdict.json", "history/part-0.parquet")
    }


def test_one_seed_and_one_number_of_workers_give_the_same_bytes(tmp_path: Path) -> None:
    verdict = by_workers(tmp_path / "a", "reference", 3)
    by_workers(tmp_path / "b", "reference", 3)
    assert bytes_of(tmp_path / "a") == bytes_of(tmp_path / "b")
    assert (verdict.search, verdict.seed) == (Search(3, 3, workers=2), SEED)
    parts = [open_worker(tmp_path / "a", number) for number in (1, 2)]
    assert verdict.coverage is not None
    assert verdict.coverage.runs == 3
    assert verdict.replay == f"inorder replay {tmp_path / 'a'}"
    assert parts == [seed_of_worker(SEED, 0), seed_of_worker(SEED, 1)]


def open_worker(out: Path, number: int) -> int:
    info = json.loads((out / "workers" / f"{number}" / "run.json").read_text())
    return int(info["seed"])


@pytest.mark.long
def test_the_first_worker_in_order_that_refutes_says_it_alone(tmp_path: Path) -> None:
    out = tmp_path / "run"
    verdict = by_workers(out, f"mutant:{LOSES}", 40)
    assert verdict.search is not None
    assert (verdict.verdict, verdict.search.ended) == (RunVerdict.REFUTED, Ended.REFUTED)
    assert [path.name for path in (out / "workers").iterdir()] == ["1"]
    assert report(verdict, width=100) is not None


def test_a_target_without_a_system_of_its_own_says_why_it_is_not_split() -> None:
    with pytest.raises(UsageError, match="can't start a system of its own"):
        prepare("rocketmq:127.0.0.1:9", None, Bounds(workers=2))


def test_parts_of_runs_and_floor_add_up_to_what_was_asked_for() -> None:
    def asked(number: int, **more: Any) -> Asked:
        return Asked(SEED, None, 7, Path(), part=(number, 3), **more)

    assert [asked(number).at_stake(1) for number in range(3)] == [3, 2, 2]
    assert [asked(number).runs(2) for number in range(3)] == [1, 1, 1]
    assert asked(0, stop=Stop(Bounds(budget_s=9))).runs(2) is None


def test_a_wrong_budget_is_told() -> None:
    told = CliRunner().invoke(root, ["conform", "--target", "reference", "--budget", "soon"])
    assert "is no time; it is given as 90s, 10m or 2h" in told.output
