"""`rocketmq:HOST:PORT` and `rocketmq-local:VERSION`: Apache RocketMQ, with our own clients on the other side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from conformance.drivers.targets import GRPC_MARK, MARK
from conformance.parts import jars
from conformance.targets import rocketmq_grpc, upgrades
from conformance.targets.driven import (
    LOCAL,
    MIXED,
    Paired,
    abroad,
    dialect_of,
    pair,
    profile_of,
    split,
    unsettable,
)
from conformance.targets.options import parse
from conformance.targets.systems import ApacheOnThisMachine, Remote, name_servers
from conformance.wire.runner import SHORT_LEASES, ours
from conformance.wire.target import WireTarget
from specs.errors import UsageError
from specs.plan.config import OF_BROKERS, Config


def _parties(broker: str) -> dict[str, str]:
    return {"broker": broker, "client": ours(), "producer": ours()}


def local(text: str | None) -> WireTarget | Paired:
    """An Apache release on this machine; with `+java:VERSION`, `+go:` or `+grpc:` a client of Apache's on it.

    `,upgrade=VERSION` behind it names the version that its broker may be upgraded to; `,mixed=VERSION` the other
    version of a mixed group's Java clients.
    """
    if text and GRPC_MARK in text:
        return rocketmq_grpc.local(text)
    version, others = _with_others(text or "")
    newer, other = others.get(upgrades.OPTION), others.get(MIXED)
    if not version:
        raise UsageError("the target rocketmq-local needs a version, as in rocketmq-local:5.4.0")
    broker, mark, client = split(version)
    if mark is not None:
        if other is not None and mark != MARK:
            raise UsageError(f"only Java clients can be mixed; write {LOCAL}:{broker}{MARK}VERSION")
        return pair(broker, client, mark, newer=newer, other=other)
    if other is not None:
        raise UsageError(
            f"{MIXED}={other} names Java clients; write {LOCAL}:{version}{MARK}VERSION,{MIXED}={other}"
        )
    jars.check_version(version)
    weaker = upgrades.older(version, newer)
    return WireTarget(
        name=f"{LOCAL}:{text}",
        parties=_parties(f"Apache RocketMQ {upgrades.named(version, newer)}"),
        profile=profile_of(weaker),
        config=replace(SHORT_LEASES, dialect=dialect_of(weaker)),
        opens=lambda config: ApacheOnThisMachine(version, config, newer=newer),
        of_system=ApacheOnThisMachine.abilities | upgrades.abilities(newer),
        if_able=ApacheOnThisMachine.if_able,
        hindered=upgrades.hindered(
            newer, f"{LOCAL}:{version},{upgrades.OPTION}={jars.VERSIONS[-1]}"
        ),
        plan_config=unsettable(weaker),
        syncs="async",
    )


def _with_others(text: str) -> tuple[str, Mapping[str, str]]:
    """What stands before the options, and the other versions, of the broker or of clients. Raises UsageError."""
    before, options, _ = text.partition(",")
    if not options:
        return before, {}
    asked = parse(LOCAL, text, clients=("java", "go"), options=[upgrades.OPTION, MIXED])
    if upgrades.OPTION in asked.options:
        jars.check_version(asked.options[upgrades.OPTION])
    return before, asked.options


def remote(address: str | None) -> WireTarget | Paired:
    """A cluster that runs already, by its name server, or several with `;` or commas between them.

    Its lease is taken to be the product's 60 s.

    `HOST:PORT+java:VERSION` puts Apache's Java client to work on it, `+go:` its Go client.
    `HOST:PORT,broker_lease_ms=30000` says what its brokers were told: then what rests on it is judged.
    """
    asked = parse(
        "rocketmq", address, clients=("java", "go"), options=sorted(OF_BROKERS), listed=True
    )
    address = asked.head
    if not address or ":" not in address:
        raise UsageError(
            "the target rocketmq needs a name server's address, as in rocketmq:127.0.0.1:9876"
        )
    name_servers(address)
    if asked.client is not None:
        if asked.options:
            client = asked.client.capitalize()
            raise UsageError(
                f"{asked.named('rocketmq')}: with a {client} client it takes no options"
            )
        return abroad(address, asked.client_version or "", f"+{asked.client}:")
    known = _settings(asked.options)

    released = Config()
    guessed = {
        "broker_lease_ms": released.broker_lease_ms,
        "delay_levels": released.delay_levels,
    }
    # Our consumers' own lease may be short; the broker's is not ours to choose.
    config = replace(SHORT_LEASES, **{**guessed, **known})
    return WireTarget(
        name=asked.named("rocketmq"),
        parties=_parties(f"Apache RocketMQ at {address}"),
        profile="rocketmq-5-orderly",
        config=config,
        lease_known=False,
        told_us=frozenset(known),
        remembers=True,
        opens=lambda _: Remote(address),
    )


def _settings(options: Mapping[str, str]) -> dict[str, Any]:
    """What the options say of the brokers, as a configuration has it. Raises UsageError for what is no such value."""
    kinds = {each.name: each.type for each in fields(Config)}
    for name, value in options.items():
        if kinds[name] == "int" and not value.isdecimal():
            raise UsageError(f"the target rocketmq needs a number of ms for {name}, not {value!r}")
    told = {name: int(value) if kinds[name] == "int" else value for name, value in options.items()}
    Config.from_json(told)
    return told
