"""What has a driver: `exec:COMMAND`, and `TARGET+java:VERSION` or `+go:VERSION`, a system with a client of Apache's."""

from __future__ import annotations

from conformance.drivers.target import DriverTarget
from conformance.targets.base import find
from specs.errors import UsageError

MARK = "+java:"
GO_MARK = "+go:"
GRPC_MARK = "+grpc:"
MARKS = (MARK, GO_MARK)
"""Of what works on any broker; gRPC takes a proxy."""


def find_driver(text: str) -> DriverTarget:
    """The target of that name, whose clients are drivers. Raises UsageError for any other."""
    found = find(text)
    if not isinstance(found, DriverTarget):
        raise UsageError(
            f"{text} names no driver; write it as exec:COMMAND, or as rocketmq-local:5.4.0{MARK}5.4.0"
        )
    return found
