"""A server that a run left down, or behind a broken link, is there for the next run of the same target."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self, cast

from conformance.drivers.library import Library
from conformance.drivers.served import ServedTarget
from conformance.targets.base import Run
from conformance.targets.options import Argument
from specs.errors import TargetMisbehaved


class Here:
    """A library whose parts are here."""

    name, version = "here", "1.0"

    def ensure(self) -> None:
        pass


class Noted:
    """A server, and its link, of which only is noted what is asked."""

    product, nodes = "Noted", ()

    def __init__(self, version: str, *, workdir: Path) -> None:
        self.asked: list[str] = []

    def start(self) -> None:
        self.asked.append("start")

    def start_again(self) -> None:
        self.asked.append("start again")

    def mend(self) -> None:
        self.asked.append("mend")

    def close(self) -> None:
        self.asked.append("close")


class Served(ServedTarget):
    """With such a server."""

    system = "noted"
    knows = ()
    server: Any = Noted

    @classmethod
    def made(cls, argument: Argument, version: str | None) -> Self:
        here = cast(Library, Here())
        return cls(argument, version, here, here)

    def own_settings(self, run: Run, address: str) -> dict[str, str]:
        return {}


def test_a_run_finds_the_server_as_if_nothing_had_been_broken() -> None:
    target: Any = Served.made(Argument("1.0"), "1.0")
    target._open()
    assert target._server.asked == ["start"]
    target._open()
    assert target._server.asked == ["start"]
    target._is_down, target._link = True, target._server  # as a run leaves them that fails midway
    target._open()
    assert target._server.asked == ["start", "mend", "start again"]
    target._open()
    assert target._server.asked[3:] == ["mend"]
    target._link = None
    target._temporary.cleanup()


def test_a_server_that_does_not_come_back_is_given_up_for_a_new_one() -> None:
    target: Any = Served.made(Argument("1.0"), "1.0")
    target._open()
    old = target._server

    def in_vain() -> None:
        raise TargetMisbehaved("it was given 60 s and did not answer")

    old.start_again = in_vain
    target._is_down = True  # as a run leaves it
    target._open()
    assert old.asked == ["start", "close"]
    assert target._server is not old
    assert target._server.asked == ["start"]
    target._open()
    assert target._server.asked == ["start"]
    target._temporary.cleanup()
