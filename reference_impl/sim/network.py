"""The simulated network: connections like TCP's, and what can happen to the link between two nodes.

A connection carries frames in order, each way, after a latency of 0 to `LATENCY_MS - 1` ms. When one side goes,
what it wrote still arrives, then the other side sees the connection close; a frame that arrives where nobody
listens any more is answered with a reset. A connect to a dead node is refused. Frames are never changed.

A fault belongs to the link between two nodes, whichever of them connected. It is recorded from its begin to its
end, and is effective when it changed the fate of at least one frame or connection.

| fault | what it does until it is healed |
|---|---|
| cut | connections are reset (what was under way is lost), new ones are refused |
| hold | nothing comes through; a connection with waiting frames breaks after `HOLD_MAX_MS`, new ones time out |
| one_way | what goes to the server vanishes, or what comes from it |
| delay | every frame takes so many ms more |
| jitter | every frame takes up to so many ms more, in order |
| throttle | each direction of a connection carries so many kB a second, one frame after the other |
| fragment | a frame is there with its last piece, `FRAGMENT_GAP_MS` after the one before |
| truncate | a connection breaks with the frame with which one direction has carried too many bytes |
| reset_peer | requests of a connection vanish, or its answers, and it breaks so many ms after the first one |
| lose | so many frames of a hundred vanish |
| duplicate | so many frames of a hundred come twice |
| reorder | every frame takes up to so many ms more, and frames overtake each other |
| drop_next | the next frame with that request code vanishes, or the answer to it; then it is over |
| refuse_next | the next request with that code is answered with an error instead of being done; then it is over |

A frame is the least that there is here, so the pieces of one are only the time that they take, and half a frame is
none. Bytes are those of the frame as sockets would carry it. Nothing waits for its turn for more than `DELAY_MAX_MS`.

Frames are held for less than the time within which the judges take a one-way request to be applied or lost
(`delay_bound_ms`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil
from random import Random
from typing import TYPE_CHECKING, Any

from reference_impl.core.io import Answered, Closed, Failed, Opened, Pushed, Received
from reference_impl.protocol.command import FLAG_ONEWAY, FLAG_RESPONSE, Command
from reference_impl.protocol.frame import encode_frame
from reference_impl.sim.time import Timeline
from specs.plan.rig import FRAGMENT_GAP_MS, Trouble

if TYPE_CHECKING:
    from reference_impl.sim.node import Node

LATENCY_MS = 3
CONNECT_TIMEOUT_MS = 3_000
HOLD_MAX_MS = 2_000
DELAY_MAX_MS = 2_000
"""The longest delay and jitter that a link can be given, and the longest queue before a line that is slow."""

_ONCE = (Trouble.DROP_NEXT, Trouble.REFUSE_NEXT)
"""Each is over by itself, and there may be several of a kind."""

_TAKES_MS = (Trouble.DELAY, Trouble.JITTER, Trouble.REORDER, Trouble.RESET_PEER)

Pair = tuple[str, str]


@dataclass(slots=True)
class Fault:
    """op: its open operation in the recorder. number: as `Rig.trouble` has it. seen: it had an effect.

    used: by connection and direction, of a slow line when it is free again, of one that breaks the bytes that it has
    carried.
    """

    kind: Trouble
    op: object
    number: int = 0
    answer: bool = False
    error: int = 0
    seen: bool = False
    used: dict[tuple[int, bool], float] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Connection:
    """pending: of the client's open requests, by opaque: its token and code. held: (to the server?, frame)."""

    number: int
    client: Node
    server: Node
    address: str
    pair: Pair
    dice: Random
    pending: dict[int, tuple[Any, int]] = field(default_factory=dict)
    client_open: bool = True
    server_open: bool = False
    refused: bool = False
    to_server_ms: int = 0  # when the last frame that way arrives
    to_client_ms: int = 0
    held: list[tuple[bool, Command]] = field(default_factory=list)


def pair_of(a: str, b: str) -> Pair:
    return (a, b) if a <= b else (b, a)


