"""A link carries bytes both ways until it is broken, and again when it is mended."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from conformance.parts.link import Link
from conformance.waiting import now_s

QUIET_S = 0.3


@pytest.fixture
def echo() -> Iterator[str]:
    """A server that says what it hears; its address."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    taken, _ = listening.accept()
                except OSError:
                    return
                threading.Thread(target=answer, args=(taken,), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)


def answer(taken: socket.socket) -> None:
    with taken:
        try:
            while heard := taken.recv(1024):
                taken.sendall(heard)
        except OSError:
            return


def connect(link: Link) -> socket.socket:
    host, _, port = link.address.rpartition(":")
    return socket.create_connection((host, int(port)), 5)


def is_reset(link: Link) -> None:
    """A connection ends at once: the reset may be there before the caller knows that it was connected."""
    with pytest.raises(ConnectionResetError), connect(link) as connection:
        connection.recv(1)


def says(connection: socket.socket, words: bytes) -> bytes:
    connection.sendall(words)
    return connection.recv(1024)


def test_a_cut_resets_and_refuses_until_it_is_mended(echo: str) -> None:
    with Link(echo) as link:
        with connect(link) as connection:
            assert says(connection, b"one") == b"one"
            link.cut()
            with pytest.raises(ConnectionResetError):
                connection.recv(1)
        with pytest.raises(ConnectionRefusedError):
            connect(link)
        link.mend()
        with connect(link) as connection:
            assert says(connection, b"two") == b"two"


def test_what_is_held_comes_when_it_is_mended(echo: str) -> None:
    with Link(echo) as link, connect(link) as connection:
        assert says(connection, b"one") == b"one"
        link.hold()
        connection.settimeout(QUIET_S)
        with pytest.raises(TimeoutError):
            says(connection, b"two")
        link.mend()
        connection.settimeout(5)
        assert connection.recv(1024) == b"two"


def test_a_delay_counts_each_way(echo: str) -> None:
    """Nothing comes early, and all in its order."""
    with Link(echo) as link, connect(link) as connection:
        link.delay(100)
        began_s = now_s()
        assert says(connection, b"one") == b"one"
        assert now_s() - began_s >= 0.2
        assert says(connection, b"two") == b"two"


def test_it_is_told_later_where_it_leads(echo: str) -> None:
    """Until then nobody is there."""
    with Link() as link:
        is_reset(link)
        link.lead_to(echo)
        with connect(link) as connection:
            assert says(connection, b"one") == b"one"


def test_a_server_that_is_gone_is_gone_behind_the_link_too() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        gone = f"127.0.0.1:{listening.getsockname()[1]}"
    with Link(gone) as link:
        is_reset(link)
