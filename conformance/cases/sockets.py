"""The simulated cluster's plans and cases on real sockets, in a time that passes only when it is told to.

The cores run in the shell's own bodies (`reference_impl.shell`) and speak over connections of 127.0.0.1: frames are
encoded, written, read and decoded by the kernel's hand. Only the clock is ours. An event loop asks for time when it
has nothing left to do and nothing is on its way; then it is the time of the next timer, up to the moment until which
the run was allowed to go. So an answer is exact to the millisecond, on the slowest machine too.

What sockets of one machine can't do is refused with `NotOnSockets`: lose, hold or delay single frames, and let a
machine die without its connections being seen to close.
"""

from __future__ import annotations

import asyncio
import fcntl
import selectors
import sys
import termios
from collections.abc import Callable, Coroutine, Hashable, Mapping, Sequence
from typing import Any

from conformance.parts import ports
from reference_impl.core import io
from reference_impl.shell.body import Body
from reference_impl.shell.clock import WallClock
from reference_impl.shell.errors import split_address
from reference_impl.shell.server import ServerBody, take_port
from reference_impl.sim.cluster import Cluster, Cores
from reference_impl.sim.time import EPOCH_MS
from specs.errors import UsageError
from specs.history.journal import MemoryRecorder
from specs.plan.plan import Plan
from specs.plan.rig import Trouble
from specs.vocabulary import Kind, Level, Outcome

ON_ITS_WAY_S = 0.002
"""So long is waited, in real time, for what is on its way within this machine."""
TRIES_MAX = 2_000
SLACK_S = 1e-7


class NotOnSockets(UsageError):
    """Something that connections of one machine can't do."""


class PacedLoop(asyncio.SelectorEventLoop):
    """An event loop whose time is given to it. now_s: since it was made."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._limit_s = 0.0
        super().__init__(_Asking(self.pass_time))

    def time(self) -> float:
        return self.now_s

    def run_until(self, at_s: float) -> None:
        """Do everything that is due up to and at that time, and all that follows from it; then it is that time."""
        self._limit_s = max(at_s, self.now_s)
        self.run_forever()

    def pass_time(self, timeout_s: float | None) -> None:
        """Nothing is left to do now. timeout_s: until the next timer, None if there is none."""
        if timeout_s is not None and self.now_s + timeout_s <= self._limit_s + SLACK_S:
            self.now_s += timeout_s
        else:
            self.now_s = self._limit_s
            self.stop()


class _Asking(selectors.DefaultSelector):
    """Instead of waiting it asks for time."""

    def __init__(self, idle: Callable[[float | None], None]) -> None:
        super().__init__()
        self._idle = idle

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(0)
        if found or (timeout is not None and timeout <= 0):
            return found
        found = super().select(ON_ITS_WAY_S)
        tries = 0
        while not found and tries < TRIES_MAX and self._is_on_its_way():
            found = super().select(ON_ITS_WAY_S)
            tries += 1
        if not found:
            self._idle(timeout)
        return found

    def _is_on_its_way(self) -> bool:
        """Has some socket written what the other end's kernel has not taken yet?"""
        return any(_unsent(key.fd) for key in self.get_map().values())


def _unsent(fd: int) -> int:
    """Bytes in a socket's send queue that are not acknowledged; 0 for what has no such queue."""
    try:
        return int.from_bytes(fcntl.ioctl(fd, termios.TIOCOUTQ, bytes(4)), sys.byteorder)
    except OSError:
        return 0


class _Timeline:
    """As `reference_impl.sim.time.Timeline`, on a paced loop."""

    events = 0

    def __init__(self, loop: PacedLoop) -> None:
        self._loop = loop

    @property
    def now_ms(self) -> int:
        return round(self._loop.now_s * 1000)

    def now_us(self) -> int:
        return self.now_ms * 1000

    def after(self, delay_ms: int, call: Callable[..., None], *args: Any) -> None:
        self._loop.call_later(max(delay_ms, 0) / 1000, call, *args)

    def run_until(self, at_ms: int) -> None:
        self._loop.run_until(at_ms / 1000)


class _Network:
    """There is none between sockets of one machine that could be broken."""

    def listen(self, address: str, node: Any) -> None:
        pass

    def inject(
        self,
        kind: Trouble,
        a: str,
        b: str,
        number: int = 0,
        *,
        answer: bool = False,
        error: int = 0,
    ) -> None:
        raise NotOnSockets(f"sockets of one machine don't {kind.replace('_', ' ')}")

    def heal(self, a: str, b: str) -> None:
        raise NotOnSockets("sockets of one machine have no faults to heal")

    def heal_all(self) -> None:
        pass

    def faults_between(self, a: str, b: str) -> list[Trouble]:
        return []


class _Clock(WallClock):
    """A node's: the run's time, and what it was set by."""

    def __init__(self, node: SocketNode) -> None:
        super().__init__()
        self._node = node

    def now_ms(self) -> int:
        return self._node.wall_ms


class _Recorder:
    """What one life of a node does, in the run's history."""

    def __init__(self, node: SocketNode, recorder: MemoryRecorder) -> None:
        self._node, self._life, self._recorder = node, node.life, recorder

    def begin(
        self, op: Hashable, kind: Kind, fields: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]
    ) -> None:
        self._recorder.begin(
            (self._node.name, self._life, op), kind, self._node.columns(fields), rows
        )

    def end(
        self,
        op: Hashable,
        outcome: Outcome,
        fields: Mapping[str, Any],
        rows: Sequence[Mapping[str, Any]],
    ) -> None:
        self._recorder.end((self._node.name, self._life, op), outcome, fields, rows)

    def note(self, kind: Kind, outcome: Outcome, fields: Mapping[str, Any]) -> None:
        self._recorder.note(kind, outcome, self._node.columns(fields))


