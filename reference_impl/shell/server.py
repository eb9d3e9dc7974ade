"""A server core on a real socket, on 127.0.0.1 unless told otherwise.

A connection that sends what is no frame is closed without an answer, as Apache's servers do; a whole frame that
makes the core raise is answered SYSTEM_ERROR. A peer that does not read its answers is not read from, and is
thrown out when too much waits for it: a server's memory is not the peer's to fill.
"""

from __future__ import annotations

import asyncio
import itertools

from reference_impl.core import io
from reference_impl.protocol.codes import ResponseCode
from reference_impl.protocol.errors import ProtocolError
from reference_impl.protocol.frame import FrameDecoder, encode_frame
from reference_impl.shell.body import Body, Core
from reference_impl.shell.client import FLUSH_S
from reference_impl.shell.clock import WallClock
from reference_impl.shell.errors import BodyFailed
from reference_impl.shell.recording import Recorder
from specs.errors import UsageError

MAX_UNSENT_BYTES = 64 * 1024 * 1024
_TURNS_TO_ACCEPT = 5  # of the loop, until a connection that was just accepted has shown up


class ServerBody(Body):
    """Listens, and drives one server core. ConnIds are whole numbers, new for every connection."""

    def __init__(
        self,
        core: Core,
        *,
        host: str = "127.0.0.1",
        clock: WallClock | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        super().__init__(core, clock=clock, recorder=recorder)
        self.host = host
        self.port = 0
        self._server: asyncio.Server | None = None
        self._connections: dict[io.ConnId, _Connection] = {}
        self._numbers = itertools.count(1)
        self._stopping = False

    @property
    def address(self) -> str:
        """`host:port`, once started."""
        return f"{self.host}:{self.port}"

    async def start(self, port: int = 0) -> str:
        """Listen (port 0: any free one), tell the core `Start`, return the address.

        Raises UsageError when the port can't be had.
        """
        await self.listen(port)
        await self.begin()
        return self.address

    async def listen(self, port: int = 0) -> str:
        """Bind the port only: for a core whose configuration needs its own address. `begin` follows."""
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(
                lambda: _Connection(self, next(self._numbers)), self.host, port, start_serving=False
            )
        except (OSError, OverflowError) as error:
            raise UsageError(
                f"Port {port} of {self.host} can't be had ({error}); choose another, or 0 for any free one."
            ) from error
        self.port = self._server.sockets[0].getsockname()[1]
        return self.address

    async def begin(self) -> None:
        """Tell the core `Start` and take connections."""
        if self._server is None:
            raise BodyFailed("A server must listen before it begins.")
        self.post(io.Start())
        await self._server.start_serving()

    async def stop(self) -> None:
        """Tell the core `Shutdown`, carry out what it asks for at once, close everything."""
        self.post(io.Shutdown())
        self._stopping = True
        if self._server is not None:
            self._server.close()
        for _ in range(_TURNS_TO_ACCEPT):
            await asyncio.sleep(0)
        connections = list(self._connections.values())
        for connection in connections:
            connection.close()
        for connection in connections:
            await connection.closed()
        await self.end()
        if self._server is not None:
            await self._server.wait_closed()

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
            case io.Stopped():
                pass
            case _:
                super().carry_out(effect)

    def core_raised(self, event: io.Input, error: Exception) -> None:
        if not isinstance(error, ProtocolError):
            super().core_raised(event, error)
        if isinstance(event, io.Received) and not event.command.is_oneway and not event.command.is_response:
            answer = event.command.reply(ResponseCode.SYSTEM_ERROR, remark=str(error)[:200])
            self.carry_out(io.Send(event.conn, answer))

    def joined(self, connection: _Connection) -> None:
        if self._stopping:
            connection.close()
            return
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
        name = transport.get_extra_info("peername")
        self.peer = f"[{name[0]}]:{name[1]}" if ":" in name[0] else f"{name[0]}:{name[1]}"
        self._body.joined(self)

    def data_received(self, data: bytes) -> None:
        self._decoder.feed(data)
        try:
            while not self._is_closing and (command := self._decoder.next_command()) is not None:
                self._body.post(io.Received(self.number, command))
        except ProtocolError:
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
