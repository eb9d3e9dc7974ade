"""Proxies before the brokers of a run, so that its links can be broken.

A proxy stands before a broker, not before a client: a link that suffers is that of everybody in the run to a broker.
Routes name the brokers themselves; the run's clients are told where the proxies are (`via`). So several runs may break
their links to one broker, each its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import ExitStack
from pathlib import Path

from chaos.toxiproxy.proxy import Proxy
from chaos.toxiproxy.server import ToxiproxyServer
from chaos.toxiproxy.toxics import Latency, Stream, Timeout, Toxic
from conformance.targets.systems import System
from specs.errors import UsageError
from specs.plan.ability import Ability
from specs.plan.rig import PartialRig, Trouble
from specs.plan.step import EVERYBODY

OF_PROXIES = frozenset({Ability.BREAK_LINK, Ability.BREAK_ONE_WAY})
_BOTH_WAYS = ((Stream.UPSTREAM, "up"), (Stream.DOWNSTREAM, "down"))


class Proxies:
    """One before each broker, until `close`. log: of their server. via: by a broker's address its proxy's."""

    def __init__(self, system: System, log: Path) -> None:
        self._stack = ExitStack()
        self._server = self._stack.enter_context(ToxiproxyServer(log=log))
        try:
            self.proxies: Mapping[str, Proxy] = {
                name: self._server.create(name, upstream=upstream)
                for name, upstream in system.upstreams.items()
            }
        except BaseException:
            self.close()
            raise
        self.via = {system.brokers[name]: proxy.listen for name, proxy in self.proxies.items()}
        self.past: Collection[str] = frozenset(system.upstreams.values())
        """Where only who passes them by leads to."""

    def close(self) -> None:
        """A second call does nothing."""
        self._stack.close()

    def check(self) -> None:
        """Raise TargetMisbehaved when their server has died."""
        self._server.process.check_alive()


class Links(PartialRig):
    """What proxies can do to links (`specs.plan.rig`)."""

    abilities = OF_PROXIES

    def __init__(self, proxies: Mapping[str, Proxy]) -> None:
        self._proxies = proxies
        self.brokers = tuple(proxies)

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
            _put(proxy, Timeout(stream=stream), f"{kind}_{way}")
        for stream, way in _BOTH_WAYS:
            if kind is Trouble.DELAY:
                _put(proxy, Latency(latency_ms=number, stream=stream), f"{kind}_{way}")
            elif kind is Trouble.HOLD:
                _put(proxy, Timeout(stream=stream), f"{kind}_{way}")

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


def _put(proxy: Proxy, toxic: Toxic, name: str) -> None:
    """A trouble that the link has already goes on by the new number, as on a simulated link."""
    if name in proxy.toxics():
        proxy.update(name, toxic)
    else:
        proxy.add(toxic, name)
