"""A throw-away Apache RocketMQ cluster on this machine: a name server and a broker, started from the jars.

    with ApacheCluster("5.4.0", workdir=folder, broker_lease_ms=3000) as cluster:
        ...  # cluster.namesrv, cluster.broker: "127.0.0.1:PORT"

What is decided here, all of it found by running the servers on Java 17:
- 4.9 needs two JVM openings. Without them it starts and serves, but SIGTERM dies half way, offsets are lost
  and the next start on that store fails. 4.9 and 5.0 also need two logback files, else they exit
  with 255.
- A broker listens on its port, on two below (fast) and on one above (HA). 5.x binds the first two to
  127.0.0.1 and HA to every address; 4.9 binds all of them, and its name server, to every address of the
  machine.
- 5.x sometimes sends its first registration 10 s late. Creating any topic registers at once, so the readiness
  probe does that until the name server's answer contains the broker.
- 5.x has a thread that burns a whole core for its first 10 s; `transactionMetricFlushInterval` halves that.
- Its timer wheel is read whole into the heap, hence the small wheel file and the heap of 384 MB.
- SIGTERM takes 7 s (4.9) to 17 s (5.x), SIGKILL nothing, and acknowledged messages survive it (the page cache
  lives). So a throw-away cluster is killed, and its store deleted.
- A restart empties the lease table, whichever way the broker ended.
- It looks how much room its disk has from a minute after its start on, each `cleanResourceInterval`; 4.9 besides
  each ten seconds from the first one on, which nothing can change. In between a full disk is taken for none.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from conformance.parts import jars, ports
from conformance.parts.java import java
from conformance.parts.own_disk import OwnDisk
from conformance.parts.preload import environment_of
from conformance.parts.processes import Process, wait_until
from conformance.parts.troubled_disk import TroubledDisk
from conformance.parts.wall_clock import WallClock
from specs.errors import TargetMisbehaved

HOST = "127.0.0.1"
CLUSTER_NAME = "DefaultCluster"
"""What its vendor calls a cluster that nobody has named."""
BROKER_NAME = "b0"
QUICK_LEVELS = " ".join(["1s"] * 18)
READY_TOPIC = "INORDER_READY"

START_DEADLINE_S = 90.0
CLEAN_STOP_S = 40.0
ANSWER_DEADLINE_S = 3.0
ANSWER_BYTES_MAX = 16 * 1024 * 1024
LOOKS_AFTER_S = 60.0
LOOKS_EACH_MS = 100
SEES_AT_ONCE_S = 2.0
"""A broker that looks so often hears of a full disk, and of room again, within this time."""
DISK_DEADLINE_S = LOOKS_AFTER_S + 60.0

SEND_MESSAGE = 10
SERVICE_NOT_AVAILABLE = 14
UPDATE_AND_CREATE_TOPIC = 17
GET_ROUTEINFO_BY_TOPIC = 105
GET_BROKER_CLUSTER_INFO = 106
SUCCESS = 0

# Serial collector and first compiler only: quick start, small memory. No perf data: SIGKILL would leave its
# file.
_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
_OPENINGS_4 = (
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
)
_LOGBACK = """<configuration>
  <appender name="F" class="ch.qos.logback.core.FileAppender">
    <file>${{user.home}}/{name}.log</file>
    <encoder><pattern>%d{{HH:mm:ss.SSS}} %p %logger{{0}} %t - %m%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="F"/></root>
</configuration>
"""


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where a started cluster listens, as "HOST:PORT"."""

    namesrv: str
    broker: str


