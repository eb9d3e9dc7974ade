"""Messages are found by their keys whatever happened to the store, and the index by key stays small in memory."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from reference_impl.core.broker.key_index import ENTRY_BYTES, KeyIndex, keys_of
from reference_impl.core.broker.log import BrokerStore, Draft
from reference_impl.storage import DiskStore, StoreOptions
from reference_impl.storage.errors import DiskFull
from reference_impl.storage.key_files import BLOCKS, HEAD, UNWRITTEN_MAX, KeyFiles
from reference_impl.storage.layout import KEY_INDEX, segment_name
from reference_impl.storage.simulated_disk import KeepDrawn, SimulatedDisk

HOST = "127.0.0.1:1"
FOR_EVER = (0, 2**62)
SMALL = StoreOptions(segment_bytes=4096, key_block=8)


def put(store: BrokerStore, number: int, *, now_ms: int = 1_000) -> None:
    """A message with a unique key and two others, one of them shared with every tenth."""
    named = {"UNIQ_KEY": f"m{number}", "KEYS": f"k{number} tenth{number % 10}"}
    store.append(Draft("orders", number % 3, b"%d" % number, named), now_ms, HOST)


def found(
    store: BrokerStore, key: str, *, topic: str = "orders", window: tuple[int, int] = FOR_EVER
) -> list[str]:
    """Bodies of the messages that have the key, the newest first."""
    messages = (store.at(place) for place in dict.fromkeys(store.keys.find(topic, key, *window)))
    return [each.body.decode() for each in messages if each is not None and key in keys_of(each)]


def all_there(store: BrokerStore, count: int) -> None:
    for number in range(count):
        assert found(store, f"m{number}") == [str(number)]
        assert found(store, f"k{number}") == [str(number)]
    for last in range(min(10, count)):
        assert (
            found(store, f"tenth{last}") == [str(number) for number in range(last, count, 10)][::-1]
        )
    assert found(store, "m0", topic="others") == []
    assert found(store, "nobody") == []


def blocks_on(disk: SimulatedDisk) -> list[str]:
    return disk.names(KEY_INDEX)


@pytest.fixture
def disk() -> SimulatedDisk:
    return SimulatedDisk()


@pytest.fixture
def filled(disk: SimulatedDisk) -> Iterator[DiskStore]:
    store = DiskStore.open(disk, SMALL)
    for number in range(100):
        put(store, number)
    yield store
    store.abandon()


def test_every_key_is_found_in_memory_and_on_a_disk(filled: DiskStore) -> None:
    plain = BrokerStore()
    for number in range(100):
        put(plain, number)
    all_there(filled, 100)
    all_there(plain, 100)


def test_what_lies_in_memory_is_less_than_a_block(disk: SimulatedDisk, filled: DiskStore) -> None:
    """The entries of all others are in files; three messages fill a block of eight."""
    keys = filled.keys
    assert isinstance(keys, KeyFiles)
    assert len(keys._entries) < SMALL.key_block
    assert not keys._waiting
    files = [disk.open(f"{KEY_INDEX}/{name}").size() for name in blocks_on(disk)]
    assert sum(files) == sum(HEAD.size + block.count * ENTRY_BYTES for block in keys.blocks)
    assert len(keys.blocks) == 33


@pytest.mark.parametrize("how", ["close", "abandon", "power failure"])
def test_a_start_finds_them_again(how: str, disk: SimulatedDisk, filled: DiskStore) -> None:
    """From the blocks that are there and from the log behind them."""
    filled.save_offsets({})  # which syncs the log
    filled.settle()
    for number in range(100, 130):
        put(filled, number)
    if how == "close":
        filled.close()
    elif how == "abandon":
        filled.abandon()
    else:
        disk = disk.after_power_loss(KeepDrawn(Random(1)))
    count = 100 if how == "power failure" else 130
    again = DiskStore.open(disk, SMALL)
    stored = sum(queue.max_offset for queue in again.queues().values())
    assert stored >= count
    all_there(again, stored)
    put(again, stored)
    all_there(again, stored + 1)
    again.abandon()


def test_blocks_of_what_was_synced_are_not_made_again(
    disk: SimulatedDisk, filled: DiskStore
) -> None:
    filled.close()
    before = {
        name: bytes(disk.open(f"{KEY_INDEX}/{name}").read(0, 1 << 20)) for name in blocks_on(disk)
    }
    again = DiskStore.open(disk, SMALL)
    assert isinstance(again.keys, KeyFiles)
    assert len(again.keys.blocks) == 33
    assert {
        name: bytes(disk.open(f"{KEY_INDEX}/{name}").read(0, 1 << 20)) for name in blocks_on(disk)
    } == before
    again.abandon()


@pytest.mark.parametrize("seed", range(9))
def test_damage_of_the_index_costs_nothing_but_time(
    seed: int, disk: SimulatedDisk, filled: DiskStore
) -> None:
    """Any bytes of any file, the end of one, or a whole one."""
    filled.close()
    choices = Random(seed)
    name = choices.choice(blocks_on(disk))
    path = f"{KEY_INDEX}/{name}"
    file = disk.open(path)
    match seed % 3:
        case 0:
            file.write(choices.randrange(file.size()), choices.randbytes(choices.randint(1, 40)))
        case 1:
            file.resize(choices.randrange(file.size()))
        case _:
            disk.remove(path)
    again = DiskStore.open(disk, SMALL)
    all_there(again, 100)
    again.close()
    third = DiskStore.open(disk, SMALL)
    all_there(third, 100)
    third.abandon()


def test_a_store_without_an_index_gets_one(disk: SimulatedDisk, filled: DiskStore) -> None:
    """As one of an earlier release, or of another product."""
    filled.close()
    for name in blocks_on(disk):
        disk.remove(f"{KEY_INDEX}/{name}")
    again = DiskStore.open(disk, SMALL)
    all_there(again, 100)
    assert isinstance(again.keys, KeyFiles)
    assert not again.keys._waiting
    again.abandon()


def test_a_log_that_was_cut_shorter_than_the_index_is_filed_anew(
    disk: SimulatedDisk, filled: DiskStore
) -> None:
    filled.close()
    names = disk.names("commitlog")
    for name in names[-2:]:
        disk.remove(f"commitlog/{name}")
    again = DiskStore.open(disk, StoreOptions(segment_bytes=4096, key_block=8, cut_damage=True))
    stored = sum(queue.max_offset for queue in again.queues().values())
    assert 0 < stored < 100
    all_there(again, stored)
    assert found(again, "m99") == []
    put(again, 200)
    assert found(again, "m200") == ["200"]
    again.abandon()


@pytest.mark.parametrize("taken_back", [1, 3, 20])
@pytest.mark.parametrize("more", [0, 9])
def test_what_was_taken_back_is_not_found(
    taken_back: int, more: int, disk: SimulatedDisk, filled: DiskStore
) -> None:
    """Also where blocks were filled meanwhile, and its place is another message's now; after a start too."""
    end = filled.end
    for number in range(200, 200 + taken_back):
        put(filled, number)
    filled.undo(end)
    for store in (filled, None):
        if store is None:
            filled.close()
            store = DiskStore.open(disk, SMALL)
        else:
            for number in range(100, 100 + more):
                put(store, number)
        assert found(store, "m200") == []
        all_there(store, 100 + more)
        store.close()


