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
    more: Mapping[str, str] | None = None,
    **host: Any,
) -> Any:
    """more: labels besides."""
    labels = {PROJECT: "shop", SERVICE: service, **({"inorder.chaos": label} if label else {})}
    labels |= more or {}
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
        self.containers = SimpleNamespace(list=self._of)
        self._all = containers

    def _of(
        self, filters: Mapping[str, str], *, all: bool = False, ignore_removed: bool = False
    ) -> list[Any]:
        name, has_value, value = filters["label"].partition("=")
        return [
            each
            for each in self._all
            if (all or each.status != "exited")
            and (each.labels.get(name) == value if has_value else name in each.labels)
        ]
