"""Proxies before the brokers of a run, so that its links can be broken.

A proxy does not know who is behind a connection. So a client whose links are broken alone has proxies of its own, one
before each broker, and all others share one before each. Routes name the brokers themselves; each client is told where
its proxies are (`via`). So several runs may break their links to one broker, each its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from chaos.toxiproxy.proxy import Proxy
from chaos.toxiproxy.server import ToxiproxyServer
from chaos.toxiproxy.toxics import (
    Bandwidth,
    Latency,
    LimitData,
    ResetPeer,
    Slicer,
    Stream,
    Timeout,
    Toxic,
)
from conformance.targets.systems import System
from specs.errors import UsageError
from specs.plan.ability import Ability
from specs.plan.rig import FRAGMENT_GAP_MS, PartialRig, Trouble
from specs.plan.step import EVERYBODY

OF_PROXIES = frozenset(
    {
        Ability.BREAK_LINK,
        Ability.BREAK_ONE_WAY,
        Ability.BREAK_ONE_LINK,
        Ability.SHAPE_LINK,
    }
)
_BOTH_WAYS = ((Stream.UPSTREAM, "up"), (Stream.DOWNSTREAM, "down"))


class Proxies:
    """Those of a run, until `close`. log: of their server. alone: the clients that have proxies of their own.

    by_link: the proxies by client and broker; the client of those that are shared is `EVERYBODY`.
    """

    def __init__(self, system: System, log: Path, alone: Collection[str] = ()) -> None:
        self._stack = ExitStack()
        self._server = self._stack.enter_context(ToxiproxyServer(log=log))
        self._addresses = system.brokers
        try:
            self.by_link: Mapping[tuple[str, str], Proxy] = {
                (client, name): self._server.create(f"{client}-{name}", upstream=upstream)
                for client in (EVERYBODY, *sorted(alone))
                for name, upstream in system.upstreams.items()
            }
        except BaseException:
            self.close()
            raise
        self._past = frozenset(system.upstreams.values())

    def via(self, client: str) -> Mapping[str, str]:
        """By a broker's address that of the proxy by which the client reaches it."""
        return {
            self._addresses[name]: (self.by_link.get((client, name)) or shared).listen
            for (whose, name), shared in self.by_link.items()
            if whose == EVERYBODY
        }

    def barred(self, client: str) -> Collection[str]:
        """Where only a client that passes its proxies by is led to: the brokers, and the proxies of others."""
        of_all = {proxy.listen for proxy in self.by_link.values()}
        return self._past | of_all.difference(self.via(client).values())

    def close(self) -> None:
        """A second call does nothing."""
        self._stack.close()

    def check(self) -> None:
        """Raise TargetMisbehaved when their server has died."""
        self._server.process.check_alive()


class Links(PartialRig):
    """What proxies can do to links (`specs.plan.rig`). by_link: as `Proxies` has them."""

    abilities = OF_PROXIES

    def __init__(self, by_link: Mapping[tuple[str, str], Proxy]) -> None:
        self._by_link = by_link
        self.brokers = tuple(dict.fromkeys(broker for _, broker in by_link))

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
        ways: Sequence[tuple[Stream, str]] = _BOTH_WAYS
        if kind in (Trouble.ONE_WAY, Trouble.RESET_PEER):
            ways = (_BOTH_WAYS[answer],)
        for proxy in self._of(a, b):
            if kind is Trouble.CUT:
                proxy.disable()
            for stream, way in ways:
                toxic = _toxic(kind, number, stream)
                if toxic is not None:
                    _put(proxy, toxic, f"{kind}_{way}")

    def mend(self, a: str, b: str) -> None:
        for proxy in self._of(a, b):
            for name in proxy.toxics():
                proxy.remove(name)
            if not proxy.enabled:
                proxy.enable()

    def _of(self, a: str, b: str) -> Iterator[Proxy]:
        """Those of a client's link to a broker; of everybody's, all before that broker."""
        found = [
            proxy
            for (client, broker), proxy in self._by_link.items()
            if broker == b and a in (EVERYBODY, client)
        ]
        if not found:
            raise UsageError(
                f"the link between {a} and {b} can't be broken alone: {a} has no proxy of its own"
            )
        yield from found


def _toxic(kind: Trouble, number: int, stream: Stream) -> Toxic | None:
    """What does that to one direction of each connection; None of what is done to the proxy as a whole."""
    match kind:
        case Trouble.HOLD | Trouble.ONE_WAY:
            return Timeout(stream=stream)
        case Trouble.DELAY:
            return Latency(latency_ms=number, stream=stream)
        case Trouble.JITTER:  # the mean, and how far from it: from 0 to the number
            half_ms = number // 2
            return Latency(latency_ms=number - half_ms, jitter_ms=half_ms, stream=stream)
        case Trouble.THROTTLE:
            return Bandwidth(rate_kb_per_s=max(1, number), stream=stream)
        case Trouble.FRAGMENT:
            gap_us = FRAGMENT_GAP_MS * 1000
            return Slicer(average_bytes=max(1, number), delay_us=gap_us, stream=stream)
        case Trouble.TRUNCATE:
            return LimitData(limit_bytes=number, stream=stream)
        case Trouble.RESET_PEER:
            return ResetPeer(timeout_ms=number, stream=stream)
        case _:
            return None


def _put(proxy: Proxy, toxic: Toxic, name: str) -> None:
    """A trouble that the link has already goes on by the new number, as on a simulated link."""
    if name in proxy.toxics():
        proxy.update(name, toxic)
    else:
        proxy.add(toxic, name)
