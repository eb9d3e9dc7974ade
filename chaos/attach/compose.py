"""Somebody's compose file: the project that it describes, and its services.

Only what is needed to find the containers again: compose itself writes its project's and its service's name on each.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from specs.errors import UsageError

PROJECT = "com.docker.compose.project"
SERVICE = "com.docker.compose.service"
FOLDER = "com.docker.compose.project.working_dir"
FILES = "com.docker.compose.project.config_files"
NAMED_BY = "COMPOSE_PROJECT_NAME"
_IN_ENV_FILE = re.compile(rf"(?m)^\s*(?:export\s+)?{NAMED_BY}\s*=\s*(['\"]?)([^'\"#\n]*)\1")


@dataclass(frozen=True, slots=True)
class Project:
    """path: of its file. name: as compose calls it. services: theirs. named: somebody named it by the environment."""

    path: Path
    name: str
    services: tuple[str, ...]
    named: bool = False

    @property
    def up(self) -> str:
        """How it is started."""
        return f"docker compose -f {self.path} -p {self.name} up -d"


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
    named = os.environ.get(NAMED_BY)
    told = named or _in_env_file(path) or found.get("name") or path.resolve().parent.name
    name = re.sub(r"^[-_]+|[^a-z0-9_-]", "", str(told).lower())
    return Project(path, name, tuple(str(each) for each in services), bool(named))


def _in_env_file(path: Path) -> str | None:
    """As `.env` beside the file names it."""
    try:
        text = (path.parent / ".env").read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None
    told = [name.strip() for _, name in _IN_ENV_FILE.findall(text)]
    return told[-1] if told else None
