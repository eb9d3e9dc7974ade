"""Keys that lie in one queue alone: what a judge needs together by such a key is together where its queue is judged.

Nearly all messages and sharding keys do. So their rows are judged with their queue's, and only those of keys that
appear in several queues, or outside of any, are brought together by their key. Which keys these are is known from
hashes, before a queue is judged: every task writes which hash of a key it saw in which queue, in the order of the
hashes, and ranges of hashes are then looked through. Two keys with one hash count as one, and are brought together.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_checkers import hash_files, hashing
from spark_checkers.coding import Columns
from spark_checkers.hash_files import HashesFile
from spark_checkers.hashing import Hashes
from spark_checkers.jobs import Jobs
from spark_checkers.scatter import Together
from specs.facts.columns import NO_TEXT, NONE, Mask
from specs.facts.groupings import QUEUES, SOURCE
from specs.facts.rows import Rows
from specs.facts.segments import dense, first_of_each
from specs.facts.together import wanted_of

MOST_QUEUES = 1 << 20
"""So many queues a task can tell apart."""
_LOST = 0
"""The number of no queue."""
_LOW = np.uint64(MOST_QUEUES - 1)
"""Where the number of a queue stands in a key's hash: what is left tells apart some hundred million keys."""
MOST_KEYS = 1 << 20
"""Where more keys than that lie in several queues, the rows of all keys are brought together."""


def keys_without_home(
    jobs: Jobs, seen: Sequence[Sequence[HashesFile]], wanted: int
) -> list[Hashes]:
    """Of each of so many that are wanted together: the hashes of the keys that lie in several queues or in none,
    ascending. seen: what each task wrote.
    """
    if not wanted:
        return []
    ranges = hash_files.ranges_of(file for each in seen for file in each)
    paths = [[each[index][0] for each in seen] for index in range(wanted)]
    found = jobs.each(partial(_several, paths=paths, ranges=ranges), ranges)
    return [hash_files.in_one(each[index] for each in found) for index in range(wanted)]


class KeysSeen:
    """Which keys of what is wanted together a task saw in which queues."""

    def __init__(self, wanted: Sequence[Together]) -> None:
        self.wanted = wanted
        self._seen: list[list[Hashes]] = [[] for _ in wanted]
        self._queues = {0: _LOST, 1: _LOST + 1}  # by the hash of a queue: its number

    @property
    def columns(self) -> set[str]:
        """What is looked at."""
        names = {name for each in self.wanted for name in _looked_at(each)}
        return names.union({"kind", "level"}, QUEUES.columns) if names else names

    def take(self, columns: Columns) -> None:
        """Some more rows."""
        if not self.wanted:
            return
        number, count = dense(*(columns.numbers(name) for name in QUEUES.columns))
        firsts = first_of_each(number, count)
        names = columns.keys(QUEUES.columns, firsts).tolist()
        has_queue = columns.has("queue_id")[firsts].tolist()
        numbers = [
            self._number(name) if has else _LOST for name, has in zip(names, has_queue, strict=True)
        ]
        queue = np.asarray(numbers, np.uint64)[number]
        for seen, each in zip(self._seen, self.wanted, strict=True):
            where = wanted_of(columns.table, each.judges, each.grouping)
            keys = without_low(columns.keys(each.grouping.columns, where)) | queue[where]
            lost = keys[keys & _LOW == _LOST]
            seen.append(_once(np.concatenate([keys, lost + np.uint64(1)])))

    def _number(self, name: int) -> int:
        """Of a queue. What lies in one of too many counts as being in several."""
        if len(self._queues) >= MOST_QUEUES:
            return self._queues.get(name, _LOST)
        return self._queues.setdefault(name, len(self._queues))

    def write(self, folder: str) -> list[HashesFile]:
        """Of each of what is wanted together: its keys' hashes beside their queues', by key."""
        queues = np.asarray(list(self._queues), np.uint64)
        return [self._written(seen, queues, folder) for seen in self._seen]

    @staticmethod
    def _written(seen: list[Hashes], queues: Hashes, folder: str) -> HashesFile:
        pairs = np.sort(np.concatenate(seen)) if seen else np.zeros(0, np.uint64)
        pairs = pairs[np.append(True, pairs[1:] != pairs[:-1])[: len(pairs)]]
        beside = queues[(pairs & _LOW).astype(np.int64)]
        return hash_files.write(without_low(pairs), beside, folder=folder)


def without_low(keys: Hashes) -> Hashes:
    """The hashes of keys without the bits in which the number of a queue stands, so that one number is both."""
    return keys & ~_LOW


def _once(pairs: Hashes) -> Hashes:
    """The pairs, each once. Arrow tells them apart without sorting them."""
    found: Hashes = pc.unique(pa.array(pairs)).to_numpy()
    return found


def _looked_at(wanted: Together) -> set[str]:
    """The columns that say whether a row is wanted, and of which key."""
    names = {*wanted.grouping.columns, *wanted.grouping.must_have}
    names.update(column for judge in wanted.judges for column, _prefix in judge.only.values())
    return (names - {SOURCE}) | ({"message_id", "origin_id"} if SOURCE in names else set())


def _distinct(keys: Hashes, queues: Hashes) -> Any:
    """The pairs, by key; each once where equal ones follow each other."""
    order = np.argsort(keys, kind="stable")  # they lie in runs that ascend
    keys, queues = keys[order], queues[order]
    new = np.ones(len(keys), np.bool_)
    new[1:] = (keys[1:] != keys[:-1]) | (queues[1:] != queues[:-1])
    return np.stack([keys[new], queues[new]])


def _several(number: int, *, paths: Sequence[Sequence[str]], ranges: int) -> list[Hashes]:
    """Of one range of hashes those that were seen in several queues."""
    found = []
    for some in paths:
        keys, queues = _distinct(*hash_files.read(number, ranges, some))
        found.append(np.unique(keys[1:][(keys[1:] == keys[:-1]) & (queues[1:] != queues[:-1])]))
    return found


def without_home(rows: Rows, wanted: Together, away: Hashes) -> Mask:
    """Which of these rows have no key, or one of these hashes?"""
    found = np.zeros(rows.size, np.bool_)
    for name in wanted.grouping.must_have:
        is_number = name != SOURCE and pa.types.is_integer(rows.table.schema.field(name).type)
        found |= rows.number(name) == NONE if is_number else rows.text(name) == NO_TEXT
    if len(away):
        found |= _is_away(rows, wanted, away)
    return found


def _is_away(rows: Rows, wanted: Together, away: Hashes) -> Mask:
    """Of each row: has its key, which is one of texts, one of these hashes? Each text is hashed once."""
    texts = [rows.encoded(name) for name in wanted.grouping.columns]
    hashes = [np.append(hashing.of_texts(words), hashing.NO_TEXT_HASH) for _codes, words in texts]
    apart = [index for index, (codes, _words) in enumerate(texts) if (codes != codes[0]).any()]
    for index, (codes, _words) in enumerate(texts):
        if index not in apart:
            hashes[index] = hashes[index][codes[:1]]
        elif len(apart) > 1:
            hashes[index] = hashes[index][codes]
    keys = without_low(hashing.together(*hashes))
    is_away: Mask = away[np.minimum(np.searchsorted(away, keys), len(away) - 1)] == keys
    # Where only one column tells keys apart, its texts were looked up, and not its rows.
    return is_away[texts[apart[0]][0]] if len(apart) == 1 else is_away
