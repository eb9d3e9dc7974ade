"""The toxics, one class each, with units in their names.

stream: DOWNSTREAM is what the server sends to the client, UPSTREAM what the client sends.
toxicity: the share of connections that are hit, 0 to 1.
The server takes an unknown attribute silently as a toxic of value 0, so attributes are never free-form here.
Source of names and meaning: the "Toxics" chapter of toxiproxy's README, version 2.12.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, ClassVar

from specs.errors import TargetMisbehaved, UsageError


class Stream(StrEnum):
    """Which direction of a connection a toxic works on."""

    DOWNSTREAM = "downstream"
    UPSTREAM = "upstream"


@dataclass(frozen=True, slots=True, kw_only=True)
class Toxic:
    """What all toxics have. Raises UsageError for a negative number or a toxicity outside 0 to 1."""

    KIND: ClassVar[str]
    # Our field name → the server's attribute name.
    ATTRIBUTES: ClassVar[Mapping[str, str]]

    stream: Stream = Stream.DOWNSTREAM
    toxicity: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.toxicity <= 1:
            raise UsageError(
                f"The toxicity of a {self.KIND} toxic is a share from 0 to 1, not {self.toxicity}."
            )
        for field in self.ATTRIBUTES:
            if getattr(self, field) < 0:
                raise UsageError(
                    f"{field} of a {self.KIND} toxic can't be negative ({getattr(self, field)})."
                )

    def attributes(self) -> dict[str, int]:
        """As the server names them."""
        return {theirs: getattr(self, ours) for ours, theirs in self.ATTRIBUTES.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency(Toxic):
    """Each chunk arrives `latency_ms` ± `jitter_ms` later."""

    KIND: ClassVar[str] = "latency"
    ATTRIBUTES: ClassVar[Mapping[str, str]] = {"latency_ms": "latency", "jitter_ms": "jitter"}
    latency_ms: int
    jitter_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bandwidth(Toxic):
    """At most `rate_kb_per_s` kilobytes a second."""

    KIND: ClassVar[str] = "bandwidth"
    ATTRIBUTES: ClassVar[Mapping[str, str]] = {"rate_kb_per_s": "rate"}
    rate_kb_per_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowClose(Toxic):
    """A close is passed on `delay_ms` later."""

    KIND: ClassVar[str] = "slow_close"
    ATTRIBUTES: ClassVar[Mapping[str, str]] = {"delay_ms": "delay"}
    delay_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeout(Toxic):
    """Nothing passes, and the connection is closed after `timeout_ms`; 0 is a black hole that stays open.

    Taking the toxic away closes the connections that it held (their data is lost); it does not resume them.
    """

    KIND: ClassVar[str] = "timeout"
    ATTRIBUTES: ClassVar[Mapping[str, str]] = {"timeout_ms": "timeout"}
    timeout_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetPeer(Toxic):
    """The connection is reset (TCP RST) `timeout_ms` after data flows; an idle connection is left alone."""

    KIND: ClassVar[str] = "reset_peer"
    ATTRIBUTES: ClassVar[Mapping[str, str]] = {"timeout_ms": "timeout"}
    timeout_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Slicer(Toxic):
    """Data arrives in pieces of `average_bytes` ± `variation_bytes`, `delay_us` microseconds apart."""

    KIND: ClassVar[str] = "slicer"
    ATTRIBUTES: ClassVar[Mapping[str, str]] = {
        "average_bytes": "average_size",
        "variation_bytes": "size_variation",
        "delay_us": "delay",
    }
    average_bytes: int
    variation_bytes: int = 0
    delay_us: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitData(Toxic):
    """The connection is closed after exactly `limit_bytes` bytes."""

    KIND: ClassVar[str] = "limit_data"
    ATTRIBUTES: ClassVar[Mapping[str, str]] = {"limit_bytes": "bytes"}
    limit_bytes: int


KINDS: Mapping[str, type[Toxic]] = {
    toxic.KIND: toxic
    for toxic in (Latency, Bandwidth, SlowClose, Timeout, ResetPeer, Slicer, LimitData)
}


def from_server(kind: str, stream: str, toxicity: float, attributes: Mapping[str, Any]) -> Toxic:
    """The toxic that the server describes. Raises TargetMisbehaved for one that this version does not know."""
    try:
        known = KINDS[kind]
        numbers = {ours: int(attributes[theirs]) for ours, theirs in known.ATTRIBUTES.items()}
        return known(stream=Stream(stream), toxicity=toxicity, **numbers)
    except (KeyError, ValueError) as error:
        raise TargetMisbehaved(
            f"toxiproxy describes a toxic unknown here: {kind} {dict(attributes)}."
        ) from error


def described(toxic: Toxic) -> str:
    """For example: latency(latency_ms=200, jitter_ms=0) downstream."""
    numbers = ", ".join(
        f"{field.name}={getattr(toxic, field.name)}"
        for field in fields(toxic)
        if field.name in toxic.ATTRIBUTES
    )
    share = "" if toxic.toxicity == 1.0 else f", {toxic.toxicity:g} of connections"
    return f"{toxic.KIND}({numbers}) {toxic.stream}{share}"


__all__ = [
    "KINDS",
    "Bandwidth",
    "Latency",
    "LimitData",
    "ResetPeer",
    "Slicer",
    "SlowClose",
    "Stream",
    "Timeout",
    "Toxic",
    "described",
    "from_server",
]
