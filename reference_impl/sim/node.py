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
            raise CoreFailed(
                f"{type(core).__name__} of {self.name} failed at {event!r}: {error!r}"
            ) from error
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
        kind = type(effect)
        how = _HOW.get(kind)
        if how is not None:
            how(self, effect)
        hook = self._hooks.get(kind)
        if hook is not None:
            hook(self, effect)

    def _set_timer(self, effect: io.SetTimer) -> None:
        self._set += 1
        self._timers[effect.token] = self._set
        self._timeline.after(effect.delay_ms, self._fire, effect.token, self._set)

    def _cancel_timer(self, effect: io.CancelTimer) -> None:
        self._timers.pop(effect.token, None)

    def _request(self, effect: io.Request) -> None:
        self._network.request(self, effect.token, effect.address, effect.command, effect.timeout_ms)

    def _oneway(self, effect: io.Oneway) -> None:
        self._network.oneway(self, effect.address, effect.command)

    def _send(self, effect: io.Send) -> None:
        self._network.send(self, effect.conn, effect.command)

    def _close(self, effect: io.Close) -> None:
        self._network.close(self, effect.conn)

    def _begin(self, effect: io.Begin) -> None:
        op = (self.name, self.life, effect.op)
        self._recorder.begin(op, effect.kind, self._fields(effect.fields), effect.rows)

    def _end(self, effect: io.End) -> None:
        self._recorder.end(
            (self.name, self.life, effect.op), effect.outcome, effect.fields, effect.rows
        )

    def _note(self, effect: io.Note) -> None:
        self._recorder.note(effect.kind, effect.outcome, self._fields(effect.fields))

    def _fields(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        return {**self._common, "wall_us": self.wall_ms * 1000, **fields}


_HOW: dict[type[Any], Callable[[Node, Any], None]] = {
    io.SetTimer: Node._set_timer,
    io.CancelTimer: Node._cancel_timer,
    io.Request: Node._request,
    io.Oneway: Node._oneway,
    io.Send: Node._send,
    io.Close: Node._close,
    io.Begin: Node._begin,
    io.End: Node._end,
    io.Note: Node._note,
}
"""How an effect is carried out; what is not here means something to the cluster only."""