class Network:
    """All connections and links of a run.

    begin_fault(link, number) → op and end_fault(fault) write to the recorder. latency_ms: a frame takes less
    than that; with 1 it takes no time. dice: each connection gets a stream of its own from them, so that what one
    client does, or no longer does in a shorter plan, changes nothing on another's line.
    """

    def __init__(
        self,
        timeline: Timeline,
        dice: Random,
        begin_fault: Callable[[Pair, int], object],
        end_fault: Callable[[Fault], None],
        latency_ms: int = LATENCY_MS,
    ) -> None:
        self._timeline = timeline
        self._latency_ms = latency_ms
        self._dice = dice
        self._stream = dice.random()
        self._opened: dict[tuple[str, str], int] = {}
        self._begin_fault = begin_fault
        self._end_fault = end_fault
        self._servers: dict[str, Node] = {}
        self._links: dict[Pair, list[Fault]] = {}
        self._connections: dict[int, Connection] = {}
        self._number = 0
        self._opaque = 0

    def listen(self, address: str, node: Node) -> None:
        """The node is the server at this address."""
        self._servers[address] = node

    # ------------------------------------------------------------ clients

    def request(
        self, client: Node, token: Any, address: str, command: Command, timeout_ms: int
    ) -> None:
        connection = self._connect(client, address)
        if connection is None:
            wait_ms = self._refusal_ms(client, address)
            self._timeline.after(
                min(wait_ms, timeout_ms),
                client.post_in_life,
                client.life,
                Failed(token, "unreachable"),
            )
            return
        self._opaque += 1
        opaque = self._opaque
        connection.pending[opaque] = (token, command.code)
        self._timeline.after(timeout_ms, self._time_out, connection, opaque)
        self._transmit(connection, True, _numbered(command, opaque, 0))

    def oneway(self, client: Node, address: str, command: Command) -> None:
        connection = self._connect(client, address)
        if connection is not None:
            self._opaque += 1
            self._transmit(connection, True, _numbered(command, self._opaque, FLAG_ONEWAY))

    def _connect(self, client: Node, address: str) -> Connection | None:
        connection = client.connections.get(address)
        if connection is not None:
            return connection
        server = self._servers.get(address)
        if server is None:
            return None
        pair = pair_of(client.name, server.name)
        for fault in self._links.get(pair, ()):
            if fault.kind in (Trouble.CUT, Trouble.HOLD):
                fault.seen = True
                return None
        self._number += 1
        connection = Connection(
            self._number, client, server, address, pair, self._dice_for(client, server)
        )
        self._connections[self._number] = client.connections[address] = connection
        connection.to_server_ms = self._timeline.now_ms + int(
            connection.dice.random() * self._latency_ms
        )
        self._timeline.at(connection.to_server_ms, self._open, connection)
        return connection

    def _dice_for(self, client: Node, server: Node) -> Random:
        """The dice of the client's next connection to the server."""
        ends = (client.name, server.name)
        nth = self._opened[ends] = self._opened.get(ends, 0) + 1
        return Random(f"{self._stream} {client.name} {server.name} {nth}")

    def _refusal_ms(self, client: Node, address: str) -> int:
        """How long it takes until a connect fails."""
        server = self._servers.get(address)
        faults = (
            self._links.get(pair_of(client.name, server.name), ()) if server is not None else ()
        )
        return (
            CONNECT_TIMEOUT_MS
            if any(fault.kind is Trouble.HOLD for fault in faults)
            else self._latency()
        )

    def _open(self, connection: Connection) -> None:
        server = connection.server
        if not connection.client_open:
            return
        if server.alive:
            connection.server_open = True
            server.post(Opened(connection.number, connection.client.address))
        else:
            connection.refused = True
            self._timeline.after(self._latency(), self._lose_client, connection, "unreachable")

    def _time_out(self, connection: Connection, opaque: int) -> None:
        found = connection.pending.pop(opaque, None)
        if found is not None and connection.client_open:
            connection.client.post(Failed(found[0], "timeout"))

    # ------------------------------------------------------------ servers

    def send(self, server: Node, number: Any, command: Command) -> None:
        connection = self._connections.get(number)
        if connection is not None and connection.server is server and connection.server_open:
            self._transmit(connection, False, command)

    def close(self, server: Node, number: Any) -> None:
        """The server closes a connection."""
        connection = self._connections.get(number)
        if connection is not None and connection.server is server and connection.server_open:
            self._timeline.after(0, self._lose_server, connection)
            self._farewell_to_client(connection)

    # ------------------------------------------------------------ frames

    def _latency(self) -> int:
        return int(self._dice.random() * self._latency_ms)

    def _transmit(self, connection: Connection, to_server: bool, command: Command) -> None:
        faults = self._links.get(connection.pair)
        dice = connection.dice
        delay_ms = int(dice.random() * self._latency_ms)
        in_order = True
        if faults:
            for fault in list(faults):
                match fault.kind:
                    case Trouble.HOLD:
                        connection.held.append((to_server, command))
                        fault.seen = True
                        return
                    case Trouble.ONE_WAY if to_server is not fault.answer:
                        fault.seen = True
                        return
                    case Trouble.LOSE if dice.random() * 100 < fault.number:
                        fault.seen = True
                        return
                    case Trouble.DROP_NEXT if self._is_meant(connection, to_server, command, fault):
                        fault.seen = True
                        self._end(connection.pair, fault)
                        return
                    case Trouble.REFUSE_NEXT if to_server and self._is_meant(
                        connection, to_server, command, fault
                    ):
                        fault.seen = True
                        self._end(connection.pair, fault)
                        self._refuse(connection, command, fault.error, delay_ms)
                        return
                    case Trouble.DUPLICATE if dice.random() * 100 < fault.number:
                        fault.seen = True
                        self._arrive_later(connection, to_server, command, delay_ms)
                        delay_ms += int(dice.random() * self._latency_ms)
                    case Trouble.DELAY:
                        fault.seen = fault.seen or fault.number > 0
                        delay_ms += fault.number
                    case Trouble.JITTER | Trouble.REORDER:
                        jitter_ms = int(dice.random() * (fault.number + 1))
                        fault.seen = fault.seen or jitter_ms > 0
                        delay_ms += jitter_ms
                        in_order = in_order and fault.kind is Trouble.JITTER
                    case Trouble.THROTTLE | Trouble.FRAGMENT:
                        waits_ms = self._waits_ms(connection, to_server, command, fault)
                        fault.seen = fault.seen or waits_ms > 0
                        delay_ms += waits_ms
                    case Trouble.TRUNCATE if _is_too_much(connection, to_server, command, fault):
                        fault.seen = True
                        self._break_behind(connection, to_server, delay_ms)
                        return
                    case Trouble.RESET_PEER if to_server is not fault.answer:
                        fault.seen = True
                        if (connection.number, to_server) not in fault.used:
                            fault.used[connection.number, to_server] = 1
                            self._timeline.after(fault.number, self._break, connection)
                        return
                    case _:
                        pass
        if in_order:
            self._arrive_later(connection, to_server, command, delay_ms)
        else:
            arrive = self._at_server if to_server else self._at_client
            self._timeline.after(delay_ms, arrive, connection, command)

    def _waits_ms(
        self, connection: Connection, to_server: bool, command: Command, fault: Fault
    ) -> int:
        """How long a frame takes on a slow line, behind those that are on it already."""
        now_ms, line, size = self._timeline.now_ms, (connection.number, to_server), _size(command)
        begins_ms = max(now_ms, fault.used.get(line, now_ms))
        if fault.kind is Trouble.THROTTLE:  # a kB a second is a byte a millisecond
            ends_ms = arrives_ms = begins_ms + size / max(1, fault.number)
        else:
            pieces = ceil(size / max(1, fault.number))
            arrives_ms = begins_ms + (pieces - 1) * FRAGMENT_GAP_MS
            ends_ms = arrives_ms + FRAGMENT_GAP_MS if pieces > 1 else begins_ms
        fault.used[line] = min(ends_ms, now_ms + DELAY_MAX_MS)
        return min(int(arrives_ms - now_ms), DELAY_MAX_MS)

    def _break_behind(self, connection: Connection, to_server: bool, delay_ms: int) -> None:
        """It breaks where a frame would arrive of which only a part comes, behind the frames before it."""
        before_ms = connection.to_server_ms if to_server else connection.to_client_ms
        at_ms = max(before_ms, self._timeline.now_ms + delay_ms)
        self._timeline.at(at_ms, self._break, connection)

    def _refuse(self, connection: Connection, command: Command, error: int, delay_ms: int) -> None:
        """The request goes no further; who waits for an answer gets this one."""
        if not command.is_oneway:
            self._arrive_later(connection, False, command.reply(error), delay_ms)

    def _arrive_later(
        self, connection: Connection, to_server: bool, command: Command, delay_ms: int
    ) -> None:
        at_ms = self._timeline.now_ms + delay_ms
        if to_server:
            connection.to_server_ms = at_ms = max(at_ms, connection.to_server_ms)
            self._timeline.at(at_ms, self._at_server, connection, command)
        else:
            connection.to_client_ms = at_ms = max(at_ms, connection.to_client_ms)
            self._timeline.at(at_ms, self._at_client, connection, command)

    def _is_meant(
        self, connection: Connection, to_server: bool, command: Command, fault: Fault
    ) -> bool:
        if fault.kind is Trouble.REFUSE_NEXT and not connection.server.alive:
            return False  # nobody is there in whose place it could be answered
        if fault.answer:
            if to_server or not command.flag & FLAG_RESPONSE:
                return False
            pending = connection.pending.get(command.opaque)
            return pending is not None and pending[1] == fault.number
        return command.code == fault.number and not command.flag & FLAG_RESPONSE

    def _at_server(self, connection: Connection, command: Command) -> None:
        if connection.server_open:
            connection.server.post(Received(connection.number, command))
        elif connection.client_open and connection.server.alive and not connection.refused:
            self._farewell_to_client(connection)  # a reset: that connection died with its process

    def _at_client(self, connection: Connection, command: Command) -> None:
        if not connection.client_open:
            return
        if command.flag & FLAG_RESPONSE:
            found = connection.pending.pop(command.opaque, None)
            if found is not None:
                connection.client.post(Answered(found[0], command))
        else:
            connection.client.post(Pushed(connection.address, command))

    # ------------------------------------------------------------ ends

    def leave(self, node: Node, *, silent: bool = False) -> None:
        """The node is gone, with all its connections. silent: nobody is told (its machine died, or its network)."""
        for connection in [c for c in self._connections.values() if node in (c.client, c.server)]:
            if connection.client is node:
                if connection.client_open:
                    connection.client_open = False
                    connection.pending.clear()
                    node.connections.pop(connection.address, None)
                    if not silent:
                        at_ms = max(
                            connection.to_server_ms, self._timeline.now_ms + self._latency()
                        )
                        self._timeline.at(at_ms, self._lose_server, connection)
            elif connection.server_open:
                connection.server_open = False
                if not silent:
                    self._farewell_to_client(connection)

    def _farewell_to_client(self, connection: Connection) -> None:
        at_ms = max(connection.to_client_ms, self._timeline.now_ms + self._latency())
        self._timeline.at(at_ms, self._lose_client, connection, "closed")

    def _lose_server(self, connection: Connection) -> None:
        self._connections.pop(connection.number, None)
        if connection.server_open:
            connection.server_open = False
            connection.server.post(Closed(connection.number))

    def _lose_client(self, connection: Connection, reason: str) -> None:
        if not connection.client_open:
            return
        connection.client_open = False
        client = connection.client
        if client.connections.get(connection.address) is connection:
            del client.connections[connection.address]
        pending, connection.pending = connection.pending, {}
        if not connection.server_open:
            self._connections.pop(connection.number, None)
        for token, _ in pending.values():
            client.post(Failed(token, reason))

    def _break(self, connection: Connection) -> None:
        """Both sides lose it at once, with everything under way."""
        self._lose_client(connection, "closed")
        self._lose_server(connection)

    # ------------------------------------------------------------ faults

    def inject(
        self,
        kind: Trouble,
        a: str,
        b: str,
        number: int = 0,
        *,
        answer: bool = False,
        error: int = 0,
    ) -> None:
        """Begin a fault of the link; one of the same kind that is there already ends first."""
        pair = pair_of(a, b)
        faults = self._links.setdefault(pair, [])
        for old in [fault for fault in faults if fault.kind is kind and kind not in _ONCE]:
            self._end(pair, old)
        if kind in _TAKES_MS:
            number = max(0, min(number, DELAY_MAX_MS))
        fault = Fault(kind, self._begin_fault(pair, number), number, answer, error)
        self._links.setdefault(pair, []).append(fault)
        if kind is Trouble.CUT:
            for connection in [c for c in self._connections.values() if c.pair == pair]:
                fault.seen = True
                self._break(connection)
        elif kind is Trouble.HOLD:
            self._timeline.after(HOLD_MAX_MS, self._held_too_long, pair, fault)

    def faults_between(self, a: str, b: str) -> list[Trouble]:
        """The kinds of the faults of the link, in the order in which they began."""
        return [fault.kind for fault in self._links.get(pair_of(a, b), ())]

    def heal(self, a: str, b: str) -> None:
        """End all faults of the link, one after the other: what one held back may meet the next, and end it."""
        pair = pair_of(a, b)
        while faults := self._links.get(pair):
            self._end(pair, faults[0])

    def heal_all(self) -> None:
        for pair in list(self._links):
            self.heal(*pair)

    def _end(self, pair: Pair, fault: Fault) -> None:
        faults = self._links[pair]
        faults.remove(fault)
        if not faults:
            del self._links[pair]
        self._end_fault(fault)
        if fault.kind is Trouble.HOLD:
            for connection in [c for c in self._connections.values() if c.pair == pair]:
                held, connection.held = connection.held, []
                for to_server, command in held:
                    self._transmit(connection, to_server, command)

    def _held_too_long(self, pair: Pair, fault: Fault) -> None:
        """Frames that wait would come too late to be called late: the connections break."""
        if any(each is fault for each in self._links.get(pair, ())):
            for connection in [c for c in self._connections.values() if c.pair == pair]:
                connection.held.clear()
                fault.seen = True
                self._break(connection)


def _is_too_much(connection: Connection, to_server: bool, command: Command, fault: Fault) -> bool:
    """Has this direction carried more with this frame than it can?"""
    line = (connection.number, to_server)
    fault.used[line] = fault.used.get(line, 0) + _size(command)
    return fault.used[line] > fault.number


def _size(command: Command) -> int:
    """Of the frame as sockets would carry it, in bytes."""
    return len(encode_frame(command))


def _numbered(command: Command, opaque: int, oneway: int) -> Command:
    return Command(
        command.code,
        command.ext,
        command.body,
        opaque,
        command.flag | oneway,
        command.remark,
        command.language,
        command.version,
        command.binary,
    )
