"""Systems under test that are spoken to over sockets: where they are, and what can be done to them.

A system is a context manager: entered it runs and its addresses are known, left it is gone without a trace.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from conformance.parts import ports, troubled_disk, wall_clock
from conformance.parts.apache import ApacheCluster
from conformance.parts.own_disk import OwnDisk
from conformance.parts.preload import environment_of
from conformance.parts.processes import Process
from conformance.parts.troubled_disk import TroubledDisk
from conformance.parts.wall_clock import WallClock
from conformance.waiting import wait_until
from reference_impl.core.broker import Broker, BrokerConfig
from reference_impl.core.broker.config import FIRST, NEXT
from reference_impl.protocol.bodies import ClusterInfo, TopicRoute
from reference_impl.protocol.codes import RequestCode, ResponseCode
from reference_impl.protocol.command import Command
from reference_impl.protocol.errors import ProtocolError
from reference_impl.protocol.headers import GetRouteHeader
from reference_impl.shell.client import SyncClient
from reference_impl.shell.cluster import BrokerMaker, ThreadedCluster
from reference_impl.shell.errors import RequestFailed, split_address
from reference_impl.storage import FlushMode, StoreOptions
from specs.errors import TargetMisbehaved, Unavailable, UsageError
from specs.plan.ability import Ability
from specs.plan.config import IN_MEMORY, Config
from specs.scratch import Scratch

ADDRESS_DEADLINE_S = 60.0
BEFORE_START = frozenset(
    {Ability.CUT_POWER, Ability.FILL_DISK, Ability.SLOW_DISK, Ability.STEP_BROKER_CLOCK}
)
"""What can be done to a broker only where it was started for it (`System.make_ready`)."""
TROUBLES_A_DISK = frozenset({Ability.FILL_DISK, Ability.SLOW_DISK})
"""Of these what takes the library that answers in the disk's place."""
FIRST_PERSISTS = 2
GRACE_S = 1.0
"""So long a broker has to leave in good order at the end of a run: who says Ctrl-C waits for it, and one that was
frozen has much to do first."""
KEEP_HOURS = 72
"""So long a served broker keeps messages where its disk is to be filled and a plan keeps them for ever."""
LOOKS_EACH_MS = 20
"""How often a served broker looks how much room its disk has, where that is to be filled."""


class System(ABC):
    """A name server and its brokers. brokers: name → the `host:port` that routes give; valid while entered.

    upstreams: name → the `host:port` where the broker itself listens, past any proxy.
    """

    namesrv: str
    brokers: Mapping[str, str]
    upstreams: Mapping[str, str]
    abilities: ClassVar[frozenset[Ability]] = frozenset()
    """What can be done to its brokers."""
    if_able: ClassVar[Mapping[Ability, Callable[[], str | None]]] = {}
    """And what where this machine can, each with who says why it can't."""

    @abstractmethod
    def __enter__(self) -> Self: ...

    @abstractmethod
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def crash_broker(self, name: str) -> None:
        """Kill a broker; its store stays."""
        raise UsageError("this target's brokers are not ours to kill")

    def restart_broker(self, name: str) -> None:
        """Start a killed broker again on its store."""
        raise UsageError("this target's brokers are not ours to start")

    def crash_name_server(self) -> None:
        """Kill the name server, with all that it knows."""
        raise UsageError(f"this target can't {Ability.CRASH_NAME_SERVER}")

    def restart_name_server(self) -> None:
        """Start it again where it was; brokers tell it of themselves when it is their time."""
        raise UsageError(f"this target can't {Ability.CRASH_NAME_SERVER}")

    def pause_broker(self, name: str) -> None:
        """Stop a broker between two instructions; its connections stay open."""
        raise UsageError(f"this target can't {Ability.PAUSE_BROKER}")

    def starve_broker(self, name: str, percent: int) -> None:
        """A broker gets so many per cent of a core, until it is resumed."""
        raise UsageError(f"this target can't {Ability.STARVE_BROKER}")

    def resume_broker(self, name: str) -> None:
        """Let it go on as ever."""
        raise UsageError(f"this target can't {Ability.PAUSE_BROKER}")

    def end_broker(self, name: str) -> None:
        """End a broker in good order; its store stays."""
        raise UsageError(f"this target can't {Ability.UPGRADE_BROKER}")

    def begin_broker(self, name: str, *, newer: bool) -> None:
        """Start a broker that is gone on its store. newer: of the other version, else of its own."""
        raise UsageError(f"this target can't {Ability.UPGRADE_BROKER}")

    def take_back(self) -> None:  # noqa: B027 - most are opened anew for each run
        """Every broker is of its own version: a run before may have ended after an upgrade."""

    def fill_disk(self, name: str, *, full: bool) -> None:
        """A broker's disk has no more room, or has room again."""
        raise UsageError("this target's disks are not ours to fill")

    def slow_disk(self, name: str, ms: int) -> None:
        """Each sync of a broker's disk takes so much longer; 0: as long as ever."""
        raise UsageError(f"this target can't {Ability.SLOW_DISK}")

    def make_ready(self, needs: Collection[Ability]) -> None:  # noqa: B027 - most need no preparation
        """To be called before it is entered: what is to be done to its brokers. Unavailable where it can't be here."""

    def step_clock(self, name: str, ms: int) -> None:
        """A broker's wall clock is set by so much."""
        raise UsageError(f"this target can't {Ability.STEP_BROKER_CLOCK}")

    def keep(self) -> None:
        """What is on that disk by now survives a power cut."""
        raise UsageError(f"this target can't {Ability.CUT_POWER}")

    def cut_power(self, name: str, *, synced: bool) -> int:
        """Kill a broker with its machine: how many bytes are gone that were written and not synced.

        synced: everything is on the disk first.
        """
        raise UsageError(f"this target can't {Ability.CUT_POWER}")


