"""What a start finds in a store, and what it makes of it.

The log is read whole, from its first record. It ends at the first place where no record lies.

| what lies there | was the place known to be synced? | what is done |
|---|---|---|
| zeros up to the end of the last segment | no | the log ends here |
| anything else | no | a torn tail: it is cut, and said |
| anything, zeros too | yes | no crash does that: refused, and nothing is changed (or cut, if the user says so) |

A record must have the right magic, lengths that fit, a body that matches its CRC, bytes that match its check sum (see
`records` for those that have none), the physical offset of the place where it lies, and the next offset of its queue.
A batch of which only the first messages lie at the end is as torn as a record: it was never acknowledged, and a request
is stored whole or not at all. Each of its messages but the last says how many follow.
Known to be synced is what the checkpoint says; in a store without one of ours it is everything when the last broker
ended in good order, else nothing. All that the broker derives from the log (queues, delayed and half messages) is
derived again, so a recovery that is cut short by a crash is simply done again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from reference_impl.core.broker.key_index import KeyIndex
from reference_impl.core.broker.topics import HALF_TOPIC, OP_TOPIC
from reference_impl.protocol.bodies import java_hash
from reference_impl.protocol.message import (
    PROPERTY_REAL_TOPIC,
    SYS_COMMIT,
    SYS_PREPARED,
    SYS_ROLLBACK,
    StoredMessage,
)
from reference_impl.storage.commit_log import CommitLog, Fault
from reference_impl.storage.consume_queue import DiskQueue, QueueFiles
from reference_impl.storage.errors import StoreDamaged
from reference_impl.storage.layout import OFFSET_MAX, segment_name
from specs.vocabulary import SCHEDULE_TOPIC

DIGITS_MAX = 18
FOLLOW_BLOCKS = 8
"""After so many blocks' messages the index is compared with its files, and what agrees leaves the memory."""


@dataclass(slots=True)
class Derived:
    """What follows from the messages of the log alone.

    delayed_done: by level, the next offset of its queue to be delivered. open_halves: offsets of the half messages
    that have not ended. last_ms: when the last message was stored. segment_ms: by the start of a segment, when its
    last message was.
    """

    queues: dict[tuple[str, int], DiskQueue] = field(default_factory=dict)
    delayed_done: dict[int, int] = field(default_factory=dict)
    open_halves: set[int] = field(default_factory=set)
    last_ms: int = 0
    segment_ms: dict[int, int] = field(default_factory=dict)
    count: int = 0
    _waiting: dict[int, tuple[int, int]] = field(
        default_factory=dict
    )  # place of a delayed message: level, offset
    _halves: dict[int, int] = field(default_factory=dict)  # place of a half message: offset

    def add(
        self,
        log: CommitLog,
        files: QueueFiles,
        message: StoredMessage,
        size: int,
        delays_ms: tuple[int, ...],
    ) -> str | None:
        """One more message, in the order of the log. What is wrong with it, None when nothing is."""
        self.count += 1
        self.last_ms = message.store_ms
        segment = log.segment_of(message.physical_offset)
        self.segment_ms[segment] = max(self.segment_ms.get(segment, 0), message.store_ms)
        if message.sys_flag & SYS_ROLLBACK in (SYS_PREPARED, SYS_ROLLBACK):
            return None  # a marker of old releases: it lies in no queue
        key = (message.topic, message.queue_id)
        queue = self.queues.get(key)
        if queue is None:
            if not 0 <= message.queue_offset < OFFSET_MAX or not 0 <= message.queue_id < 2**31:
                return f"offset {message.queue_offset} of queue {message.queue_id}"
            queue = self.queues[key] = DiskQueue(log, files, *key, message.queue_offset)
        elif message.queue_offset != queue.max_offset:
            return f"offset {message.queue_offset} of a queue whose next is {queue.max_offset}"
        queue.add(message, size, tag_of(message, delays_ms))
        if self.count % (FOLLOW_BLOCKS * files.block) == 0:
            for (topic, queue_id), one in self.queues.items():
                if topic != SCHEDULE_TOPIC:  # its tags are times that depend on who wrote them
                    files.follow(topic, queue_id, one)
        self._follow(message)
        return None

    def _follow(self, message: StoredMessage) -> None:
        """What the message says about delayed and half messages."""
        place, origin = message.physical_offset, message.prepared_transaction_offset
        match message.topic:
            case topic if topic == SCHEDULE_TOPIC:
                self._waiting[place] = (message.queue_id + 1, message.queue_offset)
            case topic if topic == HALF_TOPIC:
                self.open_halves.add(message.queue_offset)
                self._halves[place] = message.queue_offset
            case topic if topic == OP_TOPIC:
                for word in message.body[:65536].split(b","):
                    if word.isdigit() and len(word) <= DIGITS_MAX:
                        self.open_halves.discard(int(word))
            case _:
                self._released(message, origin)

    def _released(self, message: StoredMessage, origin: int) -> None:
        if message.sys_flag & SYS_ROLLBACK == SYS_COMMIT and origin in self._halves:
            self.open_halves.discard(self._halves.pop(origin))
        elif (
            origin in self._waiting and message.properties.get(PROPERTY_REAL_TOPIC) == message.topic
        ):
            level, offset = self._waiting.pop(origin)
            self.delayed_done[level] = max(self.delayed_done.get(level, 0), offset + 1)


