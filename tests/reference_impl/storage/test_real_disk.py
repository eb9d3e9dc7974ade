"""The store on this machine's disk: a served broker is killed, its files are looked at, and nobody else may come in."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from conformance.waiting import wait_until
from reference_impl.protocol import headers as h
from reference_impl.protocol.bodies import SubscriptionGroup
from reference_impl.protocol.codes import RequestCode as Ask
from reference_impl.protocol.command import Command
from reference_impl.protocol.message import decode_all, pack_properties
from reference_impl.shell.client import SyncClient
from reference_impl.shell.errors import RequestFailed
from reference_impl.storage import DiskFull, DiskStore, RealDisk, StoreInUse, real_disk
from tests.reference_impl.storage.runs import log_of

SERVE = [
    sys.executable,
    "-m",
    "inorder",
    "serve",
    "--namesrv-port",
    "0",
    "--broker-port",
    "0",
    "--format",
    "json",
]
SERVE += ["--disk-limits", "100 100 100"]  # how full this machine's disk is decides nothing
TOPIC = ["--topic", "orders", "--queues", "2"]


@contextmanager
def serving(store: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process and its broker's address."""
    process = subprocess.Popen(
        [*SERVE, *TOPIC, "--store", str(store), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, process.communicate()[1]
        yield process, json.loads(line)["brokers"]["b0"]
    finally:
        process.kill()
        process.communicate()


def to_send(body: bytes, queue_id: int = 0) -> Command:
    properties = pack_properties({"UNIQ_KEY": f"ID-{body[:20].decode()}"})
    header = h.SendHeader("P", "orders", queue_id, 1, properties=properties)
    return Command(Ask.SEND_MESSAGE_V2, header.to_ext_v2(), body)


def send(client: SyncClient, broker: str, body: bytes) -> Command:
    return client.call(broker, to_send(body), 20)


def pull_all(client: SyncClient, broker: str, queue_id: int = 0) -> list[bytes]:
    found: list[bytes] = []
    while True:
        header = h.PullHeader(
            "billing", "orders", queue_id, len(found), 32, h.PULL_SUBSCRIPTION, subscription="*"
        )
        answer = client.call(broker, Command(Ask.PULL_MESSAGE, header.to_ext()))
        if answer.code != 0:
            return found
        found += [message.body for message in decode_all(answer.body)]


def commit(client: SyncClient, broker: str, offset: int) -> None:
    client.call(
        broker,
        Command(
            Ask.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=SubscriptionGroup("billing").encode()
        ),
    )
    header = h.UpdateConsumerOffsetHeader("billing", "orders", 0, offset)
    assert client.call(broker, Command(Ask.UPDATE_CONSUMER_OFFSET, header.to_ext())).code == 0


def committed(client: SyncClient, broker: str) -> int:
    header = h.QueryConsumerOffsetHeader("billing", "orders", 0)
    answer = client.call(broker, Command(Ask.QUERY_CONSUMER_OFFSET, header.to_ext()))
    return h.OffsetResponse.from_ext(answer.ext).offset


@pytest.mark.parametrize("flush", ["sync", "async"])
def test_what_was_acknowledged_outlives_a_kill(flush: str, tmp_path: Path) -> None:
    """And a clean end: then the offsets of the last moment are there as well."""
    bodies = [f"m{number}".encode() for number in range(50)]
    with (
        serving(tmp_path, "--flush", flush, "--persist-ms", "50") as (process, broker),
        SyncClient() as client,
    ):
        assert [send(client, broker, body).code for body in bodies[:40]] == [0] * 40
        commit(client, broker, 7)
        assert wait_until(lambda: b"7" in saved_offsets(tmp_path), 20)
        process.kill()
        process.wait()
    with serving(tmp_path, "--flush", flush) as (process, broker), SyncClient() as client:
        assert pull_all(client, broker) == bodies[:40]
        assert committed(client, broker) == 7
        assert [send(client, broker, body).code for body in bodies[40:]] == [0] * 10
        commit(client, broker, 9)
        process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=30)[1]
        assert said == "store: the last broker did not end in good order; 40 messages are there\n"
    with serving(tmp_path) as (_, broker), SyncClient() as client:
        assert pull_all(client, broker) == bodies
        assert committed(client, broker) == 9


def saved_offsets(store: Path) -> bytes:
    path = store / "config" / "consumerOffset.json"
    return path.read_bytes() if path.exists() else b""


def test_a_second_broker_is_turned_away_in_one_sentence(tmp_path: Path) -> None:
    with serving(tmp_path), serving_fails(tmp_path) as (code, said):
        assert code == 64
        assert said.count("\n") == 1
        assert f"The store {tmp_path} is in use by another process" in said


@contextmanager
def serving_fails(store: Path) -> Iterator[tuple[int, str]]:
    done = subprocess.run(
        [*SERVE, "--store", str(store)], capture_output=True, text=True, timeout=60, check=False
    )
    yield done.returncode, done.stderr


def test_two_stores_of_one_process_exclude_each_other_too(tmp_path: Path) -> None:
    store = DiskStore.open(RealDisk(tmp_path))
    with pytest.raises(StoreInUse):
        DiskStore.open(RealDisk(tmp_path))
    store.close()
    DiskStore.open(RealDisk(tmp_path)).close()


def test_the_files_are_where_rocketmq_has_them(tmp_path: Path) -> None:
    with serving(tmp_path) as (process, broker), SyncClient() as client:
        send(client, broker, b"m")
        commit(client, broker, 1)
        assert (tmp_path / "abort").exists()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    files = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert {name for name in files if not name.endswith(".bak")} == {
        "checkpoint",
        "commitlog/00000000000000000000",
        "config/consumerOffset.json",
        "config/delayOffset.json",
        "config/subscriptionGroup.json",
        "config/topics.json",
        "consumequeue/orders/0/00000000000000000000",
        "inorder.json",
        "lock",
    }
    assert saved_offsets(tmp_path) == b'{"offsetTable":{"orders@billing":{0:1}}}'
    assert (tmp_path / "commitlog/00000000000000000000").stat().st_size == 1024**3
    assert (tmp_path / "consumequeue/orders/0/00000000000000000000").stat().st_size == 6_000_000


def test_a_file_system_without_room_refuses_and_goes_on(tmp_path: Path) -> None:
    """The limit of a file's size stands in for the end of the disk."""
    script = f"""
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from pathlib import Path
from reference_impl.core.broker.log import Draft, StoreFull
from reference_impl.storage import DiskStore, RealDisk, StoreOptions
store = DiskStore.open(RealDisk(Path({str(tmp_path)!r})), StoreOptions(segment_bytes=4096))
def put(count, size):
    done = 0
    for _ in range(count):
        try:
            store.append(Draft("orders", 0, b"x" * size, {{}}), 1, "127.0.0.1:1")
            done += 1
        except StoreFull:
            pass
    return done
put(1, 200)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
small = put(8, 200)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
print(small, put(8, 200), store.queue("orders", 0).max_offset)
store.close()
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    before, after, count = map(int, done.stdout.split())
    assert (before, after, count) == (2, 8, 11)
    store = DiskStore.open(RealDisk(tmp_path))
    assert [offset for _, _, offset, _ in log_of(store)] == list(range(11))
    store.close()


def test_a_disk_without_room_is_one_clear_error(tmp_path: Path) -> None:
    """Writing to /dev/full finds no room."""
    disk = RealDisk(tmp_path)
    (tmp_path / "full").symlink_to("/dev/full")
    file = disk.open("full")
    with pytest.raises(DiskFull, match="No space left"):
        file.write(0, b"x")
    file.close()


def kill_under_load(store: Path, seed: int) -> tuple[int, int]:
    """Send on as many connections as queues, kill at a random moment, restart: how many were acknowledged, found."""
    choices = Random(seed)
    kill_after = choices.randrange(1, 400)
    flush = choices.choice(["sync", "async"])
    acknowledged: list[tuple[int, bytes]] = []
    with (
        serving(store, "--flush", flush, "--persist-ms", "50") as (process, broker),
        SyncClient() as client,
    ):
        before = [pull_all(client, broker, queue_id) for queue_id in (0, 1)]
        waiting: list[tuple[int, int, bytes]] = []
        number = 0
        try:
            while True:
                body = f"s{seed}-{number}".encode() + b"x" * choices.randrange(2_000)
                queue_id = number % 2
                waiting.append((queue_id, client.begin(broker, to_send(body, queue_id)), body))
                number += 1
                if number == kill_after:
                    os.kill(process.pid, signal.SIGKILL)
                if len(waiting) >= 16:
                    finish(client, broker, waiting, acknowledged)
        except RequestFailed:
            pass
    with serving(store) as (_, broker), SyncClient() as client:
        after = [pull_all(client, broker, queue_id) for queue_id in (0, 1)]
    for queue_id in (0, 1):
        assert after[queue_id][: len(before[queue_id])] == before[queue_id]
        new = after[queue_id][len(before[queue_id]) :]
        sent = [body for lane, body in acknowledged if lane == queue_id]
        assert new[: len(sent)] == sent
        assert len(new) - len(sent) <= 17  # those that were under way
    return len(acknowledged), sum(map(len, after))


def finish(
    client: SyncClient,
    broker: str,
    waiting: list[tuple[int, int, bytes]],
    acknowledged: list[tuple[int, bytes]],
) -> None:
    queue_id, opaque, body = waiting.pop(0)
    answer = client.finish(broker, opaque, 20)
    assert answer.code == 0
    acknowledged.append((queue_id, body))


def test_kills_at_random_moments_under_load(tmp_path: Path) -> None:
    """Three lives of one store; what was acknowledged in each is there in the next."""
    counts = [kill_under_load(tmp_path, seed) for seed in range(3)]
    assert [found for _, found in counts] == sorted(found for _, found in counts)


@pytest.mark.long
@pytest.mark.timeout(1_200)
def test_many_kills_at_random_moments_under_load(tmp_path: Path) -> None:
    for seed in range(100, 160):
        kill_under_load(tmp_path, seed)


def test_a_new_folder_is_made_safe_when_a_name_in_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not before, for a sync takes long and there may be many folders; and then with all folders above that are new."""
    synced: list[str] = []
    monkeypatch.setattr(
        real_disk, "_sync_folder", lambda path: synced.append(path.relative_to(tmp_path).as_posix())
    )
    disk = RealDisk(tmp_path / "a" / "store")
    assert synced == ["a", "."]
    synced.clear()
    for path in ("queues/orders/0/f", "queues/orders/1/f", "log/f"):
        disk.create(path).close()
    assert synced == []
    disk.sync_folder("queues/orders/1")
    expected = ["queues/orders/1", "queues/orders", "queues", ""]
    assert synced == [f"a/store/{name}".rstrip("/") for name in expected]
    synced.clear()
    disk.sync_folder("queues/orders/0")
    disk.sync_folder("queues/orders/0")
    assert synced == [
        f"a/store/{name}" for name in ("queues/orders/0", "queues/orders", "queues/orders/0")
    ]
