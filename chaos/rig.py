"""The parts of a chaos run: the system, the proxies before its brokers, and each consumer as something to break.

A consumer is a process (killed and stopped by signals) or a container (killed and paused by the Docker engine);
the faults do not know which.
"""

from __future__ import annotations

import signal
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import psutil
from docker import DockerClient

from chaos.live import Live
from chaos.toxiproxy.proxy import Proxy
from chaos.toxiproxy.server import ToxiproxyServer
from chaos.toxiproxy.toxics import Latency, Stream, Timeout
from conformance.parts import docker_engine
from conformance.parts.docker_engine import Container
from conformance.parts.processes import Process
from conformance.targets.systems import System
from specs.errors import TargetMisbehaved, UsageError
from specs.history.clock import host_clock
from specs.history.journal import Journal
from specs.plan.ability import Ability
from specs.plan.rig import PartialRig, Trouble
from specs.vocabulary import Kind, Outcome

MODULE = "reference_impl.shell.client_process"
STOP_GRACE_S = 20.0
EVERYBODY = "everybody"
"""The other end of a link to a broker: its proxy knows no clients."""
OF_CLIENTS = frozenset({Ability.CRASH_CLIENT, Ability.PAUSE_CLIENT})
OF_PROXIES = frozenset({Ability.BREAK_LINK})
_BOTH_WAYS = ((Stream.UPSTREAM, "up"), (Stream.DOWNSTREAM, "down"))


class Party(ABC):
    """One consumer of the plan, running somewhere."""

    def __init__(self, name: str) -> None:
        self.name = name

    @abstractmethod
    def start(self) -> None: ...

    @abstractmethod
    def kill(self) -> None:
        """SIGKILL: it dies without a word."""

    @abstractmethod
    def pause(self) -> None:
        """It stops between two instructions; its connections stay open."""

    @abstractmethod
    def resume(self) -> None: ...

    @abstractmethod
    def stop(self) -> None:
        """SIGTERM: it shuts down in good order."""

    @abstractmethod
    def pid(self) -> int | None:
        """Its process on this host, where we may look at it."""


class ProcessParty(Party):
    """A consumer in a process of its own."""

    def __init__(self, name: str, arguments: list[str], out: Path) -> None:
        super().__init__(name)
        self._arguments = [*arguments, "--out", str(out)]
        self._log = out / f"{name}.log"
        self._process: Process | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", MODULE, *self._arguments]
        self._process = Process(f"Consumer {self.name}", command, log=self._log)

    def kill(self) -> None:
        self._running().kill()
        self._process = None

    def pause(self) -> None:
        self._running().pause()

    def resume(self) -> None:
        self._running().resume()

    def stop(self) -> None:
        if self._process is not None:
            code = self._process.stop(STOP_GRACE_S)
            if code not in (0, -signal.SIGKILL):
                raise self._process.misbehaved("ended badly")
            self._process = None

    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def _running(self) -> Process:
        if self._process is None:
            raise TargetMisbehaved(f"consumer {self.name} is not running")
        self._process.check_alive()
        return self._process


class ContainerParty(Party):
    """A consumer in a container on the host's network; the run's folder is mounted into it."""

    INSIDE = "/run/inorder"

    def __init__(
        self, name: str, client: DockerClient, image: str, arguments: list[str], out: Path
    ) -> None:
        super().__init__(name)
        self._client = client
        self._image = image
        self._out = out
        inside = [word.replace(str(out), self.INSIDE) for word in arguments]
        self._command = ["python3", "-m", MODULE, *inside, "--out", self.INSIDE]
        self._container: Container | None = None

    def start(self) -> None:
        self._container = Container(
            self._client, self._image, self._command, volumes={self._out: self.INSIDE}
        )

    def kill(self) -> None:
        self._running().kill()
        self._close()

    def pause(self) -> None:
        self._running().pause()

    def resume(self) -> None:
        self._running().resume()

    def stop(self) -> None:
        if self._container is not None:
            self._container.terminate()
            code = self._container.wait(STOP_GRACE_S)
            logs = self._container.logs()
            self._close()
            if code != 0:
                raise TargetMisbehaved(f"consumer {self.name} ended with {code}: {logs[-500:]}")

    def pid(self) -> int | None:
        return None

    def _running(self) -> Container:
        if self._container is None:
            raise TargetMisbehaved(f"consumer {self.name} is not running")
        return self._container

    def _close(self) -> None:
        if self._container is not None:
            self._container.close()
            self._container = None


