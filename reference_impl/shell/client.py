"""Asking a server over the remoting protocol: `RemotingClient` on asyncio, `SyncClient` without.

One connection per address, opened when first needed and again after it was lost. Commands to one address are
written in the order in which they were given, also while the connection is being opened. Answers are matched by
opaque; late ones are dropped. A request of the server's own (a change notice, say) goes to the push callback.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import socket
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace

from reference_impl.protocol.command import FLAG_ONEWAY, FLAG_RESPONSE, Command
from reference_impl.protocol.errors import ProtocolError
from reference_impl.protocol.frame import FrameDecoder, encode_frame
from reference_impl.shell.clock import monotonic_s
from reference_impl.shell.errors import CLOSED, TIMEOUT, UNREACHABLE, RequestFailed, split_address

PushCallback = Callable[[str, Command], None]
CONNECT_TIMEOUT_S = 3.0
FLUSH_S = 1.0
"""How long a closing connection may take to flush what was written to it."""
_RECEIVE_BYTES = 256 * 1024
_OPAQUE_MAX = 0x7FFFFFFF


def _numbered(command: Command, opaque: int, *, oneway: bool) -> Command:
    flag = command.flag & ~(FLAG_RESPONSE | FLAG_ONEWAY) | (FLAG_ONEWAY if oneway else 0)
    return replace(command, opaque=opaque, flag=flag)


# ---------------------------------------------------------------- asyncio


class RemotingClient:
    """All connections of one client process. To be used inside one running event loop.

    via: by address another one that is connected to in its place, a proxy's; nobody else hears of it.
    """

    def __init__(
        self, on_push: PushCallback | None = None, via: Mapping[str, str] | None = None
    ) -> None:
        self._on_push = on_push
        self._via = via or {}
        self._peers: dict[str, _Peer] = {}
        self._opaque = 0

    def submit(self, address: str, command: Command, timeout_ms: int) -> asyncio.Future[Command]:
        """Send now, or as soon as the connection is open; the future gives the answer or RequestFailed.

        timeout_ms counts from this call and includes the opening of the connection.
        Raises ProtocolError at once for a command that can't be written.
        """
        self._opaque = self._opaque % _OPAQUE_MAX + 1
        frame = encode_frame(_numbered(command, self._opaque, oneway=False))
        return self._peer(address).submit(self._opaque, frame, timeout_ms / 1000)

    async def request(self, address: str, command: Command, timeout_ms: int = 3000) -> Command:
        """The answer, whatever its code; RequestFailed when there is none."""
        return await self.submit(address, command, timeout_ms)

    def oneway(self, address: str, command: Command) -> None:
        """Send and forget; lost without a word when the address can't be reached."""
        self._opaque = self._opaque % _OPAQUE_MAX + 1
        self._peer(address).write(encode_frame(_numbered(command, self._opaque, oneway=True)))

    def disconnect(self, address: str) -> None:
        """Close the connection to one address, as if it had been lost."""
        peer = self._peers.pop(address, None)
        if peer is not None:
            peer.close()

    async def close(self) -> None:
        """Flush what was written, close all connections, fail what is still waiting with 'closed'."""
        peers = list(self._peers.values())
        self._peers.clear()
        for peer in peers:
            peer.close()
        for peer in peers:
            await peer.closed()

    def _peer(self, address: str) -> _Peer:
        peer = self._peers.get(address)
        if peer is None or peer.is_over:
            through = self._via.get(address, address)
            peer = self._peers[address] = _Peer(address, through, self._on_push)
        return peer


