"""Profiles: which clauses a product promises in which mode and version, each line with its source.

A profile is a TOML file; those of this folder are known by name, others by path. Detection is apart from policy:
clauses find every anomaly, profiles say what counts.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from specs.clauses.catalogue import by_id
from specs.errors import SpecError

Status = Literal["claimed", "allowed", "not_applicable"]
_STATUSES: tuple[Status, ...] = ("claimed", "allowed", "not_applicable")


@dataclass(frozen=True, slots=True)
class Claim:
    """One line of a profile. reason: why a deviation is allowed, or why the clause does not apply."""

    status: Status
    source: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile. wire: the answers that differ between versions, by the name of the wire rule."""

    name: str
    title: str
    claims: Mapping[str, Claim]
    wire: Mapping[str, Any] = field(default_factory=dict)

    def claim(self, clause_id: str) -> Claim:
        """A clause that the profile does not name is not applicable."""
        return self.claims.get(clause_id, Claim("not_applicable", "", "the profile does not name it"))


def names() -> tuple[str, ...]:
    """The profiles that come with the project."""
    folder = resources.files(__name__)
    return tuple(sorted(entry.name[: -len(".toml")] for entry in folder.iterdir() if entry.name.endswith(".toml")))


def load(name: str) -> Profile:
    """A profile by name or by path. Raises SpecError (exit 64) for an unknown one or one that is wrong."""
    if name in names():
        text = (resources.files(__name__) / f"{name}.toml").read_text(encoding="utf-8")
    else:
        path = Path(name)
        if not path.is_file():
            raise SpecError(f"there is no profile {name}; known are {', '.join(names())}, or give a file")
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise SpecError(f"profile {name} can't be read: {error}") from error
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"profile {name} is no TOML: {error}") from error
    return _profile(name, data)


def _profile(name: str, data: Mapping[str, Any]) -> Profile:
    parent = load(data["extends"]) if "extends" in data else None
    claims: dict[str, Claim] = dict(parent.claims) if parent else {}
    clauses = data.get("clauses", {})
    if not isinstance(clauses, dict):
        raise SpecError(f"profile {name}: [clauses] must be a table")
    for clause_id, line in clauses.items():
        if clause_id not in by_id():
            raise SpecError(f"profile {name} names the unknown clause {clause_id}")
        if not isinstance(line, dict) or line.get("status") not in _STATUSES:
            raise SpecError(f"profile {name}, {clause_id}: status must be one of {', '.join(_STATUSES)}")
        if not line.get("source"):
            raise SpecError(f"profile {name}, {clause_id}: a line needs its source")
        if line["status"] != "claimed" and not line.get("reason"):
            raise SpecError(f"profile {name}, {clause_id}: {line['status']} needs a reason")
        if line["status"] == "claimed" and line.get("reason"):
            raise SpecError(f"profile {name}, {clause_id}: claimed and excused at once (a reason is for deviations)")
        claims[clause_id] = Claim(line["status"], str(line["source"]), str(line.get("reason", "")))
    wire = {**(parent.wire if parent else {}), **data.get("wire", {})}
    return Profile(name, str(data.get("title", name)), claims, wire)
