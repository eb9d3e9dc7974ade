"""Copies of her clients' containers that stand in for them while a run goes on, and her own ones back at its end.

A copy has the same image, command, environment, volumes, labels and names in its networks; only the name server's
name leads to the tap. Her own container is stopped meanwhile, and otherwise left as it is. What is then owed to her is
known to `docker_engine` before anything is touched: it is paid at the run's end, however that comes.
"""

from __future__ import annotations

from typing import Any

from docker import DockerClient
from docker.models.containers import Container

from chaos.attach.hers import STANDS_FOR, Hers
from conformance.parts import docker_engine
from conformance.parts.docker_engine import asking
from conformance.parts.restoring import let_run

STOP_S = 10


class Broken:
    """A container that may be broken, and is healed by `heal`, whatever was done to it. network: the one it is cut off
    from. addresses: those that it has had there, each with the moment from which on it may have had it."""

    def __init__(self, name: str, client: DockerClient, id_: str, network: str) -> None:
        self.name = name
        self._client = client
        self._id = id_
        self._network = network
        self._ends: dict[str, Any] | None = None
        self._links: dict[str, str] = {}
        """By container the name by which alone this one finds it."""
        self.addresses: list[tuple[int, str]] = []

    @property
    def _container(self) -> Container:
        return self._client.containers.get(self._id)

    def kill(self) -> None:
        with asking(f"kill {self.name}"):
            self._container.kill("SIGKILL")
            self._container.wait(timeout=docker_engine.REQUEST_DEADLINE_S)

    def stop(self) -> None:
        with asking(f"stop {self.name}"):
            self._container.stop(timeout=STOP_S)

    def pause(self) -> None:
        with asking(f"pause {self.name}"):
            self._container.pause()

    def leave(self) -> None:
        """Take it off the network; neither side hears of it."""
        with asking(f"take {self.name} off the network {self._network}"):
            container = self._container
            self._ends = dict(container.attrs["NetworkSettings"]["Networks"][self._network])
            self._client.networks.get(self._network).disconnect(container, force=True)

    def heal(self) -> None:
        """It runs, and is in its network. Nothing, where it is well."""
        with asking(f"heal {self.name}"):
            if self._ends is not None:
                network = self._client.networks.get(self._network)
                # The engine writes a new /etc/hosts now, without the line of the copy's own.
                ends = _as_connected(self._ends, self._id)
                network.connect(self._id, links=self._links, **ends)
                self._ends = None
            let_run(self._client, self._id)

    def locate(self, since_us: int) -> None:
        """Look up its address, which it may have had since then."""
        with asking(f"look at {self.name}"):
            networks = self._container.attrs["NetworkSettings"]["Networks"]
        address = networks.get(self._network, {}).get("IPAddress")
        if address and (not self.addresses or self.addresses[-1][1] != address):
            self.addresses.append((since_us, address))

    def check(self) -> str | None:
        """Why it does not run; None where it does."""
        with asking(f"look at {self.name}"):
            container = self._container
            if container.status == "running":
                return None
            said = container.logs(tail=3).decode(errors="replace").strip()
        return f"{self.name} is {container.status} and nobody ended it; it said: {said[-300:]}"


class InPlace(Broken):
    """A broker of hers, broken where it is."""

    def __init__(self, hers: Hers, client: DockerClient, network: str) -> None:
        super().__init__(hers.name, client, hers.id, network)
        docker_engine.runs_if_we_die(hers.name)


class StandIn(Broken):
    """A copy of hers that finds the tap as `host`, from `begin` on. project: the compose project's name."""

    def __init__(self, hers: Hers, client: DockerClient, network: str, project: str) -> None:
        self.hers = hers
        self._labels = {
            **docker_engine.own_labels(),
            docker_engine.LABEL_OF_PROJECT: project,
            STANDS_FOR: hers.name,
        }
        self.copy = f"{hers.name}-{docker_engine.own_name()}"
        super().__init__(hers.name, client, self.copy, network)

    def begin(self, host: str, tap: str, address: str) -> None:
        """From here on hers is stopped. tap: the container that she calls by the host's name, at that address."""
        self._links = {tap: host}
        docker_engine.removed_if_we_die(self.copy)
        docker_engine.runs_if_we_die(self.hers.name)
        with asking(f"let a copy stand in for {self.name}"):
            config = _config(self.hers, host, address)
            config["Labels"] = {**(config.get("Labels") or {}), **self._labels}
            self._client.api.create_container_from_config(config, name=self.copy)  # type: ignore[no-untyped-call]
            for name, ends in self.hers.networks.items():
                if name != _first_network(self.hers):
                    network = self._client.networks.get(name)
                    network.connect(self.copy, **_as_connected(ends, self.hers.id))
            self._client.containers.get(self.hers.id).stop(timeout=STOP_S)
            self._container.start()

    def end(self) -> None:
        """In good order: it stores what it has done."""
        self.heal()
        self.stop()


def _first_network(hers: Hers) -> str:
    """The one that a container is made in; the others come afterwards."""
    mode = str(hers.attrs["HostConfig"]["NetworkMode"])
    return mode if mode in hers.networks else min(hers.networks)


def _config(hers: Hers, host: str, address: str) -> dict[str, Any]:
    """What makes the copy: all that made hers, and the name server's name."""
    config = dict(hers.attrs["Config"])
    if hers.id.startswith(config.get("Hostname") or " "):
        del config["Hostname"]  # the engine's own choice, and so it is for the copy
    machine = dict(hers.attrs["HostConfig"])
    machine["ExtraHosts"] = [*(machine.get("ExtraHosts") or ()), f"{host}:{address}"]
    # Also the volumes without a name, which nobody else could find.
    machine["VolumesFrom"] = [*(machine.get("VolumesFrom") or ()), hers.id]
    first = _first_network(hers)
    ends = _as_connected(hers.networks[first], hers.id)
    endpoint: dict[str, Any] = {"Aliases": ends["aliases"]}
    if "ipv4_address" in ends:
        endpoint["IPAMConfig"] = {"IPv4Address": ends["ipv4_address"]}
    return {
        **config,
        "HostConfig": machine,
        "NetworkingConfig": {"EndpointsConfig": {first: endpoint}},
    }


def _as_connected(ends: Any, id_: str) -> dict[str, Any]:
    """How it was connected to a network: its names there, and its address if it was told one."""
    names = [each for each in ends.get("Aliases") or () if not id_.startswith(each)]
    told = (ends.get("IPAMConfig") or {}).get("IPv4Address")
    return {"aliases": names, **({"ipv4_address": told} if told else {})}
