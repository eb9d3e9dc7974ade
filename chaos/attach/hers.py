"""Her containers, and what may be done to each: the one place that decides it. It looks, and touches nothing.

A label says it, `inorder.chaos`: a `consumer` is put behind the tap and broken, a `producer` is put behind the tap
alone, a `broker` is broken where it is. A container without it is never touched. What an earlier run has left is never
taken for hers: `put_back` cleans it up, where she asks for that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from docker import DockerClient
from docker.models.containers import Container

from chaos.attach.compose import FILES, FOLDER, NAMED_BY, PROJECT, SERVICE, Project
from conformance.parts import docker_engine
from conformance.parts.docker_engine import LABEL as OURS
from conformance.parts.docker_engine import LABEL_OF_PROJECT, asking, where
from conformance.parts.restoring import REMOVE, RUN, Debt, command, settle
from reference_impl.shell.errors import split_address
from specs.errors import UsageError

LABEL = "inorder.chaos"
STANDS_FOR = "inorder.stands-for"
"""On a copy: the name of the container that it stands in for."""
USUAL_PORT = 9876
NOT_DONE = "not done"
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
    """What was found. clients: consumers first. others: services' containers that carry no label. idle: those that
    don't run, each with its state.

    namesrv: as her clients call it. network: where they, the tap and the name server find each other.
    """

    project: Project
    engine: str
    clients: tuple[Hers, ...]
    brokers: tuple[Hers, ...]
    others: tuple[str, ...]
    namesrv: str
    network: str
    idle: tuple[str, ...] = ()

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


def look(client: DockerClient, project: Project, namesrv: str | None) -> Look:
    """Raises UsageError for all that she can mend."""
    there = _containers(client, project)
    if not _running(there):
        project, there = _by_file(client, project, there)
    _refuse_leavings(client, project)
    running = _running(there)
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
    idle = [each for each in there if each not in running]
    for down in idle:
        if host in _names(down) and not any(host in _names(other) for other in running):
            raise UsageError(
                f"the name server {host} does not run: {down.name} is {down.status}; {project.up}"
            )
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
        tuple(sorted(f"{each.name} ({each.status})" for each in idle)),
    )


def _containers(client: DockerClient, project: Project) -> list[Container]:
    """Of its services, running or not."""
    with asking("list the containers"):
        found = client.containers.list(
            all=True, filters={"label": f"{PROJECT}={project.name}"}, ignore_removed=True
        )
    return [each for each in found if each.labels.get(SERVICE) in project.services]


def _running(containers: Iterable[Container]) -> list[Container]:
    return [each for each in containers if each.status in ("running", "paused", "restarting")]


def _by_file(
    client: DockerClient, project: Project, there: list[Container]
) -> tuple[Project, list[Container]]:
    """The project that was started from the file by another name (`-p`), where it is a single one."""
    with asking("list the containers"):
        found = client.containers.list(filters={"label": PROJECT}, ignore_removed=True)
    names = {each.labels[PROJECT] for each in found if project.path.resolve() in _files(each)}
    if project.named or len(names) != 1:
        return project, there
    other = replace(project, name=names.pop())
    return other, _containers(client, other)


def _files(container: Container) -> set[Path]:
    """From which compose made it; 1.x has their names beside the folder, 2.x whole paths."""
    folder = Path(container.labels.get(FOLDER, "/"))
    return {folder / each for each in container.labels.get(FILES, "").split(",") if each}


def _left(client: DockerClient, project: Project) -> list[Container]:
    """What a run has made for the project, and has not removed."""
    with asking("list the containers"):
        return list(
            client.containers.list(
                all=True,
                filters={"label": f"{LABEL_OF_PROJECT}={project.name}"},
                ignore_removed=True,
            )
        )


def _refuse_leavings(client: DockerClient, project: Project) -> None:
    left = _left(client, project)
    _refuse_one_at_work(left, project)
    if left:
        raise UsageError(
            f"an earlier run on the project {project.name} has left {_named(left)}: "
            f"`inorder chaos --attach {project.path} --put-back` removes that, and starts what was stopped for it"
        )


def _refuse_one_at_work(left: Iterable[Container], project: Project) -> None:
    for each in left:
        if docker_engine.owner_lives(each.labels):
            host, pid, _born = each.labels[OURS].split("/")
            raise UsageError(
                f"another run is at work on the project {project.name} (process {pid} of {host}, container "
                f"{each.name}): wait for its end, or end it"
            )


def _named(containers: Iterable[Container]) -> str:
    return ", ".join(sorted(str(each.name) for each in containers))


def owed_of_earlier_runs(client: DockerClient, project: Project) -> list[Debt]:
    """What earlier runs have left: theirs to be removed, and labelled ones of hers that don't run.

    Raises UsageError where one is still at work.
    """
    there = _containers(client, project)
    if not there:
        project, there = _by_file(client, project, there)
    left = _left(client, project)
    _refuse_one_at_work(left, project)
    stopped = {each.labels[STANDS_FOR] for each in left if STANDS_FOR in each.labels}
    stopped |= {
        str(each.name)
        for each in there
        if LABEL in each.labels and OURS not in each.labels and each.status != "running"
    }
    return [
        *((REMOVE, str(each.name)) for each in left),
        *((RUN, name) for name in sorted(stopped)),
    ]


def put_back(debts: Sequence[Debt]) -> Iterator[str]:
    """Clean up, and tell of each what came of it; the last line of what is left is a command."""
    left = settle(debts, docker_engine.quick_client, docker_engine.PATIENCE_S, lambda _line: None)
    for debt in debts:
        if debt in left:
            yield f"{NOT_DONE}, {left[debt]}: {command(debt)}"
        else:
            yield f"{debt[1]} {'is removed' if debt[0] == REMOVE else 'runs'}"


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
