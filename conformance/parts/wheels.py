"""Client libraries that come as wheels, each version in a folder of its own beside the other downloaded parts.

They are no dependency of the project: several versions lie side by side, and a driver's process is given the one that
it needs by PYTHONPATH. A folder appears complete or not at all.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from conformance.parts.places import tools_dir
from specs.errors import Unavailable

FETCH_DEADLINE_S = 300.0


@dataclass(frozen=True, slots=True)
class Wheel:
    """A distribution of one version, as it runs on this Python. beside: what else it needs, as `NAME==VERSION`."""

    name: str
    version: str
    beside: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """Where it lies, there or not."""
        python = f"py{sys.version_info.major}.{sys.version_info.minor}"
        return tools_dir() / "wheels" / f"{self.name}-{self.version}-{python}"

    @property
    def present(self) -> bool:
        return self.folder.is_dir()

    def ensure(self) -> Path:
        """The folder to put on PYTHONPATH, fetched now if missing.

        Raises Unavailable where nothing can fetch it, or there is no such wheel for this Python.
        """
        made = self.folder
        if made.is_dir():
            return made
        made.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="fetch-", dir=made.parent) as scratch:
            new = Path(scratch) / "wheel"
            command = [*_installer(), "--no-deps", "--only-binary", ":all:", "--target", str(new)]
            try:
                done = subprocess.run(
                    [*command, f"{self.name}=={self.version}", *self.beside],
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    timeout=FETCH_DEADLINE_S,
                    check=False,
                )
            except subprocess.TimeoutExpired as error:
                raise Unavailable(
                    f"{self.name} {self.version} was not fetched in {FETCH_DEADLINE_S:g} s; a slow network?"
                ) from error
            if done.returncode != 0:
                said = "\n".join(done.stderr.strip().splitlines()[-6:])
                raise Unavailable(
                    f"{self.name} {self.version} could not be fetched for Python "
                    f"{sys.version_info.major}.{sys.version_info.minor}:\n{said}"
                )
            if not made.is_dir():  # another process may have been quicker
                os.replace(new, made)
        return made


def _installer() -> list[str]:
    """uv, as `make setup` brings it or as it lies in PATH, else pip."""
    ours = tools_dir() / "uv" / "bin" / "uv"
    uv = str(ours) if ours.is_file() else shutil.which("uv")
    if uv is not None:
        return [uv, "pip", "install", "--quiet", "--python", sys.executable]
    if find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "install", "--quiet"]
    raise Unavailable("Neither uv nor pip is here to fetch a client library: install uv.")
