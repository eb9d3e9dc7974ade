"""Somebody's compose file: the project that it describes, and its services.

Only what is needed to find the containers again: compose itself writes its project's and its service's name on each.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from specs.errors import UsageError

PROJECT = "com.docker.compose.project"
SERVICE = "com.docker.compose.service"
NAMED_BY = "COMPOSE_PROJECT_NAME"


@dataclass(frozen=True, slots=True)
class Project:
    """path: of its file. name: as compose calls it. services: theirs."""

    path: Path
    name: str
    services: tuple[str, ...]

    @property
    def up(self) -> str:
        """How it is started."""
        return f"docker compose -f {self.path} up -d"


def read(path: Path) -> Project:
    """Raises UsageError where it can't be read, or is no compose file."""
    try:
        found = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} can't be read: {error}") from error
    except YAMLError as error:
        raise UsageError(f"{path} is no YAML: {' '.join(str(error).split())}") from error
    services = found.get("services") if isinstance(found, dict) else None
    if not isinstance(services, dict) or not services:
        raise UsageError(f"{path} is no compose file: it has no services")
    return Project(path, _name(path, found), tuple(str(name) for name in services))


def _name(path: Path, found: dict[Any, Any]) -> str:
    """As compose finds it: what the environment says, what the file says, or the folder's name."""
    told = os.environ.get(NAMED_BY) or found.get("name") or path.resolve().parent.name
    return re.sub(r"^[-_]+|[^a-z0-9_-]", "", str(told).lower())