class ReferenceOnSockets(System):
    """Our own cluster on sockets of 127.0.0.1, in this process.

    It runs in a thread of its own, so a frozen broker is that thread standing still, and its name server stands still
    with it. It is handed its wall clock, so a step is one of that.

    make_broker: its core, where it is not the plain one. flush: how it keeps its messages on a disk, in a folder that
    is deleted at the end; none keeps them in memory.
    """

    abilities = frozenset(
        {
            Ability.CRASH_BROKER,
            Ability.CRASH_NAME_SERVER,
            Ability.FILL_DISK,
            Ability.PAUSE_BROKER,
            Ability.STEP_BROKER_CLOCK,
            Ability.UPGRADE_BROKER,
        }
    )

    def __init__(
        self,
        config: Config,
        *,
        make_broker: BrokerMaker = Broker,
        flush: str = "",
    ) -> None:
        self._reservation = ports.reserve()
        port = self._reservation.port
        self._temporary = Scratch("store") if flush else None
        self._cluster = ThreadedCluster(
            BrokerConfig.from_plan(config),
            broker_port=port,
            make_broker=make_broker,
            store_dir=Path(self._temporary.name) if self._temporary is not None else None,
            store_options=StoreOptions(FlushMode(flush)) if flush else None,
        )

    def __enter__(self) -> Self:
        self._cluster.start()
        self.namesrv, self.upstreams = self._cluster.namesrv, self._cluster.brokers
        self.brokers = broker_addresses(self.namesrv)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._cluster.stop()
        finally:
            self._reservation.release()
            if self._temporary is not None:
                self._temporary.cleanup()

    def crash_broker(self, name: str) -> None:
        self._cluster.crash(name)

    def restart_broker(self, name: str) -> None:
        self._cluster.restart(name)

    def crash_name_server(self) -> None:
        self._cluster.crash_name_server()

    def restart_name_server(self) -> None:
        self._cluster.restart_name_server()

    def pause_broker(self, name: str) -> None:
        self._cluster.pause()

    def resume_broker(self, name: str) -> None:
        self._cluster.resume()

    def end_broker(self, name: str) -> None:
        self._cluster.end(name)

    def begin_broker(self, name: str, *, newer: bool) -> None:
        self._cluster.restart(name, NEXT if newer else FIRST)

    def fill_disk(self, name: str, *, full: bool) -> None:
        self._cluster.fill(name, full=full)

    def step_clock(self, name: str, ms: int) -> None:
        self._cluster.step_clock(ms)


