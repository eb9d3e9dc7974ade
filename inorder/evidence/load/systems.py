"""The two brokers under load: processes of their own, whose messages lie on disk, flushed in the background."""

from __future__ import annotations

import json
import sys
from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from conformance.parts.apache import ApacheCluster
from conformance.parts.processes import Process
from conformance.targets.systems import wait_for_route
from reference_impl.protocol.codes import RequestCode, ResponseCode
from reference_impl.protocol.command import Command
from reference_impl.protocol.headers import CreateTopicHeader
from reference_impl.shell.client import SyncClient
from specs.errors import TargetMisbehaved

JVM = (
    "-server",
    "-Xms1g",
    "-Xmx1g",
    "-XX:+UseG1GC",
    "-XX:MaxDirectMemorySize=1g",
    "-XX:-UsePerfData",
)
CONF = {
    "mappedFileSizeCommitLog": str(1024**3),
    "mappedFileSizeConsumeQueue": "6000000",
    "maxHashSlotNum": "5000000",
    "maxIndexNum": "20000000",
}
SERVE = "from reference_impl.cli import serve; serve()"


class Loaded(ABC):
    """A cluster of one broker. name: how tables call it: `ours`, or the release. namesrv: `host:port`, once entered."""

    name: str
    namesrv: str
    broker: str

    @abstractmethod
    def __enter__(self) -> Self: ...

    @abstractmethod
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    @abstractmethod
    def pid(self) -> int:
        """Of the broker's process, or of one whose child it is."""

    def memory_mib(self) -> float:
        """What the broker's processes hold at this moment (resident)."""
        first = psutil.Process(self.pid())
        return (
            sum(each.memory_info().rss for each in (first, *first.children(recursive=True))) / 2**20
        )

    def cpu_s(self) -> float:
        """What the broker's processes have used of the CPU so far."""
        first = psutil.Process(self.pid())
        times = [each.cpu_times() for each in (first, *first.children(recursive=True))]
        return sum(each.user + each.system for each in times)

    def create_topic(self, topic: str, queues: int) -> None:
        """It is in the route when this returns."""
        with SyncClient() as client:
            command = Command(
                RequestCode.UPDATE_AND_CREATE_TOPIC,
                CreateTopicHeader(topic, queues, queues).to_ext(),
            )
            answer = client.call(self.broker, command)
        if answer.code != ResponseCode.SUCCESS:
            raise TargetMisbehaved(f"{self.name} did not create the topic {topic}: {answer.remark}")
        wait_for_route(self.namesrv, topic, "b0")


class Ours(Loaded):
    """`inorder serve`, with its store in a folder."""

    name = "ours"

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> Self:
        words = [
            "--namesrv-port",
            "0",
            "--broker-port",
            "0",
            "--format",
            "json",
            "--disk-limits",
            "100 100 100",
        ]
        argv = [sys.executable, "-c", SERVE, *words, "--store", str(self._folder / "store")]
        self._process = Process("inorder serve", argv, log=self._folder / "serve.log", pipes=True)
        try:
            line = self._process.stdout.readline()
            if not line:
                raise self._process.misbehaved("did not start")
            said = json.loads(line)
        except BaseException:
            self._process.kill()
            raise
        self.namesrv, self.broker = said["namesrv"], said["brokers"]["b0"]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.stop()

    def pid(self) -> int:
        return self._process.pid


class Apaches(Loaded):
    """A released broker, from its jars, as its own start script and defaults have it: G1, both compilers, large files.

    Only the heap is smaller: 1 GiB instead of 8, on a machine that has other work too.
    """

    def __init__(self, version: str, folder: Path) -> None:
        self.name = version
        self._cluster = ApacheCluster(
            version, workdir=folder, broker_jvm=JVM, extra_broker_conf=CONF
        )

    def __enter__(self) -> Self:
        addresses = self._cluster.start()
        self.namesrv, self.broker = addresses.namesrv, addresses.broker
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._cluster.close()

    def pid(self) -> int:
        return self._cluster.broker_process.pid

    def create_topic(self, topic: str, queues: int) -> None:
        self._cluster.create_topic(topic, queues)
