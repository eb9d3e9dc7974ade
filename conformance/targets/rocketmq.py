"""`rocketmq:HOST:PORT` and `rocketmq-local:VERSION`: Apache RocketMQ, with our own clients on the other side."""

from __future__ import annotations

from dataclasses import replace

from conformance.drivers.targets import MARK
from conformance.parts import jars
from conformance.targets.driven import Paired, abroad, pair, profile_of
from conformance.targets.systems import ApacheOnThisMachine, Remote
from conformance.wire.runner import SHORT_LEASES, ours
from conformance.wire.target import WireTarget
from reference_impl.shell.errors import split_address
from specs.errors import UsageError
from specs.plan.config import Config


def _parties(broker: str) -> dict[str, str]:
    return {"broker": broker, "client": ours(), "producer": ours()}


def local(version: str | None) -> WireTarget | Paired:
    """An Apache release on this machine; `VERSION+java:VERSION` with Apache's Java client at work on it."""
    if not version:
        raise UsageError("the target rocketmq-local needs a version, as in rocketmq-local:5.4.0")
    broker, mark, client = version.partition(MARK)
    if mark:
        return pair(broker, client)
    jars.check_version(version)
    config = replace(SHORT_LEASES, dialect="4.9" if version.startswith("4.") else "5.x")
    return WireTarget(
        name=f"rocketmq-local:{version}",
        parties=_parties(f"Apache RocketMQ {version}"),
        profile=profile_of(version),
        config=config,
        opens=lambda config, proxied: ApacheOnThisMachine(version, config, proxied=proxied),
        of_system=ApacheOnThisMachine.abilities,
    )


def remote(address: str | None) -> WireTarget | Paired:
    """A cluster that runs already, by its name server. Its lease is taken to be the product's 60 s.

    `HOST:PORT+java:VERSION` puts Apache's Java client to work on it.
    """
    if not address or ":" not in address:
        raise UsageError(
            "the target rocketmq needs a name server's address, as in rocketmq:127.0.0.1:9876"
        )
    address, mark, client = address.partition(MARK)
    split_address(address)
    if mark:
        return abroad(address, client)

    def open_remote(_config: Config, proxied: bool) -> Remote:
        if proxied:
            raise UsageError("the brokers of a running cluster can't be put behind a proxy of ours")
        return Remote(address)

    short = SHORT_LEASES
    config = replace(
        short,
        broker_lease_ms=Config().broker_lease_ms,
        # Our consumers' own lease may be short; the broker's is not ours to choose.
        client_lease_ms=short.client_lease_ms,
        delay_levels=Config().delay_levels,
    )
    return WireTarget(
        name=f"rocketmq:{address}",
        parties=_parties(f"Apache RocketMQ at {address}"),
        profile="rocketmq-5-orderly",
        config=config,
        lease_known=False,
        remembers=True,
        opens=open_remote,
    )
