"""The way from clients to a server on this machine, which can be cut, held and slowed down: a forwarder of TCP.

It knows no protocol, so it does to a connection what a network does: `cut` resets all connections and refuses new ones,
`hold` lets nothing through and keeps them open, `delay` lets each chunk of bytes through so much later, each way.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self

from conformance.parts import ports

HOST = "127.0.0.1"
CHUNK = 1 << 16
DONE_S = 10.0
RESET_AT_CLOSE = struct.pack("ii", 1, 0)


class Link:
    """A context manager. upstream: where the server listens, HOST:PORT; it may come and go.

    A server that has to be told where its clients find it is started behind the link: then `lead_to` says it later.
    """

    def __init__(self, upstream: str | None = None) -> None:
        self._upstream: tuple[str, int] | None = None
        if upstream is not None:
            self.lead_to(upstream)
        self._reservation: ports.Reservation | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="link", daemon=True)
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._flows: set[asyncio.Task[Any]] = set()
        self._open = asyncio.Event()  # nothing is held
        self._delay_s = 0.0

    @property
    def address(self) -> str:
        """Where clients connect; valid inside the `with`."""
        assert self._reservation is not None, "a link is opened first"
        return f"{HOST}:{self._reservation.port}"

    def lead_to(self, upstream: str) -> None:
        """From now on connections go there."""
        host, _, port = upstream.rpartition(":")
        self._upstream = host, int(port)

    def __enter__(self) -> Self:
        self._reservation = ports.reserve()
        self._thread.start()
        self._do(self._mended())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._do(self._cut())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(DONE_S)
        self._loop.close()
        if self._reservation is not None:
            self._reservation.release()

    def cut(self) -> None:
        """Connections are reset with all that was under way, new ones refused."""
        self._do(self._cut())

    def hold(self) -> None:
        """Nothing comes through; connections live."""
        self._loop.call_soon_threadsafe(self._open.clear)

    def delay(self, ms: int) -> None:
        """Everything takes so much longer, each way."""
        self._delay_s = ms / 1000

    def mend(self) -> None:
        """All is well again."""
        self._do(self._mended())

    def _do(self, job: Coroutine[Any, Any, None]) -> None:
        future: Future[None] = asyncio.run_coroutine_threadsafe(job, self._loop)
        future.result(DONE_S)

    async def _mended(self) -> None:
        self._delay_s = 0.0
        self._open.set()
        if self._server is None and self._reservation is not None:
            port = self._reservation.port
            self._server = await asyncio.start_server(self._connected, HOST, port)

    async def _cut(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in list(self._writers):
            _reset(writer)
        flows = list(self._flows)
        for flow in flows:
            flow.cancel()
        await asyncio.gather(*flows, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if self._upstream is None:
                raise OSError("it leads nowhere yet")
            far_reader, far_writer = await asyncio.open_connection(*self._upstream)
        except OSError:  # the server is gone: so says the link
            _reset(writer)
            return
        both = {writer, far_writer}
        self._writers |= both
        flows = [
            asyncio.create_task(self._flow(reader, far_writer)),
            asyncio.create_task(self._flow(far_reader, writer)),
        ]
        self._flows.update(flows)
        await asyncio.wait(flows, return_when=asyncio.FIRST_COMPLETED)
        for flow in flows:
            flow.cancel()
        for each in both:
            each.close()
        self._writers -= both
        self._flows.difference_update(flows)

    async def _flow(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One way of a connection: a reader that never waits, so that a delay adds up for nobody."""
        chunks: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        passing = asyncio.create_task(self._pass_on(chunks, writer))
        try:
            with contextlib.suppress(OSError):
                while chunk := await reader.read(CHUNK):
                    chunks.put_nowait((self._loop.time() + self._delay_s, chunk))
        finally:
            passing.cancel()

    async def _pass_on(
        self, chunks: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter
    ) -> None:
        with contextlib.suppress(OSError):
            while True:
                due, chunk = await chunks.get()
                await asyncio.sleep(max(0.0, due - self._loop.time()))
                await self._open.wait()
                writer.write(chunk)
                await writer.drain()


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close a connection by RST, as who was cut off sees it."""
    taken = writer.get_extra_info("socket")
    if taken is not None:
        with contextlib.suppress(OSError):
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)
    writer.transport.abort()
