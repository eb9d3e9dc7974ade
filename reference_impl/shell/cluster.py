"""A whole reference cluster on sockets of this machine: a name server and brokers.

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
    """One name server and one broker for each of `names`.

    config: of every broker; name, address and name_servers are filled in. make_broker: the core's class (a
    mutant, say). namesrv_port, broker_port: 0 for any free one; the brokers after the first take the next ports.
    host: where to listen. advertise: the address that routes give for the (one) broker, when clients must reach
    it another way. Topics are created with `queues` queues on every broker and are in the route when `start`
    returns.
    """

    def __init__(
        self,
        config: BrokerConfig | None = None,
        *,
        names: Sequence[str] = ("b0",),
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
        self.namesrv = ""
        self.brokers: dict[str, str] = {}
        self.bodies: dict[str, ServerBody] = {}
        self.stores: dict[str, BrokerStore] = {} if store_dir else {name: BrokerStore() for name in names}
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
        self._name_server = ServerBody(NameServer(name_server_config), clock=self.clock)
        self._recorder = recorder

    async def start(self) -> Self:
        """All listen, all brokers are registered, the topics exist. UsageError for a port that can't be had."""
        try:
            self.namesrv = await self._name_server.start(take_port(self._namesrv_port, self._host))
            for number, name in enumerate(self._names):
                await self._start_broker(name, self._broker_port + number if self._broker_port else 0)
            await self._make_ready()
        except BaseException:
            await self.stop()
            raise
        return self

    async def stop(self) -> None:
        """End everything in good order; raises BodyFailed if a core ever failed."""
        bodies = [*self.bodies.values(), self._name_server]
        self.bodies.clear()
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

    async def restart(self, name: str) -> None:
        """Start a crashed broker again, on its store and its port. Returns when it is in the route again."""
        await self._start_broker(name, int(self.brokers[name].rpartition(":")[2]))
        await self._make_ready()

    def check(self) -> None:
        """Raise BodyFailed if a core or the recorder ever failed."""
        for body in (*self.bodies.values(), self._name_server):
            body.check()

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def _start_broker(self, name: str, port: int) -> None:
        taken = take_port(port, self._host)
        config = replace(
            self._config,
            name=name,
            address=self._advertise or address_of(taken),
            name_servers=(self.namesrv,),
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
        return DiskStore.open(RealDisk(folder), replace(self._store_options, delays_ms=config.delay_ms))

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
                    route = Command(RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteHeader(topic).to_ext())
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
                raise UsageError(f"The topic {topic!r} can't be created: {answer.remark} (code {answer.code}).")

    async def _wait_for(self, client: RemotingClient, question: Command, name: str) -> None:
        word = f'"{name}"'.encode()
        while word not in (await client.request(self.namesrv, question)).body:
            await asyncio.sleep(0.01)


class ThreadedCluster:
    """A LocalCluster for blocking callers; a context manager. The arguments are LocalCluster's."""

    def __init__(self, config: BrokerConfig | None = None, **options: Any) -> None:
        self._cluster = LocalCluster(config, **options)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="reference cluster", daemon=True)

    @property
    def namesrv(self) -> str:
        return self._cluster.namesrv

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
        try:
            self._do(self._cluster.stop())
        finally:
            self._end_loop()

    def crash(self, name: str) -> None:
        self._do(self._cluster.crash(name))

    def restart(self, name: str) -> None:
        self._do(self._cluster.restart(name))

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(START_S)

    def _end_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(START_S)
        self._loop.close()
