"""A reserved port is free, and is given to nobody else on this machine."""

from __future__ import annotations

import socket
import subprocess
import sys

from conformance.parts import ports


def test_two_reservations_never_meet() -> None:
    """Ports and their neighbours of ten reservations are all different."""
    held = [ports.reserve(offsets=(-2, 0, 1)) for _ in range(10)]
    taken = [reservation.port + offset for reservation in held for offset in (-2, 0, 1)]
    assert len(set(taken)) == 30
    for reservation in held:
        reservation.release()


def test_another_process_does_not_get_a_reserved_port() -> None:
    """The lock holds between processes, though nobody listens on the port."""
    with ports.reserve() as mine:
        script = f"""
from conformance.parts import ports
ports.LOWEST = {mine.port}
ports._highest = lambda: {mine.port + 50}
print(sorted(ports.reserve().port for _ in range(3)))
"""
        out = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        ).stdout
    assert str(mine.port) not in out


def test_a_busy_port_is_not_free() -> None:
    """A listener on one address of the machine makes the port useless for all."""
    with ports.reserve() as mine:
        assert ports.is_free(mine.port)
        with socket.create_server(("127.0.0.1", mine.port)):
            assert not ports.is_free(mine.port)
        assert ports.is_free(mine.port)


def test_a_released_port_can_be_reserved_again() -> None:
    """Releasing twice does nothing more."""
    first = ports.reserve()
    first.release()
    first.release()
    with ports.reserve() as second:
        assert second.port == first.port
