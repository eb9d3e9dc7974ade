"""The driver of confluent-kafka-go: built once for a version, on the released module.

The module carries librdkafka of its own number as a static library. So it is the way to releases of librdkafka for
which the Python package index has no wheel that runs here; a C compiler is needed.

    python -m conformance.parts.kafka_go 1.9.2
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from conformance.parts import golang
from conformance.parts.places import beside, tools_dir
from conformance.parts.telling import tell
from specs.errors import UsageError

VERSIONS = ("1.8.2", "1.9.2")
"""Modules on which the driver was built and run."""
DEFAULT = "1.9.2"
MODULE = "github.com/confluentinc/confluent-kafka-go"
SOURCE = beside("drivers") / "kafka-go" / "main.go"


def check_version(version: str) -> None:
    """Raises UsageError, naming the known ones, if there is no such client to drive."""
    if version not in VERSIONS:
        raise UsageError(
            f"There is no confluent-kafka-go {version!r} to drive; known: {', '.join(VERSIONS)}."
        )


def path(version: str) -> Path:
    """Where the driver's binary lies, there or not. Raises UsageError for an unknown version, or without its source."""
    check_version(version)
    if not SOURCE.is_file():
        raise UsageError(
            "the driver of confluent-kafka-go is built from a source checkout, and this is none"
        )
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]
    return tools_dir() / "kafka-go-driver" / version / digest


def present(version: str) -> bool:
    """Whether the binary is there."""
    return os.access(path(version), os.X_OK)


def ensure(version: str) -> Path:
    """The binary, built now if it is not there.

    Raises UsageError for an unknown version or without a source checkout, Unavailable if it can't be built.
    """
    if not present(version):
        golang.build_own(
            golang.OwnProgram(
                product=f"the driver of confluent-kafka-go {version}",
                source=SOURCE,
                module=MODULE,
                version=version,
                with_c=True,
            ),
            path(version),
        )
    return path(version)


def parts(versions: Sequence[str]) -> Iterator[str]:
    """Build the named drivers; a line for each."""
    for version in versions or (DEFAULT,):
        yield f"{version}: {ensure(version)}"


if __name__ == "__main__":
    sys.exit(tell(parts(sys.argv[1:])))
