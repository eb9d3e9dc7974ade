"""Errors of the bodies and clients."""

from __future__ import annotations

from specs.errors import InorderError, UsageError

TIMEOUT = "timeout"
CLOSED = "closed"
UNREACHABLE = "unreachable"


class RequestFailed(InorderError):
    """No answer. reason: 'timeout', 'closed' or 'unreachable'.

    After 'unreachable' not one byte of the request was handed to the network, so it certainly did not happen;
    after the others nobody can say.
    """

    def __init__(self, reason: str, address: str, detail: str = "") -> None:
        super().__init__(f"No answer from {address}: {reason}{f' ({detail})' if detail else ''}.")
        self.reason = reason
        self.address = address


class BodyFailed(InorderError):
    """A core, a recorder or a listener's body raised: a fault of ours, never a verdict."""


def split_address(address: str) -> tuple[str, int]:
    """`host:port` → (host, port); UsageError when it is none."""
    host, found, port = address.rpartition(":")
    if (
        not found
        or not host
        or "/" in host
        or not port.isascii()
        or not port.isdigit()
        or not 0 < int(port) < 65536
    ):
        raise UsageError(f"{address!r} is not an address of the form host:port.")
    return host.strip("[]"), int(port)
