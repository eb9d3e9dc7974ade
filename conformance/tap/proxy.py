"""The proxy itself: a name server's port, and behind it one port for each broker that a route names.

A client is given the tap's name server address and nothing else: the routes that it gets from there name the tap's
ports, so that an unmodified client passes through. Every frame is read, told to the recorder, and handed on as the
same bytes; only answers that name broker addresses are written anew. What is no frame is not passed on: the
connection is closed, on both sides.

A broker's death is concluded from its connections (see `lives`), and told to the recorder.

Not seen: requests to addresses that don't come from a route (a broker's second port for clients that ask for it by
configuration, and a send-back that goes by a message's store host, as clients before 4.9 do).
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

from conformance.tap.connections import Connections
from conformance.tap.faults import Action, Faults, Rule
from conformance.tap.frames import read_frame
from conformance.tap.lives import PROBE_S, PROBES_S, BrokerLife, Sign
from conformance.tap.rows import TapRecorder
from reference_impl.protocol.bodies import BrokerData, ClusterInfo, TopicRoute
from reference_impl.protocol.codes import RequestCode, ResponseCode
from reference_impl.protocol.command import Command
from reference_impl.protocol.frame import encode_frame
from reference_impl.shell.errors import split_address
from specs.errors import UsageError

T = TypeVar("T")
HOST = "127.0.0.1"
START_S = 30.0
_ROUTES = (RequestCode.GET_ROUTEINFO_BY_TOPIC, RequestCode.GET_BROKER_CLUSTER_INFO)
MASTER = 0
"""The id of the broker's process that takes sends, locks and commits."""
_PLACE = (("topic", "b"), ("queueId", "e"))
"""Header fields that name a request's queue: in full, and in the letters of a send."""


@dataclass(slots=True, eq=False)
class _Passage:
    """One client's connection through the tap. asked: the codes of its requests that wait for their answers."""

    number: int
    client: asyncio.StreamWriter
    server: asyncio.StreamWriter
    broker: str | None  # None: the name server
    asked: dict[int, int] = field(default_factory=dict)
    faults: dict[int, Rule] = field(
        default_factory=dict
    )  # by the opaque of the request whose answer they meet
    is_open: bool = True


