"""What goes into a core and what comes out of it.

A core never reads a clock, opens a socket or rolls a die. Its body (the simulated world, or asyncio) calls
`handle(now_ms, input)` and carries out the effects in the order of the list. `now_ms` is the node's wall
clock in ms since the epoch (a lease is measured by wall clocks, so a step of the clock reaches the core);
timers are relative delays and belong to the body's monotonic clock.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reference_impl.protocol.command import NO_EXT, Command
from specs.vocabulary import Kind, Lane, Outcome, Queue

ConnId = Hashable
"""One connection, as its server sees it."""
Address = str
"""`host:port`, or a node's name in the simulated world."""
Selector = Callable[[str | None, Sequence[Queue]], Queue]
"""(the sharding key, the topic's queues, never empty) → the queue of a message: see `core.selectors`.

Raises UsageError when none of them will do; the message is refused with its words then."""


# ---------------------------------------------------------------- inputs


@dataclass(frozen=True, slots=True)
class Opened:
    """A server: somebody connected. peer: `host:port` of the other side."""

    conn: ConnId
    peer: Address


@dataclass(frozen=True, slots=True)
class Closed:
    """A server: the connection is gone, whatever the reason."""

    conn: ConnId


@dataclass(frozen=True, slots=True)
class Received:
    """A server: a command came in on a connection."""

    conn: ConnId
    command: Command


@dataclass(frozen=True, slots=True)
class TimerFired:
    token: Hashable


@dataclass(frozen=True, slots=True)
class Answered:
    """A client: the answer to `Request(token)`."""

    token: Hashable
    command: Command


@dataclass(frozen=True, slots=True)
class Failed:
    """A client: no answer to `Request(token)`. reason: 'timeout', 'closed' or 'unreachable'.

    After 'unreachable' the request certainly did not happen; after the others nobody can say.
    """

    token: Hashable
    reason: str


@dataclass(frozen=True, slots=True)
class Pushed:
    """A client: the server at `address` sent a request of its own (a change notice, say)."""

    address: Address
    command: Command


@dataclass(frozen=True, slots=True)
class ListenerReturned:
    """A consumer: the listener call ended.

    outcome: SUCCESS, SUSPEND, COMMIT, ROLLBACK, NULL, THREW. manual: the listener switched auto commit off in
    this call. suspend_ms: what it asked for, -1 for the consumer's default. delay_level: a concurrent listener's
    wish for the retry: 0 leaves it to the broker, below 0 means the dead letters.
    """

    call_id: int
    outcome: Outcome
    manual: bool = False
    suspend_ms: int = -1
    delay_level: int = 0


@dataclass(frozen=True, slots=True)
class Flushed:
    """A broker: what `Flush` asked for is done. end: everything stored below it is safe. error: why it is not."""

    end: int
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Start:
    """Begin: register, find routes, set the periodic timers."""


@dataclass(frozen=True, slots=True)
class Shutdown:
    """Stop in good order: finish the running call (within the waiting time), persist, release, unregister."""


@dataclass(frozen=True, slots=True)
class Transaction:
    """How the producer's own transaction ends, and what it says when the broker asks: see `specs.plan.plan.STATES`."""

    ends: str
    checked: str


@dataclass(frozen=True, slots=True)
class SendMessage:
    """A producer: send one message. token: the caller's own handle, echoed in `SendDone`.

    more: the further messages of a batch, which is one request; messages of a batch have no delay level, and where
    they have a key it is the same one. selector: chooses the queue instead of the key's hash, or of the turn; such a
    message is tried once, as one with a key is. keys: the words by which it can be found again, between blanks.
    properties: the caller's own, by names that are not the protocol's. oneway: no answer is asked for.
    """

    token: Hashable
    topic: str
    body: bytes
    sharding_key: str | None = None
    key_seq: int | None = None
    tags: str | None = None
    message_id: str | None = None  # the UNIQ_KEY; made by the producer when None
    delay_level: int | None = None  # not to be seen before the time of that level, 1 is the first
    more: tuple[SendMessage, ...] = ()
    transaction: Transaction | None = None  # a half message: seen only when it was committed
    keys: str | None = None
    properties: Mapping[str, str] = field(default_factory=lambda: NO_EXT)
    selector: Selector | None = None
    oneway: bool = False