class _Peer(asyncio.Protocol):
    """One connection of a RemotingClient, from before it is opened until it is lost. through: where it leads to."""

    def __init__(self, address: str, through: str, on_push: PushCallback | None) -> None:
        self._address = address
        self._through = through
        self._on_push = on_push
        self._decoder = FrameDecoder()
        self._transport: asyncio.Transport | None = None
        self._outbox: deque[tuple[int | None, bytes]] = deque()  # what waits for the connection
        self._waiting: dict[int, asyncio.Future[Command]] = {}
        self._loop = asyncio.get_running_loop()
        self._over = self._loop.create_future()
        self._opening = self._loop.create_task(self._open())

    @property
    def is_over(self) -> bool:
        return self._over.done() or (self._transport is not None and self._transport.is_closing())

    def submit(self, opaque: int, frame: bytes, timeout_s: float) -> asyncio.Future[Command]:
        future: asyncio.Future[Command] = self._loop.create_future()
        self._waiting[opaque] = future
        timer = self._loop.call_later(max(timeout_s, 0), self._expire, opaque)
        future.add_done_callback(functools.partial(self._forget, opaque, timer))
        self.write(frame, opaque)
        return future

    def write(self, frame: bytes, opaque: int | None = None) -> None:
        if self._transport is None:
            self._outbox.append((opaque, frame))
        else:
            self._transport.write(frame)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()  # flushes first
        else:
            self._opening.cancel()
            self._end(CLOSED, "closed while connecting")

    async def closed(self) -> None:
        """Wait until the connection is gone; a server that does not read any more is given up."""
        _, waiting = await asyncio.wait([self._over], timeout=FLUSH_S)
        if waiting and self._transport is not None:
            self._transport.abort()
            await asyncio.wait([self._over])

    async def _open(self) -> None:
        try:
            host, port = split_address(self._through)
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                await self._loop.create_connection(lambda: self, host, port)
        except Exception as error:  # an OSError, a name that can't be resolved, a timeout
            reason = UNREACHABLE if self._transport is None else CLOSED
            self._end(reason, str(error) or "connecting timed out")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if self._over.done():  # closed while it was being opened
            transport.abort()
        while self._outbox:
            _, frame = self._outbox.popleft()
            transport.write(frame)

    def data_received(self, data: bytes) -> None:
        self._decoder.feed(data)
        try:
            while (command := self._decoder.next_command()) is not None:
                self._take(command)
        except ProtocolError as error:
            self._fail_all(CLOSED, f"the answer can't be read: {error}")
            assert self._transport is not None
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(CLOSED, str(exc) if exc else "the server closed the connection")

    def _take(self, command: Command) -> None:
        if not command.is_response:
            if self._on_push is not None:
                self._on_push(self._address, command)
            return
        future = self._waiting.get(command.opaque)
        if future is not None and not future.done():
            future.set_result(command)

    def _expire(self, opaque: int) -> None:
        future = self._waiting.get(opaque)
        if future is None or future.done():
            return
        unsent = [item for item in self._outbox if item[0] == opaque]
        for item in unsent:
            self._outbox.remove(item)
        future.set_exception(RequestFailed(UNREACHABLE if unsent else TIMEOUT, self._address))

    def _forget(
        self, opaque: int, timer: asyncio.TimerHandle, future: asyncio.Future[Command]
    ) -> None:
        timer.cancel()
        self._waiting.pop(opaque, None)

    def _end(self, reason: str, detail: str) -> None:
        if not self._over.done():
            self._over.set_result(None)
        self._fail_all(reason, detail)

    def _fail_all(self, reason: str, detail: str) -> None:
        unsent = {opaque for opaque, _ in self._outbox}
        self._outbox.clear()
        for opaque, future in list(self._waiting.items()):
            if not future.done():
                why = UNREACHABLE if opaque in unsent else reason
                future.set_exception(RequestFailed(why, self._address, detail))


# ---------------------------------------------------------------- blocking


