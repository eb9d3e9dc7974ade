"""Who is connected to servers of one event loop that stand between others: taken in, and ended together.

A server that is closed lets go of a connection that it has just accepted without closing it (asyncio of Python 3.11),
and its client would wait for ever. So nobody is accepted any more first, and whoever was begins, before it is closed.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
TO_BEGIN = 4
"""The loop's rounds from a connection that is accepted until we hear of it: a transport, a task, its begin."""


class Connections:
    """Those of servers of one event loop, until `stop`."""

    def __init__(self) -> None:
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[Any]] = set()
        self._writers: weakref.WeakSet[asyncio.StreamWriter] = weakref.WeakSet()

    async def listen(self, serve: Serve, host: str, port: int = 0) -> str:
        """The address at which connections are served; each is closed when that is over. OSError: it can't be had."""

        async def passing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._track(task)
            self._writers.add(writer)
            try:
                await serve(reader, writer)
            except asyncio.CancelledError:
                pass  # `stop` ends what is open; a cancelled handler would be reported as an error
            finally:
                writer.close()

        server = await asyncio.start_server(passing, host, port)
        self._servers.append(server)
        return f"{host}:{server.sockets[0].getsockname()[1]}"

    async def onward(
        self, host: str, port: int
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to somebody else, which `stop` ends too. OSError: nobody listens there."""
        reader, writer = await asyncio.open_connection(host, port)
        self._writers.add(writer)
        return reader, writer

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Do that beside, at the longest until `stop`."""
        self._track(asyncio.ensure_future(work))

    def _track(self, task: asyncio.Task[Any]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """End all."""
        loop = asyncio.get_running_loop()
        for server in self._servers:
            for listening in server.sockets:
                loop.remove_reader(listening)
        for _ in range(TO_BEGIN):
            await asyncio.sleep(0)
        for server in self._servers:
            server.close()
        while tasks := list(self._tasks):
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for writer in list(self._writers):
            writer.transport.abort()
        for _ in range(2):
            await asyncio.sleep(0)  # what was closed is taken down in the loop's next round
