"""Apache clusters start, restart and leave nothing behind."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from conformance.parts import jars, ports, troubled_disk
from conformance.parts.apache import ApacheCluster
from conformance.parts.java import find_java
from conformance.parts.processes import wait_until
from conformance.parts.troubled_disk import TroubledDisk
from specs.errors import TargetMisbehaved, UsageError

PAIR = [
    pytest.param(
        version,
        marks=[
            pytest.mark.apache,
            *([] if version == "4.9.7" else [pytest.mark.long]),
            pytest.mark.skipif(
                not jars.present(version) or find_java() is None,
                reason=f"needs Java and the jars of RocketMQ {version}; `make setup` gets them",
            ),
        ],
    )
    for version in jars.DEFAULT
]
"""Both releases, the slower one in the long tests: in every run of the tests others use that one."""
SLOWER = [pytest.param("5.4.0", marks=[mark for mark in PAIR[1].marks if mark.name != "long"])]

DEADLINE_S = 30.0


def listens(address: str) -> bool:
    host, port = address.split(":")
    try:
        socket.create_connection((host, int(port)), 2).close()
    except OSError:
        return False
    return True


@pytest.mark.long
@pytest.mark.parametrize("version", PAIR)
def test_it_starts_restarts_and_leaves_nothing(version: str, tmp_path: Path) -> None:
    """Ready means registered; a killed broker comes back with its store; at the end no process, port or store.

    Both starts are in one log. (The broker writes that it is up a moment after it has registered.)
    """
    log = tmp_path / "broker.out"
    with ApacheCluster(version, workdir=tmp_path, broker_lease_ms=3000) as cluster:
        namesrv, broker = cluster.namesrv, cluster.broker
        processes = [cluster.namesrv_process.pid, cluster.broker_process.pid]
        assert listens(namesrv)
        assert listens(broker)
        cluster.create_topic("orders", queues=4)
        assert wait_until(lambda: log.read_text().count("boot success") == 1, deadline_s=DEADLINE_S)
        cluster.restart()
        processes.append(cluster.broker_process.pid)
        assert listens(broker)
        assert (tmp_path / "store" / "config" / "topics.json").read_text().count('"orders"') > 0
        assert wait_until(lambda: log.read_text().count("boot success") == 2, deadline_s=DEADLINE_S)
    assert not listens(namesrv)
    assert not listens(broker)
    assert [pid for pid in processes if psutil.pid_exists(pid)] == []
    assert not (tmp_path / "store").exists()
    assert log.read_text().count("boot success") == 2


@pytest.mark.long
@pytest.mark.skipif(troubled_disk.why_not() is not None, reason=str(troubled_disk.why_not()))
@pytest.mark.parametrize("version", PAIR)
def test_a_broker_takes_no_messages_while_its_disk_is_full(version: str, tmp_path: Path) -> None:
    """It has started when it sees at once how much room there is, and who fills the disk waits until it has seen it.

    Of a broker that is dead nobody waits for anything.
    """
    cluster = ApacheCluster(version, workdir=tmp_path)
    cluster.troubled = TroubledDisk(tmp_path)
    cluster.expect_a_full_disk()
    told = []
    with cluster:
        told.append(cluster.refuses_messages())
        for full in (True, False, True):
            cluster.fill_disk(full=full)
            told.append(cluster.refuses_messages())
        cluster.stop_broker()
        cluster.fill_disk(full=False)
    assert told == [False, True, False, True]


@pytest.mark.parametrize("version", PAIR)
def test_no_server_outlives_a_killed_parent(version: str, tmp_path: Path) -> None:
    """The program that started a cluster is killed with SIGKILL: both servers are gone."""
    script = f"""
import threading
from pathlib import Path
from conformance.parts.apache import ApacheCluster
cluster = ApacheCluster({version!r}, workdir=Path({str(tmp_path)!r}))
cluster.start()
print(cluster.namesrv_process.pid, cluster.broker_process.pid, flush=True)
threading.Event().wait()
"""
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(pids) == 2
        assert all(psutil.pid_exists(pid) for pid in pids)
        parent.kill()
    assert wait_until(lambda: not any(psutil.pid_exists(pid) for pid in pids), deadline_s=30)


@pytest.mark.long
@pytest.mark.parametrize("version", PAIR)
def test_it_is_easy_from_a_coroutine(version: str, tmp_path: Path) -> None:
    """`async with` starts it in a worker thread, and it outlives that thread."""

    async def use() -> bool:
        async with ApacheCluster(version, workdir=tmp_path) as cluster:
            return await asyncio.to_thread(listens, cluster.broker)

    assert asyncio.run(use())


@pytest.mark.parametrize("version", SLOWER)
def test_a_cancelled_start_leaves_nobody(version: str, tmp_path: Path) -> None:
    """Cancelling the task that waits for readiness ends the servers at once."""
    cluster = ApacheCluster(version, workdir=tmp_path)
    others = psutil.Process().children()  # those of other tests in this process

    async def cancel() -> None:
        starting = asyncio.ensure_future(cluster.__aenter__())
        await asyncio.to_thread(wait_until, (tmp_path / "broker.out").exists, deadline_s=60)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting

    asyncio.run(cancel())
    left = [each for each in psutil.Process().children() if each.name() == "java"]
    assert [each for each in left if each not in others] == []


@pytest.mark.long
@pytest.mark.parametrize("version", PAIR)
def test_a_busy_port_is_an_error_with_the_log(version: str, tmp_path: Path) -> None:
    """A broker that can't listen does not hang the suite, and says why."""
    with (
        ports.reserve(offsets=(-2, 0, 1)) as reservation,
        socket.create_server(("", reservation.port)),
    ):
        cluster = ApacheCluster(
            version, workdir=tmp_path, extra_broker_conf={"listenPort": str(reservation.port)}
        )
        with pytest.raises(TargetMisbehaved, match=rf"The broker of RocketMQ {version} died"):
            cluster.start()


def test_an_unknown_version_is_the_users_error(tmp_path: Path) -> None:
    """Before anything is written or started."""
    with pytest.raises(UsageError, match="known:"):
        ApacheCluster("3.2.6", workdir=tmp_path / "x")
    assert not (tmp_path / "x").exists()
