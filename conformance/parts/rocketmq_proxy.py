"""Apache RocketMQ 5 with its proxy in local mode, the broker inside, and the client that speaks gRPC to it.

    with ProxiedCluster("5.4.0", workdir=folder) as cluster:
        ...  # cluster.endpoint: "127.0.0.1:PORT", gRPC; cluster.namesrv and cluster.broker as without a proxy

What is decided here, found by running it:
- The jars of the proxy bring the broker along, in a folder of their own: those of the broker alone stay as they are.
- The proxy's configuration has to name the cluster, else no topic has a route.
- A proxy sees that a client is gone by its heartbeats alone, which the library sends every ten seconds, and looks every
  ten seconds; `channelExpiredTimeout` of the broker says after how long.
- Of the wheels that the library names, those are left out that it never imports.
- Measured: fetched in 55 s (94 MB), ready in 10 to 36 s, 311 MB.

    python -m conformance.parts.rocketmq_proxy 5.4.0
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from conformance.parts import jars, ports
from conformance.parts.apache import CLUSTER_NAME, HOST, ApacheCluster
from conformance.parts.local_server import listens
from conformance.parts.maven import Artifact, JarSet
from conformance.parts.telling import tell
from conformance.parts.wheels import Wheel
from specs.errors import UsageError

VERSIONS = ("5.4.0",)
"""Servers whose proxy was run."""
DEFAULT = "5.4.0"
CLIENTS = {
    "5.1.2": (
        "googleapis-common-protos==1.76.0",
        "grpcio==1.85.1",
        "opentelemetry-api==1.45.2",
        "opentelemetry-exporter-otlp-common==0.66b2",
        "opentelemetry-exporter-otlp-proto-common==1.45.2",
        "opentelemetry-exporter-otlp-proto-grpc==1.45.2",
        "opentelemetry-proto==1.45.2",
        "opentelemetry-sdk==1.45.2",
        "opentelemetry-semantic-conventions==0.66b2",
        "protobuf==7.36.2",
        "typing-extensions==4.16.0",
    )
}
"""Versions of rocketmq-python-client that are driven → what each needs."""
DEFAULT_CLIENT = "5.1.2"
ARTIFACTS = ("rocketmq-namesrv", "rocketmq-proxy", "rocketmq-tools")


def check_version(version: str) -> None:
    """Raises UsageError, naming the known ones, if this version's proxy can't be had."""
    if version not in VERSIONS:
        raise UsageError(
            f"There is no proxy of Apache RocketMQ {version!r} to start; known: {', '.join(VERSIONS)}."
        )


def server_jars(version: str) -> JarSet:
    """Of name server, proxy and broker. Raises UsageError for an unknown version."""
    check_version(version)
    return JarSet(
        product=f"Apache RocketMQ {version} with its proxy",
        name="rocketmq-parts",
        place=f"rocketmq-proxy/{version}/lib",
        artifacts=tuple(Artifact(jars.GROUP, name, version) for name in ARTIFACTS),
    )


def present(version: str) -> bool:
    """Whether they are there."""
    return server_jars(version).present


def client(version: str) -> Wheel:
    """rocketmq-python-client. Raises UsageError for an unknown version."""
    if version not in CLIENTS:
        known = ", ".join(CLIENTS)
        raise UsageError(
            f"There is no gRPC client of Apache RocketMQ {version!r} to drive; known: {known}."
        )
    return Wheel("rocketmq-python-client", version, CLIENTS[version])


class ProxiedCluster(ApacheCluster):
    """One name server, and one process that is proxy and broker; as `ApacheCluster` otherwise."""

    def __init__(self, version: str, **how: Any) -> None:
        check_version(version)
        super().__init__(version, **how)
        self._grpc = self._remoting = 0

    @property
    def endpoint(self) -> str:
        """Where clients speak gRPC, "127.0.0.1:PORT"; valid after `start`."""
        return f"{HOST}:{self._grpc}"

    def lib(self, version: str) -> Path:
        return server_jars(version).ensure()

    def _prepare(self) -> None:
        super()._prepare()
        if not self._grpc:
            own = [ports.reserve(), ports.reserve()]
            self._reservations += own
            self._grpc, self._remoting = (each.port for each in own)
        told = {
            "rocketMQClusterName": CLUSTER_NAME,
            "proxyMode": "local",
            "grpcServerPort": self._grpc,
            "remotingListenPort": self._remoting,
            "namesrvAddr": self.namesrv,
            "localServeAddr": HOST,
        }
        (self.workdir / "home/conf/rmq-proxy.json").write_text(json.dumps(told))
        (self.workdir / "home/conf/rmq.proxy.logback.xml").write_text(
            (self.workdir / "home/conf/logback_broker.xml").read_text()
        )

    def main(self) -> tuple[str, ...]:
        return (
            "org.apache.rocketmq.proxy.ProxyStartup",
            *("-pm", "local"),
            *("-n", self.namesrv),
            *("-pc", str(self.workdir / "home/conf/rmq-proxy.json")),
            "-bc",
        )

    def is_ready(self) -> bool:
        return listens(HOST, self._grpc) and super().is_ready()


def parts(versions: Sequence[str]) -> Iterator[str]:
    """Fetch the named servers and the default client; a line for each."""
    for version in versions or (DEFAULT,):
        yield f"{version}: {server_jars(version).ensure()}"
    yield f"rocketmq-python-client: {client(DEFAULT_CLIENT).ensure()}"


if __name__ == "__main__":
    sys.exit(tell(parts(sys.argv[1:])))
