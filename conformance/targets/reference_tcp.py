"""`reference+tcp`: our own cluster on sockets of 127.0.0.1, spoken to as if it were a stranger's."""

from __future__ import annotations

from conformance.targets.systems import ReferenceOnSockets
from conformance.wire.runner import SHORT_LEASES, WireRun, ours
from specs.errors import UsageError


def target(argument: str | None) -> WireRun:
    """The target; it takes no argument."""
    if argument is not None:
        raise UsageError("the target reference+tcp takes no argument")
    return WireRun(
        target="reference+tcp",
        parties=dict.fromkeys(("broker", "client", "producer"), ours()),
        profile="reference",
        config=SHORT_LEASES,
        lease_known=True,
        open_system=lambda config, proxied: ReferenceOnSockets(config, proxied=proxied),
    )
