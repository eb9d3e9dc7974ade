"""A node of the simulated world: one core, its timers, its wall clock, and what can be done to its process.

A crash loses everything but what was handed to the core from outside (a broker's store). A paused process reads
nothing: what arrives, and what its timers and listeners have to say, waits and is handled when it goes on, in
the order in which it came.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Protocol

from reference_impl.core import io
from reference_impl.sim.network import Connection, Network
from reference_impl.sim.time import EPOCH_MS, Timeline
from specs.errors import InorderError
from specs.history.journal import MemoryRecorder
from specs.vocabulary import Level


class Core(Protocol):
    def handle(self, now_ms: int, event: Any, /) -> Iterable[io.Effect]: ...


class CoreFailed(InorderError):
    """A core raised: a bug in it (exit 70)."""


class Node:
    """name: the plan's. address: what others see of it. life: counts its processes. skew_ms: of its wall clock.

    hooks: what to do with effects that mean something outside of node and network, by their type.
    """

    __slots__ = (
        "_common",
        "_hooks",
        "_inbox",
        "_network",
        "_recorder",
        "_set",
        "_timeline",
        "_timers",
        "address",
        "alive",
        "connections",
        "core",
        "life",
        "name",
        "paused",
        "skew_ms",
    )

    def __init__(
        self,
        name: str,
        address: str,
        timeline: Timeline,
        network: Network,
        recorder: MemoryRecorder,
        hooks: Mapping[type[Any], Callable[[Node, Any], None]],
    ) -> None:
        self.name = name
        self.address = address
        self.core: Core | None = None
        self.alive = False
        self.paused = False
        self.life = 0
        self.skew_ms = 0
        self.connections: dict[str, Connection] = {}
        self._timeline = timeline
        self._network = network
        self._recorder = recorder
        self._hooks = hooks
        self._timers: dict[Hashable, int] = {}
        self._set = 0  # how many timers were ever set
        self._inbox: list[tuple[bool, Any, int]] = []
        self._common: dict[str, Any] = {"process": name, "level": Level.CLIENT}

    @property
    def wall_ms(self) -> int:
        """Its wall clock, ms since the epoch."""
        return EPOCH_MS + self._timeline.now_ms + self.skew_ms

    # ------------------------------------------------------------ its process

    def boot(self, core: Core) -> None:
        """A new process with this core; it is told `Start`."""
        self.core = core
        self.life += 1
        self.alive = True
        self.paused = False
        self.post(io.Start())

    def halt(self, *, silent: bool = False) -> None:
        """The process is gone: killed, or at its end."""
        self.alive = False
        self.paused = False
        self.core = None
        self._timers.clear()
        self._inbox.clear()
        self._network.leave(self, silent=silent)

    def pause(self) -> None:
        self.paused = True

    @property
    def waiting(self) -> int:
        """How many things wait for the paused process."""
        return len(self._inbox)

    def resume(self) -> None:
        self.paused = False
        waiting, self._inbox = self._inbox, []
        for is_timer, what, number in waiting:
            if is_timer:
                self._fire(what, number)
            else:
                self.post(what)

    # ------------------------------------------------------------ inputs

    def post(self, event: Any) -> None:
        """Hand an input to the core, now or when the process goes on."""
        core = self.core
        if core is None:
            return
        if self.paused:
            self._inbox.append((False, event, 0))
            return
        try:
            effects = core.handle(self.wall_ms, event)
        except Exception as error:
            raise CoreFailed(f"{type(core).__name__} of {self.name} failed at {event!r}: {error!r}") from error
        for effect in effects:
            self._carry_out(effect)

    def post_in_life(self, life: int, event: Any) -> None:
        """As `post`, unless that process is gone by now."""
        if life == self.life:
            self.post(event)

    def _fire(self, token: Hashable, number: int) -> None:
        if self._timers.get(token) != number:
            return  # replaced, cancelled, or of an earlier process
        if self.paused:
            self._inbox.append((True, token, number))
            return
        del self._timers[token]
        self.post(io.TimerFired(token))

    # ------------------------------------------------------------ effects

    def _carry_out(self, effect: io.Effect) -> None:
        match effect:
            case io.SetTimer(token, delay_ms):
                self._set += 1
                self._timers[token] = self._set
                self._timeline.after(delay_ms, self._fire, token, self._set)
            case io.Request(token, address, command, timeout_ms):
                self._network.request(self, token, address, command, timeout_ms)
            case io.Send(conn, command):
                self._network.send(self, conn, command)
            case io.Begin(op, kind, fields, rows):
                self._recorder.begin((self.name, self.life, op), kind, self._fields(fields), rows)
            case io.End(op, outcome, fields, rows):
                self._recorder.end((self.name, self.life, op), outcome, fields, rows)
            case io.Note(kind, outcome, fields):
                self._recorder.note(kind, outcome, self._fields(fields))
            case io.CancelTimer(token):
                self._timers.pop(token, None)
            case io.Oneway(address, command):
                self._network.oneway(self, address, command)
            case io.Close(conn):
                self._network.close(self, conn)
            case _:
                pass
        hook = self._hooks.get(type(effect))
        if hook is not None:
            hook(self, effect)

    def _fields(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        return {**self._common, "wall_us": self.wall_ms * 1000, **fields}
