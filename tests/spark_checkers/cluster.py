"""A standalone master and two workers of Spark's, as processes of this machine."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyspark

HOME = Path(pyspark.__file__).parent
READY_S = 240


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
def running(folder: Path) -> Iterator[str]:
    """The URL of a master with two workers of one core each, while the block runs."""
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
        yield url
    finally:
        for process, _log in started:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):  # it has ended by itself
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
