"""An operator's reset that the broker leaves to its clients (RESET_CONSUMER_CLIENT_OFFSET), as it did before 5.2.

    told:     the offsets of the named lanes are frozen at the new values, these are reported, no further call starts
    the wait: running calls may end; their results move nothing
    then:     the lanes are dropped, which reports the offsets once more and gives the leases back; a rebalance
              takes the lanes again, and their stored offsets are where they go on

Every member of the group is told of all lanes, and moves those that it has. A lane that nobody has is moved by
nobody, and so is one whose owner dies before it could report.
From 5.2 on the broker keeps resets itself: see `pulling`, PULL_OFFSET_MOVED.
Source: docs/sources.md#offsets (`MQClientInstance.resetOffset` of apache/rocketmq).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reference_impl.core.consumer.lane_life import Event
from reference_impl.core.consumer.part import Part
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.protocol.bodies import decode_reset_offsets
from reference_impl.protocol.command import Command
from reference_impl.protocol.errors import ProtocolError
from specs.vocabulary import Kind

if TYPE_CHECKING:
    from reference_impl.core.consumer.consumer import Consumer

TOLD = "told by the broker"
"""Marks a reset in the history that a client was told to make."""


class Resets(Part):
    """Moves offsets when it is told to."""

    def __init__(self, consumer: Consumer) -> None:
        super().__init__(consumer)
        consumer.timers["reset"] = self._waited_for_calls

    def on_told(self, now_ms: int, command: Command) -> None:
        if command.ext.get("group") != self.config.group or self.consumer.stopping:
            return
        try:
            targets = decode_reset_offsets(command.body)
        except ProtocolError:
            return  # a push that can't be read is not for us
        lanes = self.consumer.lanes
        for queue in sorted(targets):
            pq = lanes.get(queue)
            if pq is not None and queue.topic == command.ext.get("topic"):
                self.consumer.note(Kind.RESET, {**pq.row, "value": targets[queue], "detail": TOLD})
                self.freeze(pq, targets[queue])
                self.consumer.set_timer(("reset", pq.serial), self.config.reset_wait_ms)

    def freeze(self, pq: ProcessQueue, offset: int) -> None:
        """From here on nothing that the lane has taken counts."""
        pq.offset = pq.corrected = offset
        self.consumer.move(pq, Event.RESET)
        self.consumer.offsets.persist(pq)

    def _waited_for_calls(self, now_ms: int, serial: int) -> None:
        pq = self.consumer.serials.get(serial)
        if pq is not None and not self.consumer.stopping:
            self.consumer.release.drop(now_ms, pq, "offset reset by an operator")
            self.consumer.rebalance.soon()
