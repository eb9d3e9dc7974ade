"""A server core on a real socket, on 127.0.0.1 unless told otherwise.

A connection that sends what is no frame is closed without an answer, as Apache's servers do, with one sentence in the
log of `inorder.reference`; a whole frame that
makes the core raise is answered SYSTEM_ERROR. A peer that does not read its answers is not read from, and is
thrown out when too much waits for it: a server's memory is not the peer's to fill.
"""

from __future__ import annotations

import asyncio
import itertools
import socket
from collections.abc import Callable
from functools import partial

from reference_impl.core import io
from reference_impl.protocol.codes import ResponseCode
from reference_impl.protocol.errors import ProtocolError
from reference_impl.protocol.frame import FrameDecoder, encode_frame
from reference_impl.shell.body import Body, Core, log
from reference_impl.shell.client import FLUSH_S
from reference_impl.shell.clock import WallClock
from reference_impl.shell.recording import Recorder
from specs.errors import InorderError, UsageError

MAX_UNSENT_BYTES = 64 * 1024 * 1024
BACKLOG = 128
LAST_FLUSHES = (
    3  # at a shutdown: the one under way, one for what came meanwhile, one for what came then
)
NOBODY = ("0.0.0.0", 0)  # the peer of a connection that was gone before it was seen
_ACCEPT_PAUSE_S = 1.0  # after an error of accept itself: most likely too many open files


def take_port(port: int = 0, host: str = "127.0.0.1") -> socket.socket:
    """A socket bound to the port (0: any free one), not yet listening: for a core that must know its address
    before it is made. Raises UsageError when the port can't be had.
    """
    taken = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        taken.setblocking(False)
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind((host, port))
    except (OSError, OverflowError) as error:
        taken.close()
        raise _port_taken(host, port, error) from error
    return taken


def address_of(taken: socket.socket) -> str:
    """`host:port` of a bound socket."""
    return _text(taken.getsockname())


def _text(name: tuple[str, int]) -> str:
    return f"[{name[0]}]:{name[1]}" if ":" in name[0] else f"{name[0]}:{name[1]}"


def _port_taken(host: str, port: int, error: Exception) -> UsageError:
    return UsageError(
        f"Port {port} of {host} can't be had ({error}); choose another, or 0 for any free one."
    )