class _Hooked(Body):
    """A body whose node can be stopped, and whose effects mean something to the cluster."""

    def __init__(self, node: SocketNode, core: Any, recorder: _Recorder) -> None:
        super().__init__(core, clock=_Clock(node), recorder=recorder)
        self.node = node

    def post(self, event: Any) -> None:
        if self.node.paused:
            self.node.inbox.append(event)
        else:
            super().post(event)

    def carry_out(self, effect: io.Effect) -> None:
        hook = self.node.hooks.get(type(effect))
        if hook is None or isinstance(effect, io.Note):
            super().carry_out(effect)
        if hook is not None:
            hook(self.node, effect)


class _Client(_Hooked):
    pass


class _Server(_Hooked, ServerBody):
    pass


class SocketNode:
    """As `reference_impl.sim.node.Node`, with a body of the shell."""

    def __init__(
        self,
        name: str,
        address: str,
        loop: PacedLoop,
        recorder: MemoryRecorder,
        hooks: Mapping[type[Any], Callable[[Any, Any], None]],
        *,
        is_server: bool,
    ) -> None:
        self.name = name
        self.address = address
        self.core: Any = None
        self.alive = False
        self.paused = False
        self.life = 0
        self.skew_ms = 0
        self.hooks = hooks
        self.inbox: list[Any] = []
        self.body: _Hooked | None = None
        self.faults: list[BaseException] = []
        self._loop = loop
        self._recorder = recorder
        self._is_server = is_server
        self._tasks: set[asyncio.Task[object]] = set()

    @property
    def wall_ms(self) -> int:
        return EPOCH_MS + round(self._loop.now_s * 1000) + self.skew_ms

    def columns(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "process": self.name,
            "level": Level.CLIENT,
            "wall_us": self.wall_ms * 1000,
            **fields,
        }

    def boot(self, core: Any) -> None:
        """A new process with this core; it is told `Start`."""
        self.core = core
        self.life += 1
        self.alive, self.paused = True, False
        recorder = _Recorder(self, self._recorder)
        if self._is_server:
            server = _Server(self, core, recorder)
            self.body = server
            host, port = split_address(self.address)
            start = server.start(take_port(port, host))
            if self._loop.is_running():  # who comes after an upgrade is due by a timer
                self._own(start)
            else:
                self._loop.run_until_complete(start)
        else:
            self.body = _Client(self, core, recorder)
            self._loop.call_soon(self.body.post, io.Start())

    def halt(self, *, silent: bool = False) -> None:
        """The process is gone: its sockets are closed by the kernel."""
        if silent:
            raise NotOnSockets(
                "a process can't die on one machine without its connections being seen to close"
            )
        body = self.body
        self.alive, self.paused, self.core, self.body = False, False, None, None
        self.inbox.clear()
        if body is None:
            return
        self.faults += body.faults
        self._own(_end(body))
        if (
            self._is_server and not self._loop.is_running()
        ):  # its port is free again when it is gone
            self._loop.run_until(self._loop.now_s)

    def _own(self, work: Coroutine[Any, Any, object]) -> None:
        """Begin it in the loop; what it raises is a fault of the node."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._over)

    def _over(self, task: asyncio.Task[object]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self.faults.append(error)

    def pause(self) -> None:
        self.paused = True

    @property
    def waiting(self) -> int:
        return len(self.inbox)

    def resume(self) -> None:
        self.paused = False
        waiting, self.inbox = self.inbox, []
        for event in waiting:
            self.post(event)

    def post(self, event: Any) -> None:
        """Hand an input to the core, in the loop."""
        if self.body is not None:
            self._loop.call_soon(self.body.post, event)

    def post_in_life(self, life: int, event: Any) -> None:
        if life == self.life:
            self.post(event)


async def _end(body: _Hooked) -> None:
    if isinstance(body, ServerBody):
        await body.stop(in_good_order=False)
    else:
        await body.end()


class SocketCluster(Cluster):
    """A plan's cluster on sockets. To be closed."""

    def __init__(
        self, plan: Plan, cores: Cores | None = None, run: str = "on-sockets", latency_ms: int = 1
    ) -> None:
        self._loop = PacedLoop()
        self._reserved = [ports.reserve() for _ in range(1 + len(plan.topology.brokers))]
        super().__init__(plan, cores, run, latency_ms)

    def _world(self, run: str, latency_ms: int) -> None:
        self._timeline: Any = _Timeline(self._loop)
        self._recorder = MemoryRecorder(run, self._timeline.now_us)
        self._network: Any = _Network()

    def _address(self, number: int) -> str:
        return f"127.0.0.1:{self._reserved[number].port}"

    def _make_node(self, name: str, address: str, hooks: Mapping[type[Any], Any]) -> Any:
        is_server = address in {self._address(number) for number in range(len(self._reserved))}
        return SocketNode(name, address, self._loop, self._recorder, hooks, is_server=is_server)

    def faults_between(self, a: str, b: str) -> list[Trouble]:
        return []

    def close(self) -> None:
        """Everybody is gone, without a word. Raises the first error that a core or the recorder raised."""
        nodes: list[Any] = list(self._nodes.values())
        for node in nodes:
            node.halt()
        self._loop.run_until(self._loop.now_s + 1)
        self._loop.close()
        for reservation in self._reserved:
            reservation.release()
        for node in nodes:
            for fault in node.faults:
                raise fault