def tag_of(message: StoredMessage, delays_ms: tuple[int, ...]) -> int:
    """What an entry of a consume queue says beside the place: the tags' hash; of a delayed message when it is due."""
    if message.topic == SCHEDULE_TOPIC:
        known = 0 <= message.queue_id < len(delays_ms)
        return message.store_ms + (delays_ms[message.queue_id] if known else 0)
    tags = message.tags
    return java_hash(tags) if tags else 0


def followers(message: StoredMessage) -> int:
    """How many messages of its batch come behind it."""
    return max(0, -message.prepared_transaction_offset)


def whole_batches(
    found: Iterator[tuple[StoredMessage, int]], torn: list[Fault]
) -> Iterator[tuple[StoredMessage, int]]:
    """The messages without the first ones of a batch whose last ones are not there; the fault is added to `torn`."""
    held: list[tuple[StoredMessage, int]] = []
    for message, size in found:
        if held and followers(message) != followers(held[-1][0]) - 1:
            break  # what follows is no part of it
        held.append((message, size))
        if not followers(message):
            yield from held
            held.clear()
    if held:
        first = held[0][0]
        missing = followers(held[-1][0])
        torn.append(
            Fault(
                first.physical_offset,
                f"{len(held)} messages of a batch, without the other {missing}",
            )
        )


def read_log(
    log: CommitLog,
    files: QueueFiles,
    keys: KeyIndex,
    known_synced: int | None,
    *,
    may_cut: bool,
    delays_ms: tuple[int, ...],
    said: list[str],
) -> tuple[Derived, bool]:
    """Read the log to its end; `log.end` is there afterwards, and whether something must be cut behind it.

    known_synced: the place below which nothing can be missing, None for all that is there. Raises StoreDamaged where
    the rule says so, unless may_cut.
    """
    derived = Derived()
    faults: list[Fault] = []

    def may_be_torn(place: int) -> bool:
        return known_synced is not None and place >= known_synced

    torn: list[Fault] = []
    for message, size in whole_batches(log.scan(faults, may_be_torn), torn):
        wrong = derived.add(log, files, message, size, delays_ms)
        if wrong is not None:
            torn = [Fault(message.physical_offset, wrong)]
            break
        if message.physical_offset >= keys.covered:
            keys.add(message)
    if torn:  # lies before anything else that is wrong
        faults, log.end = torn, torn[0].at
    at = log.end
    segment = at - (at - log.start) % log.segment_bytes
    where = f"segment {segment_name(segment)} at {at - segment} (offset {at} of the log)"
    is_damage = bool(faults) if known_synced is None else at < known_synced
    if is_damage:
        why = faults[0].why if faults else f"zeros, though it was synced up to {known_synced}"
        if not may_cut:
            raise StoreDamaged(
                f"The log of the store is damaged: {where} has {why}, and no crash does that. Restore the store from "
                "a copy, or keep what lies before it and lose what comes behind with --cut-damage."
            )
        said.append(f"damage cut, as was asked for: {where} has {why}; what came behind is lost")
    elif faults:
        said.append(f"torn tail cut: {where} has {faults[0].why}")
    return derived, bool(faults)
