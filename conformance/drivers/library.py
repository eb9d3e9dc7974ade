"""A client library of one version, and the driver that plays an application of it.

A child says what the driver's command is and what its environment needs; the settings reach every driver in one way.
"""

from __future__ import annotations

import json
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from conformance.drivers.process import DriverProcess, Event
from conformance.parts.wheels import Wheel
from specs.errors import UsageError

OPTIONS_VARIABLE = "INORDER_CLIENT_OPTIONS"
"""Holds the settings as a JSON object. They may hold credentials: they stand in no command line and in no log."""


class Library(ABC):
    """name: as behind the `+` of a target's name. version: as behind its colon."""

    name: str
    version: str

    @abstractmethod
    def ensure(self) -> None:
        """Fetch what it needs, if it is not here. Raises UsageError or TargetMisbehaved."""

    @abstractmethod
    def command(self) -> tuple[Sequence[str | Path], Mapping[str, str]]:
        """The driver's command, and what is added to its environment."""

    def environment(self, name: str, folder: Path) -> Mapping[str, str]:
        """What is added besides for one client. folder: its run's, or where its log goes."""
        return {}

    def start(
        self,
        name: str,
        settings: Mapping[str, str],
        folder: Path,
        on_event: Callable[[Event], Any],
    ) -> DriverProcess:
        """The driver, running and not yet greeted. settings: of the library."""
        argv, env = self.command()
        env = {**env, **self.environment(name, folder)}
        called, log = f"{self.name} {self.version} ({name})", folder / f"{name}.log"
        options = {OPTIONS_VARIABLE: json.dumps(dict(settings))}
        return DriverProcess(called, argv, log, on_event, {**env, **options})


class InPython(Library):
    """A library out of a wheel, and a driver in Python. driver: the program; a test may put another in its place.

    wheel: that of a version. program: the driver of the project, which lies in a checkout alone; beside its folder
    lies what those in Python share.
    """

    wheel: ClassVar[Callable[[str], Wheel]]
    program: ClassVar[Path]

    def __init__(self, version: str, driver: Path | None = None) -> None:
        self._wheel = type(self).wheel(version)
        self.version = version
        self._driver = driver or self.program

    def ensure(self) -> None:
        if not self.program.is_file():
            raise UsageError(
                f"the driver of {self.name} lies in a source checkout, and this is none"
            )
        self._wheel.ensure()

    def command(self) -> tuple[Sequence[str | Path], Mapping[str, str]]:
        shared = self.program.parents[1]
        path = os.pathsep.join(map(str, (self._wheel.ensure(), shared)))
        return [sys.executable, self._driver], {"PYTHONPATH": path}
