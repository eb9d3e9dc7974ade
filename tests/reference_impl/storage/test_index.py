"""The index of a queue is mostly in its files, and nobody who asks can tell."""

from __future__ import annotations

from random import Random

import pytest

from reference_impl.core.broker.log import BrokerStore, Draft
from reference_impl.protocol.message import decode_all
from reference_impl.storage import DiskFailed, DiskStore, StoreOptions
from reference_impl.storage.consume_queue import DiskQueue
from reference_impl.storage.layout import ENTRY_BYTES, queue_path, segment_path
from reference_impl.storage.simulated_disk import SimulatedDisk
from tests.reference_impl.storage.runs import TOPIC

HOSTS = ("127.0.0.1:1", "[::1]:1")


def options(block: int, file_entries: int) -> StoreOptions:
    return StoreOptions(
        segment_bytes=2048, queue_file_bytes=file_entries * ENTRY_BYTES, index_block=block
    )


def draft(choices: Random, number: int, host: str) -> Draft:
    tags = {"TAGS": choices.choice("ab")} if choices.random() < 0.8 else {}
    return Draft(
        TOPIC, choices.randrange(2), b"%d" % number * choices.randint(1, 40), tags, born_host=host
    )


def answers(store: BrokerStore, choices: Random, now_ms: int) -> list[object]:
    """What a store says of its messages; the records' own bytes differ by their check sums and places."""
    said: list[object] = []
    for queue_id in range(2):
        queue = store.queue(TOPIC, queue_id)
        low, high = queue.min_offset, queue.max_offset
        offset, count = choices.randint(low, high + 1), choices.choice((1, 3, 32))
        wanted = choices.choice((None, (97).__eq__, (98).__eq__))
        read = store.read(TOPIC, queue_id, offset, count, choices.choice((0, 10**6)), wanted)
        said += [low, high, read.status, read.next_offset, read.count]
        said += [(message.queue_offset, message.body) for message in decode_all(read.body)]
        said += [message.body for message in queue.messages]
        said += [
            None if (found := queue.get(place)) is None else found.body
            for place in range(low - 1, high + 1)
        ]
        said += list(queue.tag_codes)
        for time in (0, now_ms - 7, now_ms, now_ms + 9, choices.randrange(2_000)):
            said += [store.search(TOPIC, queue_id, time, upper=upper) for upper in (False, True)]
    return said


@pytest.mark.parametrize("seed", range(12))
def test_a_store_on_a_disk_answers_as_one_in_memory(seed: int) -> None:
    """Messages come, the clock steps back and forth, the first are forgotten, files are written, the store is opened
    again: blocks and files of any sizes."""
    choices = Random(seed)
    sizes = options(choices.randint(1, 5), choices.randint(1, 7))
    disk, plain = SimulatedDisk(), BrokerStore()
    store = DiskStore.open(disk, sizes)
    now_ms = 1_000
    for number in range(120):
        now_ms = max(0, now_ms + choices.randint(-30, 40))
        same = choices.getstate()
        for each in (plain, store):
            choices.setstate(same)
            each.append(
                draft(choices, number, choices.choice(HOSTS)), now_ms, choices.choice(HOSTS)
            )
        if choices.random() < 0.3:
            store.settle()
        if choices.random() < 0.05:
            queue_id = choices.randrange(2)
            queue = plain.queue(TOPIC, queue_id)
            upto = choices.randint(queue.min_offset, queue.max_offset)
            for each in (plain, store):
                each.trim(TOPIC, queue_id, upto)
        elif choices.random() < 0.05 and not any(
            queue.min_offset for queue in plain.queues().values()
        ):
            if choices.random() < 0.5:
                store.close()
            else:
                store.abandon()
            store = DiskStore.open(disk, sizes)
        if number % 10 == 0:
            same = choices.getstate()
            expected = answers(plain, choices, now_ms)
            choices.setstate(same)
            assert expected == answers(store, choices, now_ms)


def index(store: DiskStore) -> DiskQueue:
    queue = store.queue(TOPIC, 0)
    assert isinstance(queue, DiskQueue)
    return queue


def with_messages(disk: SimulatedDisk, count: int) -> DiskStore:
    store = DiskStore.open(disk, options(4, 7))
    for number in range(count):
        store.append(Draft(TOPIC, 0, b"m%d" % number, {}), 1_000 + number, HOSTS[0])
    return store


