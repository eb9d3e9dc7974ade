"""The toxiproxy server as a child process on a free port of 127.0.0.1.

with ToxiproxyServer(log=folder / "toxiproxy.log") as toxiproxy:
    proxy = toxiproxy.create("broker", upstream="127.0.0.1:10911")
    with proxy.having(Latency(latency_ms=200)):
        ...  # connect to proxy.listen
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

from chaos.toxiproxy.api import Api, loopback_without_proxy
from chaos.toxiproxy.proxy import Proxy
from conformance.parts import ports, toxiproxy_binary
from conformance.parts.places import by_set_up
from conformance.parts.processes import Process
from specs.errors import TargetMisbehaved, Unavailable, UsageError

READY_DEADLINE_S = 20.0


class ToxiproxyServer:
    """A running server; a context manager, or `start` and `close`.

    log: its log file. seed: makes the choice of connections that a toxicity below 1 hits repeatable.
    Raises Unavailable if the server was never built, TargetMisbehaved if it dies or does not get ready.
    """

    def __init__(self, *, log: Path, seed: int | None = None) -> None:
        self._log = log
        self._seed = seed
        self._process: Process | None = None
        self._reservations: list[ports.Reservation] = []
        self._api: Api | None = None

    def start(self) -> Self:
        """Starts the server and waits until it answers."""
        if not toxiproxy_binary.present():
            raise Unavailable(
                f"The toxiproxy server is not built ({toxiproxy_binary.path()} is missing): "
                f"{by_set_up('toxiproxy_binary')}"
            )
        loopback_without_proxy()
        port = self._reserve()
        argv: list[str | Path] = [toxiproxy_binary.path(), "-host", "127.0.0.1", "-port", str(port)]
        if self._seed is not None:
            argv += ["-seed", str(self._seed)]
        self._api = api = Api(port)
        self._process = Process("The toxiproxy server", argv, log=self._log)

        def answers() -> str | None:
            try:
                return api.version()
            except TargetMisbehaved:
                return None

        try:
            self._process.wait_until(
                answers, what="answer GET /version", deadline_s=READY_DEADLINE_S
            )
        except BaseException:
            self.close()
            raise
        return self

    def create(self, name: str, *, upstream: str, listen: str | None = None) -> Proxy:
        """A proxy in front of `upstream`. listen: "HOST:PORT", default a free port of 127.0.0.1.

        Raises UsageError if the name is taken, TargetMisbehaved if the port is busy.
        """
        # Not the server's own choice: it is from the range of outgoing connections, one of which could take the port
        # while the proxy is down.
        address = listen or f"127.0.0.1:{self._reserve()}"
        with self.api.package(f"Creating proxy {name!r} on {address}") as client:
            made = client.create(upstream=upstream, name=name, listen=address)
        proxy = Proxy(self.api, name, made.listen, upstream)
        if not proxy.enabled:
            raise TargetMisbehaved(
                f"Proxy {name!r} was created on {made.listen} but does not listen; a busy port?"
            )
        return proxy

    def proxies(self) -> list[Proxy]:
        """All proxies of this server, sorted by name."""
        known = self.api.request("GET", "/proxies")
        return [
            Proxy(self.api, name, known[name]["listen"], known[name]["upstream"])
            for name in sorted(known)
        ]

    def heal(self) -> None:
        """Takes all toxics away and enables all proxies."""
        self.api.request("POST", "/reset")
        for proxy in self.proxies():
            if proxy.toxics() or not proxy.enabled:
                raise TargetMisbehaved(f"Proxy {proxy.name!r} was healed and is still faulty.")

    @property
    def api(self) -> Api:
        """The HTTP interface; valid while the server runs."""
        if self._api is None:
            raise UsageError("The toxiproxy server is not running.")
        return self._api

    @property
    def process(self) -> Process:
        """The server's process; valid while it runs."""
        if self._process is None:
            raise UsageError("The toxiproxy server is not running.")
        return self._process

    def close(self) -> None:
        """Kills the server and gives its port back. A second call does nothing."""
        if self._process is not None:
            self._process.kill()
        for reservation in self._reservations:
            reservation.release()
        self._reservations = []
        self._process = self._api = None

    def _reserve(self) -> int:
        reservation = ports.reserve()
        self._reservations.append(reservation)
        return reservation.port

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
