"""A throw-away Apache Kafka on this machine: broker and controller in one process, started from the released jars.

    with KafkaServer("4.3.1", workdir=folder) as server:
        ...  # server.address: "127.0.0.1:PORT"

What is decided here, found by running the server on Java 17:
- KRaft, every node broker and controller, every internal topic with one partition and a replica on each node; most
  of them have to have a record before it is acknowledged. New groups are not kept waiting.
- Sessions may be as short as a second, so that a run sees them end; a dead incarnation of the broker itself is
  forgotten after three seconds, else a restart on the same data takes 13 s instead of 6 s.
- Ready means that it answers ApiVersions: the port is open a moment before that.
- Measured: format 1.3 s, ready after 2 to 4 s, 150 to 190 MB with this heap. SIGTERM takes 2.5 s, SIGKILL nothing,
  and acknowledged records survive it (the page cache lives), so a throw-away server is killed.

    python -m conformance.parts.kafka 4.3.1
"""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from conformance.parts.java import java
from conformance.parts.local_server import HOST, LocalServer
from conformance.parts.maven import Artifact, JarSet
from conformance.parts.telling import tell
from conformance.parts.wheels import Wheel
from specs.errors import TargetMisbehaved, UsageError

VERSIONS = ("4.1.0", "4.3.1")
"""Whose server and all that it needs are released to Maven Central; 4.4.0's is not."""
DEFAULT = "4.3.1"
JAVA_CLIENTS = ("3.9.0", "4.0.0", "4.1.0", "4.2.0", "4.2.1", "4.3.0", "4.3.1", "4.4.0")
"""Versions of kafka-clients that are driven."""
DEFAULT_JAVA = "4.4.0"
LIBRDKAFKAS = ("2.3.0", "2.4.0", "2.12.1", "2.16.1")
"""Versions of confluent-kafka that are driven; each carries the librdkafka of its number (2.16.1 carries 2.16.0)."""
DEFAULT_LIBRDKAFKA = "2.12.1"
SHARE = "2.16.1"
"""The one with share groups."""
SHARE_SERVER = "4.3.1"
"""The one whose storage has them without being asked."""

FORMAT_DEADLINE_S = 60.0
ANSWER_S = 2.0
CLUSTER_ID = "aW5vcmRlci1vbmUtbm9kZQ"
API_VERSIONS = 18

_JVM = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-Xms64m",
    "-Xmx256m",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)
_BINDING = Artifact("org.slf4j", "slf4j-simple", "1.7.36")
_JSON = Artifact("org.json", "json", "20240303")
"""What the driver of the Java client reads and writes its lines with."""


def server_jars(version: str) -> JarSet:
    """Of the server. Raises UsageError for an unknown version."""
    KafkaServer.check_version(version)
    return JarSet(
        product=f"Apache Kafka {version}",
        name="kafka-parts",
        place=f"kafka/{version}/lib",
        artifacts=(Artifact("org.apache.kafka", "kafka_2.13", version), _BINDING),
    )


def client_jars(version: str) -> JarSet:
    """Of the Java client alone. Raises UsageError for an unknown version."""
    if version not in JAVA_CLIENTS:
        raise UsageError(
            f"There is no Java client of Apache Kafka {version!r} to drive; known: {', '.join(JAVA_CLIENTS)}."
        )
    return JarSet(
        product=f"the Java client of Apache Kafka {version}",
        name="kafka-client-parts",
        place=f"kafka-client/{version}/lib",
        artifacts=(Artifact("org.apache.kafka", "kafka-clients", version), _BINDING, _JSON),
    )


def librdkafka(version: str) -> Wheel:
    """librdkafka in its Python wheel. Raises UsageError for an unknown version."""
    if version not in LIBRDKAFKAS:
        raise UsageError(
            f"There is no librdkafka {version!r} to drive; known: {', '.join(LIBRDKAFKAS)}."
        )
    return Wheel("confluent-kafka", version)


