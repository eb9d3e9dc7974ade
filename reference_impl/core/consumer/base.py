"""What every part of the orderly consumer stands on: inputs dispatched, requests remembered, effects gathered.

The consumer is one object whose parts are a chain of small classes, each in its own file and each adding one
rule: core → routes → offsets → leases → handover → dead letters → listening → pulling → rebalance → reset → shutdown.
A part calls downwards; the few calls upwards are declared here. A mutant overrides one method.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from reference_impl.core.consumer.config import ConsumerConfig
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.core.io import (
    Address,
    Answered,
    Begin,
    Effect,
    End,
    Failed,
    Input,
    ListenerReturned,
    Note,
    Oneway,
    Pushed,
    Request,
    SetTimer,
    Shutdown,
    Start,
    TimerFired,
)
from reference_impl.protocol.bodies import Subscription
from reference_impl.protocol.command import Command
from reference_impl.protocol.errors import ProtocolError
from specs.vocabulary import Kind, Lane, Outcome, Queue, retry_topic

OnEnd = Callable[[int, Command | None, str], None]
"""(now_ms, the answer or None, the reason when there is none): how a request ended."""

UNREACHABLE = "unreachable"
GARBLED = "garbled"


def failure_outcome(reason: str) -> Outcome:
    """How a request without an answer ended: only an unreachable server certainly did nothing."""
    return Outcome.REFUSED if reason == UNREACHABLE else Outcome.UNKNOWN


class Core(ABC):
    """State that the parts share, and the plumbing."""

    def __init__(self, config: ConsumerConfig) -> None:
        self.config = config
        self.retry_topic = retry_topic(config.group)
        self.lanes: dict[Queue, ProcessQueue] = {}
        self.serials: dict[
            int, ProcessQueue
        ] = {}  # the lanes, by the number in their timers' tokens
        self.leaving: dict[Queue, ProcessQueue] = {}  # dropped, but a call still runs
        self.addresses: dict[str, Address] = {}  # broker name → its master
        self.subscriptions: dict[str, Subscription] = {}
        self.stopping = False  # no new call, no new pull
        self.has_left = False  # all lanes given back, goodbye said
        self.stopped = False
        self._out: list[Effect] = []
        self._number = 0
        self._waiting: dict[Hashable, OnEnd] = {}
        self._who: Mapping[str, Any] = {"client_id": config.client_id, "group": config.group}
        self._rows: dict[Queue, Mapping[str, Any]] = {}
        self._timers: dict[str, Callable[..., None]] = {}
        self._inputs: dict[type[Any], Callable[[int, Any], None]] = {
            Answered: self._on_answered,
            Failed: self._on_failed,
            TimerFired: self._on_timer,
            ListenerReturned: self.on_listener_returned,
            Pushed: self.on_pushed,
            Start: self.on_start,
            Shutdown: self.on_shutdown,
        }

    # ------------------------------------------------------------ the contract

    def handle(self, now_ms: int, input: Input) -> list[Effect]:
        """Takes in one input and gives the effects to carry out, in order. After `Stopped`: none, whatever comes."""
        out: list[Effect] = []
        self._out = out
        if not self.stopped:
            react = self._inputs.get(type(input))
            if react is not None:
                react(now_ms, input)
        return out

    @abstractmethod
    def on_start(self, now_ms: int, input: Start) -> None: ...

    @abstractmethod
    def on_shutdown(self, now_ms: int, input: Shutdown) -> None: ...

    @abstractmethod
    def on_pushed(self, now_ms: int, input: Pushed) -> None: ...

    @abstractmethod
    def on_listener_returned(self, now_ms: int, input: ListenerReturned) -> None: ...

    # ------------------------------------------------------------ calls upwards

    @abstractmethod
    def rebalance_soon(self, delay_ms: int = 0) -> None:
        """Rebalance after the delay, and no sooner than the minimal interval allows."""

    @abstractmethod
    def is_ready(self, now_ms: int) -> None:
        """The first routes and heartbeats have ended, well or badly."""

    @abstractmethod
    def resubmit(self, now_ms: int, pq: ProcessQueue) -> None:
        """Let the lane wait for a thread."""

    @abstractmethod
    def came_to_rest(self, now_ms: int) -> None:
        """A listener call and all that follows it is over."""

    @abstractmethod
    def is_wanted(self, queue: Queue) -> bool:
        """Whether this client works on the lane, or is about to."""

    # ------------------------------------------------------------ requests

    def request(
        self, now_ms: int, address: Address | None, command: Command, timeout_ms: int, on_end: OnEnd
    ) -> None:
        """Asks; `on_end` hears how it ended. A broker without a known address is unreachable, at once."""
        if address is None:
            on_end(now_ms, None, UNREACHABLE)
            return
        self._number += 1
        self._waiting[self._number] = on_end
        self._out.append(Request(self._number, address, command, timeout_ms))

    def oneway(self, address: Address, command: Command) -> None:
        self._out.append(Oneway(address, command))

    def set_timer(self, token: Hashable, delay_ms: int) -> None:
        self._out.append(SetTimer(token, delay_ms))

    def _on_answered(self, now_ms: int, input: Answered) -> None:
        on_end = self._waiting.pop(input.token, None)
        if on_end is None:
            return
        try:
            on_end(now_ms, input.command, "")
        except ProtocolError:
            # Every ending reads the answer before it does anything, so that this is its first word on the matter.
            on_end(now_ms, None, GARBLED)

    def _on_failed(self, now_ms: int, input: Failed) -> None:
        on_end = self._waiting.pop(input.token, None)
        if on_end is not None:
            on_end(now_ms, None, input.reason)

    def _on_timer(self, now_ms: int, input: TimerFired) -> None:
        """Tokens are tuples: the timer's name, then its arguments."""
        token = input.token
        if isinstance(token, tuple):
            react = self._timers.get(token[0])
            if react is not None:
                react(now_ms, *token[1:])

    # ------------------------------------------------------------ observations

    def begin(
        self, kind: Kind, fields: Mapping[str, Any], rows: Sequence[Mapping[str, Any]] = ()
    ) -> int:
        self._number += 1
        self._out.append(Begin(self._number, kind, fields, rows))
        return self._number

    def end(
        self,
        op: int,
        outcome: Outcome,
        fields: Mapping[str, Any],
        rows: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        self._out.append(End(op, outcome, fields, rows))

    def note(self, kind: Kind, fields: Mapping[str, Any]) -> None:
        self._out.append(Note(kind, Outcome.OK, fields))

    def row_of(self, queue: Queue) -> Mapping[str, Any]:
        """The columns that say which lane; with the incarnation, where one is open."""
        pq = self.lanes.get(queue) or self.leaving.get(queue)
        if pq is not None:
            return pq.row
        row = self._rows.get(queue)
        if row is None:
            row = self._rows[queue] = {
                **self._who,
                "topic": queue.topic,
                "broker": queue.broker,
                "queue_id": queue.queue_id,
            }
        return row

    def lane_of(self, queue: Queue) -> Lane:
        return Lane(self.config.group, queue.topic, queue.broker, queue.queue_id)
