"""Frames on real sockets: handed on as they came, or lost, doubled, late and answered by who stands in between."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from chaos.frames.link import Begun
from chaos.frames.proxy import FrameProxies
from reference_impl.protocol.command import FLAG_ONEWAY, Command
from reference_impl.protocol.frame import encode_frame
from reference_impl.shell.client import SyncClient
from reference_impl.shell.errors import RequestFailed, split_address
from specs.errors import TargetMisbehaved
from specs.plan.rig import Trouble
from tests.chaos.frames.answering import ASKS, LEAVES, PUSHES, Answering
from tests.chaos.toxiproxy.echo import Echo

LOCK, PULL, BUSY = 41, 11, 2
ALICE, BOB = ("alice", "b0"), ("bob", "b0")
SHORT_S, LONG_S = 0.2, 30.0


@pytest.fixture
def broker() -> Iterator[Answering]:
    made = Answering()
    yield made
    with contextlib.suppress(OSError):
        made.close()


@pytest.fixture
def proxies(broker: Answering) -> Iterator[FrameProxies]:
    """Before the broker, one for each of two clients."""
    made = FrameProxies(seed=1)
    for client, name in (ALICE, BOB):
        made.create(client, name, broker.address)
    yield made
    made.check()
    made.close()


@pytest.fixture
def alice() -> Iterator[SyncClient]:
    with SyncClient() as made:
        yield made


def fails(client: SyncClient, address: str, code: int, patience_s: float = SHORT_S) -> str:
    """Why a request is not answered."""
    with pytest.raises(RequestFailed) as told:
        client.call(address, Command(code), patience_s)
    return told.value.reason


def test_what_passes_is_the_same_bytes_both_ways_however_they_come() -> None:
    """Not only the same command: its header has blanks and fields that we would not write."""
    echo = Echo()
    with closing(echo), closing(FrameProxies(seed=1)) as proxies:
        with socket.create_connection(
            split_address(proxies.create(*ALICE, echo.address)), LONG_S
        ) as connection:
            header = b'{ "opaque": 9, "flag": 0, "code": 41, "mine": [] }'
            body = b"x" * 100_000
            sent = struct.pack(">ii", 4 + len(header) + len(body), len(header)) + header + body
            for place in range(0, len(sent), 7_001):
                connection.sendall(sent[place : place + 7_001])
            got = b""
            while len(got) < len(sent):
                got += connection.recv(65536)
        assert got == sent
        assert echo.got.get(timeout=LONG_S) == sent


def test_a_request_that_is_lost_never_arrives_and_its_connection_lives(
    proxies: FrameProxies, broker: Answering, alice: SyncClient
) -> None:
    address = proxies.listens[ALICE]
    alice.call(address, Command(PULL), LONG_S)
    proxies.begin(Begun("drop_next", Trouble.DROP_NEXT, LOCK), *ALICE)
    assert fails(alice, address, LOCK) == "timeout"
    assert alice.call(address, Command(LOCK), LONG_S).code == 0
    assert broker.take(2) == [PULL, LOCK]


def test_an_answer_that_is_lost_was_given(
    proxies: FrameProxies, broker: Answering, alice: SyncClient
) -> None:
    proxies.begin(Begun("drop_next", Trouble.DROP_NEXT, LOCK, answer=True), *ALICE)
    address = proxies.listens[ALICE]
    assert fails(alice, address, LOCK) == "timeout"
    assert alice.call(address, Command(LOCK), LONG_S).code == 0
    assert broker.take(2) == [LOCK, LOCK]


def test_what_befalls_one_clients_link_befalls_no_other(
    proxies: FrameProxies, alice: SyncClient
) -> None:
    proxies.begin(Begun("lose", Trouble.LOSE, 100), *ALICE)
    with SyncClient() as bob:
        assert bob.call(proxies.listens[BOB], Command(LOCK), LONG_S).code == 0
    assert fails(alice, proxies.listens[ALICE], LOCK) == "timeout"
    assert [(client, met.verb) for client, met in proxies.story.met] == [("alice", "lose")]
    proxies.mend(*ALICE)
    assert alice.call(proxies.listens[ALICE], Command(LOCK), LONG_S).code == 0


def test_a_refused_request_is_answered_in_the_brokers_place(
    proxies: FrameProxies, broker: Answering, alice: SyncClient
) -> None:
    address = proxies.listens[ALICE]
    alice.call(address, Command(PULL), LONG_S)
    proxies.begin(Begun("request_error", Trouble.REFUSE_NEXT, LOCK, error=BUSY), *ALICE)
    told = [alice.call(address, Command(LOCK), LONG_S).code for _ in range(2)]
    assert told == [BUSY, 0]
    assert broker.take(2) == [PULL, LOCK]


def test_a_request_that_comes_twice_is_done_twice_and_answered_once_for_its_client(
    proxies: FrameProxies, broker: Answering, alice: SyncClient
) -> None:
    proxies.begin(Begun("duplicate", Trouble.DUPLICATE, 100), *ALICE)
    address = proxies.listens[ALICE]
    for code in (LOCK, PULL):
        assert alice.call(address, Command(code), LONG_S).code == 0
    assert broker.take(4) == [LOCK, LOCK, PULL, PULL]


def test_frames_overtake_each_other_and_all_of_them_arrive(
    proxies: FrameProxies, broker: Answering
) -> None:
    """Those under way when their client leaves come too, before the broker hears that it has left."""
    proxies.begin(Begun("reorder", Trouble.REORDER, 150), *ALICE)
    codes = list(range(100, 140))
    with SyncClient() as alice:
        for code in codes:
            alice.oneway(proxies.listens[ALICE], Command(code))
    arrived = broker.take(len(codes) + 1)
    assert arrived[-1] is None
    assert arrived[:-1] != codes
    assert sorted(code for code in arrived if code is not None) == codes


def test_a_request_of_the_brokers_is_no_answer(proxies: FrameProxies, alice: SyncClient) -> None:
    """It comes over the client's connection, by the number of the very request whose answer is to be lost."""
    proxies.begin(Begun("drop_next", Trouble.DROP_NEXT, PUSHES, answer=True), *ALICE)
    address = proxies.listens[ALICE]
    assert fails(alice, address, PUSHES) == "timeout"
    assert [command.code for command in alice.listen(address, LONG_S)] == [ASKS]


