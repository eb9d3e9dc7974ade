"""What a broker keeps on disk: the append log, its queues, topics, groups, consumed offsets.

A store is handed to the broker and outlives it: a crash is a new `Broker` on the same store. An append is
durable when it returns (the process may die, the disk does not); consumed offsets are as old as the last
`save_offsets`. Within a queue offsets are dense and never given twice.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from reference_impl.core.broker.key_index import KeyIndex
from reference_impl.core.broker.offset_table import OffsetKey
from reference_impl.protocol.bodies import SubscriptionGroup, TopicConfig, java_hash
from reference_impl.protocol.message import StoredMessage, encode

SCAN_MAX = 800
"""How many messages one read looks at when most are filtered away (RocketMQ: 16,000 bytes of 20-byte entries)."""


class FlushMode(Enum):
    """When a send is answered: after its message is safe from a crash of the machine, or before."""

    SYNC = "sync"
    ASYNC = "async"


class StoreFull(Exception):
    """Something could not be written, and nothing of it is there. Never leaves the broker."""


class Read(Enum):
    """What a read from an offset met."""

    FOUND = "messages"
    NO_MATCH = "messages, but none that the filter wants"
    AT_END = "the offset of the next message to come"
    BEYOND_END = "an offset beyond that"
    BELOW_START = "an offset of a message that is no longer kept"
    EMPTY = "a queue without any message, asked for its first"
    EMPTY_BEYOND = "a queue without any message, asked for a later one"
    RESET = "nothing: an operator has said where to go on"


@dataclass(frozen=True, slots=True)
class ReadResult:
    """next_offset: where to read next; for a bad offset the place to go on from. body: records, concatenated."""

    status: Read
    next_offset: int
    min_offset: int
    max_offset: int
    body: bytes = b""
    count: int = 0


@dataclass(slots=True)
class Draft:
    """A message on its way into the log: all that the broker does not decide. Times in ms."""

    topic: str
    queue_id: int
    body: bytes
    properties: dict[str, str]
    flag: int = 0
    sys_flag: int = 0
    born_ms: int = 0
    born_host: str = "0.0.0.0:0"
    reconsume_times: int = 0
    # Of a message that was released: the place of the one that it stands for. Of a message of a batch: minus the number
    # of those that follow, so that a start knows a batch of which a crash has left a part.
    prepared_transaction_offset: int = 0


@dataclass(frozen=True, slots=True)
class Trimmed:
    """The oldest messages of a queue are gone; the first that is kept lies, or will lie, at min_offset."""

    topic: str
    queue_id: int
    min_offset: int


class ConsumeQueue:
    """One queue: its messages in order, from min_offset on. max_offset is the offset of the next message."""

    __slots__ = ("messages", "min_offset", "records", "tag_codes")

    def __init__(self) -> None:
        self.min_offset = 0
        self.messages: list[StoredMessage] = []
        self.records: list[bytes] = []
        self.tag_codes: list[int] = []  # 0: no tag

    @property
    def max_offset(self) -> int:
        return self.min_offset + len(self.messages)

    def get(self, offset: int) -> StoredMessage | None:
        place = offset - self.min_offset
        return self.messages[place] if 0 <= place < len(self.messages) else None

    def take(
        self, offset: int, count_max: int, bytes_max: int, wanted: Callable[[int], bool] | None
    ) -> tuple[int, int, bytes]:
        """For `BrokerStore.read`, from an offset that the queue has: where to go on, how many records, and these."""
        found: list[bytes] = []
        room = bytes_max
        place = offset - self.min_offset
        stop = min(len(self.records), place + SCAN_MAX)
        while place < stop and len(found) < count_max:
            if wanted is None or wanted(self.tag_codes[place]):
                record = self.records[place]
                if found and len(record) > room:
                    break
                room -= len(record)
                found.append(record)
            place += 1
        return self.min_offset + place, len(found), b"".join(found)


_NO_QUEUE = ConsumeQueue()


class BrokerStore:
    """See the module. epoch counts the brokers that were started on the store."""

    def __init__(self) -> None:
        self.epoch = 0
        self.topics: dict[str, TopicConfig] = {}
        self.groups: dict[str, SubscriptionGroup] = {}
        self.offsets: dict[OffsetKey, dict[int, int]] = {}
        self.delayed_done: dict[
            int, int
        ] = {}  # by delay level: the next offset of its queue to be delivered
        self.open_halves: dict[
            int, int
        ] = {}  # by offset in the half topic: how often its producer was asked
        self.end = 0  # of the log, in bytes
        self.is_full = False  # the disk takes no further message of a client's
        self.full_because = "the disk is full"
        self.short_of_room: str | None = (
            None  # why no client's message is taken, though there is still some room
        )
        self.turned_away = 0  # so many messages were refused while it was
        self.flush: FlushMode | None = None  # None: what is stored is safe at once
        self.flush_ms = 0  # with ASYNC: how often it is made safe
        self.synced = (
            0  # everything below this place of the log is safe, where there is something to flush
        )
        self.keys = KeyIndex()
        self._queues: dict[tuple[str, int], ConsumeQueue] = {}
        self._by_place: dict[int, StoredMessage] = {}

    def append(self, draft: Draft, store_ms: int, store_host: str) -> StoredMessage:
        """Store it behind the last one of its queue; the message as it now lies there.

        store_host: `ip:port`. Raises ProtocolError when it can't be written (properties too long, a separator in one),
        StoreFull when there is no room.
        """
        queue = self._queues.get((draft.topic, draft.queue_id)) or ConsumeQueue()
        stored = StoredMessage(
            draft.topic,
            draft.queue_id,
            queue.max_offset,
            self.end,
            draft.body,
            draft.properties,
            draft.flag,
            draft.sys_flag,
            draft.born_ms,
            draft.born_host,
            store_ms,
            store_host,
            draft.reconsume_times,
            draft.prepared_transaction_offset,
        )
        record = encode(stored)
        self._queues[draft.topic, draft.queue_id] = queue
        queue.messages.append(stored)
        queue.records.append(record)
        tags = stored.tags
        queue.tag_codes.append(java_hash(tags) if tags else 0)
        self._by_place[self.end] = stored
        self.keys.add(stored)
        self.end += len(record)
        return stored

    def at(self, physical_offset: int) -> StoredMessage | None:
        """The message that begins at that place of the log."""
        return self._by_place.get(physical_offset)

    def queue(self, topic: str, queue_id: int) -> ConsumeQueue:
        """The queue; an empty one when nothing was ever stored in it. Not to be changed by the caller."""
        return self._queues.get((topic, queue_id), _NO_QUEUE)

    def queues(self) -> Mapping[tuple[str, int], ConsumeQueue]:
        """All queues that ever got a message, by topic and queue id."""
        return self._queues

    def read(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        count_max: int,
        bytes_max: int,
        wanted: Callable[[int], bool] | None = None,
    ) -> ReadResult:
        """Up to count_max messages from the offset on, at least one if there is one, at most about bytes_max.

        wanted: by tag code, None for all.
        """
        queue = self.queue(topic, queue_id)
        low, high = queue.min_offset, queue.max_offset
        if high == 0:
            return ReadResult(Read.EMPTY if offset == 0 else Read.EMPTY_BEYOND, 0, low, high)
        if offset < low:
            return ReadResult(Read.BELOW_START, low, low, high)
        if offset >= high:
            return ReadResult(Read.AT_END if offset == high else Read.BEYOND_END, high, low, high)
        next_offset, count, body = queue.take(offset, count_max, bytes_max, wanted)
        return ReadResult(
            Read.FOUND if count else Read.NO_MATCH, next_offset, low, high, body, count
        )

    def search(self, topic: str, queue_id: int, store_ms: int, *, upper: bool = False) -> int:
        """The first offset stored at or after the time, or the queue's end; upper: the last one not after it."""
        queue = self.queue(topic, queue_id)
        if upper:
            later = (
                place for place, message in enumerate(queue.messages) if message.store_ms > store_ms
            )
            return max(queue.min_offset, queue.min_offset + next(later, len(queue.messages)) - 1)
        reached = (
            place for place, message in enumerate(queue.messages) if message.store_ms >= store_ms
        )
        return queue.min_offset + next(reached, len(queue.messages))

    def trim(self, topic: str, queue_id: int, min_offset: int) -> None:
        """Forget the messages below the offset, as retention does."""
        queue = self._queues.get((topic, queue_id))
        if queue is None:
            return
        gone = max(0, min(min_offset, queue.max_offset) - queue.min_offset)
        for message in queue.messages[:gone]:
            del self._by_place[message.physical_offset]
        del queue.messages[:gone], queue.records[:gone], queue.tag_codes[:gone]
        queue.min_offset += gone
        self.keys.forget_below(next(iter(self._by_place), self.end))

    def clean(self, upto_ms: int | None, segments_max: int) -> list[Trimmed]:
        """Remove the oldest segments of the log whose last message was stored at that time or before; None: at any.

        The last segment stays, whatever its age; at most segments_max go at once. What lay in them is gone from every
        queue. In memory each message is a segment of its own, and segments_max is not looked at.
        """
        places = list(self._by_place)
        start = next(
            (
                place
                for place in places[:-1]
                if upto_ms is not None and self._by_place[place].store_ms > upto_ms
            ),
            places[-1] if places else 0,
        )
        gone = []
        for (topic, queue_id), queue in sorted(self._queues.items()):
            count = bisect_left(queue.messages, start, key=lambda message: message.physical_offset)
            if count:
                self.trim(topic, queue_id, queue.min_offset + count)
                gone.append(Trimmed(topic, queue_id, queue.min_offset))
        return gone

    def disk_use(self) -> float | None:
        """The share of the disk that is in use, by whomever, 0 to 1; None where there is no disk."""
        return None

    def no_room_for_sends(self) -> str | None:
        """Why a client's message is not taken at present; None when it is."""
        return self.full_because if self.is_full else self.short_of_room

    def save_offsets(self, offsets: Mapping[OffsetKey, Mapping[int, int]]) -> None:
        """Replace the consumed offsets on disk, as one step."""
        self.offsets = {key: dict(queues) for key, queues in offsets.items()}

    def put_topic(self, topic: TopicConfig) -> None:
        """Keep it, in place of one of that name. Raises StoreFull."""
        self.topics[topic.topic] = topic

    def put_group(self, group: SubscriptionGroup) -> None:
        """Keep it, in place of one of that name. Raises StoreFull."""
        self.groups[group.group] = group

    def drop_topic(self, name: str) -> list[Trimmed]:
        """The topic is gone, and with it all messages of its queues. Raises StoreFull.

        A topic of that name that is made later goes on at the offsets where this one was: none is given twice.
        """
        self.topics.pop(name, None)
        gone = []
        for (topic, queue_id), queue in sorted(self._queues.items()):
            if topic == name and queue.min_offset < queue.max_offset:
                self.trim(topic, queue_id, queue.max_offset)
                gone.append(Trimmed(topic, queue_id, queue.min_offset))
        return gone

    def drop_group(self, name: str) -> None:
        """The group's settings are gone. Raises StoreFull."""
        self.groups.pop(name, None)

    def save_asked(self) -> None:
        """Keep how often producers were asked about the open half messages. Raises StoreFull."""

    # ------------------------------------------------------------ where storing and being safe are two things

    def undo(self, end: int) -> None:
        """Forget what was stored since the log ended there: all parts of a request are stored, or none."""

    def begin_sync(self) -> Callable[[], int]:
        """See `io.Flush`."""
        return lambda: self.end

    def synced_to(self, end: int) -> None:
        """A sync is done: everything below that place is safe."""

    def fail(self, why: str) -> None:
        """A sync failed: nobody knows what is safe, so nothing more is stored."""

    def settle(self) -> None:
        """Write what can wait; called in turn."""
