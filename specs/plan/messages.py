"""The messages that a plan's sends stand for: numbers, ids, keys, and each key's own count."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class PlannedMessage:
    """One message to send. number: from 1, over the whole run. key_seq: the place within its key, from 1.

    A message of a batch has no key, and neither a delayed nor a half message has a place within one: what comes
    later, or perhaps never, is not next.
    """

    number: int
    message_id: str
    topic: str
    sharding_key: str | None = None
    key_seq: int | None = None
    tags: str | None = None
    delay_level: int | None = None

    @property
    def body(self) -> bytes:
        """Its own id, so that a body that was exchanged is seen."""
        return self.message_id.encode()

    @property
    def properties(self) -> dict[str, str]:
        """What the application says of it besides, so that a property that was lost is seen."""
        return {"number": str(self.number)}

    @property
    def body_hash(self) -> int:
        """The CRC-32 that a history holds."""
        return zlib.crc32(self.body)

    def columns(self) -> dict[str, Any]:
        """What a SEND row says of it, whoever sends it; with `props_hash` besides if its properties are sent."""
        return {
            "topic": self.topic,
            "message_id": self.message_id,
            "sharding_key": self.sharding_key,
            "key_seq": self.key_seq,
            "tags": self.tags,
            "delay_level": self.delay_level,
            "body_hash": self.body_hash,
        }


class Numbering:
    """Counts the messages of one run. prefix: makes their ids unique among runs."""

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix
        self._count = 0
        self._of_key: dict[str, int] = {}

    def of(self, args: Mapping[str, Any]) -> list[PlannedMessage]:
        """The next messages: those of an action `send` or `send_half` with these arguments."""
        return [self._next(args) for _ in range(args["count"])]

    def _next(self, args: Mapping[str, Any]) -> PlannedMessage:
        self._count += 1
        key = None if args.get("batch") else args.get("key")
        seq = None
        if key is not None and not args.get("delay_level") and "ends" not in args:
            seq = self._of_key[key] = self._of_key.get(key, 0) + 1
        return PlannedMessage(
            number=self._count,
            message_id=f"{self._prefix}m{self._count}",
            topic=args["topic"],
            sharding_key=key,
            key_seq=seq,
            tags=args.get("tags"),
            delay_level=args.get("delay_level"),
        )
