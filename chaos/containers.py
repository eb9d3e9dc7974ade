"""A consumer in a container, broken by the Docker engine. Imported only where one is asked for: the SDK is an extra."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path

from docker import DockerClient

from chaos.parties import MODULE, STOP_GRACE_S, Party
from conformance.parts.docker_engine import (
    Container,
    connect,
    ensure_image,
    remove_abandoned,
    where,
)
from specs.errors import PartFailed, TargetMisbehaved, Unavailable

REACHED_S = 60.0
REACHES = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), 5).close()"


class Engine:
    """Makes parties by the Docker engine that answers here; their image is built now if it is not there.

    Raises Unavailable where no engine answers, or its containers don't reach this machine's brokers.
    """

    def __init__(self) -> None:
        self._client = connect()
        remove_abandoned(self._client)
        self._image = ensure_image(self._client)
        _check_reach(self._client, self._image)

    def __call__(self, name: str, arguments: Sequence[str], folder: Path) -> Party:
        """A consumer, not started."""
        return ContainerParty(name, self._client, self._image, arguments, folder)


def _check_reach(client: DockerClient, image: str) -> None:
    """Brokers and proxies listen on 127.0.0.1: an engine whose containers have another one is of no use."""
    with socket.create_server(("127.0.0.1", 0)) as listens:
        port = str(listens.getsockname()[1])
        with Container(client, image, ["python3", "-c", REACHES, port]) as container:
            if container.wait(REACHED_S) != 0:
                raise Unavailable(
                    f"a container of the Docker engine at {where()} does not reach 127.0.0.1 of this machine, where "
                    "the brokers listen: containers of consumers take an engine in this machine's own network, and "
                    "that of Docker Desktop, a rootless and a remote one is another"
                )


class ContainerParty(Party):
    """A consumer in a container on the host's network; the run's folder is mounted into it."""

    INSIDE = "/run/inorder"

    def __init__(
        self, name: str, client: DockerClient, image: str, arguments: Sequence[str], out: Path
    ) -> None:
        super().__init__(name)
        self._client = client
        self._image = image
        self._out = out
        inside = [word.replace(str(out), self.INSIDE) for word in arguments]
        self._command = ["python3", "-m", MODULE, *inside, "--out", self.INSIDE]
        self._container: Container | None = None

    def start(self) -> None:
        self._container = Container(
            self._client, self._image, self._command, volumes={self._out: self.INSIDE}
        )

    def kill(self) -> None:
        if self._container is not None:
            self._container.kill()
            self._close()

    def pause(self) -> None:
        self._running().pause()

    def resume(self) -> None:
        self._running().resume()

    def stop(self) -> None:
        if self._container is not None:
            self._container.terminate()
            code = self._container.wait(STOP_GRACE_S)
            logs = self._container.logs()
            self._close()
            if code != 0:
                raise PartFailed(f"consumer {self.name} ended with {code}: {logs[-500:]}")

    def discard(self) -> None:
        self._close()

    def check(self) -> None:
        """The engine is not asked while a run goes on: that takes longer than a look may."""

    def _running(self) -> Container:
        if self._container is None:
            raise TargetMisbehaved(f"consumer {self.name} is not running")
        return self._container

    def _close(self) -> None:
        if self._container is not None:
            self._container.close()
            self._container = None
