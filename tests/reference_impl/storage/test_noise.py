"""Whatever lies in the folder: it is opened and works, or it is refused in one sentence."""

from __future__ import annotations

import resource
from random import Random

import pytest

from reference_impl.storage.commit_log import CommitLog, Fault
from reference_impl.storage.consume_queue import QueueFiles
from reference_impl.storage.layout import segment_path
from reference_impl.storage.recovery import Derived
from reference_impl.storage.simulated_disk import SimulatedDisk
from tests.reference_impl.storage.noise import (
    CORPUS,
    good_store,
    noise,
    open_anything,
    spoil,
    spoiled,
    use,
)

MEMORY_KB = 200_000
"""By so much the process may grow over all inputs together."""


def whole_stores(count: int, seed: int) -> int:
    """Spoil good stores and open them; how many were opened."""
    choices, opened = Random(seed), 0
    bases = [good_store(number) for number in range(6)]
    for number in range(count):
        disk = spoiled(bases[number % len(bases)], choices)
        before = disk.copy()
        store = open_anything(disk, cut_damage=choices.random() < 0.3)
        if store is not None:
            use(disk, store)
            opened += 1
        else:
            assert {path: disk.content(path) for path in disk.paths()} == {
                path: before.content(path) for path in before.paths()
            }
    return opened


def logs(count: int, seed: int) -> int:
    """The same with nothing but a segment of the log, which is quicker; how many messages were found."""
    choices, found = Random(seed), 0
    segments = [good_store(number).content(segment_path(0)) for number in range(2)]
    for number in range(count):
        data = noise(choices) if number % 10 == 0 else spoil(segments[number % 2], choices)
        disk = SimulatedDisk()
        disk.put(segment_path(0), data)
        log, files, derived, faults = (
            CommitLog(disk, 512),
            QueueFiles(disk, 200),
            Derived(),
            list[Fault](),
        )
        for message, size in log.scan(faults, lambda place: False):
            if derived.add(log, files, message, size, ()) is not None:
                break
            found += 1
        assert 0 <= log.end <= 512
        assert len(faults) <= 1
    return found


@pytest.mark.parametrize("name", CORPUS)
def test_the_corpus(name: str) -> None:
    """Each alone, and in the place of a good store's file."""
    for disk in (SimulatedDisk(), good_store(0), good_store(1)):
        for path, data in CORPUS[name].items():
            disk.put(path, data)
        for cut_damage in (False, True):
            twin = disk.copy()
            store = open_anything(twin, cut_damage=cut_damage)
            if store is not None:
                use(twin, store)


def test_stores_with_something_wrong_in_them() -> None:
    opened = whole_stores(1_000, seed=1)
    assert 100 < opened < 1_000


def test_segments_of_noise() -> None:
    assert logs(5_000, seed=2) > 1_000


@pytest.mark.long
@pytest.mark.timeout(3_000)
def test_a_million_inputs() -> None:
    """900,000 segments and 100,000 whole stores; the memory stays."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert logs(900_000, seed=3) > 100_000
    assert whole_stores(100_000, seed=4) > 10_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MEMORY_KB
