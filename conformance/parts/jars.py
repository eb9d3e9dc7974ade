"""Apache RocketMQ's released jars: name server, broker and tools of one version, fetched by Maven.

The registry has holes, so only versions are offered whose name server, broker and tools are all there.
A version's folder appears complete or not at all, and is kept while the list of what was asked for stays the
same.

    python -m conformance.parts.jars 4.9.7 5.4.0
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from conformance.parts.maven import Artifact, JarSet
from specs.errors import InorderError, UsageError

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
GROUP = "org.apache.rocketmq"
CLIENT_ARTIFACTS = ("rocketmq-client",)
ARTIFACTS = ("rocketmq-namesrv", "rocketmq-broker", "rocketmq-tools")


def check_version(version: str) -> None:
    """Raises UsageError, naming the known ones, if this version can't be had."""
    if version not in VERSIONS:
        raise UsageError(
            f"There are no jars of Apache RocketMQ {version!r} to start; known: {', '.join(VERSIONS)}."
        )


def folder(version: str) -> Path:
    """Where this version's jars lie, there or not. Raises UsageError for an unknown version."""
    return _servers(version).folder


def present(version: str) -> bool:
    """Whether this version's jars are here, complete."""
    return _servers(version).present


def ensure(version: str) -> Path:
    """The folder that holds this version's jars, fetched now if missing (run with `-cp 'FOLDER/*'`).

    Raises UsageError for an unknown version, Unavailable if Maven is missing or fails.
    """
    return _servers(version).ensure()


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
    return _set(version, f"rocketmq-client/{version}/lib", CLIENT_ARTIFACTS).ensure()


def _servers(version: str) -> JarSet:
    check_version(version)
    return _set(version, f"rocketmq/{version}/lib", ARTIFACTS)


def _set(version: str, place: str, names: Sequence[str]) -> JarSet:
    return JarSet(
        product=f"Apache RocketMQ {version}",
        name="rocketmq-parts",
        place=place,
        artifacts=tuple(Artifact(GROUP, name, version) for name in names),
    )


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