def test_a_disk_without_room_for_the_index_costs_no_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Blocks wait for room; more than so many are given up, oldest first, and a start files them."""
    disk = SimulatedDisk()
    store = DiskStore.open(disk, SMALL)
    keys = store.keys
    assert isinstance(keys, KeyFiles)
    create = disk.create

    def without_room(path: str, size: int = 0) -> Any:
        if path.startswith(KEY_INDEX):
            raise DiskFull("no room")
        return create(path, size)

    with monkeypatch.context() as patch:
        patch.setattr(disk, "create", without_room)
        for number in range(90):
            put(store, number)
        assert len(keys._waiting) == len(keys.blocks) == UNWRITTEN_MAX
        assert blocks_on(disk) == []
        assert found(store, "m0") == []
        assert found(store, "m89") == ["89"]
    for number in range(90, 100):
        put(store, number)
    assert not keys._waiting
    assert found(store, "m80") == ["80"]
    store.close()
    again = DiskStore.open(disk, SMALL)
    all_there(again, 100)
    again.abandon()


def test_files_of_messages_that_are_gone_are_removed(
    disk: SimulatedDisk, filled: DiskStore
) -> None:
    many = StoreOptions(segment_bytes=4096, key_block=3)
    store = DiskStore.open(SimulatedDisk(), many)
    for number in range(3 * BLOCKS):
        put(store, number)
    keys = store.keys
    assert isinstance(keys, KeyFiles)
    assert len(keys.blocks) == 3 * BLOCKS
    assert len(keys._files) == 3
    cut = keys.blocks[BLOCKS + 5].span.first
    keys.forget_below(cut)
    assert len(keys.blocks) == 2 * BLOCKS - 5
    assert store._disk.names(KEY_INDEX) == [segment_name(name) for name in sorted(keys._files)]
    assert len(keys._files) == 2
    assert found(store, "m0") == []
    assert found(store, f"m{3 * BLOCKS - 1}") == [str(3 * BLOCKS - 1)]
    store.abandon()


def test_blocks_of_another_time_are_not_looked_at() -> None:
    index = KeyIndex(block=4)
    store = BrokerStore()
    store.keys = index
    for number in range(40):
        put(store, number, now_ms=1_000 * number)
    read: list[int] = []
    for at, block in enumerate(index.blocks):
        inner = block.read
        block.read = lambda place, length, at=at, inner=inner: (
            read.append(at),
            inner(place, length),
        )[1]  # type: ignore[misc]
    assert found(store, "tenth3", window=(22_000, 24_000)) == ["23"]
    assert set(read) <= set(range(10, 13))
