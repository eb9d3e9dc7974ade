"""A consumer as something to break. Here: a process, killed and stopped by signals. `chaos.containers` is the other.

The target that hosts them does not know which.
"""

from __future__ import annotations

import signal
import sys
from abc import ABC, abstractmethod
from pathlib import Path

from conformance.parts.preload import environment_of
from conformance.parts.processes import Process
from conformance.parts.wall_clock import WallClock
from specs.errors import TargetMisbehaved, UsageError
from specs.plan.ability import Ability

MODULE = "reference_impl.shell.client_process"
STOP_GRACE_S = 20.0


class Party(ABC):
    """One consumer of the plan, running somewhere."""

    def __init__(self, name: str) -> None:
        self.name = name

    @abstractmethod
    def start(self) -> None:
        """Let it begin; it says by its journal that it has joined."""

    @abstractmethod
    def kill(self) -> None:
        """SIGKILL: it dies without a word. Nothing, where it is not running."""

    @abstractmethod
    def pause(self) -> None:
        """It stops between two instructions; its connections stay open."""

    def starve(self, percent: int) -> None:
        """It gets so many per cent of a core, until it is resumed."""
        raise UsageError(f"here nobody can {Ability.STARVE_CLIENT}")

    @abstractmethod
    def resume(self) -> None:
        """It goes on as ever."""

    def own_clock(self, folder: Path) -> None:
        """To be called before `start`: it is to have a wall clock that can be set. folder: for its file."""
        raise UsageError(f"here nobody can {Ability.STEP_CLOCK}")

    def step_clock(self, ms: int) -> None:
        """Its wall clock is set by so much, also where it is not running."""
        raise UsageError(f"here nobody can {Ability.STEP_CLOCK}")

    @abstractmethod
    def stop(self) -> None:
        """SIGTERM: it shuts down in good order. Nothing, where it is not running."""

    def discard(self) -> None:
        """At the end: it is gone, whatever state it is in."""
        self.kill()

    @abstractmethod
    def check(self) -> None:
        """Raise TargetMisbehaved when it has died and nobody killed it."""

    @property
    def pid(self) -> int | None:
        """Its process on this host, where we may look at it."""
        return None


class ProcessParty(Party):
    """A consumer in a process of its own."""

    def __init__(self, name: str, arguments: list[str], out: Path) -> None:
        super().__init__(name)
        self._arguments = [*arguments, "--out", str(out)]
        self._log = out / f"{name}.log"
        self._process: Process | None = None
        self._clock: WallClock | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", MODULE, *self._arguments]
        env = None if self._clock is None else environment_of(self._clock.told)
        self._process = Process(f"Consumer {self.name}", command, log=self._log, env=env)

    def own_clock(self, folder: Path) -> None:
        self._clock = WallClock(folder)

    def step_clock(self, ms: int) -> None:
        if self._clock is None:
            super().step_clock(ms)
        else:
            self._clock.step(ms)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process = None

    def pause(self) -> None:
        self._running().pause()

    def starve(self, percent: int) -> None:
        self._running().starve(percent)

    def resume(self) -> None:
        self._running().resume()

    def stop(self) -> None:
        process, self._process = self._process, None  # who ends when he is told to has not died
        if process is not None and process.stop(STOP_GRACE_S) not in (0, -signal.SIGKILL):
            raise process.misbehaved("ended badly")

    def check(self) -> None:
        if self._process is not None:
            self._process.check_alive()

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def _running(self) -> Process:
        if self._process is None:
            raise TargetMisbehaved(f"consumer {self.name} is not running")
        self._process.check_alive()
        return self._process
