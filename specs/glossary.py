"""What the words mean: one file for the page of the docs, the tooltips of reports and the command line."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources

from specs.errors import SpecError

PAGE = "docs/glossary.md"
_MARKS = re.compile(r"`([^`]*)`|\*([^*]*)\*|\[([^\]]*)\]\([^)]*\)")


@dataclass(frozen=True, slots=True)
class Word:
    """name: as a heading has it. meaning: Markdown. forms: as which words of running text it is explained."""

    name: str
    meaning: str
    forms: tuple[str, ...] = ()

    @property
    def anchor(self) -> str:
        """Its name for an address."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")

    @property
    def plain(self) -> str:
        """Its meaning without marks."""
        return _MARKS.sub(lambda found: found[1] or found[2] or found[3] or "", self.meaning)


@cache
def words() -> tuple[Word, ...]:
    """All of them, in the order in which a reader meets them."""
    data = tomllib.loads((resources.files("specs") / "glossary.toml").read_text(encoding="utf-8"))
    return tuple(
        Word(each["name"], each["meaning"], tuple(each.get("forms", ()))) for each in data["word"]
    )


def word(name: str) -> Word:
    """One of them. Raises SpecError for one that nobody explains."""
    for each in words():
        if each.name == name:
            return each
    raise SpecError(f"specs/glossary.toml does not explain {name!r}")
