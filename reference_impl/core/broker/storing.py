"""The one way into the log: a delayed message takes the detour over the delay queues, everything is recorded.

A message with a delay level above 0 is stored in SCHEDULE_TOPIC_XXXX, in the queue of its level, together with
the topic and queue it was meant for, and moves there when its time has come; it goes on saying its level. Each level
is a queue of its own, so within a level order is kept and one timer per level is enough. A message that was released
names the place of the one that waited, so the log itself says which comes next: a crash neither loses nor repeats one.
Source: docs/sources.md#delay (ScheduleMessageService).
"""

from __future__ import annotations

import zlib

from reference_impl.core.broker.log import Draft, StoreFull
from reference_impl.core.broker.parts import Parts
from reference_impl.core.io import Effect, Note, SetTimer
from reference_impl.protocol.errors import ProtocolError
from reference_impl.protocol.headers import parse_int
from reference_impl.protocol.message import (
    PROPERTY_DELAY,
    PROPERTY_KEY_SEQ,
    PROPERTY_REAL_QUEUE_ID,
    PROPERTY_REAL_TOPIC,
    StoredMessage,
    ip_port,
    parse_offset_message_id,
    plain_body,
)
from specs.vocabulary import SCHEDULE_TOPIC, Kind, Level, Outcome

DELAY_TIMER = "delay"
"""First part of the timer token (DELAY_TIMER, level)."""
ROOM_WAIT_MS = 1_000


class Storing:
    """Appends, and the delay service."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._host = ip_port(parts.config.address)

    @property
    def host(self) -> str:
        """The broker's address as its messages carry it."""
        return self._host

    def store(self, now_ms: int, draft: Draft, out: list[Effect]) -> StoredMessage:
        """Store the message where it belongs now. Raises ProtocolError when it can't be written."""
        level = self.delay_level(draft)
        if level > 0:
            draft.properties[PROPERTY_DELAY] = str(level)  # one beyond the table is the last
            draft.properties[PROPERTY_REAL_TOPIC] = draft.topic
            draft.properties[PROPERTY_REAL_QUEUE_ID] = str(draft.queue_id)
            draft.topic, draft.queue_id = SCHEDULE_TOPIC, level - 1
        stored = self.append(now_ms, draft, out)
        if level > 0 and stored.queue_offset == self._parts.store.delayed_done.get(level, 0):
            out.append(SetTimer((DELAY_TIMER, level), self.wait_ms(level)))
        return stored

    def append(self, now_ms: int, draft: Draft, out: list[Effect]) -> StoredMessage:
        """Into the log, its queue's waiting pulls to be woken, and a note for the recorder."""
        stored = self._parts.store.append(draft, now_ms, self._host)
        self._parts.arrived.append((stored.topic, stored.queue_id))
        self.note(stored, out)
        return stored

    def note(self, stored: StoredMessage, out: list[Effect]) -> None:
        properties = stored.properties
        level = properties.get(PROPERTY_DELAY)
        number = properties.get(PROPERTY_KEY_SEQ, "")
        out.append(
            Note(
                Kind.APPEND,
                Outcome.OK,
                {
                    "level": Level.STORE,
                    "topic": stored.topic,
                    "broker": self._parts.config.name,
                    "broker_epoch": self._parts.store.epoch,
                    "queue_id": stored.queue_id,
                    "queue_offset": stored.queue_offset,
                    "message_id": stored.message_id,
                    "origin_id": self.origin_of(stored),
                    "sharding_key": stored.sharding_key,
                    "key_seq": int(number) if number.isdecimal() else None,
                    "reconsume_times": stored.reconsume_times,
                    "delay_level": int(level) if level else None,
                    "body_hash": zlib.crc32(self.body_of(stored)),
                    "tags": stored.tags,
                },
            )
        )

    def body_of(self, stored: StoredMessage) -> bytes:
        """As its producer gave it and listeners see it; what can't be decompressed, as it is."""
        try:
            return plain_body(stored.body, stored.sys_flag)
        except ProtocolError:
            return stored.body

    def delay_level(self, draft: Draft) -> int:
        """The level asked for, at most the highest there is; 0 or less for none."""
        text = draft.properties.get(PROPERTY_DELAY)
        return (
            min(parse_int(text, PROPERTY_DELAY, 32), len(self._parts.config.delay_ms))
            if text
            else 0
        )

    def wait_ms(self, level: int) -> int:
        """How long a message of that level waits, from the time at which it was stored."""
        return self._parts.config.delay_ms[level - 1]

    def start(self, now_ms: int, out: list[Effect]) -> None:
        """After a start: the levels that still hold messages go on."""
        for level in range(1, len(self._parts.config.delay_ms) + 1):
            self.deliver_due(now_ms, level, out)

    def deliver_due(self, now_ms: int, level: int, out: list[Effect]) -> None:
        """Move what is due on that level to where it was meant for, and wait for the next."""
        store = self._parts.store
        if level > len(self._parts.config.delay_ms):
            return
        while True:
            place = store.delayed_done.get(level, 0)
            waiting = store.queue(SCHEDULE_TOPIC, level - 1).get(place)
            if waiting is None:
                return
            left_ms = waiting.store_ms + self.wait_ms(level) - now_ms
            if left_ms > 0:
                out.append(SetTimer((DELAY_TIMER, level), left_ms))
                return
            try:
                self.append(now_ms, self.released(waiting), out)
            except StoreFull:  # it waits until there is room
                out.append(SetTimer((DELAY_TIMER, level), ROOM_WAIT_MS))
                return
            store.delayed_done[level] = place + 1

    def released(self, waiting: StoredMessage) -> Draft:
        """The delayed message, as it goes to the topic and queue that it was meant for."""
        properties = dict(
            waiting.properties
        )  # DELAY among them: RocketMQ packs them before it drops the level
        return Draft(
            properties.get(PROPERTY_REAL_TOPIC, waiting.topic),
            int(properties.get(PROPERTY_REAL_QUEUE_ID, "0")),
            waiting.body,
            properties,
            waiting.flag,
            waiting.sys_flag,
            waiting.born_ms,
            waiting.born_host,
            waiting.reconsume_times,
            waiting.physical_offset,
        )

    def origin_of(self, stored: StoredMessage) -> str | None:
        """The unique key of the message that this is a copy of.

        A copy that the broker made names its origin by place in the log; one that a client made, by unique key.
        """
        origin = stored.origin_id
        if origin is None:
            return None
        try:
            host, place = parse_offset_message_id(origin)
        except ProtocolError:
            return origin
        if host != self._host:
            return origin
        source = (
            self._parts.store.at(place) or stored
        )  # the copy has the unique key too, where its source is gone
        return source.message_id or origin
