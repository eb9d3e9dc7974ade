"""A run that is ended while its system starts: no thread goes on waiting for a server."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from conformance.parts.processes import Process, living
from conformance.run import run
from conformance.targets.base import Run, Target
from specs.errors import TargetMisbehaved
from specs.plan.config import Config
from specs.plan.plan import Action, Plan

LONG_S = 600.0


class NeverReady(Target):
    """Its server starts, and is waited for in a thread; whoever runs the plan is ended meanwhile."""

    name = "never-ready"
    profile = "reference"
    config = Config()

    def __init__(self) -> None:
        self.parties, self.records = {"broker": "sleep"}, {"client": ()}
        self.waited: Exception | None = None

    async def prepare(self, run: Run) -> None:
        task = asyncio.current_task()
        assert task is not None
        loop = asyncio.get_running_loop()
        await asyncio.to_thread(self._open, run, lambda: loop.call_soon_threadsafe(task.cancel))

    def _open(self, run: Run, cancel: object) -> None:
        assert callable(cancel)
        process = Process("sleeper", ["sleep", str(LONG_S)], log=run.folder / "log")
        cancel()
        try:
            process.wait_until(lambda: None, what="be ready", deadline_s=LONG_S)
        except TargetMisbehaved as error:
            self.waited = error

    async def start(self, party: str) -> None: ...

    async def act(self, action: Action) -> None: ...

    async def stop(self, party: str) -> None: ...

    async def close(self) -> None: ...


def test_who_ends_a_run_while_a_server_starts_waits_for_nobody(tmp_path: Path) -> None:
    target = NeverReady()
    with pytest.raises(asyncio.CancelledError):
        run(Plan(), target, tmp_path)
    assert "SIGKILL" in str(target.waited)
    assert living() == []