class ApacheCluster:
    """One name server and one broker of a released version; a context manager, also `async with`.

    version: one of `jars.VERSIONS`; its jars are fetched if they are not here.
    workdir: an empty or missing folder that is the cluster's own: configuration, store, logs.
    broker_lease_ms: how long the broker keeps a queue lock that nobody renews (Apache's default is 60 000).
    delay_levels: the broker's messageDelayLevel, 18 values; default one second each.
    extra_broker_conf: keys of broker.conf, overriding ours.
    broker_jvm: options of the broker's virtual machine, instead of ours, which start quickly and keep it small.
    keep_store: leave store and logs in `workdir` at the end (default: only the logs).

    Raises UsageError (unknown version), Unavailable (no Maven, no Java), TargetMisbehaved (it died, or was not ready in
    time).
    All methods block; from a coroutine use `async with` and `asyncio.to_thread(cluster.restart)`.
    """

    def __init__(
        self,
        version: str,
        *,
        workdir: Path,
        broker_lease_ms: int = 60_000,
        delay_levels: str = QUICK_LEVELS,
        extra_broker_conf: Mapping[str, str] | None = None,
        broker_jvm: tuple[str, ...] | None = None,
        keep_store: bool = False,
    ) -> None:
        jars.check_version(version)
        self.version = version
        self.workdir = workdir.resolve()
        self.broker_lease_ms = broker_lease_ms
        self.delay_levels = delay_levels
        self.extra_broker_conf = dict(extra_broker_conf or {})
        self.broker_jvm = broker_jvm
        self.keep_store = keep_store
        self.broker_version = version
        self.disk: OwnDisk | None = None
        self.clock: WallClock | None = None
        """The broker's own, where it is to be set; to be given before `start`."""
        self.troubled: TroubledDisk | None = None
        """Its disk, where that is to be full or slow; to be given before `start`."""
        self._is_to_be_filled = False
        self._reservations: list[ports.Reservation] = []
        self._namesrv_port = 0
        self._broker_port = 0
        self._namesrv: Process | None = None
        self._broker: Process | None = None

    # ------------------------------------------------------------------------------------------ addresses

    @property
    def namesrv(self) -> str:
        """The name server's "127.0.0.1:PORT"; valid after `start`."""
        return f"{HOST}:{self._namesrv_port}"

    @property
    def broker(self) -> str:
        """The broker's "127.0.0.1:PORT", as routes name it; valid after `start`."""
        return f"{HOST}:{self._broker_port}"

    @property
    def namesrv_process(self) -> Process:
        """The name server's process."""
        if self._namesrv is None:
            raise TargetMisbehaved(f"The name server of RocketMQ {self.version} is not running.")
        return self._namesrv

    @property
    def broker_process(self) -> Process:
        """The broker's process: `pause`, `resume`, `kill` it."""
        if self._broker is None:
            raise TargetMisbehaved(f"The broker of RocketMQ {self.version} is not running.")
        return self._broker

    # ------------------------------------------------------------------------------------------ life

    def lib(self, version: str) -> Path:
        """The folder of a version's jars, fetched now if missing."""
        return jars.ensure(version)

    def main(self) -> tuple[str, ...]:
        """What runs the broker: the class, and its arguments up to the one that names its configuration."""
        return ("org.apache.rocketmq.broker.BrokerStartup", "-c")

    def start(self) -> Addresses:
        """Starts both servers and waits until the name server's route shows the broker."""
        self.lib(self.version)
        java()
        self._prepare()
        try:
            self._namesrv = self._start_namesrv()
            self._broker = self._start_broker()
            self._wait_ready()
            if self._is_to_be_filled:
                self._wait_until_it_sees_its_disk()
        except BaseException:
            self.close()
            raise
        return Addresses(self.namesrv, self.broker)

    def restart(self, *, kill: bool = True) -> None:
        """Ends the broker (SIGKILL, or SIGTERM and a clean end) and starts it again: same store and ports."""
        self.stop_broker(kill=kill)
        self.start_broker()

    def stop_broker(self, *, kill: bool = True) -> None:
        """Ends the broker: SIGKILL, or SIGTERM, which takes 7 to 17 seconds and writes everything out."""
        _end(self.broker_process, kill)
        self._broker = None

    def on_own_disk(self, folder: Path) -> None:
        """To be called before `start`: the store lies on a disk whose power can be cut. folder: for its images."""
        self.disk = OwnDisk(folder, self.workdir / "store")

    def cut_power(self, *, synced: bool = False) -> int:
        """Cuts the power of the broker's machine: how many bytes are gone that were written and not synced."""
        assert self.disk is not None, "call on_own_disk first"
        lost = self.disk.cut(self.broker_process, synced=synced)
        self._broker = None
        return lost

    def expect_a_full_disk(self) -> None:
        """To be called before `start`, which then lasts until the broker sees at once how much room there is."""
        self._is_to_be_filled = True
        self.extra_broker_conf["cleanResourceInterval"] = str(LOOKS_EACH_MS)

    def fill_disk(self, *, full: bool) -> None:
        """The broker's disk has no room, or has room again: returns when the broker refuses messages, or takes them.

        Of one that is gone meanwhile, or whose disk somebody else fills or empties, nothing is waited for.
        TargetMisbehaved when it does not within `DISK_DEADLINE_S`.
        """
        assert self.troubled is not None, "it has the machine's own disk"
        self.troubled.fill(full=full)
        disk, broker = self.troubled, self._broker
        if broker is None:
            return

        def is_over() -> bool:
            if disk.is_full != full or self._broker is not broker or not broker.alive:
                return True
            return self.refuses_messages() is full

        if not wait_until(is_over, deadline_s=DISK_DEADLINE_S, every_s=0.02):
            raise broker.misbehaved(
                f"did not {'refuse' if full else 'take'} messages within {DISK_DEADLINE_S:g} s of "
                f"{'no room on its disk' if full else 'room on its disk again'}"
            )

    def _wait_until_it_sees_its_disk(self) -> None:
        """Whoever looks each ten seconds may see one change at once, and never the next one too."""
        assert self.troubled is not None
        disk = self.troubled

        def sees_each_change() -> bool:
            try:
                return all(self._sees_at_once(full=full) for full in (True, False, True, False))
            finally:
                disk.fill(full=False)

        self.broker_process.wait_until(
            sees_each_change, what="look how much room its disk has", deadline_s=DISK_DEADLINE_S
        )

    def _sees_at_once(self, *, full: bool) -> bool:
        assert self.troubled is not None
        self.troubled.fill(full=full)
        seen = wait_until(
            lambda: self.refuses_messages() is full, deadline_s=SEES_AT_ONCE_S, every_s=0.02
        )
        return seen is True

    def refuses_messages(self) -> bool | None:
        """Does it say that it takes none now? None where it says neither."""
        header = {
            "producerGroup": READY_TOPIC,
            "topic": READY_TOPIC,
            "defaultTopic": "TBW102",
            "defaultTopicQueueNums": "1",
            "queueId": "0",
            "sysFlag": "0",
            "bornTimestamp": "0",
            "flag": "0",
        }
        said = _ask(self.broker, SEND_MESSAGE, header, b"is there room?")
        if said is None:
            return None
        return {SUCCESS: False, SERVICE_NOT_AVAILABLE: True}.get(said.code)

    def start_broker(self, version: str | None = None) -> None:
        """Starts the broker again after `stop_broker`, and waits until it is registered.

        version: the one that it is of from now on, if another than before; the name server stays what it is.
        """
        if self._broker is not None:
            _end(self._broker, kill=True)
        if version is not None:
            self.broker_version = version
            _write_properties(self.workdir / "broker.conf", self._broker_conf())
        self._broker = self._start_broker()
        self._wait_ready()

    def stop_namesrv(self) -> None:
        """Kills the name server, with all that it knows."""
        _end(self.namesrv_process, kill=True)
        self._namesrv = None

    def start_namesrv(self) -> None:
        """Starts it again on its port; waits until it answers. Brokers register with it each 30 s."""
        self._namesrv = process = self._start_namesrv()
        process.wait_until(
            lambda: _ask(self.namesrv, GET_BROKER_CLUSTER_INFO, {}),
            what=f"answer at {self.namesrv}",
            deadline_s=START_DEADLINE_S,
        )

    def stop(self) -> None:
        """A clean end: SIGTERM to both, then `close`."""
        for process in (self._broker, self._namesrv):
            if process is not None:
                _end(process, kill=False)
        self.close()

    def close(self) -> None:
        """Kills both, gives the ports back and deletes the store (logs stay). A second call does nothing."""
        for process in (self._broker, self._namesrv):
            if process is not None:
                process.kill()
        self._broker = self._namesrv = None
        for reservation in self._reservations:
            reservation.release()
        self._reservations = []
        if self.disk is not None:
            self.disk.close()
        shutil.rmtree(self.workdir / "tmp", ignore_errors=True)
        if not self.keep_store:
            shutil.rmtree(self.workdir / "store", ignore_errors=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        starting = asyncio.ensure_future(asyncio.to_thread(self.start))
        try:
            await asyncio.shield(starting)
        except asyncio.CancelledError:
            # The thread can't be interrupted: the servers it is starting die, and so does its wait.
            for process in (self._broker, self._namesrv):
                if process is not None:
                    process.kill()
            await asyncio.wait([starting])
            starting.exception()  # it is about the killed servers: retrieved, so that nobody reports it
            self.close()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self.close)

    # ------------------------------------------------------------------------------------------ requests

    def create_topic(self, topic: str, queues: int = 4) -> None:
        """Creates a topic with this many queues; the broker has registered it when this returns."""
        answer = _ask(self.broker, UPDATE_AND_CREATE_TOPIC, _topic_header(topic, queues))
        if answer is None or answer.code != SUCCESS:
            said = "nothing" if answer is None else f"code {answer.code}"
            raise self.broker_process.misbehaved(
                f"was asked to create topic {topic!r} and answered {said}"
            )

        def routed() -> bool:
            route = _ask(self.namesrv, GET_ROUTEINFO_BY_TOPIC, {"topic": topic})
            return (
                route is not None
                and route.code == SUCCESS
                and f'"{self.broker}"'.encode() in route.body
            )

        self.broker_process.wait_until(
            routed, what=f"register topic {topic!r}", deadline_s=START_DEADLINE_S, every_s=0.05
        )

    # ------------------------------------------------------------------------------------------ within

    def _prepare(self) -> None:
        if not self._reservations:
            namesrv, broker = ports.reserve(), ports.reserve(offsets=(-2, 0, 1))
            self._reservations = [namesrv, broker]
            self._namesrv_port, self._broker_port = namesrv.port, broker.port
        for name in ("home/conf", "tmp", "store"):
            (self.workdir / name).mkdir(parents=True, exist_ok=True)
        for name in ("broker", "namesrv"):
            (self.workdir / f"home/conf/logback_{name}.xml").write_text(_LOGBACK.format(name=name))
        namesrv_conf = {"listenPort": str(self._namesrv_port)}
        if _is_modern(self.version):
            namesrv_conf["bindAddress"] = HOST
        _write_properties(self.workdir / "namesrv.conf", namesrv_conf)
        _write_properties(self.workdir / "broker.conf", self._broker_conf())

    def _broker_conf(self) -> dict[str, str]:
        store = self.workdir / "store"
        conf = {
            "brokerClusterName": CLUSTER_NAME,
            "brokerName": BROKER_NAME,
            "brokerId": "0",
            "brokerIP1": HOST,
            "brokerIP2": HOST,
            "namesrvAddr": self.namesrv,
            "listenPort": str(self._broker_port),
            "storePathRootDir": str(store),
            "storePathCommitLog": str(store / "commitlog"),
            "mappedFileSizeCommitLog": str(32 * 1024 * 1024),
            "mappedFileSizeConsumeQueue": "20000",
            "maxHashSlotNum": "1000",
            "maxIndexNum": "4000",
            "diskMaxUsedSpaceRatio": "95",
            "osPageCacheBusyTimeOutMills": "5000",
            "waitTimeMillsInSendQueue": "5000",
            "autoCreateTopicEnable": "true",
            "autoCreateSubscriptionGroup": "true",
            "messageDelayLevel": self.delay_levels,
        }
        if _is_modern(self.broker_version):
            conf |= {
                "bindAddress": HOST,
                "mappedFileSizeTimerLog": str(2 * 1024 * 1024),
                "transactionMetricFlushInterval": "200",
            }
        return conf | self.extra_broker_conf

    def _java(
        self, version: str, jvm: tuple[str, ...], main: tuple[str, ...], conf: str, *properties: str
    ) -> list[str]:
        home = self.workdir / "home"
        return [
            str(java()),
            *jvm,
            *(() if _is_modern(version) else _OPENINGS_4),
            *properties,
            f"-Drocketmq.home.dir={home}",
            f"-Duser.home={home}",
            f"-Djava.io.tmpdir={self.workdir / 'tmp'}",
            "-cp",
            f"{self.lib(version)}/*",
            *main,
            str(self.workdir / conf),
        ]

    def _start_namesrv(self) -> Process:
        main = ("org.apache.rocketmq.namesrv.NamesrvStartup", "-c")
        argv = self._java(self.version, ("-Xms32m", "-Xmx128m", *_JVM), main, "namesrv.conf")
        name = f"The name server of RocketMQ {self.version}"
        return Process(name, argv, log=self.workdir / "namesrv.out", cwd=self.workdir)

    def _start_broker(self) -> Process:
        version = self.broker_version
        # 4.x keeps a direct buffer of 4 MiB per busy thread: with 128 MiB its pulls fail after some hundred
        # requests.
        memory = (
            "-Xms128m",
            "-Xmx384m",
            f"-XX:MaxDirectMemorySize={128 if _is_modern(version) else 512}m",
        )
        lease = f"-Drocketmq.broker.rebalance.lockMaxLiveTime={self.broker_lease_ms}"
        jvm = self.broker_jvm or (*memory, *_JVM)
        java = self._java(version, jvm, self.main(), "broker.conf", lease)
        argv = java if self.disk is None else self.disk.command(java)
        name = f"The broker of RocketMQ {version}"
        told = [each.told for each in (self.clock, self.troubled) if each is not None]
        return Process(
            name, argv, log=self.workdir / "broker.out", cwd=self.workdir, env=environment_of(*told)
        )

    def is_ready(self) -> bool:
        """Does the broker answer, and does the name server lead to it?"""
        made = _ask(self.broker, UPDATE_AND_CREATE_TOPIC, _topic_header(READY_TOPIC, 1))
        if made is None or made.code != SUCCESS:
            return False
        # 5.x lists a broker a moment before its address: a client that asks in between finds no broker at all.
        known = _ask(self.namesrv, GET_BROKER_CLUSTER_INFO, {})
        return known is not None and all(
            word.encode() in known.body for word in (f'"{BROKER_NAME}"', f'"{self.broker}"')
        )

    def _wait_ready(self) -> None:
        namesrv, broker = self.namesrv_process, self.broker_process

        def registered() -> bool:
            namesrv.check_alive()
            return self.is_ready()

        broker.wait_until(
            registered,
            what=f"register {self.broker} at the name server {self.namesrv}",
            deadline_s=START_DEADLINE_S,
            every_s=0.2,
        )


