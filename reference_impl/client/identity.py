"""Names that nobody else has: of clients and of messages. The one place of the client library that takes chance.

A client id is `host@process#12 hex digits`. Two clients of one id share their queues by mistake, and hold each other's
leases: so the id carries chance, and not only what containers may have in common.

A message id has the shape of those that Apache's Java client makes, so that its tools can search by it: 32 hex digits
for 16 bytes, of which the last six are the milliseconds since the month began and a counter.
Source: `MessageClientIDSetter` of apache/rocketmq.
"""

from __future__ import annotations

import os
import socket
import struct
from datetime import datetime

_TAIL = struct.Struct(">iH")


def new_client_id() -> str:
    return f"{socket.gethostname()}@{os.getpid()}#{os.urandom(6).hex()}"


class MessageIds:
    """Ids for one producer: unique while it makes fewer than 65,536 within one millisecond."""

    def __init__(self) -> None:
        self._head = os.urandom(10)
        self._count = 0
        self._month = (
            0,
            0,
        )  # when the present month began, and the next one begins, in ms since the epoch

    def new(self, now_ms: int) -> str:
        """now_ms: by the wall clock, since the epoch."""
        if not self._month[0] <= now_ms < self._month[1]:
            self._month = _month_of(now_ms)
        self._count = self._count + 1 & 0xFFFF
        return (
            (self._head + _TAIL.pack((now_ms - self._month[0]) & 0x7FFFFFFF, self._count))
            .hex()
            .upper()
        )


def _month_of(now_ms: int) -> tuple[int, int]:
    """By the local calendar, as the tools reckon back."""
    first = (
        datetime.fromtimestamp(now_ms / 1000)
        .astimezone()
        .replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    )
    year, month = divmod(first.year * 12 + first.month, 12)
    following = first.replace(year=year, month=month + 1)
    return int(first.timestamp()) * 1000, int(following.timestamp()) * 1000
