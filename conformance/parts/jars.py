"""Apache RocketMQ's released jars: name server, broker and tools of one version, fetched by Maven.

The registry has holes, so only versions are offered whose name server, broker and tools are all there.
A version's folder appears complete or not at all, and is kept while the list of what was asked for stays the
same.

    python -m conformance.parts.jars 4.9.7 5.4.0
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from conformance.parts.places import tools_dir
from specs.errors import InorderError, TargetMisbehaved, UsageError

# Versions of which namesrv, broker and tools are all released to Maven Central, and which start on Java 17.
VERSIONS = (
    "4.9.3",
    "4.9.4",
    "4.9.5",
    "4.9.7",
    "5.0.0",
    "5.1.0",
    "5.1.1",
    "5.1.4",
    "5.2.0",
    "5.3.3",
    "5.4.0",
    "5.5.0",
)
CLIENT_VERSIONS = ("4.7.1", "4.8.0", "4.9.8", "5.1.0", "5.1.1", "5.1.4", "5.2.0", "5.4.0", "5.5.0")
"""Versions whose client alone is fetched, for the driver."""
DEFAULT = ("4.9.7", "5.4.0")
CLIENT_ARTIFACTS = ("rocketmq-client",)
ARTIFACTS = ("rocketmq-namesrv", "rocketmq-broker", "rocketmq-tools")
PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
STAMP = "complete"
FETCH_DEADLINE_S = 900.0

_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>inorder</groupId><artifactId>rocketmq-parts</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
{dependencies}
  </dependencies>
</project>
"""
_DEPENDENCY = (
    "    <dependency><groupId>org.apache.rocketmq</groupId>"
    "<artifactId>{artifact}</artifactId><version>{version}</version></dependency>"
)


def check_version(version: str) -> None:
    """Raises UsageError, naming the known ones, if this version can't be had."""
    if version not in VERSIONS:
        raise UsageError(
            f"There are no jars of Apache RocketMQ {version!r} to start; known: {', '.join(VERSIONS)}."
        )


def folder(version: str) -> Path:
    """Where this version's jars lie, there or not. Raises UsageError for an unknown version."""
    check_version(version)
    return tools_dir() / "rocketmq" / version / "lib"


def present(version: str) -> bool:
    """Whether this version's jars are here, complete."""
    return _complete(version, folder(version), ARTIFACTS)


def _complete(version: str, lib: Path, artifacts: Sequence[str]) -> bool:
    stamp = lib / STAMP
    return stamp.is_file() and stamp.read_text() == _digest(version, artifacts)


def ensure(version: str) -> Path:
    """The folder that holds this version's jars, fetched now if missing (run with `-cp 'FOLDER/*'`).

    Raises UsageError for an unknown version or if Maven is missing, TargetMisbehaved if Maven fails.
    """
    return _ensure(version, folder(version), ARTIFACTS)


def check_client_version(version: str) -> None:
    """Raises UsageError, naming the known ones, if there is no such client to drive."""
    if version not in CLIENT_VERSIONS:
        known = ", ".join(CLIENT_VERSIONS)
        raise UsageError(
            f"There is no Java client of Apache RocketMQ {version!r} to drive; known: {known}."
        )


def ensure_client(version: str) -> Path:
    """The folder that holds a version's client alone; raises as `ensure` does."""
    check_client_version(version)
    return _ensure(version, tools_dir() / "rocketmq-client" / version / "lib", CLIENT_ARTIFACTS)


def _ensure(version: str, lib: Path, artifacts: Sequence[str]) -> Path:
    if _complete(version, lib, artifacts):
        return lib
    maven = shutil.which("mvn")
    if maven is None:
        raise UsageError(
            f"The jars of Apache RocketMQ {version} are not here and Maven, which fetches them, is missing; "
            "install it (Debian: apt-get install maven) and run `make setup`."
        )
    lib.parent.mkdir(parents=True, exist_ok=True)
    with _alone(lib.parent / "lock"):
        if not _complete(
            version, lib, artifacts
        ):  # another process may have fetched them while we waited
            _fetch(version, maven, lib, artifacts)
    return lib


def _pom(version: str, artifacts: Sequence[str]) -> str:
    lines = (_DEPENDENCY.format(artifact=artifact, version=version) for artifact in artifacts)
    return _POM.format(dependencies="\n".join(lines))


def _digest(version: str, artifacts: Sequence[str]) -> str:
    return hashlib.sha256((PLUGIN + _pom(version, artifacts)).encode()).hexdigest()


def _fetch(version: str, maven: str, lib: Path, artifacts: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="fetch-", dir=lib.parent) as scratch:
        new = Path(scratch) / "lib"
        pom = Path(scratch) / "pom.xml"
        pom.write_text(_pom(version, artifacts))
        command = [
            maven,
            "-B",
            "-q",
            "-f",
            str(pom),
            PLUGIN,
            f"-DoutputDirectory={new}",
            "-DincludeScope=runtime",
        ]
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=FETCH_DEADLINE_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise TargetMisbehaved(
                f"Maven did not fetch Apache RocketMQ {version} in {FETCH_DEADLINE_S:g} s; a slow network?"
            ) from error
        if done.returncode != 0 or not all(list(new.glob(f"{name}-*.jar")) for name in artifacts):
            said = "\n".join((done.stdout + done.stderr).strip().splitlines()[-12:])
            raise TargetMisbehaved(
                f"Maven could not fetch Apache RocketMQ {version} (exit {done.returncode}); it said:\n{said}"
            )
        (new / STAMP).write_text(_digest(version, artifacts))
        shutil.rmtree(lib, ignore_errors=True)
        os.replace(new, lib)


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """One process at a time; the kernel lifts the lock when its holder dies."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def main(versions: Sequence[str]) -> int:
    """Fetches the named versions (default: the two that the demonstration needs); an exit code."""
    for version in versions or DEFAULT:
        try:
            lib = ensure(version)
        except InorderError as error:
            sys.stderr.write(f"{error}\n")
            return error.exit_code
        sys.stdout.write(f"{version}: {len(list(lib.glob('*.jar')))} jars in {lib}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
