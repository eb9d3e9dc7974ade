"""What of the real parts is here, what is missing, what is skipped without it, and the command that mends it."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from importlib import metadata
from types import ModuleType

from conformance.parts import (
    elasticmq,
    extras,
    jars,
    java,
    kafka,
    kafka_go,
    nats,
    rabbitmq,
    redis,
    rocketmq_go,
    rocketmq_proxy,
    toxiproxy_binary,
    troubled_disk,
    wall_clock,
)
from conformance.parts.places import by_set_up, checkout
from conformance.parts.preload import MEND, Library
from specs.errors import UsageError

VERSION_DEADLINE_S = 20.0


class State(StrEnum):
    """Of a part."""

    OK = "ok"
    MISSING = "missing"


class Purpose(StrEnum):
    """What somebody wants to do with the suite."""

    CONFORM = "conform"
    CHAOS = "chaos"
    CHECK = "check"


CONFORM, CHAOS, CHECK = (frozenset({each}) for each in Purpose)


@dataclass(frozen=True, slots=True)
class Part:
    """One part of this machine.

    name: for example "java". detail: where it is, or why it is missing. skipped: what does not run without it.
    mend: the command that gets it. needed_for: who can use it. optional: nothing of the suite's own tests or
    demonstration needs it.
    """

    name: str
    state: State
    detail: str
    skipped: str
    mend: str
    needed_for: frozenset[Purpose]
    optional: bool = False


def checks() -> list[Part]:
    """All parts, those that others rest on first. Starts `java`, `mvn` and `go` for their versions: a second or two."""
    return list(_checks())


def why_not(name: str) -> str | None:
    """Why a part can't be used, in one line with its remedy, or None if it is here. Raises UsageError if unknown.

    name: as in `checks`: "java", "maven", "rocketmq-5.4.0", "toxiproxy", "docker", ... For the reason of a skip.
    """
    for part in checks():
        if part.name == name:
            return (
                None
                if part.state is State.OK
                else f"{name} is missing: {part.detail}; to mend it: {part.mend}"
            )
    raise UsageError(
        f"There is no part {name!r}; known: {', '.join(part.name for part in checks())}."
    )


def _checks() -> Iterator[Part]:
    yield _part(
        "java",
        _java,
        needed_for=CONFORM | CHAOS | CHECK,
        skipped="Apache RocketMQ targets and every Spark check",
        mend=java.REMEDY,
    )
    yield _part(
        "spark",
        _spark,
        needed_for=CHECK,
        skipped="the engine spark, and writing generated histories by Spark",
        mend=extras.install("spark"),
    )
    yield _part(
        "maven",
        lambda: _version_of("mvn", "-v"),
        needed_for=CONFORM | CHAOS,
        skipped="fetching further RocketMQ versions",
        mend="apt-get install maven",
    )
    for version in jars.VERSIONS:
        if version not in jars.DEFAULT and not jars.present(version):
            continue  # fetched when somebody asks for it; its absence is nothing to report
        yield _part(
            f"rocketmq-{version}",
            partial(_jars, version),
            needed_for=CONFORM | CHAOS,
            skipped=f"the target rocketmq-local:{version}",
            mend=by_set_up("jars", version),
            optional=version not in jars.DEFAULT,
        )
    yield _part(
        "kafka",
        _kafka,
        needed_for=CONFORM | CHAOS,
        skipped="the target kafka-local, and its tests",
        mend="python -m conformance.parts.kafka",
        optional=True,
    )
    yield _part(
        "kafka-go",
        partial(_driven, kafka_go),
        needed_for=CONFORM | CHAOS,
        skipped="Kafka's clients in Go as in kafka-local:4.3.1+go:1.9.2, and their tests",
        mend="python -m conformance.parts.kafka_go",
        optional=True,
    )
    yield _part(
        "nats",
        partial(_served, nats, "nats-py"),
        needed_for=CONFORM | CHAOS,
        skipped="the target nats-local, and its tests",
        mend="python -m conformance.parts.nats",
        optional=True,
    )
    yield _part(
        "redis",
        partial(_served, redis, "redis-py"),
        needed_for=CONFORM | CHAOS,
        skipped="the target redis-local, and its tests",
        mend="python -m conformance.parts.redis",
        optional=True,
    )
    yield _part(
        "rabbitmq",
        partial(_served, rabbitmq, "pika"),
        needed_for=CONFORM | CHAOS,
        skipped="the target rabbitmq-local, and its tests",
        mend="python -m conformance.parts.rabbitmq",
        optional=True,
    )
    yield _part(
        "elasticmq",
        partial(_served, elasticmq, "boto3"),
        needed_for=CONFORM | CHAOS,
        skipped="the target sqs-local, and its tests",
        mend="python -m conformance.parts.elasticmq",
        optional=True,
    )
    yield _part(
        "rocketmq-go",
        partial(_driven, rocketmq_go),
        needed_for=CONFORM | CHAOS,
        skipped="RocketMQ's Go client as in reference+go:2.1.2, and its tests",
        mend="python -m conformance.parts.rocketmq_go",
        optional=True,
    )
    yield _part(
        "rocketmq-grpc",
        partial(_served, rocketmq_proxy, "rocketmq-python-client"),
        needed_for=CONFORM | CHAOS,
        skipped="RocketMQ's gRPC client as in rocketmq-local:5.4.0+grpc:5.1.2, and its tests",
        mend="python -m conformance.parts.rocketmq_proxy",
        optional=True,
    )
    yield _part(
        "toxiproxy",
        _toxiproxy,
        needed_for=CHAOS,
        skipped="chaos scenarios with network faults",
        mend=by_set_up("toxiproxy_binary"),
    )
    yield _part(
        "wall-clock",
        lambda: _preloaded(wall_clock.LIBRARY),
        needed_for=CHAOS,
        skipped="chaos scenarios that step the wall clock of a process",
        mend=MEND,
        optional=True,
    )
    yield _part(
        "troubled-disk",
        lambda: _preloaded(troubled_disk.LIBRARY),
        needed_for=CHAOS,
        skipped="chaos scenarios in which the disk of a broker's process is full or slow",
        mend=MEND,
        optional=True,
    )
    yield _part(
        "go",
        lambda: _version_of("go", "version"),
        needed_for=CONFORM | CHAOS,
        skipped="nothing: toxiproxy, NATS and the Go driver are then built by a Go that is removed afterwards",
        mend="install Go 1.22 or later",
        optional=True,
    )
    yield _part(
        "docker",
        _docker,
        needed_for=CHAOS,
        skipped="chaos scenarios in containers",
        mend=_docker_by(),
    )
    yield _part(
        "chromium",
        _chromium,
        needed_for=frozenset(),
        skipped="looking at HTML reports in a real browser",
        mend="apt-get install chromium",
        optional=True,
    )


def _part(
    name: str,
    find: Callable[[], str],
    *,
    needed_for: frozenset[Purpose],
    skipped: str,
    mend: str,
    optional: bool = False,
) -> Part:
    """find: gives the detail, or raises UsageError with the reason."""
    try:
        state, detail = State.OK, find()
    except UsageError as error:
        state, detail = State.MISSING, str(error)
    return Part(name, state, detail, skipped, mend, needed_for, optional)


def _java() -> str:
    found = java.find_java()
    if found is None:
        raise UsageError("there is no java in JAVA_HOME or PATH")
    said = _said(str(found), "-version")
    match = re.search(r'version "(\d+)', said)
    if match is not None and int(match[1]) < java.VERSION_AT_LEAST:
        raise UsageError(f"{found} is Java {match[1]}, and {java.VERSION_AT_LEAST} is needed")
    return f"{found}: {said.splitlines()[0] if said else 'version unknown'}"


def _jars(version: str) -> str:
    folder = jars.folder(version)
    if not jars.present(version):
        raise UsageError(f"no jars in {folder}")
    return f"{len(list(folder.glob('*.jar')))} jars in {folder}"


def _kafka() -> str:
    there = [version for version in kafka.VERSIONS if kafka.server_jars(version).present]
    clients = [v for v in kafka.LIBRDKAFKAS if kafka.librdkafka(v).present]
    if kafka.DEFAULT not in there or kafka.DEFAULT_LIBRDKAFKA not in clients:
        raise UsageError(f"no server {kafka.DEFAULT}, or no librdkafka {kafka.DEFAULT_LIBRDKAFKA}")
    return f"servers {', '.join(there)}; librdkafka {', '.join(clients)}"


def _driven(part: ModuleType) -> str:
    """A client whose driver is built."""
    there = [version for version in part.DRIVER.versions if part.DRIVER.present(version)]
    if part.DEFAULT not in there:
        raise UsageError(f"no driver of {part.DRIVER.client} {part.DEFAULT}")
    return f"drivers of {', '.join(there)}"


def _served(part: ModuleType, library: str) -> str:
    """A system whose servers and client's wheels lie in .tools."""
    there = [version for version in part.VERSIONS if part.present(version)]
    clients = [version for version in part.CLIENTS if part.client(version).present]
    if part.DEFAULT not in there or part.DEFAULT_CLIENT not in clients:
        raise UsageError(f"no server {part.DEFAULT}, or no {library} {part.DEFAULT_CLIENT}")
    return f"servers {', '.join(there)}; {library} {', '.join(clients)}"


