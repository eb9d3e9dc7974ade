"""Connections of who stands between others are ended with it, whenever they came."""

from __future__ import annotations

import asyncio
import contextlib
import socket

import pytest

from conformance.tap.connections import Connections
from reference_impl.shell.errors import split_address

HOST, LONG_S = "127.0.0.1", 10.0


def ends(connection: socket.socket) -> bool:
    with contextlib.suppress(ConnectionResetError):
        assert connection.recv(10) == b""
    return True


@pytest.mark.parametrize("rounds", range(8))
def test_who_was_just_accepted_does_not_wait_for_ever(rounds: int) -> None:
    """rounds: of the loop between the connection and the end of all."""

    async def make() -> None:
        connections = Connections()

        async def serve(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
            await reader.read()

        address = await connections.listen(serve, HOST)
        with socket.create_connection(split_address(address), LONG_S) as client:
            for _ in range(rounds):
                await asyncio.sleep(0)
            await connections.stop()
            assert ends(client)

    asyncio.run(make())


def test_what_is_done_beside_and_onward_is_ended_too() -> None:
    async def make() -> list[str]:
        connections, told = Connections(), list[str]()

        async def serve(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
            await reader.read()

        async def beside() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                told.append("beside")

        address = split_address(await connections.listen(serve, HOST))
        reader, _ = await connections.onward(*address)
        connections.spawn(beside())
        await asyncio.sleep(0)
        await connections.stop()
        with contextlib.suppress(ConnectionResetError):
            await asyncio.wait_for(reader.read(), LONG_S)
        with pytest.raises(ConnectionRefusedError):
            await connections.onward(*address)
        return told

    assert asyncio.run(make()) == ["beside"]
