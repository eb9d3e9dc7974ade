"""What nobody is to read: credentials are refused where they would be written down, and never shown.

A target's name stands in `run.json`, reports, replay lines and a shell's history. So an address with credentials in it,
and an option that holds some, are refused there; the file of `--target-config` takes them, and the environment those of
an object store. What that file holds is remembered, and masked in whatever is told or kept of an error.
"""

from __future__ import annotations

import re

from specs.errors import UsageError

MASK = "***"
SHORTEST = 4
"""Letters of a secret that is masked: a shorter one would mask every other word."""

_IN_URI = re.compile(r"(?P<before>[A-Za-z][A-Za-z0-9+.-]*://)[^\s/?#@]+(?P<after>@)")
_HELD = re.compile(
    r"pass(word|wd|phrase)|secret|token|credential|jaas|nkey|(access|private|ssl|key)[._-]?key",
    re.IGNORECASE,
)

_MEND = (
    "has credentials in it, and would be written down: leave them out here; a target's belong under [credentials] in "
    "the file of --target-config, an object store's into the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)"
)

_known: set[str] = set()


def holds_secret(option: str) -> bool:
    """Does an option of that name hold what nobody is to read?"""
    return _HELD.search(option) is not None


def remember(secret: str) -> None:
    """Something that must not be told from now on."""
    if len(secret) >= SHORTEST:
        _known.add(secret)


def masked(text: str) -> str:
    """The text without what is known to be secret, and without the credentials of an address."""
    for secret in sorted(_known, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return _IN_URI.sub(rf"\g<before>{MASK}\g<after>", text)


def refuse_in_target(target: str, commands: str) -> None:
    """Raises UsageError for a target `NAME:ARG` with credentials in its address. commands: the name of the target whose
    argument is a command line, in which an `@` may stand for anything."""
    name, _, argument = target.partition(":")
    address = argument.partition(",")[0]
    if _IN_URI.search(target) if name == commands else "@" in address:
        _, at, place = address.rpartition("@")
        raise UsageError(f"the address {name}:{MASK}{at}{masked(place)} {_MEND}")


def refuse_in_uri(uri: str) -> None:
    """Raises UsageError for the URI of a place with credentials in it."""
    if _IN_URI.search(uri):
        raise UsageError(f"{masked(uri)} {_MEND}")


def refuse_in_words(words: list[str]) -> None:
    """Raises UsageError for a word of a command line that is an address with credentials."""
    for word in words:
        refuse_in_uri(word)
