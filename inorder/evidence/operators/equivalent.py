"""Changes that can't alter any answer, each with the reason why: looked at, and not counted."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

from inorder.evidence.operators.edits import Change
from specs.errors import SpecError

FILE = Path(__file__).with_name("equivalent.toml")
_PLACE = ("module", "function", "was", "becomes")
Reasons = dict[tuple[str, str, str, str], str]


@cache
def reasons(file: Path = FILE) -> Reasons:
    """By `Change.place`. Raises SpecError for an entry that lacks a part of its place, or a reason."""
    found: Reasons = {}
    for each in tomllib.loads(file.read_text(encoding="utf-8")).get("change", ()):
        if {*each} != {*_PLACE, "why"} or not str(each["why"]).strip():
            raise SpecError(f"{file.name}: a change has {', '.join(_PLACE)} and why; got {each}")
        module, function, was, becomes = (str(each[name]) for name in _PLACE)
        found[module, function, was, becomes] = each["why"]
    return found


def why_equivalent(change: Change) -> str | None:
    """The reason, if somebody gave one."""
    return reasons().get(change.place)
