"""A system whose brokers stand behind proxies, so that their links can be broken.

A proxy stands before a broker, not before a client: a link that suffers is that of everybody to a broker.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from chaos.toxiproxy.proxy import Proxy
from chaos.toxiproxy.server import ToxiproxyServer
from chaos.toxiproxy.toxics import Latency, Stream, Timeout
from conformance.targets.systems import System
from specs.errors import UsageError
from specs.plan.ability import Ability
from specs.plan.rig import PartialRig, Trouble
from specs.plan.step import EVERYBODY

OF_PROXIES = frozenset({Ability.BREAK_LINK, Ability.BREAK_ONE_WAY})
_BOTH_WAYS = ((Stream.UPSTREAM, "up"), (Stream.DOWNSTREAM, "down"))


class ProxiedSystem(System):
    """inner: it advertises its brokers at the addresses where the proxies listen. log: of the proxy server."""

    def __init__(self, inner: System, log: Path) -> None:
        self._inner = inner
        self._log = log
        self._stack = ExitStack()
        self.abilities = inner.abilities | OF_PROXIES  # type: ignore[misc]
        self.proxies: Mapping[str, Proxy] = {}

    def __enter__(self) -> Self:
        try:
            inner = self._stack.enter_context(self._inner)
            self.namesrv, self.brokers = inner.namesrv, inner.brokers
            self.upstreams = inner.upstreams
            self._server = self._stack.enter_context(ToxiproxyServer(log=self._log))
            self.proxies = {
                name: self._server.create(name, upstream=upstream, listen=self.brokers[name])
                for name, upstream in self.upstreams.items()
            }
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def check(self) -> None:
        """Raise TargetMisbehaved when the proxies' server has died."""
        self._server.process.check_alive()

    def crash_broker(self, name: str) -> None:
        self._inner.crash_broker(name)

    def restart_broker(self, name: str) -> None:
        self._inner.restart_broker(name)

    def fill_disk(self, name: str, *, full: bool) -> None:
        self._inner.fill_disk(name, full=full)

    def on_own_disk(self) -> None:
        self._inner.on_own_disk()

    def keep(self) -> None:
        self._inner.keep()

    def cut_power(self, name: str, *, synced: bool) -> int:
        return self._inner.cut_power(name, synced=synced)


class Links(PartialRig):
    """What proxies can do to links (`specs.plan.rig`)."""

    abilities = OF_PROXIES

    def __init__(self, system: ProxiedSystem) -> None:
        self._proxies = system.proxies
        self.brokers = tuple(system.brokers)

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
        if kind is Trouble.ONE_WAY:
            stream, way = _BOTH_WAYS[answer]
            proxy.add(Timeout(stream=stream), f"{kind}_{way}")
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
        if a != EVERYBODY or b not in self._proxies:
            raise UsageError(
                f"the link between {a} and {b} can't be broken alone: a proxy knows no clients"
            )
        return self._proxies[b]