class SyncClient:
    """One blocking client: a socket per address, no thread. Everything waits in the caller's thread.

    pushes: the servers' own requests, in the order in which they were read, with their address. They are read
    whenever the client reads; `listen` reads for its own sake.
    """

    def __init__(self) -> None:
        self.pushes: list[tuple[str, Command]] = []
        self._links: dict[str, _Link] = {}
        self._opaque = 0

    def call(self, address: str, command: Command, timeout_s: float = 3.0) -> Command:
        """Ask and wait. RequestFailed as for RemotingClient; ProtocolError for what can't be written."""
        deadline = monotonic_s() + timeout_s
        opaque = self.begin(address, command, timeout_s)
        return self.finish(address, opaque, max(deadline - monotonic_s(), 0.0))

    def begin(self, address: str, command: Command, timeout_s: float = 3.0) -> int:
        """Send a request and return its opaque, for `finish`: so that several can be open at a time."""
        self._opaque = self._opaque % _OPAQUE_MAX + 1
        self._write(
            address, encode_frame(_numbered(command, self._opaque, oneway=False)), timeout_s
        )
        return self._opaque

    def finish(self, address: str, opaque: int, timeout_s: float = 3.0) -> Command:
        """Wait for the answer to `begin`. A request that timed out may be waited for again."""
        deadline = monotonic_s() + timeout_s
        link = self._links.get(address)
        if link is None:
            raise RequestFailed(CLOSED, address)
        while opaque not in link.answers:
            left_s = deadline - monotonic_s()
            if left_s <= 0 and not link.readable:
                raise RequestFailed(TIMEOUT, address)
            self._read(address, link, max(left_s, 0.0))
        return link.answers.pop(opaque)

    def oneway(self, address: str, command: Command, timeout_s: float = 3.0) -> None:
        """Send and expect nothing. RequestFailed when it could not be handed to the network."""
        self._opaque = self._opaque % _OPAQUE_MAX + 1
        self._write(address, encode_frame(_numbered(command, self._opaque, oneway=True)), timeout_s)

    def listen(self, address: str, timeout_s: float, count: int = 1) -> list[Command]:
        """Wait until `count` pushes from this address are here, or the time is over; take and return them."""
        deadline = monotonic_s() + timeout_s
        link = self._links.get(address)
        while sum(source == address for source, _ in self.pushes) < count and link is not None:
            left_s = deadline - monotonic_s()
            if left_s <= 0:
                break
            with contextlib.suppress(RequestFailed):
                self._read(address, link, left_s)
            link = self._links.get(address)
        found = [command for source, command in self.pushes if source == address]
        self.pushes = [item for item in self.pushes if item[0] != address]
        return found

    def disconnect(self, address: str) -> None:
        """Close the connection to one address; what waits there is lost."""
        link = self._links.pop(address, None)
        if link is not None:
            link.socket.close()

    def close(self) -> None:
        for address in list(self._links):
            self.disconnect(address)

    def __enter__(self) -> SyncClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self, address: str, frame: bytes, timeout_s: float) -> None:
        known = self._links.get(address)
        if known is not None and known.is_dead:
            self.disconnect(address)
        link = self._links.get(address) or self._connect(address, timeout_s)
        try:
            link.socket.settimeout(max(timeout_s, 0.001))
            link.socket.sendall(frame)
        except OSError as error:
            self.disconnect(address)  # a part of the frame may be out
            raise RequestFailed(CLOSED, address, str(error)) from error

    def _connect(self, address: str, timeout_s: float) -> _Link:
        host, port = split_address(address)
        try:
            connected = socket.create_connection((host, port), timeout=max(timeout_s, 0.001))
        except OSError as error:
            raise RequestFailed(UNREACHABLE, address, str(error)) from error
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        link = self._links[address] = _Link(connected)
        return link

    def _read(self, address: str, link: _Link, timeout_s: float) -> None:
        """Take in what one read gives, or nothing within the time."""
        try:
            commands = link.receive(timeout_s)
        except (OSError, ProtocolError) as error:
            self.disconnect(address)
            raise RequestFailed(CLOSED, address, str(error)) from error
        for command in commands:
            if command.is_response:
                link.answers[command.opaque] = command
            else:
                self.pushes.append((address, command))


class _Link:
    """One socket of a SyncClient. answers: read, but not yet waited for."""

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        self.answers: dict[int, Command] = {}
        self._decoder = FrameDecoder()

    @property
    def readable(self) -> bool:
        """Something is here that could be read without waiting (the end of the stream counts)."""
        return self._peek() is not None

    @property
    def is_dead(self) -> bool:
        """The other side closed it, and nothing is left to read."""
        return self._peek() == b""

    def _peek(self) -> bytes | None:
        self.socket.setblocking(False)
        try:
            return self.socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return None
        except OSError:
            return b""

    def receive(self, timeout_s: float) -> list[Command]:
        self.socket.settimeout(max(timeout_s, 0.001))
        try:
            data = self.socket.recv(_RECEIVE_BYTES)
        except TimeoutError:
            return []
        if not data:
            raise ConnectionError("the server closed the connection")
        self._decoder.feed(data)
        return list(iter(self._decoder.next_command, None))