def test_a_one_way_request_is_lost_like_any_other(
    proxies: FrameProxies, broker: Answering, alice: SyncClient
) -> None:
    proxies.begin(Begun("drop_next", Trouble.DROP_NEXT, LOCK), *ALICE)
    for code in (LOCK, PULL):
        alice.oneway(proxies.listens[ALICE], Command(code, flag=FLAG_ONEWAY))
    assert broker.take(1) == [PULL]


def test_a_broker_that_ends_a_connection_ends_its_clients_once_all_has_arrived(
    proxies: FrameProxies, alice: SyncClient
) -> None:
    proxies.begin(Begun("reorder", Trouble.REORDER, 100), *ALICE)
    address = proxies.listens[ALICE]
    assert alice.call(address, Command(LEAVES), LONG_S).code == 0
    proxies.mend(*ALICE)
    with contextlib.suppress(RequestFailed):  # where the end has been seen by now
        alice.disconnect(address)
    assert alice.call(address, Command(LOCK), LONG_S).code == 0


def test_a_broker_that_is_gone_ends_every_connection_at_once(
    proxies: FrameProxies, broker: Answering, alice: SyncClient
) -> None:
    broker.close()
    assert fails(alice, proxies.listens[ALICE], LOCK, LONG_S) == "closed"


@pytest.mark.parametrize(
    "junk", [b"GET / HTTP/1.1\r\n\r\n", b"\x00\x00\x00\x08\x00\x00\x00\x04null"]
)
def test_what_is_no_frame_is_not_handed_on(
    proxies: FrameProxies, broker: Answering, junk: bytes
) -> None:
    with socket.create_connection(split_address(proxies.listens[ALICE]), LONG_S) as connection:
        connection.sendall(junk)
        assert connection.recv(10) == b""
    assert broker.take(1) == [None]


def test_half_a_frame_is_not_handed_on(proxies: FrameProxies, broker: Answering) -> None:
    with socket.create_connection(split_address(proxies.listens[ALICE]), LONG_S) as connection:
        connection.sendall(encode_frame(Command(LOCK))[:-3])
    assert broker.take(1) == [None]


def ends(connection: socket.socket) -> bool:
    """Whatever has come before."""
    with contextlib.suppress(ConnectionResetError):
        while connection.recv(65536):
            pass
    return True


def test_closed_they_leave_no_thread_and_nothing_that_was_late(broker: Answering) -> None:
    proxies = FrameProxies(seed=1)
    address = proxies.create(*ALICE, broker.address)
    with socket.create_connection(split_address(address), LONG_S) as connection:
        connection.sendall(encode_frame(Command(PULL)))
        assert broker.take(1) == [PULL]
        proxies.begin(Begun("reorder", Trouble.REORDER, 2_000), *ALICE)
        for _ in range(20):
            connection.sendall(encode_frame(Command(LOCK)))
        proxies.close()
        assert ends(connection)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(split_address(address), LONG_S)
    assert "frames" not in {thread.name for thread in threading.enumerate()}
    proxies.close()


def test_who_was_just_accepted_when_they_are_closed_does_not_wait_for_ever(
    broker: Answering,
) -> None:
    """The loop hears of both at once: it stood still while the client connected."""
    proxies = FrameProxies(seed=1)
    address = proxies.create(*ALICE, broker.address)
    goes_on = threading.Event()
    proxies._loop.call_soon_threadsafe(goes_on.wait)
    with socket.create_connection(split_address(address), LONG_S) as connection:
        threading.Timer(SHORT_S, goes_on.set).start()
        proxies.close()
        assert ends(connection)


def test_a_proxy_that_breaks_down_is_told(
    proxies: FrameProxies, alice: SyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ValueError("no dice")

    monkeypatch.setattr("chaos.frames.link._is_meant", broken)
    proxies.begin(Begun("drop_next", Trouble.DROP_NEXT, LOCK), *ALICE)
    assert fails(alice, proxies.listens[ALICE], LOCK, LONG_S) == "closed"
    with pytest.raises(TargetMisbehaved, match="no dice"):
        proxies.check()
    proxies._broken = None
