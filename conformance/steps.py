"""A plan's steps while a run is made: what waits for its moment, is done, and is healed when its end has come.

The row of a fault lasts from its injection to its healing. That it had an effect is shown afterwards, from the whole
history (`attested`); a fault whose moment or end did not come had none that counts.

All times are those of the event loop: in a simulated run that is the virtual one (`chaos.twin`), and no line here is
another.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from conformance.live import Happenings
from conformance.targets.base import ClockKind, Target
from specs.errors import UsageError
from specs.history.row import Row
from specs.plan.plan import Action, Plan
from specs.plan.step import Step
from specs.vocabulary import Kind, Outcome

Saw = Callable[[Step, Row], str | None]
LOOK_S = 0.05
SLOWLY_S = 0.5
"""Between two sends while consumers are behind."""
_NOW = 0


@dataclass(frozen=True, slots=True)
class FaultDone:
    """A step whose row is in the history. short: what was waited for and did not come, if anything."""

    step: Step
    short: str = ""


def lacking(plan: Plan, target: Target) -> list[str]:
    """What the plan's steps need that the target can't, in words."""
    if plan.steps and target.clock is ClockKind.VIRTUAL:
        return ["a plan with steps needs a target in real time"]
    needs = {need: step for step in plan.steps for need in step.needs}
    return [
        f"{step.do} needs a target that can {need.value}"
        for need, step in needs.items()
        if need not in target.abilities
    ]


class Harness(Protocol):
    """Who writes a fault down."""

    def begin(self, op: Hashable, kind: Kind, fields: Mapping[str, Any]) -> None: ...
    def end(self, op: Hashable, outcome: Outcome) -> None: ...
    def note(self, kind: Kind, outcome: Outcome, fields: Mapping[str, Any]) -> None: ...


class Steps:
    """do: how an action is done. done: the faults in the order of their rows."""

    def __init__(
        self,
        plan: Plan,
        live: Happenings,
        do: Callable[[Action], Awaitable[None]],
        check: Callable[[], Any],
        harness: Harness,
    ) -> None:
        self._plan = plan
        self._live = live
        self._do = do
        self._check = check
        self._harness = harness
        self._task: asyncio.Task[None] | None = None
        self.done: list[FaultDone | None] = []

    @property
    def short(self) -> list[str]:
        """What was waited for and did not come."""
        return [done.short for done in self.done if done is not None and done.short]

    @property
    def are_over(self) -> bool:
        """Raises what a step has raised."""
        if self._task is not None and self._task.done():
            self._task.result()
        return self._task is None or self._task.done()

    def begin(self) -> None:
        """From now on moments are waited for."""
        if self._plan.steps:
            self._task = asyncio.create_task(self._all())

    async def until_no_more_wait_than(self, most: int) -> None:
        """Until so few messages wait for consumers, or the steps are over; for half a second, or nobody would ask
        a broker for anything any more.
        """
        ends_s = _now_s() + SLOWLY_S
        while not self.are_over and self._live.waiting > most and _now_s() < ends_s:
            await asyncio.sleep(LOOK_S)

    async def end(self) -> None:
        """Wait until they are over."""
        if self._task is not None:
            await self._task

    async def cancel(self) -> None:
        """Nothing more is done, and nothing healed: a broker that starts takes longer than who says Ctrl-C waits.

        Whoever ends a run early closes the target, and all that was broken goes with it.
        """
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _all(self) -> None:
        going: list[asyncio.Task[None]] = []
        try:
            for step in self._plan.steps:
                if not step.beside:
                    await asyncio.gather(*going)
                    going = []
                if self.short:
                    break
                begun = asyncio.Event()
                going.append(asyncio.create_task(self._one(step, begun)))
                waiting = asyncio.create_task(begun.wait())
                await asyncio.wait([waiting, going[-1]], return_when=asyncio.FIRST_COMPLETED)
                waiting.cancel()
            await asyncio.gather(*going)
        finally:
            for task in going:
                task.cancel()
            if going:
                await asyncio.wait(going)

    async def _one(self, step: Step, begun: asyncio.Event) -> None:
        if (missed := await self._moment(step)) is not None:
            self._never(step, missed)
            return
        number = len(self.done)
        self.done.append(FaultDone(step) if step.fault is not None else None)
        if step.fault is not None:
            self._harness.begin(("fault", number), Kind.FAULT, step.columns)
        since_us = round(_now_s() * 1_000_000)
        await self._do(Action(_NOW, step.do, step.args))
        begun.set()
        try:
            missed = await self._end(step, since_us)
            if missed is not None and step.fault is not None:
                self.done[number] = FaultDone(step, missed)
            if step.healed_by is not None:
                await self._do(Action(_NOW, step.healed_by, step.healing_args))
        finally:
            if step.fault is not None:
                self._harness.end(("fault", number), Outcome.OK)

    def _never(self, step: Step, missed: str) -> None:
        """A fault that never came is a fault without effect."""
        self.done.append(FaultDone(step, missed))
        columns = step.columns if step.fault is not None else {"detail": step.detail}
        self._harness.note(Kind.FAULT, Outcome.REFUSED, columns)

    async def _moment(self, step: Step) -> str | None:
        """Wait for it; what did not come, if it did not."""
        self._live.look()
        before = self._live.finished_by(step.client)
        who = step.client or "somebody"

        def has_come() -> bool:
            enough = self._live.finished_by(step.client) - before >= step.finished
            return enough and (not step.at_work or self._live.is_at_work(step.client))

        what = f"{who} in its listener" if step.at_work else f"{who} to finish {step.finished}"
        return await self._until(has_come, what, step.deadline_ms)

    async def _end(self, step: Step, since_us: int) -> str | None:
        if step.for_ms is not None:
            ends_s = _now_s() + step.for_ms / 1000
            return await self._until(lambda: _now_s() >= ends_s, "time to pass", step.for_ms * 2)
        # Who is only silent is a member until then.
        deadline_ms = step.deadline_ms + self._plan.config.channel_expiry_ms
        return await self._until(
            lambda: self._live.is_taken_over(step.client, since_us),
            f"somebody to take over from {step.client}",
            deadline_ms,
        )

    async def _until(
        self, condition: Callable[[], bool], what: str, deadline_ms: int
    ) -> str | None:
        until_s = _now_s() + deadline_ms / 1000
        while True:
            self._live.look()
            if condition():
                return None
            self._check()
            if _now_s() >= until_s:
                return f"{what} was waited for and did not come within {deadline_ms / 1000:g} s"
            if self.short:
                return f"{what} was not waited for any more"
            await asyncio.sleep(LOOK_S)


def _now_s() -> float:
    """Of the loop: the host's monotonic clock, or a virtual one."""
    return asyncio.get_running_loop().time()


def attested(
    rows: Sequence[Row],
    harness: str,
    done: Iterable[FaultDone | None],
    saw: Saw = lambda _step, _fault: None,
) -> list[Row]:
    """The history with what came of each fault. harness: the process whose faults they are.

    saw: what the target saw of a fault's effect (`Target.saw`): of some requests a history has no rows.
    """
    faults = iter([each for each in done if each is not None])
    whole: list[Row] = []
    for row in rows:
        if row.kind is Kind.FAULT and row.process == harness:
            fault = next(faults, None)
            if fault is None:
                raise UsageError("the history holds more faults than the run made")
            shown = None if fault.short else _shown(fault.step, rows, row, saw)
            outcome = Outcome.OK if shown else Outcome.REFUSED
            row = row._replace(outcome=outcome, view=shown or fault.short or None)
        whole.append(row)
    return whole


def _shown(step: Step, rows: Sequence[Row], fault: Row, saw: Saw) -> str | None:
    """What shows that it had an effect: the history, or that and what the target saw, where it can tell."""
    seen, shown = saw(step, fault), step.attest(rows, fault)
    if seen is None:
        return shown
    return "; ".join(filter(None, (seen, shown))) if seen else None
