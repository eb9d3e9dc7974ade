"""A standalone master and two workers of Spark's, as processes of this machine."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pyspark

HOME = Path(pyspark.__file__).parent
READY_S = 240
AT_WORK_S = 600
LOOK_EVERY_S = 0.02
_STARTED = re.compile(r"Started daemon with process name: (\d+)@")
_RUNNING = re.compile(r"Running task (\S+) in stage (\S+) \(TID (\d+)\)")
_OVER = re.compile(r"(?:Finished|Exception in|Executor \w+) task \S+ in stage \S+ \(TID (\d+)\)")


@dataclass(frozen=True, slots=True)
class Executor:
    """A process that runs tasks for a worker, as its log tells of it."""

    pid: int
    log: Path

    def at_work(self) -> bool:
        """Does it live, and run a task?"""
        said = self.log.read_text(errors="replace")
        begun = {task for _, _, task in _RUNNING.findall(said)}
        return psutil.pid_exists(self.pid) and bool(begun.difference(_OVER.findall(said)))

    def attempts(self) -> set[int]:
        """How often its tasks had been begun before, by anybody."""
        said = self.log.read_text(errors="replace")
        return {int(task.rpartition(".")[2]) for task, _, _ in _RUNNING.findall(said)}


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker's process, and the folder in which the executors that it starts write their logs."""

    process: subprocess.Popen[bytes]
    folder: Path

    def executors(self) -> list[Executor]:
        logs = [
            (log, log.read_text(errors="replace")) for log in self.folder.glob("app-*/*/stderr")
        ]
        told = [(log, _STARTED.search(said)) for log, said in logs]
        return [Executor(int(pid.group(1)), log) for log, pid in told if pid is not None]


@dataclass(frozen=True, slots=True)
class Cluster:
    """A master with its workers."""

    url: str
    workers: tuple[Worker, ...]

    def attempts(self) -> set[int]:
        """How often the tasks of all executors had been begun before."""
        found = [each.attempts() for worker in self.workers for each in worker.executors()]
        return set().union(*found)

    def stopped_at_work(self, begun: subprocess.Popen[str]) -> tuple[Worker, Executor]:
        """Stands an executor still in the middle of a task, while the command that has begun is under way."""
        until = time.monotonic() + AT_WORK_S
        while time.monotonic() < until and begun.poll() is None:
            for worker in self.workers:
                for executor in worker.executors():
                    if executor.at_work() and _stands_at_work(executor):
                        return worker, executor
            time.sleep(LOOK_EVERY_S)
        raise AssertionError(f"no executor was seen at work; the command gave {begun.poll()}")


def _stands_at_work(executor: Executor) -> bool:
    """Stop the process; if it had ended its task before it stood, let it go on."""
    os.kill(executor.pid, signal.SIGSTOP)
    if executor.at_work():
        return True
    os.kill(executor.pid, signal.SIGCONT)
    return False


def awaited(what: str, condition: Callable[[], bool]) -> None:
    """Return once the condition holds."""
    until = time.monotonic() + AT_WORK_S
    while not condition():
        assert time.monotonic() < until, f"{what}: not within {AT_WORK_S} s"
        time.sleep(LOOK_EVERY_S)


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
    """A master with two workers of one core each, while the block runs.

    Each worker has an address of its own, for Spark begins no task a second time on the host where it runs already.
    """
    deploy = "org.apache.spark.deploy"
    here = ("--webui-port", "0", "--host")
    started = [
        start(folder, "master", f"{deploy}.master.Master", *here, "127.0.0.1", "--port", "0")
    ]
    try:
        url = said(started[0][1], r"Starting Spark master at (spark://\S+)")
        hosts = {"one": "127.0.0.1", "two": "127.0.0.2"}
        for name, host in hosts.items():
            work = ("-c", "1", "-m", "1500m", "-d", str(folder / name))
            started.append(start(folder, name, f"{deploy}.worker.Worker", *here, host, *work, url))
        for _process, log in started[1:]:
            said(log, r"(Successfully registered with master)")
        processes = [process for process, _log in started[1:]]
        workers = [Worker(each, folder / name) for each, name in zip(processes, hosts, strict=True)]
        yield Cluster(url, tuple(workers))
    finally:
        for process, _log in started:
            end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):  # it has ended by itself
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
