"""The consumer's core: inputs dispatched, requests remembered, effects gathered, and the parts that do the work.

`Consumer(config).handle(now_ms, input)` returns the effects to be carried out, in order. No input makes it raise; an
`UnknownStep` of a lane is an error in the code.

Each part is one rule in one file, with the state that only this rule needs; the consumer holds what several of them
look at: the lanes that it has to do with, each in its phase (`lane_life`), who is where, and whether we are leaving.
A part is a class attribute, so that a way of consuming is a choice of parts (`orderly`, `concurrent`, `key_ordered`,
`broadcast`, `pull_consumer`), and a variant replaces one part, or one method of one part.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, ClassVar, Protocol

from reference_impl.core.consumer.calls import Calls
from reference_impl.core.consumer.candidate import Candidate
from reference_impl.core.consumer.config import ConsumerConfig
from reference_impl.core.consumer.lane_life import (
    LEFT,
    SIDE_BY_SIDE,
    Event,
    Life,
    Phase,
    UnknownStep,
)
from reference_impl.core.consumer.lane_release import LaneDrop
from reference_impl.core.consumer.leases import Granted, NoLeases
from reference_impl.core.consumer.offsets import BrokerOffsets, OffsetStore
from reference_impl.core.consumer.part import GARBLED, UNREACHABLE, OnEnd
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.core.consumer.pulling import BoundedPulling, Pulling
from reference_impl.core.consumer.rebalance import Rebalance
from reference_impl.core.consumer.resets import Resets
from reference_impl.core.consumer.routes import Routes
from reference_impl.core.consumer.shutdown import ShutdownSequence
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
from reference_impl.protocol.bodies import CONSUME_PASSIVELY, Subscription
from reference_impl.protocol.codes import RequestCode
from reference_impl.protocol.command import Command
from reference_impl.protocol.errors import ProtocolError
from reference_impl.protocol.message import StoredMessage
from specs.vocabulary import Kind, Lane, Outcome, Queue, retry_topic


class LeaseKeeping(Protocol):
    """Whether lanes need a lease of the broker's: `Leases`, or `NoLeases`."""

    def __init__(self, consumer: Any) -> None: ...

    def start(self, now_ms: int) -> None: ...

    def acquire(
        self,
        now_ms: int,
        broker: str,
        queues: Sequence[Queue],
        then: Callable[[int, Granted], None],
    ) -> None:
        """Before these lanes of one broker are added; `then(now_ms, those that may be)`."""

    def admit(self, pq: ProcessQueue, granted_ms: int) -> None:
        """The lane is added, with what was granted at that moment."""

    def unlock(self, broker: str, queues: Sequence[Queue]) -> None:
        """Give back what was granted."""


class ConsumeLoop(Protocol):
    """In which order the listener is called, and what its results mean."""

    queue_class: ClassVar[type[ProcessQueue]]

    def __init__(self, consumer: Any) -> None: ...

    def start(self, now_ms: int) -> None: ...

    def keep(self, now_ms: int, pq: ProcessQueue, messages: list[StoredMessage]) -> None:
        """Pulled messages of a lane."""

    def on_listener_returned(self, now_ms: int, input: ListenerReturned) -> None: ...

    def is_at_rest(self) -> bool:
        """No call runs, nor anything that follows from one."""


