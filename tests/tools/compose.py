"""The services of a compose file in containers, by the Docker SDK: as much of the compose specification as ours use.

For machines whose engine has no `docker compose`. A key that it does not know is an error, never passed over: what it
starts is what the file says (https://github.com/compose-spec/compose-spec/blob/main/spec.md).
"""

from __future__ import annotations

import contextlib
import os
import re
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from docker import DockerClient
from docker.errors import NotFound
from docker.models.containers import Container
from docker.types import Mount
from ruamel.yaml import YAML

DEADLINE_S = 120.0
PROJECT, SERVICE = "com.docker.compose.project", "com.docker.compose.service"
"""The labels that compose puts on what it makes."""
VARIABLE = re.compile(r"\$\{(?P<name>\w+):-(?P<default>[^}]*)\}")
UNITS_NS = {"s": 1_000_000_000}
KNOWN = {
    "command",
    "depends_on",
    "entrypoint",
    "environment",
    "healthcheck",
    "image",
    "labels",
    "network_mode",
    "profiles",
    "stop_signal",
    "volumes",
}


def read(*files: Path) -> dict[str, Any]:
    """The files as one, later ones over earlier ones; variables filled in, paths made absolute."""
    services: dict[str, dict[str, Any]] = {}
    volumes: set[str] = set()
    for file in files:
        whole = YAML(typ="safe").load(_filled(file.read_text(encoding="utf-8")))
        unknown = {key for key in whole if not key.startswith("x-")} - {"services", "volumes"}
        assert not unknown, f"{file} has {unknown}"
        volumes |= set(whole.get("volumes") or {})
        for name, service in whole["services"].items():
            assert set(service) <= KNOWN, f"{name} of {file} has {set(service) - KNOWN}"
            told = dict(service)
            told["volumes"] = [_mount(each, files[0].parent) for each in service.get("volumes", ())]
            services[name] = _merged(services.get(name, {}), told)
    return {"services": services, "volumes": sorted(volumes)}


def _filled(text: str) -> str:
    return VARIABLE.sub(lambda found: os.environ.get(found["name"]) or found["default"], text)


def _mount(told: str, folder: Path) -> tuple[str, str, bool]:
    """Source, target, whether it is only read."""
    source, target, *mode = told.split(":")
    return (
        str((folder / source).resolve()) if source[0] == "." else source,
        target,
        mode == ["ro"],
    )


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Mappings and lists are put together, anything else is replaced; commands are replaced as well."""
    found = dict(below)
    for key, value in above.items():
        old = found.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            found[key] = {**old, **value}
        elif (
            isinstance(old, list)
            and isinstance(value, list)
            and key not in ("command", "entrypoint")
        ):
            found[key] = [*old, *value]
        else:
            found[key] = value
    return found


class Project:
    """The services of some compose files; a context manager that takes everything away at its end.

    profiles: which of them run besides those without one.
    """

    def __init__(self, client: DockerClient, *files: Path, profiles: Sequence[str] = ()) -> None:
        self._client = client
        self.name = f"inorder-test-{uuid.uuid4().hex[:8]}"
        self._whole = read(*files)
        self._profiles = set(profiles)
        self._containers: dict[str, Container] = {}
        self._network: Any = None

    @property
    def services(self) -> Mapping[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = self._whole["services"]
        return found

    def __getitem__(self, service: str) -> Container:
        return self._containers[service]

    def __enter__(self) -> Self:
        try:
            self._network = self._client.networks.create(self.name)
            for name in self.in_order():
                self._start(name)
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._remove()

    def in_order(self) -> list[str]:
        """Each after those that it depends on."""
        found: list[str] = []

        def add(name: str) -> None:
            for before in self.services[name].get("depends_on", {}):
                add(before)
            if name not in found:
                found.append(name)

        for name, service in self.services.items():
            wanted = set(service.get("profiles", ()))
            if not wanted or wanted & self._profiles:
                add(name)
        return found

    def _start(self, name: str) -> None:
        service = self.services[name]
        for before, how in service.get("depends_on", {}).items():
            assert how == {"condition": "service_healthy"}, how
            self.wait_for(
                lambda before=before: self.health(before) == "healthy", f"{before} is healthy"
            )
        options: dict[str, Any] = {}
        shared = service.get("network_mode", "")
        if shared:
            head, _, of = shared.partition(":")
            assert head == "service"
            options["network_mode"] = f"container:{self[of].id}"
        else:
            options["network"] = self.name
        container = self._client.containers.create(
            service["image"],
            service.get("command"),
            name=f"{self.name}-{name}",
            entrypoint=service.get("entrypoint"),
            environment=service.get("environment"),
            labels={PROJECT: self.name, SERVICE: name, **(service.get("labels") or {})},
            healthcheck=_healthcheck(service.get("healthcheck")),
            stop_signal=service.get("stop_signal"),
            mounts=[
                Mount(
                    target,
                    source if source.startswith("/") else f"{self.name}-{source}",
                    type="bind" if source.startswith("/") else "volume",
                    read_only=only_read,
                )
                for source, target, only_read in service["volumes"]
            ],
            **options,
        )
        self._containers[name] = container
        if not shared:
            # Found by its service's name.
            self._network.disconnect(container)
            self._network.connect(container, aliases=[name])
        container.start()

    def health(self, name: str) -> str:
        """ "starting", "healthy" or "unhealthy"; raises AssertionError where it has ended."""
        self[name].reload()
        state = self[name].attrs["State"]
        assert state["Running"], f"{name} ended: {self.logs(name)[-2000:]}"
        return str(state["Health"]["Status"])

    def logs(self, name: str) -> str:
        return bytes(self[name].logs()).decode(errors="replace")

    def ended(self, name: str, deadline_s: float) -> int:
        """Waits for a service's end; its exit code."""
        return int(self[name].wait(timeout=deadline_s)["StatusCode"])

    def wait_for(
        self, holds: Callable[[], bool], what: str, deadline_s: float = DEADLINE_S
    ) -> None:
        """Raises AssertionError with all logs where it does not come to hold in time."""
        until = time.monotonic() + deadline_s
        while not holds():
            assert time.monotonic() < until, "\n".join(
                [
                    f"in vain: {what}",
                    *(f"{each}: {self.logs(each)[-1000:]}" for each in self._containers),
                ]
            )
            time.sleep(0.2)

    def _remove(self) -> None:
        for container in reversed(self._containers.values()):
            with contextlib.suppress(NotFound):  # a test may have removed it
                container.remove(force=True, v=True)
        for name in self._whole["volumes"]:
            for volume in self._client.volumes.list(filters={"name": f"{self.name}-{name}"}):
                volume.remove(force=True)
        if self._network is not None:
            self._network.remove()


def _healthcheck(told: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if told is None:
        return None
    assert set(told) <= {"test", "interval", "timeout", "retries"}, told
    return {
        key: _ns(value) if key in ("interval", "timeout") else value for key, value in told.items()
    }


def _ns(text: str) -> int:
    return int(text[:-1]) * UNITS_NS[text[-1]]


def images(whole: Mapping[str, Any]) -> Iterable[str]:
    """Of all services."""
    return {service["image"] for service in whole["services"].values()}
