"""A server on a real socket that sends back what it gets, and a client of it."""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
from typing import Generic, TypeVar

from chaos.toxiproxy import Proxy

T = TypeVar("T")


class Listening(Generic[T]):
    """A server on a port of its own, a thread for each connection. got: what a subclass has to tell of them."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.got: queue.SimpleQueue[T] = queue.SimpleQueue()
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        raise NotImplementedError

    def close(self) -> None:
        self._listener.close()


class Echo(Listening[bytes]):
    """A server that sends back what it gets. got: what each ended connection sent."""

    def _serve(self, connection: socket.socket) -> None:
        whole = b""
        with connection, contextlib.suppress(OSError):
            while data := connection.recv(65536):
                whole += data
                connection.sendall(data)
        self.got.put(whole)


def connect(proxy: Proxy, timeout_s: float = 10.0) -> socket.socket:
    host, port = proxy.listen.split(":")
    return socket.create_connection((host, int(port)), timeout_s)


def exchange(connection: socket.socket, data: bytes = b"ping") -> bytes:
    """Sends, and reads as much back, or less if the connection ends."""
    connection.sendall(data)
    got = b""
    while len(got) < len(data):
        chunk = connection.recv(65536)
        if not chunk:
            break
        got += chunk
    return got
