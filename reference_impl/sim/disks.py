"""The disks of the simulated brokers: a crash takes the machine down, and what was not synced is at its mercy.

A plan's `flush` says what a broker keeps its messages on:

| flush | a crash of the broker |
|---|---|
| `memory` | loses nothing of the store: as a killed process on a machine that lives |
| `sync` | of what was not synced any sectors survive; a send is answered after the sync |
| `async` | the same; a send is answered at once, and synced within `flush_ms` |

What survives is drawn from the plan's seed, the broker's name and how often its store was opened, so that the same
plan loses the same bytes. Segments and consume queue files are small, so that a run goes through several.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

from reference_impl.core.broker.log import BrokerStore
from reference_impl.storage import DiskStore, FlushMode, StoreOptions
from reference_impl.storage.simulated_disk import Keep, KeepDrawn, SimulatedDisk
from specs.plan.config import IN_MEMORY, Config

SYNC_MS = 2
"""How long one sync takes."""
SEGMENT_BYTES = 8 * 1024
QUEUE_FILE_BYTES = 20 * 20
"""Twenty entries of a consume queue."""


class Disks:
    """One for each broker."""

    def __init__(self, config: Config, seed: int) -> None:
        self._flush = None if config.flush == IN_MEMORY else FlushMode(config.flush)
        self._flush_ms = config.flush_ms
        self._seed = seed
        self._disks: dict[str, SimulatedDisk] = {}

    def first(self, broker: str) -> BrokerStore:
        """The broker's store at the begin of the run."""
        if self._flush is None:
            return BrokerStore()
        self._disks[broker] = SimulatedDisk()
        return self._open(broker, self._flush)

    def after_crash(self, broker: str, store: BrokerStore, *, synced: bool = False) -> BrokerStore:
        """What its next process finds: in memory the same store, on a disk one that is read from what is left.

        A disk that is full stays full. synced: all that was written is found.
        """
        if self._flush is None or not isinstance(store, DiskStore):
            return store
        store.abandon()
        dice = Random(f"disk {self._seed} {broker} {store.epoch}")
        keep = Keep() if synced else KeepDrawn(dice)
        before = self._disks[broker]
        disk = self._disks[broker] = before.after_power_loss(keep)
        again = self._open(broker, self._flush)
        again.turned_away, disk.room = store.turned_away, before.room
        return again

    @contextmanager
    def starting(self, broker: str) -> Iterator[None]:
        """There is always room for the little that a start writes."""
        disk = self._disks.get(broker)
        room = None if disk is None else disk.room
        if disk is not None:
            disk.room = None
        try:
            yield
        finally:
            if disk is not None:
                disk.room = room

    def fill(self, broker: str, store: BrokerStore, *, full: bool) -> None:
        """The disk has no room any more, or again."""
        if broker in self._disks:
            self._disks[broker].room = 0 if full else None
        else:
            store.is_full = full

    def _open(self, broker: str, flush: FlushMode) -> DiskStore:
        return DiskStore.open(
            self._disks[broker],
            StoreOptions(flush, self._flush_ms, SEGMENT_BYTES, QUEUE_FILE_BYTES),
        )
