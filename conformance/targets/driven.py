"""`reference+java:V` and `rocketmq-local:V+java:V2`: Apache's Java client at work, on our broker and on Apache's."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace

from conformance.drivers.plans import DRIVEN
from conformance.drivers.runner import DrivenRun
from conformance.drivers.watching import Watch
from conformance.parts import jars
from conformance.targets.systems import ApacheOnThisMachine, ReferenceOnSockets, System
from conformance.wire.runner import ours
from reference_impl.core.broker import Broker, BrokerConfig, BrokerStore
from reference_impl.shell.body import Core
from specs.errors import UsageError
from specs.plan.config import Config

REFERENCE = "reference"


def profile_of(version: str) -> str:
    """The profile of a release, as built."""
    if version.startswith("4."):
        newer = tuple(int(part) for part in version.split(".")[:3]) >= (4, 9, 4)
        return "rocketmq-4.9-orderly" if newer else "rocketmq-4.0-orderly"
    return (
        "rocketmq-5.0-orderly" if version.startswith(("5.0.", "5.1.")) else "rocketmq-5.2-orderly"
    )


def reference(client: str | None) -> DrivenRun:
    """Apache's Java client of a version on our own cluster, which records what the client asks for."""
    if not client:
        raise UsageError(
            "the target reference+java needs the client's version, as in reference+java:5.4.0"
        )
    jars.check_client_version(client)
    return pair(None, client)


def pair(broker: str | None, client: str | None) -> DrivenRun:
    """A broker and a client: each Apache's of a version, or (None) our own. Raises UsageError for unknown versions."""
    if broker is not None:
        jars.check_version(broker)
    if client is not None:
        jars.check_client_version(client)
    system = REFERENCE if broker is None else f"rocketmq-local:{broker}"
    theirs = f"Apache Java client {client}"
    return DrivenRun(
        target=_name(system, client),
        parties={
            "broker": ours() if broker is None else f"Apache RocketMQ {broker}",
            "client": ours() if client is None else theirs,
            "producer": ours() if client is None else theirs,
        },
        profile=" + ".join(
            dict.fromkeys(
                REFERENCE if version is None else profile_of(version)
                for version in (broker, client)
            )
        ),
        config=replace(DRIVEN, dialect="4.9" if (broker or "").startswith("4.") else "5.x"),
        version=client,
        watched=broker is None and client is not None,
        open_system=lambda config, watch: _open(broker, config, watch),
    )


def _name(system: str, client: str | None) -> str:
    """The target that a user names, as far as there is one: our own client's are those of the raw client too."""
    if client is not None:
        return f"{system}+java:{client}"
    return "reference+tcp" if system == REFERENCE else system


def _open(
    broker: str | None, config: Config, watch: Watch | None
) -> AbstractContextManager[System]:
    if broker is not None:
        return ApacheOnThisMachine(broker, config)
    if watch is None:
        return ReferenceOnSockets(config)

    def make(config: BrokerConfig, store: BrokerStore) -> Core:
        return watch.core(config.name, Broker(config, store))

    return ReferenceOnSockets(config, make_broker=make)
