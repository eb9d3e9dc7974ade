"""The key-ordered consumer: messages of one sharding key in order and one call at a time, keys side by side.

Each key of a lane has a line of its own. Its first messages are given to the listener when a thread is free and
nothing of the key runs or waits for its time; then the next. A fixed worker for each hash of a key would be
simpler, but a slow key would hold back every key that falls onto its worker: so a thread is lent to whichever key
has waited longest, and a key that waits for its time takes none. Messages without a key wait for nobody.

| the listener's result | then |
|---|---|
| SUCCESS (COMMIT and ROLLBACK mean the same here) | the batch is finished, the key goes on |
| SUSPEND, null, a throw | the batch comes again after the suspend time, counted up by one; its key waits, no other |
| the same, and retried often enough | the message is given up to the dead letters, as an orderly consumer does |

A retry through the retry topic would let a key's later messages overtake: so retries are made in place.
What is stored as consumed is the smallest offset that is unfinished, so a key that is stuck makes the lane come
again from there after a crash; and back-pressure stops the pull when too much waits behind it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import ClassVar

from reference_impl.core.consumer.config import ConsumerConfig
from reference_impl.core.consumer.consumer import Consumer
from reference_impl.core.consumer.dead_letters import DeadLetters
from reference_impl.core.consumer.results import clamp_suspend
from reference_impl.core.consumer.side_by_side_loop import SideBySideLoop, Work
from reference_impl.core.consumer.unfinished_queue import UnfinishedQueue
from reference_impl.core.io import ListenerReturned
from reference_impl.protocol.message import StoredMessage
from specs.vocabulary import LISTENER_SUSPENDS


class KeyOrderedLoop(SideBySideLoop):
    """A line for each key; what failed goes back to the head of its line."""

    consumer: KeyOrderedConsumer

    def take_in(self, pq: UnfinishedQueue, messages: Sequence[StoredMessage]) -> None:
        for message in messages:
            key = self.key_of(message)
            if key is None:
                self.waiting.append(Work(pq, [message]))
            elif key in pq.lines:
                pq.lines[key].append(message)
            else:
                pq.lines[key] = deque([message])
                self.waiting.append(Work(pq, key=key))

    def key_of(self, message: StoredMessage) -> str | None:
        """The key by which a message is kept in order; None for none."""
        return message.sharding_key

    def choose(self, work: Work) -> list[StoredMessage]:
        if work.key is None:
            return list(work.batch)
        line = work.pq.lines[work.key]
        return [line.popleft() for _ in range(min(self.config.batch, len(line)))]

    def succeeded(self, now_ms: int, pq: UnfinishedQueue, batch: Sequence[StoredMessage]) -> None:
        self.finish(pq, batch)
        self.go_on(pq, self.key_of(batch[0]))
        self.over(now_ms, pq)

    def go_on(self, pq: UnfinishedQueue, key: str | None) -> None:
        """The next of the key gets in line; a key of which nothing is left is forgotten."""
        if key is None:
            return
        if pq.lines[key]:
            self.waiting.append(Work(pq, key=key))
        else:
            del pq.lines[key]

    def result_fields(self, how: ListenerReturned) -> dict[str, int]:
        if how.outcome in LISTENER_SUSPENDS:
            return {"suspend_ms": clamp_suspend(how.suspend_ms, self.config.suspend_ms)}
        return {}

    def failed(
        self,
        now_ms: int,
        pq: UnfinishedQueue,
        batch: Sequence[StoredMessage],
        how: ListenerReturned,
    ) -> None:
        pause_ms = clamp_suspend(how.suspend_ms, self.config.suspend_ms)
        dead_letters = self.consumer.dead_letters
        exhausted = [message for message in batch if dead_letters.is_exhausted(pq.times(message))]
        dead_letters.give_up(now_ms, pq, exhausted, partial(self._gave_up, pq, batch, pause_ms))

    def _gave_up(
        self,
        pq: UnfinishedQueue,
        batch: Sequence[StoredMessage],
        pause_ms: int,
        now_ms: int,
        done: frozenset[int],
    ) -> None:
        """done: the offsets of exhausted messages whose dead letters were acknowledged. The others come again."""
        kept = [message for message in batch if message.queue_offset not in done]
        self.finish(pq, [message for message in batch if message.queue_offset in done])
        for message in kept:
            pq.count_retry(message)
        if kept:
            self.come_again(pq, kept, pause_ms)
        else:
            self.go_on(pq, self.key_of(batch[0]))
        self.over(now_ms, pq)

    def come_again(self, pq: UnfinishedQueue, kept: list[StoredMessage], pause_ms: int) -> None:
        """The messages go to the head of their key's line, which waits for the suspend time."""
        key = self.key_of(kept[0])
        if key is None:
            self.do_later(Work(pq, kept), pause_ms)
        else:
            pq.lines[key].extendleft(reversed(kept))
            self.do_later(Work(pq, key=key), pause_ms)


class KeyOrderedConsumer(Consumer):
    """One client of one group in the key-ordered mode. See `Consumer.handle` for the contract.

    What it promises: within an incarnation, calls of one key never overlap and follow its order, and no key waits
    for another while a thread is free; no offset passes an unfinished message. What it does not promise: that a
    message is delivered once.
    """

    loop_class: ClassVar[type[KeyOrderedLoop]] = KeyOrderedLoop
    dead_letters_class: ClassVar[type[DeadLetters]] = DeadLetters

    def __init__(self, config: ConsumerConfig) -> None:
        super().__init__(config)
        self.dead_letters = self.dead_letters_class(self)
