"""A driver target whose server may be one that is started here: it is killed and started again on its data.

The server is started by the first run and lives until `release`: topics and groups are new in each.
"""

from __future__ import annotations

import asyncio
import socket
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

from conformance.drivers.admin import ADMIN, AdminTarget
from conformance.drivers.library import Library
from conformance.drivers.process import DriverProcess, Event
from conformance.drivers.witness import Witness
from conformance.parts.link import Link
from conformance.parts.local_cluster import LocalCluster
from conformance.parts.local_server import LocalServer
from conformance.parts.processes import ITS_LOG
from conformance.targets import upgrades
from conformance.targets.base import Run
from conformance.targets.options import Argument, near, parse
from reference_impl.shell.errors import split_address
from specs.errors import DriverFailed, TargetMisbehaved, Unavailable, UsageError
from specs.faults import broker_crash, cut, delay, hold, pause, perform, upgrade
from specs.history.evidence import change_of
from specs.history.journal import Journal
from specs.plan.ability import Ability
from specs.plan.plan import Action
from specs.plan.rig import PartialRig, Trouble
from specs.plan.step import EVERYBODY
from specs.scratch import Scratch
from specs.vocabulary import Kind, Outcome

NODES = "app.nodes"
"""How many nodes the system that is started here has, of which each has all: 1 or 3."""
REACH_S = 5.0
WHY_MAX = 300


