"""Hashes in files, ascending, which tasks look through by ranges: all of them are more than one process should hold."""

import uuid
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from spark_checkers.hashing import Hashes
from spark_checkers.jobs import Jobs

HashesFile = tuple[str, int]
"""A file, and how many hashes lie in it, each beside what belongs to it."""
RANGE_HASHES = 1 << 23
"""About how many hashes a task looks through."""


def write(hashes: Hashes, *beside: Hashes, folder: str) -> HashesFile:
    """hashes: ascending. beside: numbers that belong to them."""
    path = str(Path(folder) / f"{uuid.uuid4().hex}.npy")
    np.save(path, np.stack([hashes, *beside]))
    return path, len(hashes)


def ranges_of(files: Iterable[HashesFile]) -> int:
    """In how many ranges these files are looked through: in none where there is nothing."""
    return -(-sum(size for _path, size in files) // RANGE_HASHES)


def read(number: int, ranges: int, paths: Iterable[str]) -> Any:
    """One range of the hashes of several files, file by file, as a row; the rows below are what lies beside them."""
    edges = [min((index << 64) // ranges, (1 << 64) - 1) for index in (number, number + 1)]
    parts = []
    for path in paths:
        found = np.load(path, mmap_mode="r")
        start, stop = np.searchsorted(found[0], np.asarray(edges, np.uint64))
        parts.append(np.asarray(found[:, start : stop if number + 1 < ranges else None]))
    return np.concatenate(parts, axis=1)


def seen_again(jobs: Jobs, files: Sequence[HashesFile]) -> Hashes:
    """The hashes that are there more than once, ascending."""
    paths, ranges = [path for path, _size in files], ranges_of(files)
    return in_one(jobs.each(partial(_seen_again, paths=paths, ranges=ranges), ranges))


def in_one(found: Iterable[Hashes]) -> Hashes:
    """The hashes of all ranges, of which there may be none."""
    return np.concatenate([np.zeros(0, np.uint64), *found])


def _seen_again(number: int, *, paths: Sequence[str], ranges: int) -> Hashes:
    hashes = np.sort(read(number, ranges, paths)[0])
    again: Hashes = np.unique(hashes[1:][hashes[1:] == hashes[:-1]])
    return again
