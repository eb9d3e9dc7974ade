"""Steps of a plan: what goes on is healed at its end, and left alone when the run is ended early."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.live import Live
from conformance.steps import Steps
from specs.faults import broker_crash
from specs.history.journal import Journal
from specs.plan.plan import Action, Plan
from specs.plan.step import Step

CRASH = Step(broker_crash.VERB, {"broker": "b0"}, finished=0, for_ms=60_000)


@pytest.mark.parametrize(
    ("step", "ends", "done"),
    [
        (replace(CRASH, for_ms=0), True, [broker_crash.VERB, broker_crash.HEALED_BY]),
        (CRASH, False, [broker_crash.VERB]),
    ],
)
def test_who_ends_a_run_early_waits_for_no_broker_to_start(
    tmp_path: Path, step: Step, done: list[str], *, ends: bool
) -> None:
    seen: list[str] = []

    async def make() -> None:
        begun = asyncio.Event()

        async def do(action: Action) -> None:
            seen.append(action.do)
            begun.set()

        with Journal(tmp_path, "harness") as journal:
            plan = Plan(steps=(step,))
            steps = Steps(plan, Live(tmp_path), do, lambda: None, journal)
            steps.begin()
            await begun.wait()
            await (steps.end() if ends else steps.cancel())

    asyncio.run(make())
    assert seen == done


def test_nobody_sends_while_too_many_messages_wait_and_steps_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("conformance.steps.SLOWLY_S", 60)
    order: list[str] = []

    async def make() -> None:
        never = asyncio.Event()

        async def do(_action: Action) -> None:
            await never.wait()

        with Journal(tmp_path, "harness") as journal:
            live = Live(tmp_path)
            live.sent |= {"m1", "m2", "m3"}
            live.done |= {"m1"}
            steps = Steps(Plan(steps=(CRASH,)), live, do, lambda: None, journal)
            steps.begin()
            await steps.until_no_more_wait_than(2)
            waiting = asyncio.create_task(steps.until_no_more_wait_than(1))
            waiting.add_done_callback(lambda _: order.append("sends"))
            for _ in range(5):  # it has begun to wait, and its callback would have been called
                await asyncio.sleep(0)
            order.append("finished")
            live.done |= {"m2"}
            await waiting
            await steps.cancel()

    asyncio.run(make())
    assert order == ["finished", "sends"]


def test_somebody_sends_now_and_then_however_many_messages_wait(tmp_path: Path) -> None:
    async def make() -> None:
        with Journal(tmp_path, "harness") as journal:
            live = Live(tmp_path)
            live.sent |= {"m1", "m2", "m3"}
            steps = Steps(Plan(steps=(CRASH,)), live, _never_over, lambda: None, journal)
            steps.begin()
            await steps.until_no_more_wait_than(1)
            await steps.cancel()

    asyncio.run(asyncio.wait_for(make(), timeout=30))


async def _never_over(_action: Action) -> None:
    await asyncio.Event().wait()
