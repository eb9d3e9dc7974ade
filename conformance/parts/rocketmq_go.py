"""The driver of Apache RocketMQ's Go client: built once for a client's version, on the released module.

What the client does at fixed intervals (heartbeats, rebalance, storing offsets) and how long it believes in a lock are
constants of its source. They are read from the environment instead, so that a run need not take minutes, as the Java
client reads its own from system properties; without these variables they are what was released. Nothing else of the
client is changed.

    python -m conformance.parts.rocketmq_go 2.1.2
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from conformance.parts import golang
from conformance.parts.places import CHECKOUT, tools_dir
from specs.errors import InorderError, Unavailable, UsageError

VERSIONS = ("2.1.0", "2.1.1", "2.1.2")
"""Clients on which the driver was built and run."""
DEFAULT = "2.1.2"
MODULE = "github.com/apache/rocketmq-client-go/v2"
SOURCE = CHECKOUT / "drivers" / "go" / "main.go"
TIMERS: Mapping[str, Mapping[str, str]] = {
    "internal/client.go": {
        "_HeartbeatBrokerInterval": "INORDER_HEARTBEAT_MS",
        "_PersistOffsetInterval": "INORDER_PERSIST_MS",
        "_RebalanceInterval": "INORDER_REBALANCE_MS",
    },
    "consumer/process_queue.go": {"_RebalanceLockMaxTime": "INORDER_CLIENT_LEASE_MS"},
}
"""File of the module → constant in it → variable of the environment, in ms."""

_HELPER = """package {package}

import (
	"os"
	"strconv"
	"time"
)

func inorderTimer(name string, released time.Duration) time.Duration {{
	if ms, err := strconv.ParseInt(os.Getenv(name), 10, 64); err == nil {{
		return time.Duration(ms) * time.Millisecond
	}}
	return released
}}
"""


def check_version(version: str) -> None:
    """Raises UsageError, naming the known ones, if there is no such client to drive."""
    if version not in VERSIONS:
        raise UsageError(
            f"There is no Go client of Apache RocketMQ {version!r} to drive; known: {', '.join(VERSIONS)}."
        )


def path(version: str) -> Path:
    """Where the driver's binary lies, there or not. Raises UsageError for an unknown version, or without its source."""
    check_version(version)
    if not SOURCE.is_file():
        raise UsageError("the Go driver is built from a source checkout, and this is none")
    parts = (SOURCE.read_bytes(), Path(__file__).read_bytes())
    digest = hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]
    return tools_dir() / "go-driver" / version / digest


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
                product=f"the driver of RocketMQ's Go client {version}",
                source=SOURCE,
                module=MODULE,
                version=version,
                changes=with_timers,
            ),
            path(version),
        )
    return path(version)


def with_timers(module: Path) -> dict[str, str]:
    """The module's files in which a constant is read from the environment, and what they need for it.

    Raises Unavailable where a constant is not where it was: this version would not run as it is told.
    """
    made: dict[str, str] = {}
    for file, variables in TIMERS.items():
        text = (module / file).read_text(encoding="utf-8")
        for constant, variable in variables.items():
            released = re.compile(rf"^\s*{constant}\s*=\s*(\d+ \* time\.\w+)$", re.MULTILINE)
            if len(released.findall(text)) != 1:
                raise Unavailable(f"{file} of RocketMQ's Go client has no constant {constant}")
            value = released.search(text)[1]  # type: ignore[index]
            text = released.sub("", text) + (
                f'\nvar {constant} = inorderTimer("{variable}", {value})\n'
            )
        made[file] = text
        package = file.partition("/")[0]
        made[f"{package}/inorder_timer.go"] = _HELPER.format(package=package)
    return made


def main(versions: Sequence[str]) -> int:
    """Builds the named drivers; an exit code."""
    try:
        for version in versions or (DEFAULT,):
            sys.stdout.write(f"{version}: {ensure(version)}\n")
    except InorderError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