def _is_modern(version: str) -> bool:
    return not version.startswith("4.")


def _end(process: Process, kill: bool) -> None:
    if kill:
        process.kill()
    else:
        process.stop(CLEAN_STOP_S)


def _write_properties(path: Path, properties: Mapping[str, str]) -> None:
    path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))


def _topic_header(topic: str, queues: int) -> dict[str, str]:
    return {
        "topic": topic,
        "defaultTopic": "TBW102",
        "readQueueNums": str(queues),
        "writeQueueNums": str(queues),
        "perm": "6",
        "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": "0",
        "order": "false",
    }


@dataclass(frozen=True, slots=True)
class _Answer:
    code: int
    body: bytes


def _ask(address: str, code: int, header: Mapping[str, str], body: bytes = b"") -> _Answer | None:
    """One request on a connection of its own; None if nobody listens there or no whole answer came in time.

    Only for readiness and set-up: the conformance targets have a real client.
    """
    host, port = address.rsplit(":", 1)
    command = {
        "code": code,
        "language": "OTHER",
        "version": 399,
        "opaque": 1,
        "flag": 0,
        "extFields": dict(header),
    }
    text = json.dumps(command).encode()
    try:
        with socket.create_connection((host, int(port)), ANSWER_DEADLINE_S) as connection:
            length = 4 + len(text) + len(body)
            connection.sendall(struct.pack(">ii", length, len(text)) + text + body)
            (length,) = struct.unpack(">i", _read(connection, 4))
            if not 4 <= length <= ANSWER_BYTES_MAX:
                return None
            frame = _read(connection, length)
    except OSError:
        return None
    header_length = int.from_bytes(frame[1:4], "big")
    answer = json.loads(frame[4 : 4 + header_length])
    return _Answer(code=int(answer["code"]), body=frame[4 + header_length :])


def _read(connection: socket.socket, length: int) -> bytes:
    data = bytearray()
    while len(data) < length:
        chunk = connection.recv(length - len(data))
        if not chunk:
            raise ConnectionResetError("the connection was closed in the middle of an answer")
        data += chunk
    return bytes(data)
