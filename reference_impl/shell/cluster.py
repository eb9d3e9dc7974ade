"""A whole reference cluster on sockets of this machine: name servers and brokers.

    async with LocalCluster(BrokerConfig(lease_ms=3000)) as cluster:
        cluster.namesrv, cluster.brokers["b0"]        # "127.0.0.1:PORT"

`ThreadedCluster` is the same for blocking callers: its loop runs in a thread of its own.
Messages lie in memory: they survive `crash` and `restart` of a broker, not the end of the cluster. With `store_dir`
they lie on disk, and a restart recovers them from there.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from reference_impl.core.broker import Broker, BrokerConfig, BrokerStore
from reference_impl.core.broker.config import FIRST
from reference_impl.core.nameserver import NameServer, NameServerConfig
from reference_impl.protocol.codes import RequestCode, ResponseCode
from reference_impl.protocol.command import Command
from reference_impl.protocol.headers import CreateTopicHeader, GetRouteHeader
from reference_impl.shell.body import Core
from reference_impl.shell.client import RemotingClient
from reference_impl.shell.clock import WallClock
from reference_impl.shell.errors import BodyFailed
from reference_impl.shell.recording import Recorder
from reference_impl.shell.server import ServerBody, address_of, take_port
from reference_impl.storage import DiskStore, RealDisk, StoreOptions
from specs.errors import UsageError

T = TypeVar("T")
BrokerMaker = Callable[[BrokerConfig, BrokerStore], Core]
READY_S = 10.0
START_S = 30.0


class LocalCluster:
    """Name servers that know nothing of each other, and one broker for each of `names`, which tells all of them.

    namesrv: the first name server; addresses: all of them, whether they run or not. config: of every broker; name,
    address and name_servers are filled in. make_broker: the core's class (a mutant, say). namesrv_port, broker_port:
    0 for any free one; those after the first take the next ports. host: where to listen. advertise: the address that
    routes give for the (one) broker, when clients must reach it another way. Topics are created with `queues` queues
    on every broker and are in the route when `start` returns.
    """

    def __init__(
        self,
        config: BrokerConfig | None = None,
        *,
        names: Sequence[str] = ("b0",),
        name_servers: int = 1,
        namesrv_port: int = 0,
        broker_port: int = 0,
        host: str = "127.0.0.1",
        advertise: str | None = None,
        topics: Sequence[str] = (),
        queues: int = 4,
        make_broker: BrokerMaker = Broker,
        name_server_config: NameServerConfig | None = None,
        clock: WallClock | None = None,
        recorder: Recorder | None = None,
        store_dir: Path | None = None,
        store_options: StoreOptions | None = None,
    ) -> None:
        if advertise is not None and len(names) > 1:
            raise UsageError("One advertised address can stand for one broker only.")
        if name_servers < 1:
            raise UsageError("A cluster needs a name server.")
        self.addresses: tuple[str, ...] = ()
        self.brokers: dict[str, str] = {}
        self.bodies: dict[str, ServerBody] = {}
        self.stores: dict[str, BrokerStore] = (
            {} if store_dir else {name: BrokerStore() for name in names}
        )
        self._store_dir = store_dir
        self._store_options = store_options or StoreOptions()
        self.clock = clock or WallClock()
        self._config = config or BrokerConfig()
        self._names = tuple(names)
        self._namesrv_port = namesrv_port
        self._broker_port = broker_port
        self._host = host
        self._advertise = advertise
        self._topics = tuple(topics)
        self._queues = queues
        self._make_broker = make_broker
        self._name_server_config = name_server_config
        self._name_servers: list[ServerBody | None] = [None] * name_servers  # None: not running
        self._recorder = recorder
        self._releases: dict[str, int] = {}  # brokers that were exchanged

    async def start(self) -> Self:
        """All listen, all brokers are registered, the topics exist. UsageError for a port that can't be had."""
        try:
            for number in range(len(self._name_servers)):
                port = self._namesrv_port + number if self._namesrv_port else 0
                self.addresses += (await self._start_name_server(number, port),)
            for number, name in enumerate(self._names):
                await self._start_broker(
                    name, self._broker_port + number if self._broker_port else 0
                )
            await self._make_ready()
        except BaseException:
            await self.stop()
            raise
        return self

    async def stop(self) -> None:
        """End everything in good order; raises BodyFailed if a core ever failed."""
        bodies = [*self.bodies.values(), *(body for body in self._name_servers if body is not None)]
        self.bodies.clear()
        self._name_servers = [None] * len(self._name_servers)
        for body in bodies:
            await body.stop()
        for store in self.stores.values():
            if isinstance(store, DiskStore):
                store.close()
        for body in bodies:
            body.check()

    async def crash(self, name: str) -> None:
        """The broker is gone without a word: connections are cut, leases and members forgotten."""
        await self.bodies.pop(name).stop(in_good_order=False)
        store = self.stores[name]
        if isinstance(store, DiskStore):
            store.abandon()

    async def end(self, name: str) -> None:
        """The broker leaves in good order: what it knows is written, and the name servers are told."""
        await self.bodies.pop(name).stop()
        store = self.stores[name]
        if isinstance(store, DiskStore):
            store.close()

    async def restart(self, name: str, release: int | None = None) -> None:
        """Start a broker that is gone again, on its store and its port. Returns when it is in the route again.

        release: the one that it is of from now on, if another than before.
        """
        if release is not None:
            self._releases[name] = release
        await self._start_broker(name, int(self.brokers[name].rpartition(":")[2]))
        await self._make_ready()

    async def fill(self, name: str, *, full: bool) -> None:
        """The broker's disk has no more room, so that it refuses sends, or has room again."""
        self.stores[name].is_full = full

    async def crash_name_server(self, number: int = 0) -> None:
        """That name server is gone without a word, with all that it knew."""
        body, self._name_servers[number] = self._name_servers[number], None
        if body is not None:
            await body.stop(in_good_order=False)

    async def restart_name_server(self, number: int = 0) -> None:
        """Start it again, on its port; it knows nothing until the brokers register, which this does not wait for."""
        await self._start_name_server(number, int(self.addresses[number].rpartition(":")[2]))

    async def _start_name_server(self, number: int, port: int) -> str:
        body = self._name_servers[number] = ServerBody(
            NameServer(self._name_server_config), clock=self.clock
        )
        return await body.start(take_port(port, self._host))

    @property
    def namesrv(self) -> str:
        return self.addresses[0] if self.addresses else ""

    def check(self) -> None:
        """Raise BodyFailed if a core or the recorder ever failed."""
        for body in (*self.bodies.values(), *self._name_servers):
            if body is not None:
                body.check()

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    async def _start_broker(self, name: str, port: int) -> None:
        taken = take_port(port, self._host)
        config = replace(
            self._config,
            name=name,
            address=self._advertise or address_of(taken),
            name_servers=self.addresses,
            release=self._releases.get(name, FIRST),
        )
        if self._store_dir is not None:
            try:
                self.stores[name] = self._open_store(name, config)
            except BaseException:
                taken.close()
                raise
        core = self._make_broker(config, self.stores[name])
        body = self.bodies[name] = ServerBody(core, clock=self.clock, recorder=self._recorder)
        self.brokers[name] = await body.start(taken)

    def _open_store(self, name: str, config: BrokerConfig) -> DiskStore:
        """One broker's store is the folder itself; several have a folder each in it."""
        assert self._store_dir is not None
        folder = self._store_dir if len(self._names) == 1 else self._store_dir / name
        return DiskStore.open(
            RealDisk(folder), replace(self._store_options, delays_ms=config.delay_ms)
        )

    async def _make_ready(self) -> None:
        """Create the topics on every broker and wait until the routes name them all."""
        client = RemotingClient()
        try:
            async with asyncio.timeout(READY_S):
                for topic in self._topics:
                    await self._create(client, topic)
                for name in self.bodies:
                    await self._wait_for(client, Command(RequestCode.GET_BROKER_CLUSTER_INFO), name)
                for topic in self._topics:
                    route = Command(
                        RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteHeader(topic).to_ext()
                    )
                    for name in self.bodies:
                        await self._wait_for(client, route, name)
        except TimeoutError as error:
            raise BodyFailed(f"The brokers were not registered within {READY_S:.0f} s.") from error
        finally:
            await client.close()

    async def _create(self, client: RemotingClient, topic: str) -> None:
        header = CreateTopicHeader(topic, self._queues, self._queues)
        command = Command(RequestCode.UPDATE_AND_CREATE_TOPIC, header.to_ext())
        for name in self.bodies:
            answer = await client.request(self.brokers[name], command)
            if answer.code != ResponseCode.SUCCESS:
                raise UsageError(
                    f"The topic {topic!r} can't be created: {answer.remark} (code {answer.code})."
                )

    async def _wait_for(self, client: RemotingClient, question: Command, name: str) -> None:
        """By every name server that runs."""
        word = f'"{name}"'.encode()
        for address, body in zip(self.addresses, self._name_servers, strict=True):
            while body is not None and word not in (await client.request(address, question)).body:
                await asyncio.sleep(0.01)


