"""The table of commands: a sentence with placeholders, and the function that does what it says.

    @says("lock GROUP QUEUES by CLIENT")
    def lock(world: World, group: str, queues: tuple[Queue, ...], client: str) -> list[str]: ...

Words in capitals are placeholders; what each takes is in `PLACEHOLDERS`. A part in square brackets may be left out;
its placeholders are then None. A new command is a new function.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from specs.vocabulary import Queue

Handler = Callable[..., list[str]]

_NAME = r"[a-z][a-z0-9_]*"
_TOPIC = r"[A-Za-z0-9%|_-]+"
_QUEUE = rf"{_TOPIC}/{_NAME}/-?\d+"
_ID = r"m\d+(?:\.\.m\d+)?"
_NUMBER = r"-?\d+"


def _queues(text: str) -> tuple[Queue, ...]:
    if text == "nothing":
        return ()
    found = []
    for word in text.split(" "):
        topic, broker, numbers = word.rsplit("/", 2)
        found += [Queue(topic, broker, int(number)) for number in numbers.split(",")]
    return tuple(found)


def _ids(text: str) -> tuple[int, ...]:
    found: list[int] = []
    for word in text.split(" "):
        first, _, last = word.replace("m", "").partition("..")
        found += range(int(first), int(last or first) + 1)
    return tuple(found)


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split(" "))


PLACEHOLDERS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    # name: (what it may look like, what the function gets)
    "CLIENT": (_NAME, str),  # a raw client
    "CONSUMER": (_NAME, str),  # an orderly consumer
    "PRODUCER": (_NAME, str),
    "NODE": (_NAME, str),  # any of them, a broker, or ns
    "OTHER": (_NAME, str),
    "OWNER": (_NAME, str),  # an id that a raw client gives out as its own
    "BROKERS": (rf"{_NAME}(?: {_NAME})*", _words),
    "NAMES": (rf"{_NAME}(?: {_NAME})*", _words),
    "GROUP": (_TOPIC, str),
    "TOPIC": (_TOPIC, str),
    "QUEUE": (_QUEUE, lambda text: _queues(text)[0]),
    "QUEUES": (rf"nothing|{_QUEUE}(?:,\d+)*(?: {_QUEUE}(?:,\d+)*)*", _queues),
    "ID": (r"m\d+", lambda text: int(text[1:])),
    "IDS": (rf"{_ID}(?: {_ID})*", _ids),
    "KEY": (r"\S+", str),
    "TAG": (r"\S+", str),
    "WORD": (r"\S+", str),
    "WORDS": (r"\S+(?: \S+)*", _words),
    "REQUEST": (r"[A-Z0-9_]+", str),
    "MS": (r"\d+", int),
    "STEP": (_NUMBER, int),
    "COUNT": (r"\d+", int),
    "OFFSET": (_NUMBER, int),
    "LEVEL": (_NUMBER, int),
    "TIMES": (_NUMBER, int),
    "LIMIT": (_NUMBER, int),
    "CODE": (r"\d+", int),
}


@dataclass(frozen=True, slots=True)
class Sentence:
    """One command of the table. setup: it must stand before all that happens."""

    form: str
    pattern: re.Pattern[str]
    handler: Handler
    setup: bool

    def read(self, text: str) -> dict[str, Any] | None:
        """The function's arguments, None when the text is not this sentence."""
        match = self.pattern.fullmatch(text)
        if match is None:
            return None
        return {
            name: None if value is None else PLACEHOLDERS[name.upper()][1](value)
            for name, value in match.groupdict().items()
        }


TABLE: list[Sentence] = []
"""All commands, in the order in which their files declare them."""


def says(form: str, *, setup: bool = False) -> Callable[[Handler], Handler]:
    """Adds the function to the table under the sentence."""

    def add(handler: Handler) -> Handler:
        TABLE.append(Sentence(form, _pattern(form), handler, setup))
        return handler

    return add


def _pattern(form: str) -> re.Pattern[str]:
    parts = []
    for part in re.split(r"([\[\]]|\b[A-Z]+\b)", form):
        if part in ("[", "]"):
            parts.append("(?:" if part == "[" else ")?")
        elif part in PLACEHOLDERS:
            parts.append(f"(?P<{part.lower()}>{PLACEHOLDERS[part][0]})")
        else:
            parts.append(re.escape(part))
    return re.compile("".join(parts))


def find(text: str) -> tuple[Sentence, dict[str, Any]] | None:
    """The command that the line is, with its arguments."""
    for sentence in TABLE:
        args = sentence.read(text)
        if args is not None:
            return sentence, args
    return None


def nearest(text: str) -> str:
    """The form of the command that was probably meant."""
    words = text.split(" ")

    def likeness(sentence: Sentence) -> float:
        plain = re.sub(r"[\[\]]", "", sentence.form).split(" ")
        shared = difflib.SequenceMatcher(None, words, plain).ratio()
        return shared + difflib.SequenceMatcher(None, words[0], plain[0]).ratio()

    return max(TABLE, key=likeness).form
