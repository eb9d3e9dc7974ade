"""Proxies before the brokers of a run, so that its links can be broken.

Toxiproxy breaks what consists of bytes; what befalls single frames takes a proxy that reads them (`chaos.frames`). A
plan has those that it needs, and where it needs both the one that reads frames stands behind the other: a client meets
toxiproxy, as it does without.

A proxy does not know who is behind a connection. So a client whose links are broken alone has proxies of its own, one
before each broker, and all others share one before each. Where frames are read each client has its own: the next
request of everybody's is the next one of each, as it is simulated. Routes name the brokers themselves; each client is
told where its proxies are (`via`). So several runs may break their links to one broker, each its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from chaos.frames.link import OF_FRAMES, Begun
from chaos.frames.proxy import FrameProxies, Story
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
from specs.plan.fault import Subject
from specs.plan.plan import Plan
from specs.plan.rig import FRAGMENT_GAP_MS, PartialRig, Trouble
from specs.plan.step import EVERYBODY, Step

OF_BYTES = frozenset({Ability.BREAK_LINK, Ability.BREAK_ONE_WAY, Ability.SHAPE_LINK})
"""What toxiproxy can do."""
OF_READERS = frozenset({Ability.SPOIL_LINK, Ability.DROP_REQUEST, Ability.REFUSE_REQUEST})
"""What a proxy can do that reads frames."""
OF_PROXIES = OF_BYTES | OF_READERS | {Ability.BREAK_ONE_LINK}
_BOTH_WAYS = ((Stream.UPSTREAM, "up"), (Stream.DOWNSTREAM, "down"))


@dataclass(frozen=True, slots=True)
class Wanted:
    """The proxies that a plan needs. alone: the clients that have their own. of_bytes, of_frames: which kinds."""

    alone: frozenset[str] = frozenset()
    of_bytes: bool = True
    of_frames: bool = False

    def __bool__(self) -> bool:
        return self.of_bytes or self.of_frames


def wanted(plan: Plan) -> Wanted:
    """None at all, where its steps break no links."""
    steps = [step for step in plan.steps if step.fault and step.fault.subject is Subject.LINK]
    needs = {need for step in steps for need in step.needs}
    of_frames = bool(needs & OF_READERS)
    broken = {name for step in steps if step.is_of_one_link for name in step.healing_args.values()}
    alone = {client.id for client in plan.clients if of_frames or client.id in broken}
    return Wanted(frozenset(alone), bool(needs & OF_BYTES), of_frames)


class Proxies:
    """Those of a run, until `close`. log: of toxiproxy's server. wanted: which. seed: what becomes of frames by chance.

    by_link: toxiproxy's by client and broker; the client of those that are shared is `EVERYBODY`. frames: those that
    read frames, if there are such.
    """

    def __init__(self, system: System, log: Path, wanted: Wanted, seed: int = 0) -> None:
        self._stack = ExitStack()
        self._server: ToxiproxyServer | None = None
        self._addresses = system.brokers
        self.by_link: Mapping[tuple[str, str], Proxy] = {}
        self.frames: FrameProxies | None = None
        behind = {
            (client, name): upstream
            for client in (EVERYBODY, *sorted(wanted.alone))
            for name, upstream in system.upstreams.items()
        }
        self._past = {*behind.values()}
        self._listens: Mapping[tuple[str, str], str] = behind
        try:
            if wanted.of_frames:
                self._read_frames(behind, seed)
            if wanted.of_bytes:
                self._break_bytes(self._listens, log)
        except BaseException:
            self.close()
            raise

    def _read_frames(self, behind: Mapping[tuple[str, str], str], seed: int) -> None:
        self.frames = FrameProxies(seed)
        self._stack.callback(self.frames.close)
        for (client, broker), upstream in behind.items():
            self.frames.create(client, broker, upstream)
        self._listens = self.frames.listens
        self._past |= {*self._listens.values()}

    def _break_bytes(self, behind: Mapping[tuple[str, str], str], log: Path) -> None:
        self._server = server = self._stack.enter_context(ToxiproxyServer(log=log))
        self.by_link = {
            (client, broker): server.create(f"{client}-{broker}", upstream=upstream)
            for (client, broker), upstream in behind.items()
        }
        self._listens = {place: proxy.listen for place, proxy in self.by_link.items()}
        self._past |= {*self._listens.values()}

    @property
    def story(self) -> Story:
        """What has become of the troubles of frames so far."""
        return Story() if self.frames is None else self.frames.story

    def via(self, client: str) -> Mapping[str, str]:
        """By a broker's address that of the proxy by which the client reaches it."""
        return {
            self._addresses[name]: self._listens.get((client, name), shared)
            for (whose, name), shared in self._listens.items()
            if whose == EVERYBODY
        }

    def barred(self, client: str) -> Collection[str]:
        """Where only a client that passes its proxies by is led to: brokers, and what else is before them."""
        return self._past.difference(self.via(client).values())

    def close(self) -> None:
        """A second call does nothing."""
        self._stack.close()

    def check(self) -> None:
        """Raise TargetMisbehaved when one has died."""
        if self._server is not None:
            self._server.process.check_alive()
        if self.frames is not None:
            self.frames.check()