@pytest.mark.parametrize("is_clean", [True, False])
def test_what_is_written_leaves_the_memory_but_for_the_newest(is_clean: bool) -> None:
    """Of 50 messages 6 are left, at work and after a start; those that are not yet written stay."""
    disk = SimulatedDisk()
    store = with_messages(disk, 50)
    assert index(store).in_memory == 0
    store.settle()
    assert index(store).in_memory == 44
    store.append(Draft(TOPIC, 0, b"m50", {}), 2_000, HOSTS[0])
    assert (index(store).in_memory, index(store).written, index(store).max_offset) == (44, 50, 51)
    if is_clean:
        store.close()
    else:
        store.abandon()
    again = DiskStore.open(disk, options(4, 7))
    assert index(again).in_memory == 44
    assert [message.body for message in again.queue(TOPIC, 0).messages] == [
        b"m%d" % number for number in range(51)
    ]


def test_a_start_builds_the_index_in_little_memory() -> None:
    """Not only when it is done: what the files hold leaves while the log is still being read."""
    disk = SimulatedDisk()
    with_messages(disk, 500).close()
    kept: list[int] = []
    add = DiskQueue.add

    def watched(self: DiskQueue, *args: object) -> None:
        add(self, *args)  # type: ignore[arg-type]
        kept.append(self.max_offset - self.in_memory)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DiskQueue, "add", watched)
        DiskStore.open(disk, options(4, 7))
    assert len(kept) == 500
    assert max(kept) < 50


@pytest.mark.parametrize("at", [30, 490])
def test_files_that_are_found_wrong_at_a_start_are_made_again_whole(at: int) -> None:
    """Also the part of the index that had left the memory already, because it agreed."""
    disk = SimulatedDisk()
    store = with_messages(disk, 500)
    store.close()
    path = queue_path(TOPIC, 0, at // 7 * 7 * ENTRY_BYTES)
    data = bytearray(disk.content(path))
    data[5] ^= 1
    disk.put(path, bytes(data))
    before = {
        name: disk.content(name)
        for name in disk.paths()
        if name.startswith("consumequeue/") and name != path
    }
    again = DiskStore.open(disk, options(4, 7))
    assert again.said == [f"the consume queue {TOPIC}/0 was rebuilt from the log"]
    assert again.search(TOPIC, 0, 1_123) == 123
    again.settle()
    assert {name: disk.content(name) for name in before} == before
    assert [message.body for message in again.queue(TOPIC, 0).messages] == [
        b"m%d" % number for number in range(500)
    ]


def test_a_queue_whose_first_messages_are_gone_begins_amid_a_block() -> None:
    """A segment of the log was taken away, and with it the first files of the queue."""
    disk = SimulatedDisk()
    with_messages(disk, 50).close()
    disk.remove(segment_path(0))
    first = index(DiskStore.open(disk.copy(), options(6, 7))).min_offset
    assert first // 6 * 6 < first // 7 * 7
    for start in range(first // 7):
        disk.remove(queue_path(TOPIC, 0, start * 7 * ENTRY_BYTES))
    store = DiskStore.open(disk, options(6, 7))
    assert index(store).in_memory == 42
    bodies = [message.body for message in store.queue(TOPIC, 0).messages]
    assert bodies == [b"m%d" % number for number in range(first, 50)]
    assert store.search(TOPIC, 0, 0) == first


def test_an_entry_that_the_log_does_not_confirm_is_given_to_nobody() -> None:
    """Somebody else wrote into the files while the broker ran."""
    disk = SimulatedDisk()
    store = with_messages(disk, 50)
    store.settle()
    place, size, _ = index(store).entry(1)
    file = disk.open(queue_path(TOPIC, 0, 0))
    file.write(ENTRY_BYTES, (place - 1).to_bytes(8, "big"))
    file.write(2 * ENTRY_BYTES + 8, (size + 1).to_bytes(4, "big"))
    index(store)._files._blocks.clear()  # as if others had been read since
    assert store.read(TOPIC, 0, 3, 1, 1_000).count == 1
    for offset in (1, 2):
        with pytest.raises(DiskFailed, match="can't be read any more"):
            store.read(TOPIC, 0, offset, 1, 1_000)
