"""What the parts of a broker share: its configuration, its store and its tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import TypeAlias

from reference_impl.core.broker.config import BrokerConfig
from reference_impl.core.broker.lock_table import LockTable
from reference_impl.core.broker.log import BrokerStore
from reference_impl.core.broker.membership import Membership
from reference_impl.core.broker.offset_table import OffsetTable
from reference_impl.core.broker.topics import GroupTable, TopicTable
from reference_impl.core.io import ConnId, Effect
from reference_impl.protocol.codes import ResponseCode
from reference_impl.protocol.command import Command

Handler: TypeAlias = Callable[[int, ConnId, Command, list[Effect]], Command | None]
"""(now_ms, connection, request, effects to add to) → the answer, or None when there is none (yet)."""


@dataclass(slots=True)
class Parts:
    """peers: `host:port` of each open connection. arrived: queues that got a message in the present step.
    pulled: by group, topic and queue id the offset that was asked for last."""

    config: BrokerConfig
    store: BrokerStore
    choices: Random | None
    topics: TopicTable
    groups: GroupTable
    locks: LockTable
    offsets: OffsetTable
    members: Membership
    peers: dict[ConnId, str] = field(default_factory=dict)
    arrived: list[tuple[str, int]] = field(default_factory=list)
    pulled: dict[tuple[str, str, int], int] = field(default_factory=dict)
    turn: int = 0

    def choose_queue(self, queues: int) -> int:
        """Any queue number below `queues`: from the stream of choices, without one each in turn."""
        if self.choices is not None:
            return self.choices.randrange(queues)
        self.turn += 1
        return self.turn % queues


REJECTED = "[REJECTREQUEST]system busy, start flow control for a while"
"""What a released broker says while its store is too slow."""
OVERLOAD = "[OVERLOAD]system busy, start flow control for a while"
"""What it says when too many requests wait already."""


class Refused(Exception):
    """A request that is answered with a code and a remark instead of what it asked for.

    Raised by the checks of a handler and turned into the answer by the broker: it never leaves the broker.
    """

    def __init__(self, code: ResponseCode | int, remark: str) -> None:
        super().__init__(remark)
        self.code = code
        self.remark = remark
