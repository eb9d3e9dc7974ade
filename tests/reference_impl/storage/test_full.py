"""A full disk refuses with the protocol's code, and loses nothing that was acknowledged."""

from __future__ import annotations

from contextlib import suppress

import pytest

from reference_impl.storage import DiskFull, DiskStore, StoreOptions
from reference_impl.storage.simulated_disk import KeepNothing, SimulatedDisk
from tests.reference_impl.storage.runs import ASYNC, SYNC, TOPIC, Run, contents, log_of


def work(run: Run) -> None:
    for number in range(6):
        run.send(number % 2, f"m{number}".encode() * 20)
        run.flush()
    run.send_batch(0, [f"batch{part}".encode() * 10 for part in range(3)])
    run.flush()
    run.commit(1)
    run.pass_ms(1_000)


@pytest.mark.parametrize("options", [SYNC, ASYNC], ids=["sync", "async"])
@pytest.mark.parametrize("room", range(0, 3_000, 90))
def test_the_disk_is_full_after_any_number_of_bytes(options: StoreOptions, room: int) -> None:
    """What was refused is not there, what was acknowledged is; with room again the broker goes on, and recovers."""
    run = Run(SimulatedDisk(), options)
    run.start()
    run.flush()
    run.disk.room = room
    work(run)
    assert set(run.codes) <= {0, 14}
    run.disk.room = None
    run.send(1, b"room again")
    run.flush()
    assert run.codes[-1] == 0
    expected = sorted(run.acknowledged)
    here = [
        (key[1], *item)
        for key, items in contents(run.store).items()
        if key[0] == TOPIC
        for item in items
    ]
    assert sorted(here) == expected
    assert log_of(DiskStore.open(run.disk.copy(), options)) == log_of(run.store)
    if options is SYNC:
        safe = DiskStore.open(run.disk.after_power_loss(KeepNothing()), options)
        found = [
            (key[1], *item)
            for key, items in contents(safe).items()
            if key[0] == TOPIC
            for item in items
        ]
        assert sorted(found) == expected


def test_a_batch_is_stored_whole_or_not_at_all() -> None:
    run = Run(SimulatedDisk(), SYNC)
    run.start()
    run.disk.room = 250
    run.send_batch(0, [b"first", b"second", b"third"])
    run.flush()
    assert (run.codes, contents(run.store)) == ([14], {})
    assert [body for _, body in run.refused] == [b"first", b"second", b"third"]


def test_a_delayed_message_waits_until_there_is_room() -> None:
    run = Run(SimulatedDisk(), ASYNC)
    run.start()
    run.send(0, b"later", level=1)
    run.disk.room = 0
    run.pass_ms(3_000)
    assert (TOPIC, 0) not in contents(run.store)
    run.disk.room = None
    run.pass_ms(1_100)
    assert contents(run.store)[TOPIC, 0] == [(0, b"later")]


def test_a_store_that_can_not_be_made_is_one_clear_error() -> None:
    for room in range(0, 200, 20):
        disk = SimulatedDisk(room=room)
        with suppress(DiskFull):
            DiskStore.open(disk)
        disk.room = None
        DiskStore.open(disk.copy()).close()