def _preloaded(library: Library) -> str:
    why = library.why_not()
    if why is not None:
        raise UsageError(why)
    return "processes can have one of their own"


def _toxiproxy() -> str:
    path = toxiproxy_binary.path()
    if not toxiproxy_binary.present():
        raise UsageError(f"not built: no {path}")
    return f"{path}: {_said(str(path), '-version').strip()}"


def _spark() -> str:
    try:
        return f"pyspark {metadata.version('pyspark')}"
    except metadata.PackageNotFoundError as error:
        raise UsageError("pyspark is not installed") from error


def _docker_by() -> str:
    """The SDK comes by an extra, an engine as a package of the system's."""
    try:
        import docker  # noqa: F401
    except ImportError:
        return extras.install("docker")
    start = " && tools/dockerd.sh start .tools/docker" if checkout() else ""
    return f"apt-get install docker.io debootstrap{start}"


def _docker() -> str:
    try:
        from conformance.parts import docker_engine
    except ImportError as error:
        raise UsageError(f"{error.name} is not installed") from error
    try:
        client = docker_engine.connect()
    except UsageError as error:
        raise UsageError(str(error).removesuffix(f"; {docker_engine.MEND}.")) from error
    with contextlib.closing(client):
        return f"{docker_engine.engine_info(client)} at {docker_engine.where()}"


def _chromium() -> str:
    for name in ("chromium", "chromium-browser", "google-chrome"):
        found = shutil.which(name)
        if found is not None:
            return found
    raise UsageError("there is no chromium in PATH")


def _version_of(command: str, *arguments: str) -> str:
    found = shutil.which(command)
    if found is None:
        raise UsageError(f"there is no {command} in PATH")
    said = _said(found, *arguments)
    return f"{found}: {said.splitlines()[0] if said else 'version unknown'}"


def _said(*command: str) -> str:
    """What a command says about itself, on whichever stream, without colours; empty if it can't be asked."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=VERSION_DEADLINE_S,
            check=False,
            env={**os.environ, "TERM": "dumb"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)