class ServedReference(System):
    """Our own cluster as a process of its own, `inorder serve` with a store on disk: it is killed with SIGKILL.

    The process is name server and broker in one, so both are gone, or stand still, for a while. store: the folder, None
    for one that is deleted at the end. flush: where the configuration does not say it. Its first offsets are persisted
    after twice `persist_ms`, so the configuration must say so.
    """

    abilities = frozenset({Ability.CRASH_BROKER, Ability.PAUSE_BROKER, Ability.STARVE_BROKER})
    if_able: ClassVar[Mapping[Ability, Callable[[], str | None]]] = {
        Ability.FILL_DISK: troubled_disk.why_not,
        Ability.SLOW_DISK: troubled_disk.why_not,
        Ability.STEP_BROKER_CLOCK: wall_clock.why_not,
    }

    def __init__(self, config: Config, flush: str, store: Path | None = None) -> None:
        if config.persist_first_ms != FIRST_PERSISTS * config.persist_ms:
            raise UsageError(
                f"a served broker persists its first offsets after {FIRST_PERSISTS} intervals"
            )
        self._reservations = [ports.reserve(), ports.reserve()]
        self._temporary = Scratch("served")
        self._folder = folder = Path(self._temporary.name)
        self._store = store or folder / "store"
        self._disk: OwnDisk | None = None
        self._clock: WallClock | None = None
        self._troubled: TroubledDisk | None = None
        self._log = folder / "serve.log"
        name_server, broker = (str(reservation.port) for reservation in self._reservations)
        self.namesrv = f"127.0.0.1:{name_server}"
        self._options: dict[str, object] = {
            "namesrv-port": name_server,
            "broker-port": broker,
            "store": self._store,
            "flush": flush if config.flush == IN_MEMORY else config.flush,
            "flush-ms": config.flush_ms,
            "dialect": config.dialect,
            "broker-lease-ms": config.broker_lease_ms,
            "channel-expiry-ms": config.channel_expiry_ms,
            "persist-ms": config.persist_ms,
            "delay-levels": config.delay_levels,
            "transaction-timeout-ms": config.transaction_timeout_ms,
            "transaction-check-interval-ms": config.transaction_check_interval_ms,
            "transaction-check-max": config.transaction_check_max,
            "keep-hours": config.keep_ms / 3_600_000,
            "delete-when": "",
            "clean-ms": min(10_000, max(1, config.keep_ms // 4)),
            "disk-limits": "100 100 100",  # how full this machine's disk is must not decide what is judged
        }
        self._process: Process | None = None

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        self.brokers = self.upstreams = broker_addresses(self.namesrv)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None:
            self._process.stop(GRACE_S)
        if self._disk is not None:
            self._disk.close()
        for reservation in self._reservations:
            reservation.release()
        self._temporary.cleanup()

    def crash_broker(self, name: str) -> None:
        if self._process is not None:
            self._process.kill()

    def restart_broker(self, name: str) -> None:
        self._start()

    def pause_broker(self, name: str) -> None:
        if self._process is not None:
            self._process.pause()

    def starve_broker(self, name: str, percent: int) -> None:
        if self._process is not None:
            self._process.starve(percent)

    def resume_broker(self, name: str) -> None:
        if self._process is not None:
            self._process.resume()

    def make_ready(self, needs: Collection[Ability]) -> None:
        if Ability.CUT_POWER in needs:
            self._disk = OwnDisk(self._folder / "disk", self._store)
        if Ability.STEP_BROKER_CLOCK in needs:
            self._clock = WallClock(self._folder)
        if TROUBLES_A_DISK & set(needs):
            self._troubled = TroubledDisk(self._folder)
        if Ability.FILL_DISK in needs:
            # Who keeps messages for ever does not look how much room there is.
            keep = {"keep-hours": self._options["keep-hours"] or KEEP_HOURS}
            self._options |= {**keep, "disk-limits": "90 95 99", "clean-ms": LOOKS_EACH_MS}

    def fill_disk(self, name: str, *, full: bool) -> None:
        """The broker sees it when it looks the next time."""
        _troubled(self._troubled).fill(full=full)

    def slow_disk(self, name: str, ms: int) -> None:
        _troubled(self._troubled).slow(ms)

    def step_clock(self, name: str, ms: int) -> None:
        _stepped(self._clock, ms)

    def keep(self) -> None:
        if self._disk is not None and self._process is not None:
            self._disk.keep(self._process)

    def cut_power(self, name: str, *, synced: bool) -> int:
        assert self._disk is not None, "make_ready comes first"
        assert self._process is not None, "it is killed already"
        return self._disk.cut(self._process, synced=synced)

    def _start(self) -> None:
        command: list[str | Path] = [sys.executable, "-m", "inorder", "serve"]
        for option, value in self._options.items():
            command += [f"--{option}", str(value)]
        if self._disk is not None:
            command = self._disk.command(command)
        told = [each.told for each in (self._clock, self._troubled) if each is not None]
        self._process = Process("inorder serve", command, log=self._log, env=environment_of(*told))
        self._process.wait_until(
            self._is_ready, what="register its broker", deadline_s=ADDRESS_DEADLINE_S
        )

    def _is_ready(self) -> bool:
        try:
            return bool(broker_addresses(self.namesrv))
        except UsageError:  # nobody answers there yet
            return False


class ApacheOnThisMachine(System):
    """An Apache release, started from its jars in a temporary folder. more: keys of the broker's configuration.

    newer: the version that its broker may be upgraded to, if any.
    """

    abilities = frozenset(
        {
            Ability.CRASH_BROKER,
            Ability.CRASH_NAME_SERVER,
            Ability.PAUSE_BROKER,
            Ability.STARVE_BROKER,
        }
    )
    if_able: ClassVar[Mapping[Ability, Callable[[], str | None]]] = {
        Ability.FILL_DISK: troubled_disk.why_not,
        Ability.SLOW_DISK: troubled_disk.why_not,
        Ability.STEP_BROKER_CLOCK: wall_clock.why_not,
    }
    started: ClassVar[type[ApacheCluster]] = ApacheCluster
    """What is started."""

    def __init__(
        self,
        version: str,
        config: Config,
        *,
        more: Mapping[str, str] | None = None,
        newer: str | None = None,
    ) -> None:
        self._newer = newer
        self._temporary = Scratch("rocketmq")
        # 4.x does not know the first, and passes over what it does not know (MixAll.properties2Object).
        extra = {"channelExpiredTimeout": str(config.channel_expiry_ms), **_flushes(config)}
        self._cluster = self.started(
            version,
            workdir=Path(self._temporary.name),
            broker_lease_ms=config.broker_lease_ms,
            delay_levels=config.delay_levels,
            extra_broker_conf={**extra, **(more or {})},
        )

    def __enter__(self) -> Self:
        try:
            if self._newer is not None:
                self._cluster.lib(self._newer)  # else it is fetched while clients wait
            addresses = self._cluster.start()
        except BaseException:
            self._temporary.cleanup()
            raise
        self.namesrv = addresses.namesrv
        # A 5.x broker is listed a moment before its address is.
        if not wait_until(lambda: bool(broker_addresses(self.namesrv)), ADDRESS_DEADLINE_S):
            self.__exit__(None, None, None)
            raise TargetMisbehaved(
                f"the broker of RocketMQ {self._cluster.version} did not register its address"
            )
        self.brokers = broker_addresses(self.namesrv)
        self.upstreams = dict.fromkeys(self.brokers, addresses.broker)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._cluster.close()
        self._temporary.cleanup()

    def crash_broker(self, name: str) -> None:
        self._cluster.stop_broker(kill=True)

    def restart_broker(self, name: str) -> None:
        self._cluster.start_broker()

    def crash_name_server(self) -> None:
        self._cluster.stop_namesrv()

    def restart_name_server(self) -> None:
        self._cluster.start_namesrv()

    def pause_broker(self, name: str) -> None:
        self._cluster.broker_process.pause()

    def starve_broker(self, name: str, percent: int) -> None:
        self._cluster.broker_process.starve(percent)

    def resume_broker(self, name: str) -> None:
        self._cluster.broker_process.resume()

    def end_broker(self, name: str) -> None:
        self._cluster.stop_broker(kill=False)

    def begin_broker(self, name: str, *, newer: bool) -> None:
        if newer and self._newer is None:
            raise UsageError(
                f"nobody has said which version {self._cluster.version} is followed by"
            )
        self._cluster.start_broker(self._newer if newer else self._cluster.version)

    def take_back(self) -> None:
        if self._cluster.broker_version != self._cluster.version:
            for name in self.brokers:
                self.end_broker(name)
                self.begin_broker(name, newer=False)

    def make_ready(self, needs: Collection[Ability]) -> None:
        folder = Path(self._temporary.name)
        if Ability.CUT_POWER in needs:
            self._cluster.on_own_disk(folder / "disk")
        if Ability.STEP_BROKER_CLOCK in needs:
            self._cluster.clock = WallClock(folder)
        if TROUBLES_A_DISK & set(needs):
            self._cluster.troubled = TroubledDisk(folder)
        if Ability.FILL_DISK in needs:
            self._cluster.expect_a_full_disk()

    def step_clock(self, name: str, ms: int) -> None:
        _stepped(self._cluster.clock, ms)

    def fill_disk(self, name: str, *, full: bool) -> None:
        self._cluster.fill_disk(full=full)

    def slow_disk(self, name: str, ms: int) -> None:
        _troubled(self._cluster.troubled).slow(ms)

    def keep(self) -> None:
        if self._cluster.disk is not None:
            self._cluster.disk.keep(self._cluster.broker_process)

    def cut_power(self, name: str, *, synced: bool) -> int:
        return self._cluster.cut_power(synced=synced)


def _stepped(clock: WallClock | None, ms: int) -> None:
    if clock is None:
        raise UsageError("the broker was started with the machine's own wall clock")
    clock.step(ms)


def _troubled(disk: TroubledDisk | None) -> TroubledDisk:
    if disk is None:
        raise UsageError("the broker was started with the machine's own disk")
    return disk


def _flushes(config: Config) -> dict[str, str]:
    """How Apache's broker syncs its log, where the configuration says it; its default is ASYNC_FLUSH.

    Left alone, ASYNC_FLUSH syncs each 500 ms what fills four pages, and the rest each 10 s
    (CommitLog.FlushRealTimeService).
    """
    if config.flush == IN_MEMORY:
        return {}
    interval = str(config.flush_ms)
    return {
        "flushDiskType": f"{config.flush.upper()}_FLUSH",
        "flushIntervalCommitLog": interval,
        "flushCommitLogThoroughInterval": interval,
    }


class Remote(System):
    """Somebody else's cluster, found by the first of its name servers that answers."""

    def __init__(self, addresses: str) -> None:
        self._name_servers = name_servers(addresses)
        self.namesrv = self._name_servers[0]

    def __enter__(self) -> Self:
        *others, last = self._name_servers
        for namesrv in others:
            try:
                self.brokers = broker_addresses(namesrv)
            except Unavailable:
                continue
            self.namesrv = namesrv
            break
        else:
            self.brokers, self.namesrv = broker_addresses(last), last
        self.upstreams = self.brokers
        if not self.brokers:
            raise Unavailable(f"the name server {self.namesrv} knows no broker")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass


def name_servers(text: str) -> tuple[str, ...]:
    """The addresses in a list, with `;` as RocketMQ has it, or commas. Raises UsageError for what is no address."""
    found = tuple(text.replace(";", ",").split(","))
    for address in found:
        split_address(address)
    return found


def broker_addresses(namesrv: str) -> dict[str, str]:
    """Ask a name server for the brokers and their masters' addresses. UsageError when it can't be asked."""
    with SyncClient() as client:
        try:
            answer = client.call(namesrv, Command(RequestCode.GET_BROKER_CLUSTER_INFO))
        except RequestFailed as error:
            raise Unavailable(
                f"no name server answers at {namesrv} ({error.reason}); is it running there?"
            ) from error
    if answer.code != ResponseCode.SUCCESS:
        raise UsageError(
            f"{namesrv} is no RocketMQ name server: it answered with code {answer.code}"
        )
    try:
        info = ClusterInfo.decode(answer.body)
    except ProtocolError as error:
        raise UsageError(f"{namesrv} is no RocketMQ name server: {error}") from error
    return {broker.broker: broker.master for broker in info.brokers if broker.master is not None}


def answers(system: System) -> bool:
    """Does every broker of it answer? One that a run left dead, or that died by itself, is of no use to the next."""
    question = Command(RequestCode.GET_BROKER_RUNTIME_INFO)
    with SyncClient() as client:
        try:
            answers = [client.call(address, question) for address in system.upstreams.values()]
        except RequestFailed:
            return False
    return all(answer.code == ResponseCode.SUCCESS for answer in answers)


def has_topic(namesrv: str, topic: str) -> bool:
    """Does the name server know the topic? Unavailable where it does not say."""
    header, came = GetRouteHeader(topic, True).to_ext(), ""
    try:
        with SyncClient() as client:
            answer = client.call(namesrv, Command(RequestCode.GET_ROUTEINFO_BY_TOPIC, header))
    except RequestFailed as error:
        came = error.reason
    else:
        if answer.code in (ResponseCode.SUCCESS, ResponseCode.TOPIC_NOT_EXIST):
            return answer.code == ResponseCode.SUCCESS
        came = f"code {answer.code} {answer.remark or ''}".strip()
    raise Unavailable(
        f"the name server {namesrv} did not say whether there is a topic {topic} ({came})"
    )


def wait_for_route(namesrv: str, topic: str, broker: str) -> None:
    """Wait until the name server's route leads to the topic on that broker. TargetMisbehaved at the deadline."""

    def leads_there() -> bool:
        command = Command(RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteHeader(topic, True).to_ext())
        answer = client.call(namesrv, command)
        if answer.code != ResponseCode.SUCCESS:
            return False
        route = TopicRoute.decode(answer.body)
        return any(queues.broker == broker for queues in route.queues) and any(
            known.broker == broker and known.master is not None for known in route.brokers
        )

    with SyncClient() as client:
        if not wait_until(leads_there, ADDRESS_DEADLINE_S):
            raise TargetMisbehaved(
                f"the name server {namesrv} has no route to topic {topic} on {broker}"
            )
