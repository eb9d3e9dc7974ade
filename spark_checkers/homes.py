"""Keys that lie in one queue alone: what a kernel needs together by such a key is together where its queue is judged.

Nearly all messages and sharding keys do. So their rows are judged with their queue's, and only those of keys that
appear in several queues, or outside of any, are brought together by their key. Which keys these are is known from
hashes, before a queue is judged: every task writes which hash of a key it saw in which queue, in the order of the
hashes, and ranges of hashes are then looked through. Two keys with one hash count as one, and are brought together.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from spark_checkers import hashing
from spark_checkers.hashing import Hashes
from spark_checkers.jobs import Jobs
from spark_checkers.keyed import wanted_of, with_source
from spark_checkers.ordered import Group, Part, read_groups
from spark_checkers.rows import NO_TEXT, NONE, Rows
from spark_checkers.scatter import Together, key_hashes
from spark_checkers.segments import Mask
from spark_checkers.twin import QUEUES, SOURCE

RANGE_PAIRS = 1 << 23
"""About how many hashes a task looks through."""
MOST_KEYS = 1 << 20
"""Where more keys than that lie in several queues, the rows of all keys are brought together."""


def keys_without_home(
    jobs: Jobs,
    groups: Sequence[Group],
    cut: Sequence[Part],
    wanted: Sequence[Together],
    folder: Path,
) -> list[Hashes]:
    """Of each of what is wanted together: the hashes of the keys that lie in several queues or in none, ascending."""
    if not wanted:
        return []
    work = partial(_seen_in, groups=groups, cut=cut, wanted=tuple(wanted), folder=str(folder))
    seen = jobs.each(work, len(cut))
    ranges = 1 + sum(pairs for each in seen for _path, pairs in each) // RANGE_PAIRS
    paths = [[each[index][0] for each in seen] for index in range(len(wanted))]
    found = jobs.each(partial(_several, paths=paths, ranges=ranges), ranges)
    return [np.concatenate([each[index] for each in found]) for index in range(len(wanted))]


def _seen_in(
    number: int,
    *,
    groups: Sequence[Group],
    cut: Sequence[Part],
    wanted: Sequence[Together],
    folder: str,
) -> list[tuple[str, int]]:
    """Of each of what is wanted: the file of its keys' hashes and their queues', and how many it holds."""
    names = {
        "kind",
        "level",
        *QUEUES.columns,
        *(name for each in wanted for name in _looked_at(each)),
    }
    found: list[list[Any]] = [[] for _ in wanted]
    for table in read_groups(groups, cut[number], sorted(names)):
        if "origin_id" in names:
            table = with_source(table)
        queues = key_hashes(table, QUEUES.columns)
        nowhere = np.asarray(table.column("queue_id").is_null())
        for pairs, each in zip(found, wanted, strict=True):
            where = wanted_of(table, each.twins, each.grouping)
            keys = key_hashes(table, each.grouping.columns)[where]
            lost = keys[nowhere[where]]
            pairs.append(_distinct(keys, queues[where]))
            pairs.append(np.stack([lost, np.zeros_like(lost)]))
            pairs.append(np.stack([lost, np.ones_like(lost)]))
    return [_written(np.concatenate(pairs, axis=1), folder) for pairs in found]


def _looked_at(wanted: Together) -> set[str]:
    """The columns that say whether a row is wanted, and of which key."""
    names = {*wanted.grouping.columns, *wanted.grouping.must_have}
    names.update(column for twin in wanted.twins for column, _prefix in twin.only.values())
    return (names - {SOURCE}) | ({"message_id", "origin_id"} if SOURCE in names else set())


def _distinct(keys: Hashes, queues: Hashes) -> Any:
    """The pairs, by key; each once where equal ones follow each other."""
    order = np.argsort(keys)
    keys, queues = keys[order], queues[order]
    new = np.ones(len(keys), np.bool_)
    new[1:] = (keys[1:] != keys[:-1]) | (queues[1:] != queues[:-1])
    return np.stack([keys[new], queues[new]])


def _written(pairs: Any, folder: str) -> tuple[str, int]:
    path = str(Path(folder) / f"{uuid.uuid4().hex}.npy")
    pairs = _distinct(*pairs)
    np.save(path, pairs)
    return path, pairs.shape[1]


def _several(number: int, *, paths: Sequence[Sequence[str]], ranges: int) -> list[Hashes]:
    """Of one range of hashes those that were seen in several queues."""
    edges = [min((index << 64) // ranges, (1 << 64) - 1) for index in (number, number + 1)]
    found = []
    for some in paths:
        parts = []
        for path in some:
            pairs = np.load(path, mmap_mode="r")
            start, stop = np.searchsorted(pairs[0], np.asarray(edges, np.uint64))
            parts.append(np.asarray(pairs[:, start : stop if number + 1 < ranges else None]))
        keys, queues = _distinct(*np.concatenate(parts, axis=1))
        found.append(np.unique(keys[1:][(keys[1:] == keys[:-1]) & (queues[1:] != queues[:-1])]))
    return found


def without_home(rows: Rows, wanted: Together, away: Hashes) -> Mask:
    """Which of these rows have no key, or one of these hashes?"""
    found = np.zeros(rows.size, np.bool_)
    for name in wanted.grouping.must_have:
        is_number = name != SOURCE and pa.types.is_integer(rows.table.schema.field(name).type)
        found |= rows.number(name) == NONE if is_number else rows.text(name) == NO_TEXT
    if len(away):
        keys = _key_hashes(rows, wanted)
        found |= away[np.minimum(np.searchsorted(away, keys), len(away) - 1)] == keys
    return found


def _key_hashes(rows: Rows, wanted: Together) -> Hashes:
    """As `key_hashes` of a key of texts: each text is hashed once."""
    texts = [rows.encoded(name) for name in wanted.grouping.columns]
    return hashing.together(
        *(np.append(hashing.of_texts(words), hashing.NO_TEXT_HASH)[codes] for codes, words in texts)
    )
