"""What a listener gets: one message, or a batch of one queue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import overload

from reference_impl.protocol.message import PROPERTY_KEYS, PROPERTY_RETRY_TOPIC, StoredMessage
from specs.vocabulary import Queue

KEY_SEPARATOR = " "


@dataclass(frozen=True, slots=True)
class Message:
    """One delivery of one message.

    topic: the one that it was sent to, also when it came back over the group's retry topic. queue, offset: where this
    copy lies; the queue names topic, broker and number. id: the producer's own, the same in every copy. key: the
    sharding key. keys: by which it can be searched. attempt: how often this client has been given it, this time
    included, counting on from what a copy says; 1 is the first. born_ms, stored_ms: wall clocks of the producer and of
    the broker, since the epoch. offset_id: the broker's id of this copy. properties: all of them, the protocol's too.
    """

    topic: str
    body: bytes
    key: str | None
    tags: str | None
    keys: tuple[str, ...]
    id: str
    queue: Queue
    offset: int
    attempt: int
    born_ms: int
    stored_ms: int
    offset_id: str
    properties: Mapping[str, str]

    @property
    def text(self) -> str:
        """The body as UTF-8 text. UnicodeDecodeError when it is none."""
        return self.body.decode()

    @classmethod
    def of(cls, stored: StoredMessage, queue: Queue, attempt: int) -> Message:
        """One delivery of what a broker has stored."""
        properties = stored.properties
        return cls(
            topic=properties.get(PROPERTY_RETRY_TOPIC, stored.topic),
            body=stored.body,
            key=stored.sharding_key,
            tags=stored.tags,
            keys=tuple(properties.get(PROPERTY_KEYS, "").split()),
            id=stored.source_id or stored.message_id or stored.offset_id,
            queue=queue,
            offset=stored.queue_offset,
            attempt=attempt,
            born_ms=stored.born_ms,
            stored_ms=stored.store_ms,
            offset_id=stored.offset_id,
            properties=properties,
        )


class Batch(Sequence[Message]):
    """Messages of one queue in the order of their offsets; never empty."""

    __slots__ = ("_messages", "queue")

    def __init__(self, queue: Queue, messages: Sequence[Message]) -> None:
        self.queue = queue
        self._messages = tuple(messages)

    @overload
    def __getitem__(self, at: int) -> Message: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[Message]: ...

    def __getitem__(self, at: int | slice) -> Message | Sequence[Message]:
        return self._messages[at]

    def __iter__(self) -> Iterator[Message]:
        return iter(self._messages)

    def __len__(self) -> int:
        return len(self._messages)

    def __repr__(self) -> str:
        return f"<Batch of {len(self)} from {self.queue}>"
