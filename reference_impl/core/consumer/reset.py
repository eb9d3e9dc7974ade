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

from reference_impl.core.consumer.config import ConsumerConfig
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.core.consumer.rebalance import Rebalancing
from reference_impl.core.io import Pushed
from reference_impl.protocol.bodies import decode_reset_offsets
from reference_impl.protocol.codes import RequestCode
from reference_impl.protocol.command import Command
from reference_impl.protocol.errors import ProtocolError
from specs.vocabulary import Kind

TOLD = "told by the broker"
"""Marks a reset in the history that a client was told to make."""


class Resetting(Rebalancing):
    """Moves offsets when it is told to."""

    def __init__(self, config: ConsumerConfig) -> None:
        super().__init__(config)
        self._timers["reset"] = self._waited_for_calls

    def on_pushed(self, now_ms: int, input: Pushed) -> None:
        command = input.command
        if command.code == RequestCode.RESET_CONSUMER_CLIENT_OFFSET:
            if command.ext.get("group") == self.config.group and not self.stopping:
                self._told(command)
        else:
            super().on_pushed(now_ms, input)

    def _told(self, command: Command) -> None:
        try:
            targets = decode_reset_offsets(command.body)
        except ProtocolError:
            return  # a push that can't be read is not for us
        for queue in sorted(targets):
            pq = self.lanes.get(queue)
            if pq is not None and queue.topic == command.ext.get("topic"):
                self.note(Kind.RESET, {**pq.row, "value": targets[queue], "detail": TOLD})
                self.freeze(pq, targets[queue])
                self.set_timer(("reset", pq.serial), self.config.reset_wait_ms)

    def freeze(self, pq: ProcessQueue, offset: int) -> None:
        """From here on nothing that the lane has taken counts."""
        pq.offset = pq.corrected = offset
        pq.dropped = True
        self.persist(pq)

    def _waited_for_calls(self, now_ms: int, serial: int) -> None:
        pq = self.serials.get(serial)
        if pq is not None and not self.stopping:
            self.drop(now_ms, pq, "offset reset by an operator")
            self.rebalance_soon()
