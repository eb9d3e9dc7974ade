"""A broker of a few lines on a real socket: it answers each request, and asks something itself when it is told to."""

from __future__ import annotations

import contextlib
import socket

from reference_impl.protocol.command import Command
from reference_impl.protocol.frame import FrameDecoder, encode_frame
from tests.chaos.toxiproxy.echo import Listening

PUSHES = 7
"""The code of the request by which it is told to ask its client something, by the same opaque."""
LEAVES = 8
"""And by which it is told to end the connection once it has answered."""
ASKS = 40
CHANGED = 1


class Answering(Listening[int | None]):
    """got: the codes of what has come, in order; an end of a connection is None."""

    def take(self, count: int) -> list[int | None]:
        """The next ones."""
        return [self.got.get(timeout=30) for _ in range(count)]

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        super().close()

    def _serve(self, connection: socket.socket) -> None:
        decoder = FrameDecoder()
        with connection, contextlib.suppress(OSError):
            while data := connection.recv(65536):
                decoder.feed(data)
                for command in iter(decoder.next_command, None):
                    self.got.put(command.code)
                    if command.code == PUSHES:
                        connection.sendall(encode_frame(Command(ASKS, opaque=command.opaque)))
                    if not command.is_oneway and not command.is_response:
                        connection.sendall(encode_frame(command.reply(0, body=command.body)))
                    if command.code == LEAVES:
                        return self.got.put(None)
        return self.got.put(None)
