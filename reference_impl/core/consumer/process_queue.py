"""The messages that one client holds of one lane: pulled, taken by the listener, or put back.

`pending` holds what was pulled and not yet taken, in offset order; `taken` what the listener was given and what
is not yet committed. A message is in one of the two, never in both and never twice.

| operation | what moves |
|---|---|
| put | new messages into pending; those already held are left alone |
| take n | the n lowest from pending to taken |
| commit | forgets all taken; the answer is the highest of them + 1, or -1 |
| make_again | only the given batch goes back to pending |
| roll_back | all taken go back to pending |

Source: `ProcessQueue` of apache/rocketmq.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reference_impl.core.consumer.lane_life import OVER, Phase
from reference_impl.protocol.message import StoredMessage
from specs.vocabulary import Lane, Queue

NOTHING = -1


class ProcessQueue:
    """One incarnation: a client's work on one lane, from add until drop.

    Losing and regaining the lease inside it changes nothing but `locked`. phase: where it stands in the life of a
    lane; `Consumer.move` moves it.
    """

    __slots__ = (
        "anchored",
        "commit_ext",
        "corrected",
        "delivered",
        "extra_times",
        "handed_on",
        "held",
        "incarnation",
        "lane",
        "last_lock_ms",
        "locked",
        "loop_began_ms",
        "next_offset",
        "offset",
        "pending",
        "phase",
        "pull_ext",
        "queue",
        "row",
        "serial",
        "taken",
    )

    def __init__(
        self,
        *,
        lane: Lane,
        serial: int,
        incarnation: str,
        start: int,
        row: Mapping[str, Any],
        delivered: dict[int, int] | None = None,
        phase: Phase = Phase.IDLE,
    ) -> None:
        self.lane = lane
        self.queue: Queue = lane.queue
        self.serial = serial
        self.incarnation = incarnation
        self.row = row
        self.phase = phase
        self.corrected: int | None = (
            None  # the offset that the broker's word, and no finished batch, moved us to
        )
        self.next_offset = start  # where the next pull asks
        self.offset = NOTHING  # what is to be stored as consumed
        self.anchored = False  # whether the first pull has asked again where to start
        self.locked = False
        self.last_lock_ms = 0
        self.loop_began_ms = 0
        self.pending: deque[StoredMessage] = deque()
        self.taken: dict[int, StoredMessage] = {}
        self.held: set[int] = set()
        self.extra_times: dict[int, int] = {}  # offset → retries counted by this incarnation
        self.handed_on: set[int] = (
            set()
        )  # acknowledged as dead letters, though the rest of the batch keeps them here
        self.delivered: dict[int, int] = (
            {} if delivered is None else delivered
        )  # of the client, not only of this
        self.pull_ext: dict[str, str] = {}
        self.commit_ext: dict[str, str] = {}

    @property
    def dropped(self) -> bool:
        """The incarnation has ended, or is about to: no further call, and no result moves its offset."""
        return self.phase in OVER

    @property
    def count(self) -> int:
        """Messages held, taken ones included."""
        return len(self.held)

    def put(self, messages: Iterable[StoredMessage]) -> bool:
        """Adds pulled messages; True when a consuming task must be started."""
        held, pending = self.held, self.pending
        for message in messages:
            offset = message.queue_offset
            if offset in held:
                continue
            held.add(offset)
            if not pending or pending[-1].queue_offset < offset:
                pending.append(message)
            else:
                self._insert(message)
        return bool(pending) and self.phase is Phase.IDLE

    def take(self, limit: int) -> list[StoredMessage]:
        """The lowest pending messages, at most `limit`."""
        pending, taken = self.pending, self.taken
        batch: list[StoredMessage] = []
        while pending and len(batch) < limit:
            message = pending.popleft()
            taken[message.queue_offset] = message
            batch.append(message)
        return batch

    def commit(self) -> int:
        """Forgets all taken messages. The offset after the highest of them, or -1 when none was taken."""
        if not self.taken:
            return NOTHING
        value = max(self.taken) + 1
        for offset in self.taken:
            self.held.discard(offset)
            self.extra_times.pop(offset, None)
            self.handed_on.discard(offset)
        self.taken.clear()
        return value

    def make_again(self, batch: Sequence[StoredMessage]) -> None:
        """Puts the batch back, to be taken next."""
        for message in reversed(batch):
            if self.taken.pop(message.queue_offset, None) is not None:
                self._insert(message)

    def roll_back(self) -> None:
        """Puts all taken messages back. Their counters stay as they are; what was given up is taken back as well."""
        self.handed_on.difference_update(self.taken)
        self.make_again([self.taken[offset] for offset in sorted(self.taken)])

    def times(self, message: StoredMessage) -> int:
        """How often the message has been retried: what it carries, and what this incarnation counted."""
        return message.reconsume_times + self.extra_times.get(message.queue_offset, 0)

    def count_retry(self, message: StoredMessage) -> None:
        self.extra_times[message.queue_offset] = self.extra_times.get(message.queue_offset, 0) + 1

    def _insert(self, message: StoredMessage) -> None:
        pending, offset = self.pending, message.queue_offset
        if not pending or offset < pending[0].queue_offset:
            pending.appendleft(message)
            return
        at = len(pending)
        while pending[at - 1].queue_offset > offset:
            at -= 1
        pending.insert(at, message)