class Links(PartialRig):
    """What proxies can do to links (`specs.plan.rig`). by_link, frames: as `Proxies` has them."""

    abilities = OF_PROXIES

    def __init__(
        self, by_link: Mapping[tuple[str, str], Proxy], frames: FrameProxies | None = None
    ) -> None:
        self._by_link = by_link
        self._frames = frames
        places = (*by_link, *(frames.links if frames else ()))
        self.brokers = tuple(dict.fromkeys(broker for _, broker in places))

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
        if kind in OF_FRAMES and self._frames is not None:
            _of(self._frames.links, a, b)
            self._frames.begin(Begun(self.verb, kind, number, answer, error), a, b)
            return
        ways: Sequence[tuple[Stream, str]] = _BOTH_WAYS
        if kind in (Trouble.ONE_WAY, Trouble.RESET_PEER):
            ways = (_BOTH_WAYS[answer],)
        for place in _of(self._by_link, a, b):
            proxy = self._by_link[place]
            if kind is Trouble.CUT:
                proxy.disable()
            for stream, way in ways:
                toxic = _toxic(kind, number, stream)
                if toxic is not None:
                    _put(proxy, toxic, f"{kind}_{way}")

    def mend(self, a: str, b: str) -> None:
        if self._frames is not None:
            self._frames.mend(a, b)
        for place in _of(self._by_link, a, b) if self._by_link else ():
            proxy = self._by_link[place]
            for name in proxy.toxics():
                proxy.remove(name)
            if not proxy.enabled:
                proxy.enable()


def _of(places: Collection[tuple[str, str]], a: str, b: str) -> Sequence[tuple[str, str]]:
    """Those of a client's link to a broker; of everybody's, all before that broker."""
    found = [
        (client, broker) for client, broker in places if broker == b and a in (EVERYBODY, client)
    ]
    if not found:
        raise UsageError(
            f"the link between {a} and {b} can't be broken alone: {a} has no proxy of its own"
        )
    return found


def seen(story: Story, step: Step, began_us: int) -> str | None:
    """How many frames met a step's fault, which began then; empty where none did, and None of what reads no frames."""
    fault = step.fault
    if fault is None or fault.needs not in OF_READERS:
        return None
    ends = tuple(step.args[name] for name in fault.nodes)
    number, answer = step.args.get(fault.number or ""), step.args.get("answer", False)
    mine = next(
        (
            laid.trouble
            for laid in story.laid
            if laid.at_us >= began_us
            and (laid.whose, laid.broker) == ends
            and (laid.trouble.verb, laid.trouble.number) == (step.do, number)
            and laid.trouble.answer is answer
        ),
        None,
    )
    clients = [client for client, trouble in story.met if trouble is mine]
    many = "1 frame" if len(clients) == 1 else f"{len(clients)} frames"
    return f"{many} of {', '.join(sorted(set(clients)))} met it" if clients else ""


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
