"""A throw-away Apache Kafka on this machine: broker and controller in one process, started from the released jars.

    with KafkaServer("4.3.1", workdir=folder) as server:
        ...  # server.bootstrap: "127.0.0.1:PORT"

What is decided here, found by running the server on Java 17:
- KRaft, one node, every internal topic with one partition and one replica; new groups are not kept waiting.
- Sessions may be as short as a second, so that a run sees them end; a dead incarnation of the broker itself is
  forgotten after three seconds, else a restart on the same data takes 13 s instead of 6 s.
- Ready means that it answers ApiVersions: the port is open a moment before that.
- Measured: format 1.3 s, ready after 2 to 4 s, 150 to 190 MB with this heap. SIGTERM takes 2.5 s, SIGKILL nothing,
  and acknowledged records survive it (the page cache lives), so a throw-away server is killed.

    python -m conformance.parts.kafka 4.3.1
"""

from __future__ import annotations

import shutil
import socket
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from conformance.parts import ports
from conformance.parts.java import java
from conformance.parts.maven import Artifact, JarSet
from conformance.parts.processes import Process
from conformance.parts.wheels import Wheel
from specs.errors import InorderError, TargetMisbehaved, UsageError

HOST = "127.0.0.1"
VERSIONS = ("4.1.0", "4.3.1")
"""Whose server and all that it needs are released to Maven Central; 4.4.0's is not."""
DEFAULT = "4.3.1"
JAVA_CLIENTS = ("3.9.0", "4.0.0", "4.1.0", "4.2.0", "4.2.1", "4.3.0", "4.3.1", "4.4.0")
"""Versions of kafka-clients that are driven."""
DEFAULT_JAVA = "4.4.0"
LIBRDKAFKAS = ("2.3.0", "2.4.0", "2.12.1", "2.16.1")
"""Versions of confluent-kafka that are driven; each carries the librdkafka of its number (2.16.1 carries 2.16.0)."""
DEFAULT_LIBRDKAFKA = "2.12.1"

START_DEADLINE_S = 60.0
FORMAT_DEADLINE_S = 60.0
CLEAN_STOP_S = 20.0
ANSWER_S = 2.0
CLUSTER_ID = "aW5vcmRlci1vbmUtbm9kZQ"
API_VERSIONS = 18

_JVM = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-Xms64m",
    "-Xmx320m",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)
_BINDING = Artifact("org.slf4j", "slf4j-simple", "1.7.36")
_JSON = Artifact("org.json", "json", "20240303")
"""What the driver of the Java client reads and writes its lines with."""


def check_version(version: str) -> None:
    """Raises UsageError, naming the known ones, if this server can't be had."""
    if version not in VERSIONS:
        raise UsageError(
            f"There are no jars of an Apache Kafka server {version!r}; known: {', '.join(VERSIONS)}."
        )


def server_jars(version: str) -> JarSet:
    """Of the server. Raises UsageError for an unknown version."""
    check_version(version)
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


class KafkaServer:
    """One node of a released version; a context manager.

    workdir: an empty or missing folder that is the server's own. more: keys of server.properties, overriding ours.

    Raises UsageError (unknown version, no Maven, no Java), TargetMisbehaved (it died, or was not ready in time).
    """

    def __init__(
        self, version: str, *, workdir: Path, more: Mapping[str, str] | None = None
    ) -> None:
        self._jars = server_jars(version)
        self.version = version
        self.workdir = workdir.resolve()
        self._more = dict(more or {})
        self._reservations: list[ports.Reservation] = []
        self._process: Process | None = None

    @property
    def bootstrap(self) -> str:
        """Where clients begin, "127.0.0.1:PORT"; valid after `start`."""
        return f"{HOST}:{self._reservations[0].port}"

    @property
    def process(self) -> Process:
        """`pause`, `resume`, `kill` it."""
        if self._process is None:
            raise TargetMisbehaved(f"Kafka {self.version} is not running.")
        return self._process

    def start(self) -> str:
        """Format its storage, start it, and wait until it answers; `bootstrap`."""
        self._jars.ensure()
        try:
            self._prepare()
            self.start_again()
        except BaseException:
            self.close()
            raise
        return self.bootstrap

    def start_again(self) -> None:
        """After `kill`, on the same data and port."""
        if self._process is not None:
            self._process.kill()
        argv = self._java("kafka.Kafka", str(self._properties))
        self._process = Process(
            f"The server of Kafka {self.version}", argv, log=self.workdir / "server.out"
        )
        self._process.wait_until(
            lambda: answers(HOST, self._reservations[0].port),
            what=f"answer at {self.bootstrap}",
            deadline_s=START_DEADLINE_S,
            every_s=0.1,
        )

    def kill(self) -> None:
        """SIGKILL; its data stay."""
        self.process.kill()
        self._process = None

    def close(self) -> None:
        """Kill it, give the ports back and delete its data (the log stays). A second call does nothing."""
        if self._process is not None:
            self._process.kill()
            self._process = None
        for reservation in self._reservations:
            reservation.release()
        self._reservations = []
        shutil.rmtree(self.workdir / "data", ignore_errors=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def _properties(self) -> Path:
        return self.workdir / "server.properties"

    def _java(self, main: str, *words: str) -> list[str]:
        return [str(java()), *_JVM, "-cp", f"{self._jars.folder}/*", main, *words]

    def _prepare(self) -> None:
        self._reservations = [ports.reserve(), ports.reserve()]
        self.workdir.mkdir(parents=True, exist_ok=True)
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
        controller = f"{HOST}:{self._reservations[1].port}"
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{controller}",
            "listeners": f"PLAINTEXT://{self.bootstrap},CONTROLLER://{controller}",
            "advertised.listeners": f"PLAINTEXT://{self.bootstrap}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": str(self.workdir / "data"),
            "auto.create.topics.enable": "false",
            **dict.fromkeys(
                (
                    "offsets.topic.replication.factor",
                    "offsets.topic.num.partitions",
                    "transaction.state.log.replication.factor",
                    "transaction.state.log.min.isr",
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
            "broker.session.timeout.ms": "3000",
            "broker.heartbeat.interval.ms": "500",
            "log.segment.bytes": str(10 * 1024 * 1024),
            "log.cleaner.enable": "false",
            "num.network.threads": "1",
            "num.io.threads": "2",
        }


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


def main(versions: Sequence[str]) -> int:
    """Fetches the named servers and the default client libraries; an exit code."""
    try:
        for version in versions or (DEFAULT,):
            lib = server_jars(version).ensure()
            sys.stdout.write(f"{version}: {len(list(lib.glob('*.jar')))} jars in {lib}\n")
        sys.stdout.write(f"librdkafka: {librdkafka(DEFAULT_LIBRDKAFKA).ensure()}\n")
    except InorderError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
