"""Stores that no broker wrote: files of noise, and good stores with something wrong in them."""

from __future__ import annotations

import struct
from contextlib import suppress
from random import Random

from reference_impl.core.broker.log import Draft
from reference_impl.storage import DiskStore, StoreDamaged, StoreOptions
from reference_impl.storage.layout import (
    ABORT,
    BLANK_MAGIC,
    CHECKPOINT,
    DELAYS,
    GROUPS,
    META,
    OFFSETS,
    TOPICS,
    queue_path,
    segment_path,
)
from reference_impl.storage.simulated_disk import SimulatedDisk
from tests.reference_impl.storage.runs import SYNC, Run, log_of

TINY = StoreOptions(segment_bytes=512, queue_file_bytes=60)
NUMBERS = (
    0,
    1,
    -1,
    7,
    8,
    127,
    255,
    511,
    512,
    2**15,
    2**31 - 1,
    -(2**31),
    BLANK_MAGIC,
    -626843481,
    -626843477,
)
WORDS = (
    b"{",
    b"}",
    b"[" * 2_000,
    b'":',
    b"1e999",
    b"NaN",
    b"null",
    b"9" * 5_000,
    b"{0:1}",
    b"\xff\xfe",
    b'"\\ud800"',
)


def good_store(seed: int) -> SimulatedDisk:
    """A small store with everything in it, ended in good order or (every other) not."""
    run = Run(SimulatedDisk(), StoreOptions(SYNC.flush, segment_bytes=512, queue_file_bytes=60))
    store = run.start()
    for number in range(2 + seed % 3):
        run.send(number % 2, f"m{number}".encode())
        run.flush()
    run.send(0, b"later", level=1)
    run.commit(1)
    run.pass_ms(1_500)
    if seed % 2:
        store.close()
    else:
        store.abandon()
    return run.disk


def spoiled(disk: SimulatedDisk, choices: Random) -> SimulatedDisk:
    """A copy with one to three things wrong in its files, most often in the log."""
    twin = disk.copy()
    for _ in range(choices.randint(1, 3)):
        paths = twin.paths()
        logs = [path for path in paths if path.startswith("commitlog/")]
        path = choices.choice(logs if logs and choices.random() < 0.5 else paths)
        if choices.random() < 0.05:
            twin.remove(path)
        elif choices.random() < 0.05:
            other = segment_path(choices.choice([0, 512, 2**62, 10**20 - 1]))
            twin.put(choices.choice([other, f"{path}x"]), noise(choices))
        else:
            twin.put(path, spoil(twin.content(path), choices))
    return twin


def noise(choices: Random) -> bytes:
    return choices.randbytes(choices.randrange(200))


def spoil(data: bytes, choices: Random) -> bytes:
    """The bytes with one thing wrong."""
    at = choices.randrange(len(data) + 1)
    match choices.randrange(8):
        case 0:
            return data[:at]
        case 1:
            return data[:at] + noise(choices)
        case 2:
            return data[:at] + struct.pack(">i", choices.choice(NUMBERS)) + data[at + 4 :]
        case 3:
            return data[:at] + choices.choice(WORDS) + data[at:]
        case 4:
            other = choices.randrange(len(data) + 1)
            return data[:at] + data[other : other + choices.randrange(100)] + data[at:]
        case 5:
            return data[:at] + bytes(choices.randrange(64)) + data[at + 32 :]
        case _:
            changed = bytearray(data or b"\0")
            for _ in range(choices.choice([1, 1, 2, 8])):
                changed[choices.randrange(len(changed))] ^= 1 << choices.randrange(8)
            return bytes(changed)


def open_anything(disk: SimulatedDisk, *, cut_damage: bool) -> DiskStore | None:
    """None when it was refused; any other error is a bug."""
    with suppress(StoreDamaged):
        return DiskStore.open(
            disk, StoreOptions(segment_bytes=512, queue_file_bytes=60, cut_damage=cut_damage)
        )
    return None


def use(disk: SimulatedDisk, store: DiskStore) -> None:
    """What was opened works: it can be read, takes a message, and is found again with it."""
    before = log_of(store)
    stored = store.append(Draft("fresh", 0, b"body", {"UNIQ_KEY": "k"}), 1_000, "127.0.0.1:1")
    store.close()
    again = DiskStore.open(disk, TINY)
    assert log_of(again) == [*before, ("fresh", 0, stored.queue_offset, b"body")]
    assert not [line for line in again.said if "tail" in line]


CORPUS: dict[str, dict[str, bytes]] = {
    "a record of two gigabytes": {
        segment_path(0): struct.pack(">ii", 2**31 - 1, -626843481) + bytes(504)
    },
    "a record of less than nothing": {
        segment_path(0): struct.pack(">ii", -5, -626843481) + bytes(504)
    },
    "a blank of nothing": {segment_path(0): struct.pack(">ii", 0, BLANK_MAGIC) + bytes(504)},
    "a whole segment of blank": {
        segment_path(0): struct.pack(">ii", 512, BLANK_MAGIC) + bytes(504)
    },
    "a blank that is too long": {
        segment_path(0): struct.pack(">ii", 513, BLANK_MAGIC) + bytes(504)
    },
    "an empty segment": {segment_path(0): b""},
    "a segment of one byte": {segment_path(0): b"\x01"},
    "a segment far away": {segment_path(2**62): bytes(512)},
    "a segment beyond all numbers": {segment_path(10**20 - 1): bytes(512)},
    "segments that overlap": {segment_path(0): bytes(512), segment_path(100): bytes(512)},
    "names that are none": {
        "commitlog/x": b"1",
        "commitlog/0000000000000000000a": b"1",
        "consumequeue/t/x/y": b"1",
    },
    "a queue without a log": {queue_path("t", 0, 0): struct.pack(">qiq", 0, 100, 0) * 3},
    "a queue with negative places": {
        queue_path("t", 0, 0): struct.pack(">qiq", -(2**63), -1, -1) * 3
    },
    "a queue that starts far away": {queue_path("t", 0, 10**19): struct.pack(">qiq", 0, 1, 0)},
    "a queue number without end": {"consumequeue/t/99999999999999999999/" + "0" * 20: bytes(20)},
    "an empty table": {META: b""},
    "a list for a table": {TOPICS: b"[]"},
    "a table of lists": {TOPICS: b'{"topicConfigTable":[]}', OFFSETS: b'{"offsetTable":[1]}'},
    "a number for a table": {DELAYS: b'{"offsetTable":7}'},
    "topics that are none": {TOPICS: b'{"topicConfigTable":{"t":{"topicName":3}}}'},
    "groups that are none": {GROUPS: b'{"subscriptionGroupTable":{"g":[]}}'},
    "offsets that are none": {
        OFFSETS: b'{"offsetTable":{"t@g":{"0":1.5,"x":1,"1":1e400,"2":99999999999999999999}}}'
    },
    "a table that is very deep": {OFFSETS: b'{"a":' * 50_000},
    "a number that is very long": {OFFSETS: b'{"offsetTable":{"t@g":{0:' + b"9" * 5_000 + b"}}}"},
    "sizes that can't be": {
        META: b'{"format":"inorder/store/v1","segmentBytes":-1,"queueFileBytes":1}'
    },
    "sizes that eat the disk": {
        META: b'{"format":"inorder/store/v1","segmentBytes":9e99,"queueFileBytes":20}'
    },
    "a later version": {META: b'{"format":"inorder/store/v2"}'},
    "a checkpoint of noise": {CHECKPOINT: b"\xff" * 5_000, ABORT: b""},
}