class ServedTarget(AdminTarget):
    """argument: what the user asked for. version: of the server that is started here; None where one runs already.

    library: who works. keeper: who looks after the queues, which is no client under test.

    system: what its targets are called: `SYSTEM-local:VERSION` and `SYSTEM:HOST:PORT`. server: what is started here.
    port: where such a server mostly listens. clients, knows: the clients and the options that
    may be named. choices: options with known values, the first of which is the default. of_servers: options that are
    settings of what is started here.

    behind_link: the clients of a server that is started here may reach it through a forwarder that can be broken: what
    they are told of where it is, is that one address. Of several nodes they know all, and there is no link.

    lists: one system that runs already may be named by the addresses of several of its servers, commas between them.
    scheme: what its vendor's own addresses begin with, `SCHEME://`; it may be left out.

    Several nodes are one broker of the plan. When that is killed it is the node that leads the first queue.
    """

    system: ClassVar[str]
    server: ClassVar[type[LocalServer]]
    port: ClassVar[int]
    clients: ClassVar[Sequence[str]]
    knows: ClassVar[Collection[str]]
    choices: ClassVar[Mapping[str, Sequence[str]]] = {}
    of_servers: ClassVar[Collection[str]] = ()
    behind_link: ClassVar[bool] = False
    lists: ClassVar[bool] = False
    scheme: ClassVar[str] = ""

    def __init__(
        self, argument: Argument, version: str | None, library: Library, keeper: Library
    ) -> None:
        """Raises UsageError for what an option can't be."""
        super().__init__()
        self.name = argument.named(self.system if version is None else f"{self.system}-local")
        self._newer = argument.options.get(upgrades.OPTION)
        if self._newer is not None:
            self.server.check_version(self._newer)
        where = f"at {argument.head}" if version is None else upgrades.named(version, self._newer)
        client = f"{library.name} {library.version}"
        self.parties = {
            "broker": f"{self.server.product} {where}",
            "client": client,
            "producer": client,
        }
        self.options = {
            key: argument.options.get(key, known[0]) for key, known in self.choices.items()
        }
        for key, given in self.options.items():
            if given not in self.choices[key]:
                raise UsageError(f"{key} can't be {given!r}; {near(given, self.choices[key])}")
        self.library, self.keeper = library, keeper
        self._argument, self._version = argument, version
        self._server: LocalServer | LocalCluster | None = None
        self._nodes = int(self.options.get(NODES, "1"))
        self._is_down = False
        self._pause: Journal | None = None
        self._temporary: Scratch | None = None
        self._settings: dict[str, str] = {}
        self.keepers_settings: Mapping[str, str] = {}
        self._witness: Witness | None = None
        self._link: Link | None = None
        self._answering: list[tuple[str, int]] = []
        if version is not None:
            self.abilities |= {Ability.CRASH_BROKER} | upgrades.abilities(self._newer)
            if upgrades.OPTION in self.knows:
                self.hindered = upgrades.hindered(
                    self._newer, f"{self.name},{upgrades.OPTION}={self.server.default}"
                )
            if self._nodes == 1:
                self.abilities |= {Ability.PAUSE_BROKER}
                if self.behind_link:
                    self.abilities |= Links.abilities

    @classmethod
    @abstractmethod
    def made(cls, argument: Argument, version: str | None) -> Self:
        """A target with the client that the argument names. Raises UsageError for an unknown version of it."""

    @classmethod
    def local(cls, text: str | None) -> Self:
        """With a server of its own, of the version in the argument. Raises UsageError for what is not known."""
        target = f"{cls.system}-local"
        argument = parse(target, text, clients=cls.clients, options=cls.knows)
        if argument.head is None:
            raise UsageError(
                f"the target {target} needs a version, as in {target}:{cls.server.default}"
            )
        cls.server.check_version(argument.head)
        return cls.made(argument, argument.head)

    @classmethod
    def remote(cls, text: str | None) -> Self:
        """On a server that runs already, by its address. Raises UsageError for what is none."""
        ours = {
            NODES,
            upgrades.OPTION,
            *cls.of_servers,
        }  # how somebody else's nodes are is not ours to say
        argument = parse(
            cls.system,
            text,
            clients=cls.clients,
            options=set(cls.knows) - ours,
            listed=True,
        )
        head = ",".join(cls._address_in(each) for each in (argument.head or "").split(","))
        if "," in head and not cls.lists:
            raise UsageError(
                f"the target {cls.system} takes the address of one server, not {argument.head}"
            )
        argument = replace(argument, head=head)
        return cls.made(argument, None)

    @classmethod
    def _address_in(cls, text: str) -> str:
        """HOST:PORT, without the scheme of the vendor's. Raises UsageError for what is no address."""
        scheme, found, address = text.rpartition("://")
        if found and scheme != cls.scheme:
            own = f" or {cls.scheme}://HOST:PORT" if cls.scheme else ""
            raise UsageError(
                f"the target {cls.system} takes a server's address as HOST:PORT{own}, without {scheme}://"
            )
        try:
            split_address(address)
        except UsageError:
            example = f"{cls.system}:127.0.0.1:{cls.port}"
            raise UsageError(
                f"the target {cls.system} needs a server's address, as in {example}, not {address!r}"
            ) from None
        return address

    @abstractmethod
    def own_settings(self, run: Run, address: str) -> dict[str, str]:
        """What the library is told besides what the user says. address: where it begins."""

    def witness(self, run: Run) -> Witness | None:
        """Who looks at what is stored while the clients work."""
        return None

    def made_server(self, version: str, folder: Path) -> LocalServer:
        """A node, not yet started. folder: its own."""
        return self.server(version, workdir=folder)

    @property
    def product(self) -> str:
        """Whose the server is."""
        return self.server.product

    @property
    def address(self) -> str:
        """Of the server itself."""
        return self._server.address if self._server is not None else str(self._argument.head)

    async def prepare(self, run: Run) -> None:
        """Raises Unavailable where no server is that somebody has named."""
        await asyncio.to_thread(self._open)
        if self._version is None:
            # Of a list some may be down; and what asks for TLS or a login does not answer so.
            reached = map(split_address, self.address.split(","))
            self._answering = [
                each for each in reached if await asyncio.to_thread(self.server.answers, *each)
            ]
        told = self._argument.options.items()
        user = {key: value for key, value in told if key != upgrades.OPTION}
        user |= self._argument.credentials
        way = self.address if self._link is None else self._link.address
        self._settings = {**self.own_settings(run, way), **user}
        self.keepers_settings = {**self.own_settings(run, self.address), **user}
        try:
            await super().prepare(run)
            self._witness = self.witness(run)
        except DriverFailed as error:
            if self._version is not None:
                raise
            raise self.unanswered(str(error).partition(f". {ITS_LOG}")[0]) from error

    def _open(self) -> None:
        if self._version is None:
            self._reach()
        self.library.ensure()
        self.keeper.ensure()
        if self._version is None:
            return
        if self._newer is not None:
            self.made_server(self._newer, Path()).fetch()
        if self._server is not None and self._is_as_before(self._server):
            return
        self._temporary = Scratch("server")
        folder = Path(self._temporary.name)
        try:
            if self._nodes > 1:
                nodes = range(1, self._nodes + 1)
                self._server = LocalCluster(
                    [self.made_server(self._version, folder / f"{number}") for number in nodes]
                )
                self._server.start()
            else:
                self._server = self._alone(self.made_server(self._version, folder))
        except BaseException:
            self.release()
            raise

    def _is_as_before(self, server: LocalServer | LocalCluster) -> bool:
        """A run before this one may have ended in the midst of its faults. One that does not come back is given up.

        On a busy machine a server may need longer for what is on its disk than anybody waits for a new one.
        """
        try:
            self._heal(server)
            self._take_back(server)
        except TargetMisbehaved:
            self.release()
            return False
        return True

    def _alone(self, server: LocalServer) -> LocalServer:
        """Started, behind its link if there is one."""
        if not self.behind_link:
            server.start()
            return server
        self._link = Link().__enter__()
        server.link_address = self._link.address
        server.start()
        self._link.lead_to(server.link_end)
        return server

    def _reach(self) -> None:
        """Does anybody listen at one of the addresses? Whether it is such a server, and lets us in, the library says.

        Raises Unavailable.
        """
        why = ""
        for address in self.address.split(","):
            try:
                socket.create_connection(split_address(address), REACH_S).close()
            except OSError as error:
                why = error.strerror or str(error)
            else:
                return
        raise self.unanswered(why)

    def unanswered(self, why: str) -> Unavailable:
        """The error that says that a server which somebody has named is none for us. why: in its client's words."""
        said = " ".join(why.split())[:WHY_MAX]
        return Unavailable(
            f"no {self.product} server answers at {self.address} ({said}); is it running there?"
        )

    def _heal(self, server: LocalServer | LocalCluster) -> None:
        """Link and server are as they were before any fault."""
        self._resume(server)
        if self._link is not None:
            self._link.mend()
        if self._is_down:
            server.start_again()
            self._is_down = False

    def _take_back(self, server: LocalServer | LocalCluster) -> None:
        """Every node is of its own version again."""
        for node in _nodes(server):
            if node.version != self._version:
                node.end()
                node.version = str(self._version)
                node.start_again()

    def spawn_driver(
        self, name: str, folder: Path, on_event: Callable[[Event], Any]
    ) -> DriverProcess:
        return self.library.start(name, self._settings, folder, on_event)

    def spawn_admin(self, folder: Path, on_event: Callable[[Event], Any]) -> DriverProcess:
        return self.keeper.start(ADMIN, self.keepers_settings, folder, on_event)

    async def start(self, party: str) -> None:
        if self._server is not None and party in self._brokers:
            await asyncio.to_thread(self._server.start_again)
            self._is_down = False
        else:
            await super().start(party)

    async def act(self, action: Action) -> None:
        if self._link is not None and action.do in Links.verbs:
            links = Links(self._link, self._brokers)
            await asyncio.to_thread(perform, links, action.do, action.args)
            return
        if self._server is not None and action.do in (upgrade.VERB, upgrade.HEALED_BY):
            newer = action.do == upgrade.VERB and not action.args.get("same", False)
            await asyncio.to_thread(self._exchange, self._server, action.args["broker"], newer)
            return
        if isinstance(self._server, LocalServer) and action.args.get("node") in self._brokers:
            freezes = self._freeze if action.do == pause.VERB else self._resume
            await asyncio.to_thread(freezes, self._server)
            return
        if self._server is None or action.do != broker_crash.VERB:
            await super().act(action)
            return
        await asyncio.to_thread(self._resume, self._server)
        told = await asyncio.to_thread(self._kill, self._server)
        self._is_down = True
        with self.run.journal("server") as journal:
            columns = {"broker": action.args["broker"], "detail": "killed by the harness"}
            journal.note(Kind.CRASH, Outcome.OK, {**columns, **told})

    async def is_awake(self) -> bool:
        """The server answers, too: each node that was started here, and of others each that did at the start."""
        for each in self._answering:
            if not await asyncio.to_thread(self.server.answers, *each):
                return False
        nodes = [] if self._server is None else _nodes(self._server)
        for node in nodes:
            if not await asyncio.to_thread(node.is_ready):
                return False
        return await super().is_awake()

    @property
    def _brokers(self) -> Sequence[str]:
        return self.run.plan.topology.brokers

    def _freeze(self, server: LocalServer | LocalCluster) -> None:
        """The row lasts from the order to stop until it goes on. Nothing, where it is dead or stands."""
        if not isinstance(server, LocalServer) or self._is_down or self._pause is not None:
            return
        self._pause = self.run.journal("server")
        self._pause.begin(pause.VERB, Kind.PAUSE, {"broker": self._brokers[0]})
        server.process.pause()

    def _resume(self, server: LocalServer | LocalCluster) -> None:
        """Nothing, where it does not stand."""
        if self._pause is None or not isinstance(server, LocalServer):
            return
        server.process.resume()
        with self._pause as journal:
            journal.end(pause.VERB, Outcome.OK)
        self._pause = None

    def _kill(self, server: LocalServer | LocalCluster) -> Mapping[str, Any]:
        """What the row says of whom, if there are several."""
        if isinstance(server, LocalServer):
            server.kill()
            return {}
        topic = self.run.plan.topology.topics[0].name
        leader = int(self.ask(self.admin, "leader", topic=topic)["node"])
        left = server.kill(leader)
        return {"value": left, "detail": f"node {leader}, which led queue 0, killed by the harness"}

    def _exchange(self, server: LocalServer | LocalCluster, broker: str, newer: bool) -> None:
        """End it in good order and start the other version on its data, or its own; of several one after the other.

        A row lasts from when a node is gone until the next one has said its version.
        """
        if newer and self._newer is None:
            raise UsageError(f"nobody has said which version {self.name} is upgraded to")
        nodes = _nodes(server)
        for node in nodes:
            before = node.said_version()
            node.end()
            columns = {"broker": broker, "detail": "ended in good order by the harness"}
            lived_on = {"value": len(nodes) - 1} if len(nodes) > 1 else {}
            with self.run.journal("server") as journal:
                journal.begin(node.number, Kind.CRASH, {**columns, **lived_on})
                node.version = str(self._newer if newer else self._version)
                node.start_again()
                told = change_of(str(before), str(node.said_version()))
                journal.end(node.number, Outcome.OK, {"view": told})

    def check(self) -> None:
        """Raises also where a server has died that nobody killed."""
        super().check()
        if self._server is not None:
            for node in _nodes(self._server):
                node.check_alive()

    async def settle(self, run: Run) -> bool:
        """A server that was killed lives again before anything can come to rest.

        A member that died is missed only when its session is over, and nothing happens until then: so it rests for
        two leases before it counts as at rest.
        """
        if self._server is not None:
            await asyncio.to_thread(self._heal, self._server)
        return await super().settle(run) and await super().settle(run)

    async def close(self) -> None:
        witness, self._witness = self._witness, None
        try:
            if witness is not None:
                await asyncio.to_thread(witness.close)
        finally:
            await super().close()

    def release(self) -> None:
        if self._link is not None:
            self._link.__exit__(None, None, None)
            self._link = None
        if self._server is not None:
            self._server.close()
            self._server = None
            self._is_down = False
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None


def _nodes(server: LocalServer | LocalCluster) -> Sequence[LocalServer]:
    return (server,) if isinstance(server, LocalServer) else server.nodes


class Links(PartialRig):
    """What can be done to the link between everybody and the one server."""

    abilities = frozenset({Ability.BREAK_LINK})
    verbs: ClassVar[frozenset[str]] = frozenset({cut.VERB, delay.VERB, hold.VERB, cut.HEALED_BY})

    def __init__(self, link: Link, brokers: Sequence[str]) -> None:
        self._link = link
        self.brokers = tuple(brokers)

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
        self._check(a, b)
        match kind:
            case Trouble.CUT:
                self._link.cut()
            case Trouble.HOLD:
                self._link.hold()
            case Trouble.DELAY:
                self._link.delay(number)
            case _:
                raise UsageError(f"a forwarder of bytes can't {kind.value} frames")

    def mend(self, a: str, b: str) -> None:
        self._check(a, b)
        self._link.mend()

    def _check(self, a: str, b: str) -> None:
        if a != EVERYBODY or b not in self.brokers:
            raise UsageError(
                f"the link between {a} and {b} can't be broken alone: the forwarder knows no clients"
            )