class Tap:
    """Between clients and the cluster of one name server. Runs in one event loop.

    upstream: the name server's `host:port`. recorder, faults: told of every frame, and asked about every request.
    host: the address of this machine at which clients find the tap, and by which it names itself in routes.
    """

    def __init__(
        self,
        upstream: str,
        recorder: TapRecorder,
        faults: Faults | None = None,
        *,
        host: str = HOST,
    ) -> None:
        split_address(upstream)
        self._host = host
        self.namesrv = ""  # the tap's own, once started
        self.brokers: dict[
            str, str
        ] = {}  # a broker's real address → the tap's, as routes have named it
        self._upstream = upstream
        self._recorder = recorder
        self._faults = faults or Faults()
        self._connections = Connections()
        self._numbers = itertools.count(1)
        self._opening = asyncio.Lock()
        self._lives: dict[
            str, BrokerLife
        ] = {}  # a master's real address → what is known of its life

    async def start(self, port: int = 0) -> None:
        """Listen. Raises UsageError when the port can't be had."""
        self.namesrv = await self._listen(self._upstream, None, port)

    async def stop(self) -> None:
        """Close every connection; faults that met nothing are told as such."""
        await self._connections.stop()
        for rule in self._faults.unused:
            self._recorder.fault(rule.text, effective=False)

    async def _listen(self, upstream: str, broker: str | None, port: int = 0) -> str:
        async def passing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._pass(reader, writer, upstream, broker)

        try:
            return await self._connections.listen(passing, self._host, port)
        except (OSError, OverflowError) as error:
            raise UsageError(
                f"Port {port} of {self._host} can't be had ({error}); choose another, or 0 for any."
            ) from error

    async def _pass(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        upstream: str,
        broker: str | None,
    ) -> None:
        host, port = split_address(upstream)
        life = self._lives.get(upstream)
        try:
            from_server, server = await self._connections.onward(host, port)
        except OSError:
            self._refused(life, broker)
            return  # nobody listens there: the client's connection is closed as well
        passage = _Passage(next(self._numbers), writer, server, broker)
        peer = writer.get_extra_info("peername")
        if broker is not None:
            self._recorder.opened(passage.number, f"{peer[0]}:{peer[1]}", broker)
            if life is not None:
                life.opened(passage.number)
        up = asyncio.ensure_future(self._upwards(passage, reader))
        down = asyncio.ensure_future(self._downwards(passage, from_server))
        by_broker = False
        try:
            await asyncio.wait((up, down), return_when=asyncio.FIRST_COMPLETED)
            by_broker = not up.done() and (
                from_server.at_eof() or from_server.exception() is not None
            )
        finally:
            server.close()  # before any wait: a second cancellation ends this one
            for task in (up, down):
                task.cancel()
            passage.is_open = False
            if broker is not None:
                self._recorder.closed(passage.number)
                if life is not None:
                    self._closed(life, passage.number, upstream, broker, by_broker=by_broker)
            await asyncio.gather(up, down, return_exceptions=True)

    def _closed(
        self, life: BrokerLife, number: int, upstream: str, broker: str, *, by_broker: bool
    ) -> None:
        match life.closed(number, by_broker=by_broker, at_s=asyncio.get_running_loop().time()):
            case Sign.DEATH:
                self._recorder.crashed(broker)
            case Sign.DOUBT:
                self._spawn(partial(self._probe, life, upstream, broker))

    def _refused(self, life: BrokerLife | None, broker: str | None) -> None:
        """Nobody listens at the broker's address."""
        if life is not None and broker is not None and life.refused():
            self._recorder.crashed(broker)

    async def _probe(self, life: BrokerLife, upstream: str, broker: str) -> None:
        """The broker has ended its last connection: has it died?"""
        begun = asyncio.get_running_loop().time()
        for after_s in PROBES_S:
            await asyncio.sleep(begun + after_s - asyncio.get_running_loop().time())
            if not life.is_alone:
                return
            if not await _takes_connections(*split_address(upstream)):
                self._refused(life, broker)

    # ------------------------------------------------------------------ from the client

    async def _upwards(self, passage: _Passage, reader: asyncio.StreamReader) -> None:
        while (frame := await read_frame(reader)) is not None:
            raw, command = frame
            if command.is_response:
                await _write(passage.server, raw)
                continue
            rule = self._meets(passage, command)
            if not command.is_oneway:
                passage.asked[command.opaque] = command.code
            held = rule is not None and rule.action is Action.DELAY
            if not held:
                self._tell(passage, command)
            match None if rule is None else rule.action:
                case Action.LOSE:
                    continue
                case Action.ANSWER if rule is not None:
                    if not command.is_oneway:
                        answer = command.reply(rule.number, remark="answered by the tap")
                        await self._hand_down(passage, encode_frame(answer), answer)
                case Action.DELAY if rule is not None:
                    self._do_later(rule.number, passage, raw, command)
                case _:
                    if rule is not None:
                        passage.faults[command.opaque] = rule
                    await _write(passage.server, raw)

    def _tell(self, passage: _Passage, command: Command) -> None:
        if passage.broker is not None and passage.is_open:
            self._recorder.asked(passage.number, command)

    def _meets(self, passage: _Passage, command: Command) -> Rule | None:
        if passage.broker is None:
            return None
        place = " ".join(
            command.ext.get(name, command.ext.get(letter, "")) for name, letter in _PLACE
        )
        client = self._recorder.client_of(passage.number)
        rule = self._faults.on_request(command.code, client, place)
        if rule is not None:
            self._recorder.fault(f"{rule.text} met {client} {place}".strip(), effective=True)
        return rule

    # ------------------------------------------------------------------ from the server

    async def _downwards(self, passage: _Passage, reader: asyncio.StreamReader) -> None:
        while (frame := await read_frame(reader)) is not None:
            raw, command = frame
            if not command.is_response:
                await _write(passage.client, raw)
                continue
            rule = passage.faults.pop(command.opaque, None)
            if rule is not None and rule.action is Action.LOSE_ANSWER:
                passage.asked.pop(command.opaque, None)
            elif rule is not None and rule.action is Action.DELAY_ANSWER:
                self._spawn(partial(self._hand_down_later, rule.number, passage, raw, command))
            else:
                await self._hand_down(passage, raw, command)

    async def _hand_down(self, passage: _Passage, raw: bytes, command: Command) -> None:
        code = passage.asked.pop(command.opaque, None)
        if passage.broker is not None:
            self._recorder.answered(passage.number, command)
        elif code in _ROUTES and command.code == ResponseCode.SUCCESS:
            raw = encode_frame(await self._through_us(command, code))
        await _write(passage.client, raw)

    async def _hand_down_later(
        self, ms: int, passage: _Passage, raw: bytes, command: Command
    ) -> None:
        await asyncio.sleep(ms / 1000)  # the rule's own delay: time is its effect
        await self._hand_down(passage, raw, command)

    async def _through_us(self, answer: Command, code: int | None) -> Command:
        """The route, or the cluster, with our addresses in the place of the brokers'."""
        known: tuple[BrokerData, ...]
        if code == RequestCode.GET_ROUTEINFO_BY_TOPIC:
            known = TopicRoute.decode(answer.body).brokers
        else:
            known = ClusterInfo.decode(answer.body).brokers
        body = answer.body
        for broker in known:
            for number, address in broker.addresses.items():
                own = await self._own(address, broker.broker, number == MASTER)
                body = body.replace(f'"{address}"'.encode(), f'"{own}"'.encode())
        return Command(
            answer.code, answer.ext, body, answer.opaque, answer.flag, answer.remark, answer.language, answer.version,
            answer.binary,
        )  # fmt: skip

    async def _own(self, address: str, broker: str, is_master: bool) -> str:
        async with self._opening:
            if is_master:
                self._lives.setdefault(address, BrokerLife())
            if address not in self.brokers:
                self.brokers[address] = await self._listen(address, broker)
            return self.brokers[address]

    # ------------------------------------------------------------------ later

    def _do_later(self, ms: int, passage: _Passage, raw: bytes, command: Command) -> None:
        """A request that is held begins when it is passed on: nobody could have applied it before."""

        async def write() -> None:
            await asyncio.sleep(ms / 1000)  # the rule's own delay: time is its effect
            self._tell(passage, command)
            await _write(passage.server, raw)

        self._spawn(write)

    def _spawn(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        async def quietly() -> (
            None
        ):  # ended before it begins, it leaves nothing that was never awaited
            with contextlib.suppress(OSError):  # the connection went before the frame did
                await work()

        self._connections.spawn(quietly())


async def _takes_connections(host: str, port: int) -> bool:
    """Does somebody listen there, who keeps a connection open for a moment?"""
    try:
        reader, writer = await asyncio.open_connection(host, port)
    except OSError:
        return False
    try:
        return await asyncio.wait_for(reader.read(1), PROBE_S) != b""
    except TimeoutError:
        return True
    except OSError:
        return False
    finally:
        writer.close()


async def _write(writer: asyncio.StreamWriter, raw: bytes) -> None:
    if not writer.is_closing():
        writer.write(raw)
        with contextlib.suppress(ConnectionError):  # the reading side notices
            await writer.drain()


class ThreadedTap:
    """A Tap for blocking callers; a context manager. Its loop runs in a thread of its own."""

    def __init__(self, upstream: str, recorder: TapRecorder, faults: Faults | None = None) -> None:
        self._upstream, self._recorder, self._faults = upstream, recorder, faults

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="tap", daemon=True)
        self._thread.start()

        async def start() -> Tap:
            tap = Tap(self._upstream, self._recorder, self._faults)
            await tap.start()
            return tap

        try:
            self._tap = self._do(start())
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._do(self._tap.stop())
        finally:
            self._end()

    @property
    def namesrv(self) -> str:
        """The tap's name server: what clients are to be given."""
        return self._tap.namesrv

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(START_S)

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(START_S)
        self._loop.close()