class ServerBody(Body):
    """Listens, and drives one server core. ConnIds are whole numbers, new for every connection."""

    def __init__(
        self, core: Core, *, clock: WallClock | None = None, recorder: Recorder | None = None
    ) -> None:
        super().__init__(core, clock=clock, recorder=recorder)
        self.address = ""  # `host:port`, once started
        self._socket: socket.socket | None = None
        self._joining: set[asyncio.Task[object]] = set()
        self._connections: dict[io.ConnId, _Connection] = {}
        self._numbers = itertools.count(1)
        self._flushes: set[asyncio.Future[int]] = set()

    async def start(self, port: int | socket.socket = 0) -> str:
        """Listen on a port of 127.0.0.1 (0: any free one) or on a socket from `take_port`, tell the core
        `Start`, return the address. Raises UsageError when the port can't be had.
        """
        listening = take_port(port) if isinstance(port, int) else port
        self.address = address_of(listening)
        try:
            listening.listen(BACKLOG)
        except OSError as error:  # two sockets may be bound to one port, but only one can listen
            host, number = listening.getsockname()[:2]
            listening.close()
            raise _port_taken(host, number, error) from error
        self._socket = listening
        self.post(io.Start())
        asyncio.get_running_loop().add_reader(listening, self._accept, listening)
        return self.address

    async def stop(self, *, in_good_order: bool = True) -> None:
        """Tell the core `Shutdown`, carry out what it asks for at once, close everything.

        in_good_order False: as in a crash, the core hears and says nothing more.
        """
        if in_good_order:
            self.post(io.Shutdown())
            for _ in range(LAST_FLUSHES):  # so that the answers that wait for one can leave
                if self._flushes:
                    await asyncio.wait(set(self._flushes))
        self._ended = True
        if self._flushes:
            await asyncio.wait(set(self._flushes))
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._socket.close()
            self._socket = None
        if self._joining:
            await asyncio.wait(set(self._joining))
        connections = list(self._connections.values())
        for connection in connections:
            connection.close()
        for connection in connections:
            await connection.closed()
        await self.end()

    def carry_out(self, effect: io.Effect) -> None:
        match effect:
            case io.Send(conn, command):
                connection = self._connections.get(conn)
                if connection is not None:  # gone in the meantime: as if the network had lost it
                    connection.write(encode_frame(command))
            case io.Close(conn):
                connection = self._connections.get(conn)
                if connection is not None:
                    connection.close()
            case io.Flush(begin):
                self._flush(begin)
            case io.Stopped():
                pass
            case _:
                super().carry_out(effect)

    def _flush(self, begin: Callable[[], Callable[[], int]]) -> None:
        """In a thread, and only when everything that came in together was handled: one sync is for all of it."""
        done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._flushes.add(done)
        asyncio.get_running_loop().call_soon(self._begin_flush, begin, done)

    def _begin_flush(
        self, begin: Callable[[], Callable[[], int]], done: asyncio.Future[int]
    ) -> None:
        work = asyncio.get_running_loop().run_in_executor(None, begin())
        work.add_done_callback(partial(self._flushed, done))

    def _flushed(self, done: asyncio.Future[int], work: asyncio.Future[int]) -> None:
        error = work.exception()
        if error is None:
            self.post(io.Flushed(work.result()))
        elif isinstance(error, InorderError):
            self.post(io.Flushed(0, str(error)))
        else:
            self.faults.append(error)
        self._flushes.discard(done)
        done.set_result(0)

    def core_raised(self, event: io.Input, error: Exception) -> None:
        if not isinstance(error, ProtocolError):
            super().core_raised(event, error)
        if (
            isinstance(event, io.Received)
            and not event.command.is_oneway
            and not event.command.is_response
        ):
            answer = event.command.reply(ResponseCode.SYSTEM_ERROR, remark=str(error)[:200])
            self.carry_out(io.Send(event.conn, answer))

    def _accept(self, listening: socket.socket) -> None:
        """Our own loop of accept: asyncio's server loses a connection that it accepts while it is closed."""
        loop = asyncio.get_running_loop()
        try:
            accepted, _ = listening.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError:
            log.exception("no connection can be accepted; next try in %s s", _ACCEPT_PAUSE_S)
            loop.remove_reader(listening)
            loop.call_later(_ACCEPT_PAUSE_S, self._accept_again, listening)
            return
        accepted.setblocking(False)
        joining: asyncio.Task[object] = loop.create_task(
            loop.connect_accepted_socket(lambda: _Connection(self, next(self._numbers)), accepted)
        )
        self._joining.add(joining)
        joining.add_done_callback(self._joining.discard)

    def _accept_again(self, listening: socket.socket) -> None:
        if self._socket is listening:
            asyncio.get_running_loop().add_reader(listening, self._accept, listening)

    def joined(self, connection: _Connection) -> None:
        self._connections[connection.number] = connection
        self.post(io.Opened(connection.number, connection.peer))

    def left(self, connection: _Connection) -> None:
        if self._connections.pop(connection.number, None) is not None:
            self.post(io.Closed(connection.number))


class _Connection(asyncio.Protocol):
    def __init__(self, body: ServerBody, number: int) -> None:
        self.number = number
        self.peer = ""
        self._body = body
        self._decoder = FrameDecoder()
        self._transport: asyncio.Transport | None = None
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.peer = _text(transport.get_extra_info("peername") or NOBODY)
        self._body.joined(self)

    def data_received(self, data: bytes) -> None:
        self._decoder.feed(data)
        try:
            while not self._is_closing and (command := self._decoder.next_command()) is not None:
                self._body.post(io.Received(self.number, command))
        except ProtocolError as error:
            log.warning(
                "closed the connection of %s, which sent what is no frame: %s", self.peer, error
            )
            self.close()

    @property
    def _is_closing(self) -> bool:
        return self._transport is None or self._transport.is_closing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._over.set_result(None)
        self._body.left(self)

    def pause_writing(self) -> None:
        assert self._transport is not None
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        assert self._transport is not None
        if not self._transport.is_closing():
            self._transport.resume_reading()

    def write(self, frame: bytes) -> None:
        assert self._transport is not None
        if self._transport.is_closing():
            return
        self._transport.write(frame)
        if self._transport.get_write_buffer_size() > MAX_UNSENT_BYTES:
            self._transport.abort()

    def close(self) -> None:
        """Flush what waits and close; a peer that does not read in time is given up."""
        assert self._transport is not None
        if self._transport.get_write_buffer_size() > 0:
            asyncio.get_running_loop().call_later(FLUSH_S, self._transport.abort)
        self._transport.close()

    async def closed(self) -> None:
        await asyncio.wait([self._over])
