"""A standalone master and two workers of Spark's, as processes of this machine."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pyspark

HOME = Path(pyspark.__file__).parent
READY_S = 240


@dataclass(frozen=True)
class Cluster:
    """url: of the master. daemons: the master, and then the workers."""

    url: str
    daemons: tuple[subprocess.Popen[bytes], ...]

    def kill_a_worker(self) -> None:
        """Once one of its tasks runs Python, a worker dies, and what it started with it."""
        until = time.monotonic() + READY_S
        while time.monotonic() < until:
            for worker in self.daemons[1:]:
                below = psutil.Process(worker.pid).children(recursive=True)
                if any("pyspark.daemon" in " ".join(_words(each)) for each in below):
                    for each in [*below, psutil.Process(worker.pid)]:
                        each.kill()
                    return
            time.sleep(0.1)
        raise AssertionError("no worker ever ran Python")


def _words(process: psutil.Process) -> list[str]:
    try:
        words: list[str] = process.cmdline()
    except psutil.NoSuchProcess:
        return []
    return words


def start(folder: Path, name: str, *arguments: str) -> tuple[subprocess.Popen[bytes], Path]:
    """A daemon of Spark's in a process group of its own, for `spark-class` leaves a shell beside it."""
    log = folder / f"{name}.log"
    environment = {
        **os.environ,
        "SPARK_HOME": str(HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_NO_DAEMONIZE": "1",
    }
    with log.open("wb") as out:
        process = subprocess.Popen(
            [str(HOME / "bin" / "spark-class"), *arguments],
            env=environment,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return process, log


def said(log: Path, pattern: str) -> str:
    """What a daemon's log says, once it says it."""
    until = time.monotonic() + READY_S
    while time.monotonic() < until:
        found = re.search(pattern, log.read_text(errors="replace"))
        if found:
            return found.group(1)
        time.sleep(0.5)
    raise AssertionError(f"{log.name}: {log.read_text(errors='replace')[-2000:]}")


@contextmanager
def running(folder: Path) -> Iterator[Cluster]:
    """A master with two workers of one core each, while the block runs."""
    deploy = "org.apache.spark.deploy"
    host = ("--host", "127.0.0.1", "--webui-port", "0")
    started = [start(folder, "master", f"{deploy}.master.Master", *host, "--port", "0")]
    try:
        url = said(started[0][1], r"Starting Spark master at (spark://\S+)")
        for name in ("one", "two"):
            work = ("-c", "1", "-m", "1500m", "-d", str(folder / name))
            started.append(start(folder, name, f"{deploy}.worker.Worker", *host, *work, url))
        for _process, log in started[1:]:
            said(log, r"(Successfully registered with master)")
        yield Cluster(url, tuple(process for process, _log in started))
    finally:
        for process, _log in started:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):  # a worker that was killed before
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