class Rig(PartialRig):
    """Everything that faults act on. A context manager: leaving it ends all that it started.

    A proxy stands before a broker, not before a client: a link that suffers is that of everybody to a broker.
    """

    def __init__(self, system: System, out: Path, journal: Journal, *, proxied: bool) -> None:
        self.system = system
        self.out = out
        self.journal = journal
        self.live = Live(out)
        self.parties: dict[str, Party] = {}
        self.proxies: Mapping[str, Proxy] = {}
        self.brokers = tuple(system.brokers)
        self.abilities = OF_CLIENTS | system.abilities | (OF_PROXIES if proxied else set())
        self._proxied = proxied
        self._stack = ExitStack()
        self._clock = host_clock()

    def __enter__(self) -> Rig:
        if self._proxied:
            server = self._stack.enter_context(ToxiproxyServer(log=self.out / "toxiproxy.log"))
            self.proxies = {
                name: server.create(name, upstream=upstream, listen=self.system.brokers[name])
                for name, upstream in self.system.upstreams.items()
            }
        return self

    def __exit__(self, *_: object) -> None:
        for party in self.parties.values():
            if isinstance(party, ContainerParty):
                party._close()
            elif party.pid() is not None:
                party.kill()
        self._stack.close()

    # ------------------------------------------------------------ what faults are made of (specs.plan.rig)

    def kill(self, node: str, *, silent: bool = False) -> None:
        if silent:
            raise UsageError("a process can't die here without its connections being seen to close")
        if node in self.brokers:
            self.system.crash_broker(node)
            who = {"broker": node}
        else:
            self.parties[node].kill()
            who = {"client_id": node}
        self.journal.note(Kind.CRASH, Outcome.OK, {**who, "detail": "killed by the harness"})

    def revive(self, node: str) -> None:
        if node in self.brokers:
            self.system.restart_broker(node)
        else:
            self.parties[node].start()

    def pause(self, node: str) -> None:
        self.journal.begin((Kind.PAUSE, node), Kind.PAUSE, {"client_id": node})
        self.parties[node].pause()

    def resume(self, node: str) -> None:
        self.parties[node].resume()
        self.journal.end((Kind.PAUSE, node), Outcome.OK)

    def trouble(
        self,
        kind: Trouble,
        a: str,
        b: str,
        number: int = 0,
        *,
        answer: bool = False,
        error: int = 0,
    ) -> None:
        proxy = self._proxy(a, b)
        if kind is Trouble.CUT:
            proxy.disable()
        for stream, way in _BOTH_WAYS:
            if kind is Trouble.DELAY:
                proxy.add(Latency(latency_ms=number, stream=stream), f"{kind}_{way}")
            elif kind is Trouble.HOLD:
                proxy.add(Timeout(stream=stream), f"{kind}_{way}")

    def mend(self, a: str, b: str) -> None:
        proxy = self._proxy(a, b)
        for name in proxy.toxics():
            proxy.remove(name)
        if not proxy.enabled:
            proxy.enable()

    def _proxy(self, a: str, b: str) -> Proxy:
        if a != EVERYBODY or b not in self.proxies:
            raise UsageError(
                f"the link between {a} and {b} can't be broken alone: a proxy knows no clients"
            )
        return self.proxies[b]

    def fill_disk(self, broker: str) -> None:
        self.system.fill_disk(broker, full=True)

    def make_room(self, broker: str) -> None:
        self.system.fill_disk(broker, full=False)

    # ------------------------------------------------------------ parties

    def now_us(self) -> int:
        return self._clock.monotonic_us()

    def add_process(self, name: str, arguments: list[str]) -> None:
        self.parties[name] = ProcessParty(name, arguments, self.out)

    def add_container(self, name: str, arguments: list[str], client: DockerClient) -> None:
        image = docker_engine.ensure_image(client)
        self.parties[name] = ContainerParty(name, client, image, arguments, self.out)

    def check_nobody_bypasses(self) -> None:
        """TargetMisbehaved when a consumer process holds a connection to a broker past its proxy."""
        if not self.proxies:
            return
        past = {
            (host, int(port))
            for host, _, port in (up.rpartition(":") for up in self.system.upstreams.values())
        }
        for party in self.parties.values():
            pid = party.pid()
            if pid is None:
                continue
            for connection in psutil.Process(pid).net_connections("tcp"):
                if connection.raddr and (connection.raddr.ip, connection.raddr.port) in past:
                    raise TargetMisbehaved(
                        f"consumer {party.name} speaks to a broker past its proxy"
                    )
