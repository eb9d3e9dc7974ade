"""Server body and clients on real sockets, with a core small enough to see through."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from reference_impl.core import io
from reference_impl.protocol.codes import ResponseCode
from reference_impl.protocol.command import FLAG_ONEWAY, Command
from reference_impl.protocol.errors import ProtocolError
from reference_impl.protocol.frame import encode_frame
from reference_impl.shell.client import RemotingClient, SyncClient
from reference_impl.shell.errors import (
    CLOSED,
    TIMEOUT,
    UNREACHABLE,
    BodyFailed,
    RequestFailed,
    split_address,
)
from reference_impl.shell.server import ServerBody
from specs.errors import UsageError

ECHO, LATER, CLOSE, PUSH, BUG, MALFORMED, SILENT, BIG = range(900, 908)


class Toy:
    """Does one simple thing for each code."""

    def __init__(self) -> None:
        self.seen: list[io.Input] = []
        self.parked: dict[int, io.Received] = {}

    def handle(self, now_ms: int, event: io.Input) -> Iterator[io.Effect]:
        self.seen.append(event)
        match event:
            case io.Received(conn, command) if not command.is_oneway:
                yield from self.received(conn, command)
            case io.TimerFired(int() as token):
                parked = self.parked.pop(token)
                yield io.Send(parked.conn, parked.command.reply(0, {"late": "true"}))

    def received(self, conn: io.ConnId, command: Command) -> Iterator[io.Effect]:
        match command.code:
            case code if code == ECHO:
                yield io.Send(conn, command.reply(0, command.ext, command.body))
            case code if code == LATER:
                self.parked[command.opaque] = io.Received(conn, command)
                yield io.SetTimer(command.opaque, 20)
            case code if code == CLOSE:
                yield io.Close(conn)
            case code if code == PUSH:
                yield io.Send(conn, Command(code=40, ext={"consumerGroup": "G"}, flag=FLAG_ONEWAY))
                yield io.Send(conn, command.reply(0))
            case code if code == BUG:
                raise RuntimeError("a bug")
            case code if code == MALFORMED:
                raise ProtocolError("The header field topic is missing.")
            case code if code == BIG:
                yield io.Send(conn, command.reply(0, body=bytes(8 * 1024 * 1024)))


@contextmanager
def serving(core: Toy) -> Iterator[ServerBody]:
    """The toy in a loop of its own, in a thread, for the blocking client."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def start() -> ServerBody:
        body = ServerBody(core)
        await body.start()
        return body

    body = asyncio.run_coroutine_threadsafe(start(), loop).result(10)
    try:
        yield body
    finally:
        asyncio.run_coroutine_threadsafe(body.stop(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


def unused_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


# ---------------------------------------------------------------- RemotingClient


def test_answers_find_their_requests() -> None:
    """A later answer, an echo and a big body, all open at a time on one connection."""

    async def run() -> None:
        body, client = ServerBody(Toy()), RemotingClient()
        address = await body.start()
        late = client.submit(address, Command(code=LATER), 5000)
        big = client.submit(address, Command(code=BIG), 5000)
        echoes = [
            client.submit(address, Command(code=ECHO, ext={"n": str(n)}), 5000) for n in range(50)
        ]
        assert [(await echo).ext["n"] for echo in echoes] == [str(n) for n in range(50)]
        assert len((await big).body) == 8 * 1024 * 1024
        assert (await late).ext == {"late": "true"}
        await client.close()
        await body.stop()
        body.check()
        opened = [event for event in body.core.seen if isinstance(event, io.Opened)]  # type: ignore[attr-defined]
        assert len(opened) == 1

    asyncio.run(run())


def test_commands_arrive_in_the_order_in_which_they_were_given() -> None:
    """Also those given while the connection is still being opened, one-way and asked alike."""

    async def run() -> list[str]:
        core = Toy()
        body, client = ServerBody(core), RemotingClient()
        address = await body.start()
        for n in range(20):
            client.oneway(address, Command(code=ECHO, ext={"n": str(n)}))
            await asyncio.sleep(0)
        await client.request(address, Command(code=ECHO, ext={"n": "20"}))
        await client.close()
        await body.stop()
        return [event.command.ext["n"] for event in core.seen if isinstance(event, io.Received)]

    assert asyncio.run(run()) == [str(n) for n in range(21)]


def test_why_there_is_no_answer() -> None:
    async def run() -> None:
        body, client = ServerBody(Toy()), RemotingClient()
        address = await body.start()

        async def reason(where: str, code: int, timeout_ms: int) -> str:
            with pytest.raises(RequestFailed) as failed:
                await client.request(where, Command(code=code), timeout_ms)
            return failed.value.reason

        assert await reason(unused_address(), ECHO, 5000) == UNREACHABLE
        assert await reason("nonsense", ECHO, 5000) == UNREACHABLE
        assert await reason(address, SILENT, 30) == TIMEOUT
        assert await reason(address, CLOSE, 5000) == CLOSED
        assert (await client.request(address, Command(code=ECHO))).code == 0  # connected anew
        waiting = client.submit(address, Command(code=SILENT), 5000)
        await client.close()
        with pytest.raises(RequestFailed, match=CLOSED):
            await waiting
        await body.stop()

    asyncio.run(run())


def test_a_request_that_waits_for_a_connection_in_vain_did_not_happen() -> None:
    """A listening socket whose backlog is full never finishes the handshake."""

    async def run() -> None:
        with socket.socket() as full:
            full.bind(("127.0.0.1", 0))
            full.listen(0)
            address = f"127.0.0.1:{full.getsockname()[1]}"
            fillers = []
            for _ in range(4):
                filler = socket.socket()
                filler.setblocking(False)
                filler.connect_ex(full.getsockname())
                fillers.append(filler)
            client = RemotingClient()
            with pytest.raises(RequestFailed, match=UNREACHABLE):
                await client.request(address, Command(code=ECHO), 100)
            await client.close()
            for filler in fillers:
                filler.close()

    asyncio.run(run())


def test_pushes_reach_the_callback() -> None:
    async def run() -> None:
        pushes: list[tuple[str, Command]] = []
        body, client = (
            ServerBody(Toy()),
            RemotingClient(lambda address, command: pushes.append((address, command))),
        )
        address = await body.start()
        await client.request(address, Command(code=PUSH))
        await client.close()
        await body.stop()
        assert [(where, command.code) for where, command in pushes] == [(address, 40)]

    asyncio.run(run())


def test_an_answer_that_is_no_frame_fails_what_waits() -> None:
    async def run() -> None:
        async def garbage(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(10)
            writer.write(struct.pack(">i", 0x7FFFFFFF))
            await reader.read()
            writer.close()

        server = await asyncio.start_server(garbage, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        client = RemotingClient()
        with pytest.raises(RequestFailed, match="can't be read"):
            await client.request(f"127.0.0.1:{port}", Command(code=ECHO))
        await client.close()
        server.close()
        await server.wait_closed()

    asyncio.run(run())


# ---------------------------------------------------------------- ServerBody


def test_a_bug_in_a_core_is_answered_and_kept() -> None:
    async def run() -> None:
        body, client = ServerBody(Toy()), RemotingClient()
        address = await body.start()
        malformed = await client.request(address, Command(code=MALFORMED))
        assert (malformed.code, malformed.remark) == (1, "The header field topic is missing.")
        body.check()
        assert (await client.request(address, Command(code=BUG))).code == ResponseCode.SYSTEM_ERROR
        assert (await client.request(address, Command(code=ECHO))).code == 0
        with pytest.raises(BodyFailed, match="a bug"):
            body.check()
        await client.close()
        await body.stop()

    asyncio.run(run())


def test_a_port_that_is_taken_is_one_clear_sentence() -> None:
    async def run() -> None:
        body = ServerBody(Toy())
        await body.start()
        port = int(body.address.rpartition(":")[2])
        with pytest.raises(UsageError, match=f"Port {port} of 127.0.0.1 can't be had"):
            await ServerBody(Toy()).start(port)
        with pytest.raises(UsageError, match=r"Port 70000 of 127.0.0.1 can't be had"):
            await ServerBody(Toy()).start(70000)
        await body.stop()

    asyncio.run(run())


@pytest.mark.parametrize(
    "hostile",
    [
        struct.pack(">i", 0x7FFFFFFF),
        struct.pack(">i", -1),
        struct.pack(">iI", 8, 4) + b"{{{{",
        struct.pack(">iI", 4, 7 << 24),
        b"GET / HTTP/1.1\r\n\r\n",
        b"\xff" * 100,
    ],
)
def test_what_is_no_frame_closes_the_connection_without_an_answer(hostile: bytes) -> None:
    core = Toy()
    with serving(core) as body, socket.create_connection(split_address(body.address), 5) as raw:
        raw.settimeout(10)
        raw.sendall(encode_frame(Command(code=ECHO, ext={"n": "1"}, flag=FLAG_ONEWAY)) + hostile)
        assert raw.recv(100) == b""
        with SyncClient() as client:
            assert client.call(body.address, Command(code=ECHO)).code == 0
        received = [event.command.ext for event in core.seen if isinstance(event, io.Received)]
        assert received == [{"n": "1"}, {}]
        body.check()


def test_a_peer_that_does_not_read_is_not_read_from_and_does_not_hold_the_server() -> None:
    core = Toy()
    with serving(core) as body, socket.create_connection(split_address(body.address), 5) as raw:
        raw.settimeout(0.5)
        frame = encode_frame(Command(code=BIG))
        sent = 0
        try:
            for _ in range(100_000):
                sent += raw.send(frame * 100)
        except OSError:
            pass
        asked = sum(isinstance(event, io.Received) for event in core.seen)
        assert asked < sent // len(frame)
        with SyncClient() as client:
            assert client.call(body.address, Command(code=ECHO)).code == 0


def test_a_stopped_server_leaves_no_port() -> None:
    with serving(Toy()) as body:
        address = body.address
        client = SyncClient()
        waiting = client.begin(address, Command(code=SILENT))
    with pytest.raises(RequestFailed, match=CLOSED):
        client.finish(address, waiting, 5)
    with pytest.raises(RequestFailed, match=UNREACHABLE):
        client.call(address, Command(code=ECHO))
    client.close()


# ---------------------------------------------------------------- SyncClient


def test_the_blocking_client_asks_waits_and_collects() -> None:
    with serving(Toy()) as body, SyncClient() as client:
        address = body.address
        late = client.begin(address, Command(code=LATER))
        assert client.call(address, Command(code=ECHO, body=b"x")).body == b"x"
        client.call(address, Command(code=PUSH))
        assert client.finish(address, late).ext == {"late": "true"}
        client.oneway(address, Command(code=ECHO))
        assert [command.code for command in client.listen(address, 5)] == [40]
        assert client.listen(address, 0.01) == []
        assert len(client.call(address, Command(code=BIG), 10).body) == 8 * 1024 * 1024


def test_the_blocking_client_says_why() -> None:
    with serving(Toy()) as body, SyncClient() as client:
        address = body.address
        for where, code, reason in (
            (unused_address(), ECHO, UNREACHABLE),
            (address, SILENT, TIMEOUT),
            (address, CLOSE, CLOSED),
        ):
            with pytest.raises(RequestFailed) as failed:
                client.call(where, Command(code=code), 0.2 if reason == TIMEOUT else 5)
            assert failed.value.reason == reason
        assert client.call(address, Command(code=ECHO)).code == 0
        client.disconnect(address)
        assert client.call(address, Command(code=ECHO)).code == 0
        with pytest.raises(UsageError, match="not an address"):
            client.call("nowhere", Command(code=ECHO))


def test_the_blocking_client_connects_anew_when_the_server_went_away_meanwhile() -> None:
    with serving(Toy()) as body, SyncClient() as client:
        client.call(body.address, Command(code=ECHO))
        opaque = client.begin(body.address, Command(code=CLOSE))
        with pytest.raises(RequestFailed, match=CLOSED):
            client.finish(body.address, opaque, 5)
        assert client.call(body.address, Command(code=ECHO)).code == 0