class ThreadedCluster:
    """A LocalCluster for blocking callers; a context manager. The arguments are LocalCluster's."""

    def __init__(self, config: BrokerConfig | None = None, **options: Any) -> None:
        self._cluster = LocalCluster(config, **options)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="reference cluster", daemon=True
        )
        self._going_on = threading.Event()
        self._going_on.set()

    @property
    def namesrv(self) -> str:
        return self._cluster.namesrv

    @property
    def addresses(self) -> tuple[str, ...]:
        """`host:port` of every name server."""
        return self._cluster.addresses

    @property
    def stores(self) -> dict[str, BrokerStore]:
        """To be read only: they belong to the brokers' thread."""
        return self._cluster.stores

    @property
    def brokers(self) -> dict[str, str]:
        """Broker name → `host:port`."""
        return dict(self._cluster.brokers)

    def start(self) -> Self:
        self._thread.start()
        try:
            self._do(self._cluster.start())
        except BaseException:
            self._end_loop()
            raise
        return self

    def stop(self) -> None:
        """End everything; raises BodyFailed if a core ever failed."""
        self.resume()
        try:
            self._do(self._cluster.stop())
        finally:
            self._end_loop()

    def crash(self, name: str) -> None:
        self._do(self._cluster.crash(name))

    def end(self, name: str) -> None:
        self._do(self._cluster.end(name))

    def restart(self, name: str, release: int | None = None) -> None:
        self._do(self._cluster.restart(name, release))

    def pause(self) -> None:
        """All of it stands still between two instructions, as a process does that is stopped, until `resume`."""
        if self._going_on.is_set():
            self._going_on.clear()
            self._loop.call_soon_threadsafe(self._going_on.wait)

    def resume(self) -> None:
        """It goes on, with what has come meanwhile. Nothing, where it goes."""
        self._going_on.set()

    def crash_name_server(self, number: int = 0) -> None:
        self._do(self._cluster.crash_name_server(number))

    def restart_name_server(self, number: int = 0) -> None:
        self._do(self._cluster.restart_name_server(number))

    def step_clock(self, ms: int) -> None:
        """The wall clock of its brokers and name servers is set by so much."""
        self._cluster.clock.step(ms)

    def fill(self, name: str, *, full: bool) -> None:
        self._do(self._cluster.fill(name, full=full))

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(START_S)

    def _end_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(START_S)
        self._loop.close()
