"""The consuming task of a lane: guard, take a batch, call the listener, do what its result means.

At most `threads` lanes have a thread; the others wait in line. A lane has one task, which is running, waiting in
line, or waiting for its time:

| the task finds | then |
|---|---|
| the lane dropped, or the consumer stopping | it ends |
| no lease when it gets its thread | it asks for one after 100 ms |
| no lease between two calls | it asks for one after 10 ms |
| it has had the thread for longer than the cap | it gets in line again after 10 ms |
| no message | it ends; the next pulled message starts another |
| a batch | it calls the listener |

Source: `ConsumeMessageOrderlyService` of apache/rocketmq.
"""

from __future__ import annotations

import zlib
from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import Any

from reference_impl.core.consumer.config import ConsumerConfig
from reference_impl.core.consumer.dead_letters import DeadLetters, id_of
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.core.consumer.results import RESULTS, Back, clamp_suspend
from reference_impl.core.io import CallListener, ListenerReturned
from reference_impl.protocol.message import StoredMessage
from specs.vocabulary import LISTENER_SUSPENDS, CommitMode, Kind, Outcome, Queue

NO_LEASE_AT_ENTRY_MS = 100
NO_LEASE_IN_LOOP_MS = 10
IN_LINE_AGAIN_MS = 10
KEY_SEQ = "KEY_SEQ"


@dataclass(slots=True)
class Call:
    """One listener call."""

    pq: ProcessQueue
    batch: list[StoredMessage]
    op: int


