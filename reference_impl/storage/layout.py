"""Where everything lies in a store's folder, and the numbers of RocketMQ's layout.

    abort                                     there while a broker runs: if it is there at a start, that one crashed
    checkpoint                                up to when everything is known to be synced
    commitlog/00000000000000000000            the log: segments of one size, named by the offset of their first byte
    consumequeue/TOPIC/QUEUE/0000...          20 bytes for each message of a queue: offset i64, size i32, tag code i64
    keyindex/0000...                          ours: in which place of the log a message of which key lies
    config/*.json                             topics, groups, consumed offsets, delays; the version before as .bak
    lock                                      locked while a broker runs
    inorder.json                              ours: sizes of the files, how often the store was opened

Source: docs/sources.md#store.
"""

from __future__ import annotations

from collections.abc import Iterable

ABORT = "abort"
CHECKPOINT = "checkpoint"
COMMIT_LOG = "commitlog"
CONSUME_QUEUE = "consumequeue"
KEY_INDEX = "keyindex"
CONFIG = "config"
META = "inorder.json"
TOPICS = f"{CONFIG}/topics.json"
GROUPS = f"{CONFIG}/subscriptionGroup.json"
OFFSETS = f"{CONFIG}/consumerOffset.json"
DELAYS = f"{CONFIG}/delayOffset.json"
ASKED = f"{CONFIG}/transactionAsked.json"

SEGMENT_BYTES = 1024 * 1024 * 1024
SEGMENT_BYTES_MIN = 512
SEGMENT_BYTES_MAX = 2**31 - 1
ENTRY_BYTES = 20
QUEUE_FILE_BYTES = 300_000 * ENTRY_BYTES
RECORD_BYTES_MAX = 64 * 1024 * 1024
"""A longer record is no record: reading the store must not take any amount of memory."""
OFFSET_MAX = 2**62

BLANK_MAGIC = -875286124  # what fills the end of a segment: i32 bytes left, i32 this
BLANK_BYTES = 8

_DIGITS = 20


def segment_name(start: int) -> str:
    """The name of a file by the offset of its first byte."""
    return f"{start:0{_DIGITS}d}"


def segment_path(start: int) -> str:
    return f"{COMMIT_LOG}/{segment_name(start)}"


def queue_path(topic: str, queue_id: int, start: int) -> str:
    return f"{CONSUME_QUEUE}/{topic}/{queue_id}/{segment_name(start)}"


def starts(names: Iterable[str]) -> list[int]:
    """The offsets of the files of these names, ascending; other names are no files of ours."""
    found = (
        int(name) for name in names if len(name) == _DIGITS and name.isascii() and name.isdigit()
    )
    return sorted(start for start in found if start < OFFSET_MAX)