class KafkaServer(LocalServer):
    """One node of a released version, alone or of a cluster; a context manager.

    workdir: an empty or missing folder that is the server's own. more: keys of server.properties, overriding ours.

    Raises UsageError (unknown version), Unavailable (no Maven, no Java), TargetMisbehaved (it died, or was not ready
    in time).
    """

    product = "Apache Kafka"
    versions = VERSIONS
    default = DEFAULT
    port_count = 3

    def __init__(
        self, version: str, *, workdir: Path, more: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(version, workdir=workdir)
        self._jars = server_jars(version)
        self._more = dict(more or {})

    def fetch(self) -> None:
        self._jars.ensure()

    def command(self) -> list[str]:
        return self._java("kafka.Kafka", str(self._properties))

    @staticmethod
    def answers(host: str, port: int) -> bool:
        """Does a Kafka broker answer there which versions of requests it knows?"""
        request = struct.pack(">hhih", API_VERSIONS, 0, 1, -1)
        try:
            with socket.create_connection((host, port), ANSWER_S) as connection:
                connection.sendall(struct.pack(">i", len(request)) + request)
                head = connection.recv(8, socket.MSG_WAITALL)
        except OSError:
            return False
        return len(head) == 8 and struct.unpack(">ii", head)[1] == 1

    @property
    def link_end(self) -> str:
        """A listener of its own: a client is told where to go on by the one that it came to."""
        return f"{HOST}:{self.port(2)}"

    @property
    def _properties(self) -> Path:
        return self.workdir / "server.properties"

    def _java(self, main: str, *words: str) -> list[str]:
        return [str(java()), *_JVM, "-cp", f"{self._jars.folder}/*", main, *words]

    def set_up(self) -> None:
        lines = {**self._settings(), **self._more}
        text = "".join(f"{key}={value}\n" for key, value in lines.items())
        self._properties.write_text(text)
        command = self._java("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID)
        done = subprocess.run(
            [*command, "-c", str(self._properties)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=FORMAT_DEADLINE_S,
            check=False,
        )
        if done.returncode != 0:
            said = "\n".join((done.stdout + done.stderr).strip().splitlines()[-6:])
            raise TargetMisbehaved(f"Kafka {self.version} could not format its storage:\n{said}")

    def _settings(self) -> dict[str, str]:
        controller = f"{HOST}:{self.port(1)}"
        linked = self.link_address or self.link_end
        copies = len(self.peers)
        return {
            "process.roles": "broker,controller",
            "node.id": str(self.number),
            "controller.quorum.voters": ",".join(
                f"{peer.number}@{HOST}:{peer.port(1)}" for peer in self.peers
            ),
            "controller.quorum.election.timeout.ms": "500",
            "controller.quorum.fetch.timeout.ms": "1000",
            "listeners": f"PLAINTEXT://{self.address},LINK://{self.link_end},CONTROLLER://{controller}",
            "advertised.listeners": f"PLAINTEXT://{self.address},LINK://{linked}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,LINK:PLAINTEXT",
            "log.dirs": str(self.data),
            "auto.create.topics.enable": "false",
            **dict.fromkeys(
                (
                    "default.replication.factor",
                    "offsets.topic.replication.factor",
                    "share.coordinator.state.topic.replication.factor",
                    "transaction.state.log.replication.factor",
                ),
                str(copies),
            ),
            **dict.fromkeys(
                (
                    "min.insync.replicas",
                    "share.coordinator.state.topic.min.isr",
                    "transaction.state.log.min.isr",
                ),
                str(copies // 2 + 1),
            ),
            **dict.fromkeys(
                (
                    "offsets.topic.num.partitions",
                    "share.coordinator.state.topic.num.partitions",
                    "transaction.state.log.num.partitions",
                ),
                "1",
            ),
            "group.initial.rebalance.delay.ms": "0",
            "group.min.session.timeout.ms": "1000",
            "group.consumer.min.session.timeout.ms": "1000",
            "group.consumer.session.timeout.ms": "2000",
            "group.consumer.min.heartbeat.interval.ms": "100",
            "group.consumer.heartbeat.interval.ms": "300",
            "group.share.delivery.count.limit": "10",
            "group.share.min.record.lock.duration.ms": "1000",
            "group.share.record.lock.duration.ms": "3000",
            "group.share.min.session.timeout.ms": "1000",
            "group.share.session.timeout.ms": "2000",
            "group.share.min.heartbeat.interval.ms": "100",
            "group.share.heartbeat.interval.ms": "300",
            "broker.session.timeout.ms": "3000",
            "broker.heartbeat.interval.ms": "500",
            "log.segment.bytes": str(10 * 1024 * 1024),
            "log.cleaner.enable": "false",
            "num.network.threads": "1",
            "num.io.threads": "2",
        }


def parts(versions: Sequence[str]) -> Iterator[str]:
    """Fetch the named servers (`java:VERSION`: Apache's client) and the default client libraries; a line for each."""
    for version in versions or (DEFAULT,):
        client, _, of_client = version.partition(":")
        lib = (client_jars(of_client) if client == "java" else server_jars(version)).ensure()
        yield f"{version}: {len(list(lib.glob('*.jar')))} jars in {lib}"
    yield f"librdkafka: {librdkafka(DEFAULT_LIBRDKAFKA).ensure()}"


if __name__ == "__main__":
    sys.exit(tell(parts(sys.argv[1:])))
