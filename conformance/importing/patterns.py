"""Regular expressions of maps, run by RE2: the time that one takes grows with the line's length, and no faster.

Python's own tries every way in which an expression could match, so that `(a+)+$` does not end on 41 letters. RE2 can do
neither lookaround nor back references, and counts no further than 1,000; `\\d`, `\\w` and `\\s` are ASCII's.
Its syntax: https://github.com/google/re2/wiki/Syntax
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Protocol

import re2

LONGEST = 10_000
"""Characters of an expression: a line costs a step for each of them, at worst."""


class Found(Protocol):
    """What an expression matched."""

    def groupdict(self) -> dict[str, str | None]:
        """The named groups."""

    def __getitem__(self, group: int | str) -> str | None:
        """One group; 0 is the whole match."""


class Pattern(Protocol):
    """An expression, ready. Each raises UnicodeEncodeError for text with half a character."""

    groups: int
    groupindex: Mapping[str, int]

    def search(self, text: str) -> Found | None:
        """The first match anywhere."""

    def match(self, text: str) -> Found | None:
        """The match at the beginning."""

    def finditer(self, text: str) -> Iterator[Found]:
        """Every match."""


@lru_cache(maxsize=1_000)
def pattern(expression: str) -> Pattern:
    """The expression, ready. Raises ValueError with the reason, for one that RE2 can't do too."""
    if len(expression) > LONGEST:
        raise ValueError(f"it is longer than {LONGEST:,} characters")
    options = re2.Options()
    options.log_errors = False
    try:
        made: Pattern = re2.compile(expression, options)
    except re2.error as error:
        (reason,) = error.args
        words = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise ValueError(_explained(words)) from error
    except UnicodeEncodeError as error:
        raise ValueError("it holds half a character") from error
    return made


def _explained(reason: str) -> str:
    """Where it is about what other libraries can do, say so."""
    why, _, what = reason.partition(": ")
    if why == "invalid perl operator" and what[:3] in ("(?=", "(?!", "(?<"):
        return f"{what} looks ahead or behind, which RE2 can't do: match the text around it, and name a group in it"
    if why == "invalid escape sequence" and what[1:].isdigit():
        return f"{what} refers back to a group, which RE2 can't do"
    if why == "invalid escape sequence" and what == r"\Z":
        return r"the end of the text is \z"
    return reason
