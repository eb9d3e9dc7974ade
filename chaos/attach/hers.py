"""Her containers, and what may be done to each: the one place that decides it. It looks, and touches nothing.

A label says it, `inorder.chaos`: a `consumer` is put behind the tap and broken, a `producer` is put behind the tap
alone, a `broker` is broken where it is. A container without it is never touched.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import requests
from docker import DockerClient
from docker.errors import DockerException
from docker.models.containers import Container

from chaos.attach.compose import NAMED_BY, PROJECT, SERVICE, Project
from conformance.parts.docker_engine import where
from reference_impl.shell.errors import split_address
from specs.errors import TargetMisbehaved, UsageError

LABEL = "inorder.chaos"
USUAL_PORT = 9876
_ADDRESS = re.compile(r"(?<![\w.:/-])([A-Za-z0-9][\w.-]*):(\d{2,5})(?![\w.])")
_NAMED = re.compile(r"name_?(?:srv|server)", re.IGNORECASE)


class Role(StrEnum):
    """What a container is, as its label says."""

    CONSUMER = "consumer"
    PRODUCER = "producer"
    BROKER = "broker"


@dataclass(frozen=True, slots=True)
class Hers:
    """One of her containers. attrs: as the engine tells it."""

    id: str
    name: str
    role: Role
    attrs: Mapping[str, Any]

    @property
    def networks(self) -> Mapping[str, Any]:
        """Those that it is in, with what it is called there."""
        found: Mapping[str, Any] = self.attrs["NetworkSettings"]["Networks"]
        return found

    @property
    def words(self) -> Iterator[tuple[str, str]]:
        """Where an address may stand: (name of the variable or nothing, text)."""
        config = self.attrs["Config"]
        for each in config.get("Env") or ():
            name, _, value = each.partition("=")
            yield name, value
        for each in (*(config.get("Entrypoint") or ()), *(config.get("Cmd") or ())):
            yield "", each


@dataclass(frozen=True, slots=True)
class Look:
    """What was found. clients: consumers first. others: services' containers that carry no label.

    namesrv: as her clients call it. network: where they, the tap and the name server find each other.
    """

    project: Project
    engine: str
    clients: tuple[Hers, ...]
    brokers: tuple[Hers, ...]
    others: tuple[str, ...]
    namesrv: str
    network: str

    @property
    def consumers(self) -> tuple[Hers, ...]:
        return tuple(each for each in self.clients if each.role is Role.CONSUMER)

    @property
    def host(self) -> str:
        """The name that leads to the tap, for a client behind it."""
        return split_address(self.namesrv)[0]

    @property
    def port(self) -> int:
        return split_address(self.namesrv)[1]


@contextmanager
def asking(what: str) -> Iterator[None]:
    """An error of the engine's is one sentence: what was asked of it, and what it said."""
    try:
        yield
    except (DockerException, requests.RequestException) as error:
        said = str(error).split("\n", 1)[0]
        raise TargetMisbehaved(f"the Docker engine could not {what}: {said[:300]}") from error


def look(client: DockerClient, project: Project, namesrv: str | None) -> Look:
    """Raises UsageError for all that she can mend."""
    with asking("list the containers"):
        found = client.containers.list(filters={"label": f"{PROJECT}={project.name}"})
    running = [each for each in found if each.labels.get(SERVICE) in project.services]
    if not running:
        raise UsageError(
            f"no container of the project {project.name} runs at {where()}: {project.up} "
            f"({NAMED_BY} names another project)"
        )
    labelled = [_hers(each) for each in running if LABEL in each.labels]
    clients = sorted(
        (each for each in labelled if each.role is not Role.BROKER),
        key=lambda each: (each.role, each.name),
    )
    if not any(each.role is Role.CONSUMER for each in clients):
        raise UsageError(
            f"no running container of the project {project.name} has the label {LABEL}: {Role.CONSUMER}; give it to "
            f"the services that may be broken, and: {project.up}"
        )
    for each in clients:
        _can_be_copied(each)
    address = namesrv or _address(clients, running)
    host = split_address(address)[0]
    if re.fullmatch(r"[\d.]+|\[.*\]", host):
        raise UsageError(
            f"the clients call the name server by its number ({address}); only a name can lead to the tap instead"
        )
    return Look(
        project,
        where(),
        tuple(clients),
        tuple(each for each in labelled if each.role is Role.BROKER),
        tuple(sorted(str(each.name) for each in running if LABEL not in each.labels)),
        address,
        _network(host, clients, running),
    )


def _hers(container: Container) -> Hers:
    told = container.labels[LABEL]
    if told not in set(Role):
        raise UsageError(
            f"{container.name} has the label {LABEL}: {told}, which may be {', '.join(Role)}"
        )
    if container.status != "running":
        raise UsageError(f"{container.name} is {container.status}, and should run before a run")
    return Hers(str(container.id), str(container.name), Role(told), container.attrs)


def _can_be_copied(hers: Hers) -> None:
    host = hers.attrs["HostConfig"]
    if host.get("AutoRemove"):
        raise UsageError(
            f"{hers.name} was started with --rm: it would be gone when a copy stands in for it"
        )
    if str(host.get("NetworkMode")).partition(":")[0] in ("host", "none", "container"):
        raise UsageError(
            f"{hers.name} has the network mode {host['NetworkMode']}, where no name can lead to the tap"
        )


def _names(container: Container) -> set[str]:
    """What others call it."""
    networks = container.attrs["NetworkSettings"]["Networks"].values()
    aliases = {alias for each in networks for alias in each.get("Aliases") or ()}
    return {str(container.name), str(container.labels.get(SERVICE)), *aliases}


def _address(clients: Sequence[Hers], running: Iterable[Container]) -> str:
    """The name server's, as the clients are told it: by a variable that says so, or by its usual port."""
    theirs = {name for each in running for name in _names(each)}
    told = {
        f"{host}:{port}"
        for each in clients
        for name, text in each.words
        for host, port in _ADDRESS.findall(text)
        if _NAMED.search(name) or (int(port) == USUAL_PORT and host in theirs)
    }
    if len(told) == 1:
        return told.pop()
    names = ", ".join(each.name for each in clients)
    if not told:
        raise UsageError(
            f"nothing that {names} are told looks like a name server's address: --namesrv HOST:PORT"
        )
    raise UsageError(
        f"{names} are told of {' and '.join(sorted(told))}, and the tap stands before one name server: "
        "--namesrv HOST:PORT"
    )


def _network(host: str, clients: Sequence[Hers], running: Iterable[Container]) -> str:
    common = set.intersection(*(set(each.networks) for each in clients))
    for each in running:
        if host in _names(each):
            common &= set(each.attrs["NetworkSettings"]["Networks"])
    if not common:
        names = ", ".join(each.name for each in clients)
        raise UsageError(f"{names} and the name server {host} are in no network together")
    return min(common)
