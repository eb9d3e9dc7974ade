"""The small files: JSON tables, replaced in one step, and the checkpoint.

A table is written to a new file, synced, and takes the old one's name; the old one stays as `.bak`. A table that
can't be read is taken from there. Source: docs/sources.md#store (ConfigManager, StoreCheckpoint).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from reference_impl.core.broker.offset_table import OffsetKey
from reference_impl.protocol.bodies import SubscriptionGroup, TopicConfig, dumps, loads
from reference_impl.protocol.errors import ProtocolError
from reference_impl.storage.disk import Disk
from reference_impl.storage.errors import DiskFailed, DiskFull, StoreDamaged
from reference_impl.storage.layout import CHECKPOINT

TABLE_BYTES_MAX = 64 * 1024 * 1024
"""A larger file is no table of ours."""
BACKUP = ".bak"
TEMPORARY = ".tmp"

CHECKPOINT_BYTES = 4096
_TIMES = struct.Struct(
    ">qqq"
)  # RocketMQ's: log, consume queues, index flushed up to that store time, in ms
_OURS_AT = 256
_OURS = struct.Struct(">8sq")
_MARK = b"INORDER1"
_CRC = struct.Struct(">I")


def write_table(disk: Disk, path: str, value: Any, *, quoted_keys: bool = True) -> None:
    """Replace the table. Raises DiskFull and DiskFailed; then the old one is still there."""
    temporary = path + TEMPORARY
    try:
        file = disk.create(temporary)
        try:
            file.write(0, dumps(value, quoted_keys=quoted_keys))
            file.sync()
        finally:
            file.close()
        if disk.exists(path):
            disk.link(path, path + BACKUP)
        disk.rename(temporary, path)
        disk.sync_folder(path.rpartition("/")[0])
    except (DiskFull, DiskFailed):
        with suppress(DiskFull, DiskFailed):
            if disk.exists(temporary):
                disk.remove(temporary)
        raise


def read_table(disk: Disk, path: str, said: list[str]) -> dict[str, Any] | None:
    """The table, or the one before it if that can't be read (and a line about it); None when there never was one.

    Raises StoreDamaged when there is a file and neither it nor the one before can be read.
    """
    why = ""
    for name in (path, path + BACKUP):
        if not disk.exists(name):
            continue
        try:
            value = _read(disk, name)
        except ProtocolError as error:
            why = why or f"{name}: {error}"
            continue
        if why:
            said.append(f"{path} can't be read; {name} was taken instead, which is older")
        return value
    if why:
        raise StoreDamaged(
            f"A table of the store can't be read ({why}) Remove the file to start without that table."
        )
    return None


def _read(disk: Disk, path: str) -> dict[str, Any]:
    file = disk.open(path)
    try:
        if file.size() > TABLE_BYTES_MAX:
            raise ProtocolError(f"The file has more than {TABLE_BYTES_MAX} bytes.")
        value = loads(file.read(0, TABLE_BYTES_MAX))
    finally:
        file.close()
    if not isinstance(value, dict):
        raise ProtocolError("The file holds no JSON object.")
    return value


# ---------------------------------------------------------------- what the tables mean


def _member(table: Mapping[str, Any] | None, name: str) -> dict[str, Any]:
    inner = (table or {}).get(name)
    return inner if isinstance(inner, dict) else {}


def offsets_to_json(offsets: Mapping[OffsetKey, Mapping[int, int]]) -> dict[str, Any]:
    return {
        "offsetTable": {f"{key.topic}@{key.group}": dict(queues) for key, queues in offsets.items()}
    }


def offsets_from_json(table: Mapping[str, Any] | None) -> dict[OffsetKey, dict[int, int]]:
    """Entries that are none are left out."""
    offsets: dict[OffsetKey, dict[int, int]] = {}
    for name, queues in _member(table, "offsetTable").items():
        topic, found, group = name.partition("@")
        if found and isinstance(queues, dict):
            offsets[OffsetKey(topic, group)] = _numbers(queues)
    return offsets


def numbers(table: Mapping[str, Any] | None, name: str) -> dict[int, int]:
    """Of a table's member the members whose name and value are whole numbers of 64 bits."""
    return _numbers(_member(table, name))


