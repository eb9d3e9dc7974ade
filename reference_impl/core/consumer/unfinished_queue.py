"""The messages of one lane where calls run side by side: which of them are not finished yet.

Nothing is taken and committed in one piece as in `process_queue`: each message is held from the pull that brought
it until it is finished, in whatever order that happens. What may be stored as consumed is the smallest offset that
is held, or, when none is, the one after the highest that ever was.

| operation | what happens |
|---|---|
| admit | new messages are held; those already held are left alone, and not given out a second time |
| finish | the messages are held no longer; the answer is what may be stored now |

Source: `ProcessQueue.putMessage` and `removeMessage` of apache/rocketmq.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from reference_impl.core.consumer.process_queue import NOTHING, ProcessQueue
from reference_impl.protocol.message import StoredMessage


class UnfinishedQueue(ProcessQueue):
    """One incarnation. lines: by sharding key, what waits for its turn; only where keys are kept in order."""

    __slots__ = ("highest", "lines")

    def __init__(self, **fields: Any) -> None:
        super().__init__(**fields)
        self.highest = NOTHING
        self.lines: dict[str, deque[StoredMessage]] = {}

    def admit(self, messages: Iterable[StoredMessage]) -> list[StoredMessage]:
        """Holds the messages. Those that are new, in the order of the queue."""
        fresh = []
        for message in messages:
            offset = message.queue_offset
            if offset not in self.held:
                self.held.add(offset)
                fresh.append(message)
                self.highest = max(self.highest, offset)
        return sorted(fresh, key=lambda message: message.queue_offset)

    def finish(self, messages: Iterable[StoredMessage]) -> int:
        """Forgets the messages. The smallest offset that is unfinished now; -1 when nothing was ever held."""
        for message in messages:
            self.held.discard(message.queue_offset)
            self.extra_times.pop(message.queue_offset, None)
        if self.held:
            return min(self.held)
        return NOTHING if self.highest == NOTHING else self.highest + 1
