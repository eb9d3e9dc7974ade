"""Proxies that hand frames on, or lose, double, delay and answer them: one before each broker for each client.

They run in one thread of their own, in one event loop, until `close`. Every frame is read and handed on as the same
bytes; what is no frame, and half a frame at the end of a connection, is not handed on. When one side ends a
connection, what it has sent arrives first, late or not; then the other side's is closed as well. A broker that takes
no connection is one that a client connects to and that closes at once, as behind toxiproxy.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, TypeVar

from chaos.frames.link import Begun, Fate, FrameLink, Line
from conformance.tap.connections import Connections
from conformance.tap.frames import read_frame
from reference_impl.protocol.command import Command
from reference_impl.protocol.frame import encode_frame
from reference_impl.shell.errors import split_address
from specs.errors import TargetMisbehaved
from specs.history.clock import host_clock
from specs.plan.step import EVERYBODY

T = TypeVar("T")
HOST = "127.0.0.1"
START_S = 30.0


@dataclass(frozen=True, slots=True)
class Laid:
    """A trouble began, of one client's link to a broker or of everybody's. at_us: by the host's monotonic clock."""

    trouble: Begun
    whose: str
    broker: str
    at_us: int


@dataclass(slots=True)
class Story:
    """What became of a run's troubles. laid: in the order in which they began. met: whose frame has met which."""

    laid: list[Laid] = field(default_factory=list)
    met: list[tuple[str, Begun]] = field(default_factory=list)


class FrameProxies:
    """Those of a run, until `close`. seed: of the run, from which every draw comes.

    story: what has become of their troubles so far. listens: the address of each, by client and broker.
    """

    def __init__(self, seed: int) -> None:
        self.story = Story()
        self.links: dict[tuple[str, str], FrameLink] = {}
        self.listens: dict[tuple[str, str], str] = {}
        self._seed = seed
        self._clock = host_clock()
        self._connections = Connections()
        self._broken: BaseException | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="frames", daemon=True)
        self._thread.start()

    def create(self, client: str, broker: str, upstream: str) -> str:
        """The address of a proxy of that client's before that broker. upstream: where that one is, "HOST:PORT"."""
        place = client, broker
        self.links[place] = FrameLink(lambda trouble: self.story.met.append((client, trouble)))
        self.listens[place] = listens = self._do(self._listen(place, upstream))
        return listens

    def begin(self, trouble: Begun, whose: str, broker: str) -> None:
        """The link of that client suffers from that from now on; of everybody, each one to that broker."""
        self.story.laid.append(Laid(trouble, whose, broker, self._clock.monotonic_us()))
        for link in self._of(whose, broker):
            self._do(_soon(partial(link.begin, trouble)))

    def mend(self, whose: str, broker: str) -> None:
        """And is well again."""
        for link in self._of(whose, broker):
            self._do(_soon(link.mend))

    def _of(self, whose: str, broker: str) -> list[FrameLink]:
        return [
            link
            for (client, before), link in self.links.items()
            if before == broker and whose in (EVERYBODY, client)
        ]

    def check(self) -> None:
        """Raise TargetMisbehaved when they have broken down."""
        if self._broken is not None:
            raise TargetMisbehaved(
                f"the proxy that reads frames broke down: {self._broken!r}"
            ) from self._broken

    def close(self) -> None:
        """End all connections. A second call does nothing."""
        if self._loop.is_closed():
            return
        try:
            self._do(self._connections.stop())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(START_S)
            self._loop.close()

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(START_S)

    # ------------------------------------------------------------ connections

    async def _listen(self, place: tuple[str, str], upstream: str) -> str:
        opened = itertools.count(1)

        async def passing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await self._pass(reader, writer, upstream, self._line(place, next(opened)))
            except Exception as error:  # told by `check`: nobody waits for a connection
                self._broken = error

        return await self._connections.listen(passing, HOST)

    def _line(self, place: tuple[str, str], nth: int) -> Line:
        """The client's n-th connection to the broker, with dice of its own."""
        up, down = (Random(f"{self._seed} {' '.join(place)} {nth} {way}") for way in ("up", "down"))
        return Line(self.links[place], up, down)

    async def _pass(
        self,
        from_client: asyncio.StreamReader,
        to_client: asyncio.StreamWriter,
        upstream: str,
        line: Line,
    ) -> None:
        try:
            from_broker, to_broker = await self._connections.onward(*split_address(upstream))
        except OSError:
            return  # nobody listens there: the client's connection is closed as well
        up, down = _Way(to_broker), _Way(to_client)
        pumps = [
            asyncio.create_task(_pump(from_client, line.to_broker, up, down)),
            asyncio.create_task(_pump(from_broker, line.to_client, down, up)),
        ]
        try:
            done, _ = await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            for pump in done:
                pump.result()
        finally:
            to_broker.close()  # before any wait: a second cancellation ends this one
            for way in (up, down):
                way.give_up()
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)


class _Way:
    """What goes one way of a connection: each frame when its time has come."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._late: set[asyncio.Task[None]] = set()

    async def put(self, frame: bytes, after_ms: tuple[int, ...]) -> None:
        """So many copies, each so much later; what is to come at once is there when this returns."""
        for late_ms in after_ms:
            if late_ms:
                task = asyncio.create_task(self._later(frame, late_ms))
                self._late.add(task)
                task.add_done_callback(self._late.discard)
            else:
                await self._write(frame)

    async def arrived(self) -> None:
        """Wait until nothing is late any more."""
        while self._late:
            await asyncio.wait(self._late)

    def give_up(self) -> None:
        """Nobody is there to whom what is late could come."""
        for task in self._late:
            task.cancel()

    async def _later(self, frame: bytes, late_ms: int) -> None:
        await asyncio.sleep(late_ms / 1000)  # the trouble's own delay: time is its effect
        await self._write(frame)

    async def _write(self, frame: bytes) -> None:
        if not self._writer.is_closing():
            with contextlib.suppress(ConnectionError):  # the reading side notices
                self._writer.write(frame)
                await self._writer.drain()


async def _pump(
    reader: asyncio.StreamReader, fate_of: Callable[[Command], Fate], on: _Way, back: _Way
) -> None:
    """Hand everything on that one side sends, until its end has come and what was late has arrived."""
    while (read := await read_frame(reader)) is not None:
        frame, command = read
        fate = fate_of(command)
        if fate.answer is not None:
            await back.put(encode_frame(fate.answer), (0,))
        await on.put(frame, fate.after_ms)
    await on.arrived()


async def _soon(what: Callable[[], None]) -> None:
    what()