Input = (
    Opened
    | Closed
    | Received
    | TimerFired
    | Answered
    | Failed
    | Pushed
    | ListenerReturned
    | Flushed
    | Start
    | Shutdown
    | SendMessage
)


# ---------------------------------------------------------------- effects


@dataclass(frozen=True, slots=True)
class Send:
    """A server: write this command (an answer, or a push) to the connection."""

    conn: ConnId
    command: Command


@dataclass(frozen=True, slots=True)
class Close:
    """A server: close the connection."""

    conn: ConnId


@dataclass(frozen=True, slots=True)
class SetTimer:
    """Call back with `TimerFired(token)` after `delay_ms`; an earlier timer of that token is replaced."""

    token: Hashable
    delay_ms: int


@dataclass(frozen=True, slots=True)
class CancelTimer:
    token: Hashable


@dataclass(frozen=True, slots=True)
class Flush:
    """A broker: make what was stored safe, and answer with one `Flushed`.

    begin: to be called when everything that came in together was handled; it gives the work itself, which blocks,
    may run in any thread, and returns how far it came (`Flushed.end`) or raises an InorderError.
    """

    begin: Callable[[], Callable[[], int]]


@dataclass(frozen=True, slots=True)
class Request:
    """A client: send and wait for the answer. The body sets the opaque; connections are opened on demand."""

    token: Hashable
    address: Address
    command: Command
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class Oneway:
    """A client: send and expect nothing."""

    address: Address
    command: Command


@dataclass(frozen=True, slots=True)
class CallListener:
    """A consumer: run the listener with this batch; the body answers with `ListenerReturned(call_id)`."""

    call_id: int
    lane: Lane
    messages: Sequence[Any]  # of protocol.message.StoredMessage, ascending queue offsets
    # For each message: how often this client has delivered it, this time included; a copy counts on.
    delivery: Sequence[int]


@dataclass(frozen=True, slots=True)
class SendDone:
    """A producer: the send named by `token` ended. outcome: of its last try, OK, REFUSED or UNKNOWN; SENT if one way.

    offset_id: the broker's own id of the message. reason: where it did not end well, the broker's words, or why there
    was no answer. doubt: an earlier try may have stored it, whatever became of the last one.
    """

    token: Hashable
    outcome: Outcome
    code: int | None = None
    queue_id: int | None = None
    queue_offset: int | None = None
    message_id: str | None = None
    broker: str | None = None
    offset_id: str | None = None
    reason: str | None = None
    doubt: bool = False


@dataclass(frozen=True, slots=True)
class Stopped:
    """A client: the shutdown is complete; the body may close its connections."""


@dataclass(frozen=True, slots=True)
class Begin:
    """For the recorder: an operation begins. op: the core's own handle, unique while the operation is open.

    fields: columns of `specs.history.row.Row`. For an operation on several messages or lanes `rows` holds one
    mapping each; they become rows with the same op_id.
    """

    op: Hashable
    kind: Kind
    fields: Mapping[str, Any] = field(default_factory=dict)
    rows: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class End:
    """For the recorder: an operation ended. `rows`, when given, match the rows of its Begin one to one."""

    op: Hashable
    outcome: Outcome
    fields: Mapping[str, Any] = field(default_factory=dict)
    rows: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class Note:
    """For the recorder: something that takes no time."""

    kind: Kind
    outcome: Outcome
    fields: Mapping[str, Any] = field(default_factory=dict)


Effect = (
    Send
    | Close
    | SetTimer
    | CancelTimer
    | Flush
    | Request
    | Oneway
    | CallListener
    | SendDone
    | Stopped
    | Begin
    | End
    | Note
)