class Listening(DeadLetters):
    """Runs the lanes' consuming tasks on a limited number of threads."""

    def __init__(self, config: ConsumerConfig) -> None:
        super().__init__(config)
        self.calls: dict[int, Call] = {}
        self.in_line: deque[ProcessQueue] = deque()
        self.free_threads = config.threads
        self._call_number = 0
        self._delivered: dict[Queue, dict[int, int]] = {}
        self._timers["resubmit"] = self._resubmit_tick

    # ------------------------------------------------------------ threads

    def resubmit(self, now_ms: int, pq: ProcessQueue) -> None:
        self.in_line.append(pq)
        self.use_threads(now_ms)

    def _resubmit_tick(self, now_ms: int, serial: int) -> None:
        pq = self.serials.get(serial)
        if pq is not None:
            self.resubmit(now_ms, pq)

    def use_threads(self, now_ms: int) -> None:
        while self.free_threads and self.in_line:
            self.free_threads -= 1
            self._enter(now_ms, self.in_line.popleft())

    def _leave_thread(self) -> None:
        self.free_threads += 1

    # ------------------------------------------------------------ the task

    def _enter(self, now_ms: int, pq: ProcessQueue) -> None:
        if not pq.dropped and not self.holds_lease(now_ms, pq):
            self._leave_thread()
            self.relock_later(pq, NO_LEASE_AT_ENTRY_MS)
            return
        pq.loop_began_ms = now_ms
        self._turn(now_ms, pq)

    def _turn(self, now_ms: int, pq: ProcessQueue) -> None:
        """One turn of the loop; when no listener call comes of it, the thread is given up."""
        if pq.dropped or self.stopping:
            pq.consuming = False
        elif not self.holds_lease(now_ms, pq):
            self.relock_later(pq, NO_LEASE_IN_LOOP_MS)
        elif now_ms - pq.loop_began_ms > self.config.continuous_ms:
            self.set_timer(("resubmit", pq.serial), IN_LINE_AGAIN_MS)
        else:
            batch = pq.take(self.config.batch)
            if batch:
                self.call_listener(pq, batch)
                return
        self._leave_thread()

    def call_listener(self, pq: ProcessQueue, batch: list[StoredMessage]) -> None:
        counts = pq.delivered
        delivery = []
        rows = []
        for message in batch:
            offset = message.queue_offset
            tries = counts[offset] = counts.get(offset, 0) + 1
            delivery.append(message.reconsume_times + tries)
            rows.append(self._delivery_row(pq, message, tries))
        pq.busy += 1
        op = self.begin(Kind.DELIVER, pq.row, rows)
        self._call_number += 1
        self.calls[self._call_number] = Call(pq, batch, op)
        self._out.append(CallListener(self._call_number, pq.lane, batch, delivery))

    def _delivery_row(self, pq: ProcessQueue, message: StoredMessage, tries: int) -> dict[str, Any]:
        properties = message.properties
        sequence = properties.get(KEY_SEQ)
        return {
            **pq.row,
            "queue_offset": message.queue_offset,
            "message_id": id_of(message),
            "origin_id": message.source_id,
            "sharding_key": message.sharding_key,
            "key_seq": int(sequence) if sequence is not None and sequence.isdecimal() else None,
            "reconsume_times": pq.times(message),
            "attempt": tries,
            "body_hash": zlib.crc32(message.body),
            "tags": message.tags,
            "delay_level": message.delay_level,
        }

    # ------------------------------------------------------------ the result

    def on_listener_returned(self, now_ms: int, input: ListenerReturned) -> None:
        call = self.calls.pop(input.call_id, None)
        if call is None:
            return
        pq, outcome = call.pq, input.outcome
        mode = CommitMode.MANUAL if input.manual else CommitMode.AUTO
        suspends = outcome in LISTENER_SUSPENDS
        fields: dict[str, Any] = {"commit_mode": mode}
        if suspends or (outcome is Outcome.ROLLBACK and input.manual):
            fields["suspend_ms"] = clamp_suspend(input.suspend_ms, self.config.suspend_ms)
        self.end(call.op, outcome, fields)
        pause_ms = self.pause_ms(input.suspend_ms)
        if not suspends:
            self._finish(now_ms, pq, call.batch, outcome, mode, pause_ms, given_up=False)
            return
        exhausted = [
            message
            for message in call.batch
            if self.is_exhausted(pq.times(message)) and not self.is_handed_on(pq, message)
        ]
        if exhausted:
            then = partial(self._gave_up, pq, call.batch, outcome, mode, pause_ms)
            self.give_up(now_ms, pq, exhausted, then)
        else:
            self._gave_up(pq, call.batch, outcome, mode, pause_ms, now_ms, frozenset())

    def is_handed_on(self, pq: ProcessQueue, message: StoredMessage) -> bool:
        """Was it given up before, and came again only because of others of its batch?

        RocketMQ's client does not ask, and sends it to the dead letters once more each time (docs/sources.md).
        """
        return message.queue_offset in pq.handed_on

    def pause_ms(self, asked_ms: int) -> int:
        """How long the lane waits after a result that asks for it."""
        return clamp_suspend(asked_ms, self.config.suspend_ms)

    def _gave_up(
        self,
        pq: ProcessQueue,
        batch: list[StoredMessage],
        outcome: Outcome,
        mode: CommitMode,
        pause_ms: int,
        now_ms: int,
        done: frozenset[int],
    ) -> None:
        """The exhausted messages of the batch were sent away; `done` are those that arrived.

        One message that is not exhausted, or did not arrive, keeps the whole batch; those that arrived are not sent
        again when it comes again.
        """
        pq.handed_on |= done
        kept = [
            message
            for message in batch
            if not (message.queue_offset in done or self.is_handed_on(pq, message))
        ]
        for message in kept:
            self.count_retry(pq, message)
        self._finish(now_ms, pq, batch, outcome, mode, pause_ms, given_up=not kept)

    def count_retry(self, pq: ProcessQueue, message: StoredMessage) -> None:
        pq.count_retry(message)

    def _finish(
        self,
        now_ms: int,
        pq: ProcessQueue,
        batch: list[StoredMessage],
        outcome: Outcome,
        mode: CommitMode,
        pause_ms: int,
        given_up: bool,
    ) -> None:
        rule = RESULTS[outcome, mode, given_up]
        self.put_back(pq, batch, rule.back)
        if rule.commit:
            self.commit_batch(pq)
        self.settle(now_ms, pq)
        if self.stopped:
            return
        if rule.go_on:
            self._turn(now_ms, pq)
        else:
            self._leave_thread()
            self.rest(now_ms, pq, pause_ms)
        self.use_threads(now_ms)

    def rest(self, now_ms: int, pq: ProcessQueue, pause_ms: int) -> None:
        """The lane waits for its time, and no thread waits with it."""
        self.set_timer(("resubmit", pq.serial), pause_ms)

    def put_back(self, pq: ProcessQueue, batch: list[StoredMessage], back: Back) -> None:
        if back is Back.BATCH:
            pq.make_again(batch)
        elif back is Back.TAKEN:
            pq.roll_back()

    def commit_batch(self, pq: ProcessQueue) -> None:
        self.store_offset(pq, pq.commit())

    def delivery_counts(self, queue: Queue) -> dict[int, int]:
        """How often this client has delivered each offset of the queue, in all its incarnations."""
        return self._delivered.setdefault(queue, {})
