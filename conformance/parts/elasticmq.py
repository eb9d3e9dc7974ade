"""A throw-away ElasticMQ on this machine: a server of SQS' protocol in one JVM, from the released jars.

    with ElasticServer("1.6.11", workdir=folder) as server:
        ...  # server.address: "127.0.0.1:PORT"

What is decided here, found by running it:
- It keeps its queues in memory, so one that is killed has nothing left: nobody starts it again on its data.
- Ready means that it answers a request for its queues.
- Measured: fetched in 12 s (37 MB), ready in 3 s, 109 MB.

    python -m conformance.parts.elasticmq 1.6.11
"""

from __future__ import annotations

import http.client
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from conformance.parts.java import java
from conformance.parts.local_server import HOST, LocalServer
from conformance.parts.maven import Artifact, JarSet
from conformance.parts.telling import tell
from conformance.parts.wheels import Wheel
from specs.errors import UsageError

VERSIONS = ("1.6.11",)
"""Servers that were run."""
DEFAULT = "1.6.11"
CLIENTS = {
    "1.44.5": (
        "botocore==1.44.5",
        "jmespath==1.1.0",
        "python-dateutil==2.9.0.post0",
        "s3transfer==0.19.3",
        "six==1.17.0",
        "urllib3==2.8.0",
    )
}
"""Versions of boto3 that are driven → what each needs."""
DEFAULT_CLIENT = "1.44.5"
ANSWER_S = 2.0
_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xmx256m")
_CONFIG = """include classpath("application.conf")
node-address {{ protocol = http, host = "{host}", port = {port}, context-path = "" }}
rest-sqs {{ enabled = true, bind-hostname = "{host}", bind-port = {port}, sqs-limits = strict }}
rest-stats {{ enabled = false }}
generate-node-address = false
"""


def jars(version: str) -> JarSet:
    """Of the server. Raises UsageError for an unknown version."""
    ElasticServer.check_version(version)
    return JarSet(
        product=f"ElasticMQ {version}",
        name="elasticmq-parts",
        place=f"elasticmq/{version}/lib",
        artifacts=(Artifact("org.elasticmq", "elasticmq-server_2.13", version),),
    )


def present(version: str) -> bool:
    """Whether they are there."""
    return jars(version).present


def client(version: str) -> Wheel:
    """boto3. Raises UsageError for an unknown version."""
    if version not in CLIENTS:
        raise UsageError(f"There is no boto3 {version!r} to drive; known: {', '.join(CLIENTS)}.")
    return Wheel("boto3", version, CLIENTS[version])


class ElasticServer(LocalServer):
    """One JVM. workdir: an empty or missing folder that is the server's own."""

    product = "ElasticMQ"
    versions = VERSIONS
    default = DEFAULT

    def fetch(self) -> None:
        jars(self.version).ensure()

    def set_up(self) -> None:
        self._config.write_text(_CONFIG.format(host=HOST, port=self.port()))

    @property
    def _config(self) -> Path:
        return self.workdir / "elasticmq.conf"

    def command(self) -> list[str | Path]:
        lib = jars(self.version).folder
        config = f"-Dconfig.file={self._config}"
        return [java(), *_JVM, config, "-cp", f"{lib}/*", "org.elasticmq.server.Main"]

    @staticmethod
    def answers(host: str, port: int) -> bool:
        """Does a server of SQS' protocol answer there?"""
        connection = http.client.HTTPConnection(host, port, timeout=ANSWER_S)
        try:
            connection.request("GET", "/?Action=ListQueues")
            return b"ListQueuesResponse" in connection.getresponse().read()
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


def parts(versions: Sequence[str]) -> Iterator[str]:
    """Fetch the named servers and the default client; a line for each."""
    for version in versions or (DEFAULT,):
        yield f"{version}: {jars(version).ensure()}"
    yield f"boto3: {client(DEFAULT_CLIENT).ensure()}"


if __name__ == "__main__":
    sys.exit(tell(parts(sys.argv[1:])))
