"""Containers as an engine tells of them, for who only looks."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from chaos.attach.compose import PROJECT, SERVICE


def container(
    service: str,
    label: str | None = None,
    *,
    env: tuple[str, ...] = (),
    network: str = "net",
    status: str = "running",
    **host: Any,
) -> Any:
    labels = {PROJECT: "shop", SERVICE: service, **({"inorder.chaos": label} if label else {})}
    attrs = {
        "Config": {"Env": list(env), "Cmd": None, "Entrypoint": None},
        "HostConfig": {"NetworkMode": network, **host},
        "NetworkSettings": {"Networks": {network: {"Aliases": [service]}}},
    }
    name = f"shop-{service}-1"
    return SimpleNamespace(id=f"id-{service}", name=name, labels=labels, attrs=attrs, status=status)


class Engine:
    """Its containers, and nothing that could change one: who tries to touch one fails."""

    def __init__(self, *containers: Any) -> None:
        self.containers = SimpleNamespace(list=lambda filters: self._of(filters))
        self._all = containers

    def _of(self, filters: Mapping[str, str]) -> list[Any]:
        name, _, value = filters["label"].partition("=")
        return [each for each in self._all if each.labels.get(name) == value]