class Consumer:
    """One client of one group. The modes choose `loop_class`, and the other parts where theirs differ.

    consume_type: what a heartbeat says about the way messages are asked for. has_retry_topic: the group's own retry
    topic belongs to the subscription, where its members share the queues. life: by which a lane's phase moves.
    """

    consume_type: ClassVar[str] = CONSUME_PASSIVELY
    has_retry_topic: ClassVar[bool] = True
    life: ClassVar[Life] = SIDE_BY_SIDE

    routes_class: ClassVar[type[Routes]] = Routes
    offsets_class: ClassVar[type[OffsetStore]] = BrokerOffsets
    leases_class: ClassVar[type[LeaseKeeping]] = NoLeases
    release_class: ClassVar[type[LaneDrop]] = LaneDrop
    calls_class: ClassVar[type[Calls]] = Calls
    loop_class: ClassVar[type[ConsumeLoop]]
    pulling_class: ClassVar[type[Pulling]] = BoundedPulling
    rebalance_class: ClassVar[type[Rebalance]] = Rebalance
    resets_class: ClassVar[type[Resets]] = Resets
    shutdown_class: ClassVar[type[ShutdownSequence]] = ShutdownSequence

    def __init__(self, config: ConsumerConfig) -> None:
        self.config = config
        self.retry_topic = retry_topic(config.group)
        self.tracked: dict[
            Queue, Candidate | ProcessQueue
        ] = {}  # the lanes, until they are elsewhere
        self.serials: dict[int, ProcessQueue] = {}  # `lanes`, by the number in their timers' tokens
        self.addresses: dict[str, Address] = {}  # broker name → its master
        self.subscriptions: dict[str, Subscription] = {}
        self.stopping = False  # no new call, no new pull
        self.has_left = False  # all lanes given back, goodbye said
        self.stopped = False
        self.who: Mapping[str, Any] = {"client_id": config.client_id, "group": config.group}
        self.timers: dict[str, Callable[..., None]] = {}  # what each does; the parts enter theirs
        self._out: list[Effect] = []
        self._number = 0
        self._waiting: dict[Hashable, OnEnd] = {}
        self._rows: dict[Queue, Mapping[str, Any]] = {}
        self.routes = self.routes_class(self)
        self.offsets = self.offsets_class(self)
        self.leases = self.leases_class(self)
        self.release = self.release_class(self)
        self.calls = self.calls_class(self)
        self.loop = self.loop_class(self)
        self.pulling = self.pulling_class(self)
        self.rebalance = self.rebalance_class(self)
        self.resets = self.resets_class(self)
        self.shutdown = self.shutdown_class(self)
        self.inputs = self.reactions()
        self.pushes = self.notices()

    def reactions(self) -> dict[type[Any], Callable[[int, Any], None]]:
        """Which input is taken by whom."""
        return {
            Answered: self._on_answered,
            Failed: self._on_failed,
            TimerFired: self._on_timer,
            ListenerReturned: self.loop.on_listener_returned,
            Pushed: self._on_pushed,
            Start: self._on_start,
            Shutdown: self.shutdown.begin,
        }

    def notices(self) -> dict[int, Callable[[int, Command], None]]:
        """What a broker may push, and who hears it; everything else that it pushes is not for us."""
        return {
            RequestCode.NOTIFY_CONSUMER_IDS_CHANGED: self.rebalance.on_group_changed,
            RequestCode.RESET_CONSUMER_CLIENT_OFFSET: self.resets.on_told,
        }

    # ------------------------------------------------------------ the contract

    def handle(self, now_ms: int, input: Input) -> list[Effect]:
        """Takes in one input and gives the effects to carry out, in order. After `Stopped`: none, whatever comes."""
        out: list[Effect] = []
        self._out = out
        if not self.stopped:
            react = self.inputs.get(type(input))
            if react is not None:
                react(now_ms, input)
        return out

    def _on_start(self, now_ms: int, input: Start) -> None:
        self.note(Kind.JOIN, self.who)
        self.routes.start(now_ms)
        self.rebalance.start(now_ms)
        self.leases.start(now_ms)
        self.offsets.start(now_ms)
        self.loop.start(now_ms)
        self.routes.ask_all(now_ms)

    def _on_pushed(self, now_ms: int, input: Pushed) -> None:
        hear = self.pushes.get(input.command.code)
        if hear is not None:
            hear(now_ms, input.command)

    # ------------------------------------------------------------ the lanes

    @property
    def lanes(self) -> dict[Queue, ProcessQueue]:
        """Those that were added and not dropped."""
        return {
            queue: lane
            for queue, lane in self.tracked.items()
            if isinstance(lane, ProcessQueue) and lane.phase not in LEFT
        }

    def phase_of(self, queue: Queue) -> Phase:
        lane = self.tracked.get(queue)
        return Phase.ELSEWHERE if lane is None else lane.phase

    def move(self, lane: Candidate | ProcessQueue, event: Event) -> None:
        """The event happens to the lane: its next phase is the table's. A lane that is elsewhere is not tracked."""
        phase = self.life.get((lane.phase, event))
        if phase is None:
            raise UnknownStep(lane.queue, lane.phase, event)
        lane.phase = phase
        if phase is Phase.ELSEWHERE and self.tracked.get(lane.queue) is lane:
            del self.tracked[lane.queue]

    def is_wanted(self, queue: Queue) -> bool:
        """Whether this client works on the lane, or is about to."""
        return queue in self.tracked

    def row_of(self, queue: Queue) -> Mapping[str, Any]:
        """The columns that say which lane; with the incarnation, where one is open."""
        lane = self.tracked.get(queue)
        if isinstance(lane, ProcessQueue):
            return lane.row
        row = self._rows.get(queue)
        if row is None:
            row = self._rows[queue] = {
                **self.who,
                "topic": queue.topic,
                "broker": queue.broker,
                "queue_id": queue.queue_id,
            }
        return row

    def lane_of(self, queue: Queue) -> Lane:
        return Lane(self.config.group, queue.topic, queue.broker, queue.queue_id)

    # ------------------------------------------------------------ effects

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
        """Tokens are tuples: the timer's name in `timers`, then what it is called with."""
        self._out.append(SetTimer(token, delay_ms))

    def do(self, effect: Effect) -> None:
        """Any other effect."""
        self._out.append(effect)

    def next_number(self) -> int:
        """One that no request, no operation and nobody else who asked was given."""
        self._number += 1
        return self._number

    def begin(
        self, kind: Kind, fields: Mapping[str, Any], rows: Sequence[Mapping[str, Any]] = ()
    ) -> int:
        """An operation begins, for the recorder; the number by which `end` ends it."""
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

    # ------------------------------------------------------------ what came of them

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
        token = input.token
        if isinstance(token, tuple):
            react = self.timers.get(token[0])
            if react is not None:
                react(now_ms, *token[1:])