def _numbers(table: Mapping[str, Any]) -> dict[int, int]:
    return {
        int(name): value
        for name, value in table.items()
        if len(name) < 19
        and name.isascii()
        and name.isdigit()
        and type(value) is int
        and abs(value) < 2**63
    }


def topics_to_json(topics: Mapping[str, TopicConfig]) -> dict[str, Any]:
    return {
        "dataVersion": {"counter": len(topics), "stateVersion": 0, "timestamp": 0},
        "topicConfigTable": {name: topic.to_json() for name, topic in topics.items()},
    }


def topics_from_json(table: Mapping[str, Any] | None) -> dict[str, TopicConfig]:
    """Raises StoreDamaged for a topic that is none."""
    found = {}
    for name, source in _member(table, "topicConfigTable").items():
        try:
            topic = TopicConfig.from_json(source if isinstance(source, dict) else {})
        except ProtocolError as error:
            raise StoreDamaged(
                f"The topic {name[:40]!r} of the store can't be read: {error}"
            ) from error
        found[topic.topic] = topic
    return found


def groups_to_json(groups: Mapping[str, SubscriptionGroup]) -> dict[str, Any]:
    return {
        "subscriptionGroupTable": {name: loads(group.encode()) for name, group in groups.items()}
    }


def groups_from_json(table: Mapping[str, Any] | None) -> dict[str, SubscriptionGroup]:
    """Raises StoreDamaged for a group that is none."""
    found = {}
    for name, source in _member(table, "subscriptionGroupTable").items():
        try:
            group = SubscriptionGroup.decode(dumps(source))
        except ProtocolError as error:
            raise StoreDamaged(
                f"The group {name[:40]!r} of the store can't be read: {error}"
            ) from error
        found[group.group] = group
    return found


# ---------------------------------------------------------------- the checkpoint


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """synced: everything below that place of the log outlives a crash; None when nobody said so.

    store_ms: when the last message below it was stored.
    """

    synced: int | None = None
    store_ms: int = 0


def write_checkpoint(disk: Disk, checkpoint: Checkpoint) -> None:
    """RocketMQ's three times, and behind them our place. Raises DiskFull and DiskFailed."""
    time = checkpoint.store_ms
    data = bytearray(CHECKPOINT_BYTES)
    _TIMES.pack_into(data, 0, time, time, 0)
    ours = _OURS.pack(_MARK, checkpoint.synced or 0)
    data[_OURS_AT : _OURS_AT + len(ours) + _CRC.size] = ours + _CRC.pack(zlib.crc32(ours))
    is_new = not disk.exists(CHECKPOINT)
    file = disk.create(CHECKPOINT, CHECKPOINT_BYTES) if is_new else disk.open(CHECKPOINT)
    try:
        file.write(0, bytes(data))
        file.sync()
    finally:
        file.close()
    if is_new:
        disk.sync_folder("")


def read_checkpoint(disk: Disk) -> Checkpoint:
    if not disk.exists(CHECKPOINT):
        return Checkpoint()
    file = disk.open(CHECKPOINT)
    try:
        data = file.read(_OURS_AT, _OURS.size + _CRC.size)
    finally:
        file.close()
    if (
        len(data) < _OURS.size + _CRC.size
        or zlib.crc32(data[: _OURS.size]) != _CRC.unpack(data[_OURS.size :])[0]
    ):
        return Checkpoint()
    mark, synced = _OURS.unpack(data[: _OURS.size])
    return Checkpoint(synced) if mark == _MARK and synced >= 0 else Checkpoint()
