"""Words of a log as keyed hashes: the same word has the same hash, and without the secret nobody finds the word again.

Numbers that a judge reckons with (offsets, queues, counters, times) stay. Of texts only the vocabulary's own words
stay, and the prefix that makes a topic one of copies.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from conformance.importing.mapping import NUMBERS, WORDS
from specs.errors import UsageError
from specs.faults import FAULTS
from specs.history.columns import COLUMNS
from specs.plan.config import CHOICES
from specs.vocabulary import DLQ_PREFIX, RETRY_PREFIX, Kind

SHORTEST = 16
"""Bytes of a secret."""
_DIGITS = 20
_SECRET_BYTES = 32
_KEPT_WORDS = frozenset(
    {
        *("*", "pull", "check", "corrected", "settled", "half", ""),
        *("java-hash", "random", "round-robin"),
        *FAULTS,
    }
)
_LISTS = frozenset({"view", "detail"})
_TELLING_DETAILS = frozenset(
    {Kind.ASSIGN, Kind.COMMIT, Kind.READ, Kind.FAULT, Kind.SEND, Kind.RESET}
)
"""Kinds of whose `detail` a judge reads something; of all others it is for people, and is left out."""
_BETWEEN = re.compile(r"([\s|]+)")
_QUEUE = re.compile(r"(?P<broker>.+)/(?P<queue>\d{1,6})")
_TEXTS = frozenset(column.name for column in COLUMNS if column.type == "string") - frozenset(WORDS)
_NUMBERS_HASHED = frozenset({"body_hash", "props_hash"})
_BITS_63 = (1 << 63) - 1


class Hasher:
    """Hashes the columns of rows. secret: at least 16 bytes."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self.word = lru_cache(maxsize=1 << 17)(self._word)

    def column(self, kind: Kind, name: str, value: str | int) -> str | int | None:
        """What of a column's value may be written down."""
        if isinstance(value, int):
            return self.number(value) if name in _NUMBERS_HASHED else value
        if name == "detail" and kind not in _TELLING_DETAILS:
            return None
        if name in _LISTS:
            return self._list(value)
        return self.name(value) if name in _TEXTS else value

    def name(self, text: str) -> str:
        """One name. A topic of copies keeps its prefix, and the hash of its group behind it."""
        for prefix in (RETRY_PREFIX, DLQ_PREFIX):
            if text.startswith(prefix):
                return prefix + self.word(text.removeprefix(prefix))
        return self.word(text)

    def number(self, value: int) -> int:
        """A body's hash: a CRC alone would give short bodies away."""
        return int.from_bytes(self._digest(str(value))[:8], "big") & _BITS_63

    def _list(self, text: str) -> str:
        return "".join(
            part if part.isspace() or part.strip() in {"|", "||"} else self._item(part)
            for part in _BETWEEN.split(text)
        )

    def _item(self, text: str) -> str:
        if text in _KEPT_WORDS:
            return text
        if queue := _QUEUE.fullmatch(text):
            return f"{self.name(queue['broker'])}/{queue['queue']}"
        return self.name(text)

    def _word(self, text: str) -> str:
        return self._digest(text).hex()[:_DIGITS] if text else text

    def _digest(self, text: str) -> bytes:
        return hmac.new(self._secret, text.encode("utf-8", "surrogatepass"), sha256).digest()


def told_settings(config: Mapping[str, object]) -> dict[str, object]:
    """Of what a system was told, what a judge reads and what names nobody: numbers, and words that are ours."""
    from specs.plan.config import Config

    ours = set(Config().to_json())
    return {
        name: value
        for name, value in config.items()
        if name == "system"
        or (name in ours and (not isinstance(value, str) or value in CHOICES.get(name, ("*",))))
    }


def secret_in(path: Path) -> bytes:
    """The secret in a file, without white space around it. Raises UsageError."""
    try:
        found = path.read_bytes().strip()
    except OSError as error:
        raise UsageError(f"the secret {path} can't be read: {error.strerror or error}") from error
    if len(found) < SHORTEST:
        raise UsageError(
            f"the secret in {path} has {len(found)} bytes; it needs {SHORTEST} or more"
        )
    return found


def draw_secret(path: Path) -> bytes:
    """A new secret, kept in a file of its own that only its owner may read. Raises UsageError where there is one."""
    secret = secrets.token_hex(_SECRET_BYTES).encode()
    try:
        path.touch(mode=0o600, exist_ok=False)
        path.write_bytes(secret + b"\n")
    except FileExistsError as error:
        raise UsageError(
            f"{path} exists: give it with --hash-secret-file to hash by the same secret, or move it away"
        ) from error
    except OSError as error:
        raise UsageError(
            f"the secret {path} can't be written: {error.strerror or error}"
        ) from error
    return secret


assert _NUMBERS_HASHED <= NUMBERS
