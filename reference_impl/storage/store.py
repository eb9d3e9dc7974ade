"""A broker's store on a disk. What it promises, and what it does not, is in docs/storage.md.

The log is the truth: a message is stored when its record is written, and safe when the log is synced behind it. The
queues are an index that is built from the log at every start and mostly lies in files. Tables (topics, groups,
consumed offsets) are files of their own, each replaced in one step.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from heapq import merge
from typing import Any, Self

from reference_impl.core.broker.key_index import BLOCK as KEY_BLOCK
from reference_impl.core.broker.log import BrokerStore, Draft, FlushMode, StoreFull, Trimmed
from reference_impl.core.broker.offset_table import OffsetKey
from reference_impl.protocol.bodies import SubscriptionGroup, TopicConfig
from reference_impl.protocol.message import StoredMessage
from reference_impl.storage import layout, tables
from reference_impl.storage.commit_log import CommitLog
from reference_impl.storage.consume_queue import BLOCK, DiskQueue, QueueFiles
from reference_impl.storage.disk import Disk
from reference_impl.storage.errors import DiskFailed, DiskFull, StoreDamaged
from reference_impl.storage.key_files import KeyFiles
from reference_impl.storage.records import encode_checked, without_sum
from reference_impl.storage.recovery import Derived, read_log, tag_of
from reference_impl.storage.tables import (
    Checkpoint,
    read_checkpoint,
    read_table,
    write_checkpoint,
    write_table,
)
from specs.vocabulary import SCHEDULE_TOPIC

log = logging.getLogger("inorder.storage")

FORMAT = "inorder/store/v1"


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """How a store is opened.

    flush: SYNC answers after the sync, ASYNC at once and syncs every flush_ms. segment_bytes, queue_file_bytes:
    sizes of the files of a new store; one that exists keeps its own. delays_ms: the broker's delay of each level,
    for those who read the consume queues. cut_damage: start even where that loses messages, see `recovery`.
    index_block: see `consume_queue.BLOCK`. key_block: entries of one block of the index by key.
    """

    flush: FlushMode = FlushMode.ASYNC
    flush_ms: int = 500
    segment_bytes: int = layout.SEGMENT_BYTES
    queue_file_bytes: int = layout.QUEUE_FILE_BYTES
    delays_ms: tuple[int, ...] = ()
    cut_damage: bool = False
    index_block: int = BLOCK
    key_block: int = KEY_BLOCK


class DiskStore(BrokerStore):
    """Open one with `DiskStore.open`; end with `close`, or with `abandon`, as a crash of the process would.

    said: what the start found that is worth a line. Where something can't be written StoreFull is raised, and
    nothing has changed.
    """

    @classmethod
    def open(cls, disk: Disk, options: StoreOptions | None = None) -> Self:
        """Recover the store on the disk, or make a new one.

        Raises StoreInUse, StoreDamaged, DiskFull and DiskFailed; the disk is released then.
        """
        disk.lock()
        try:
            return cls(disk, options or StoreOptions())
        except BaseException:
            disk.release()
            raise

    def __init__(self, disk: Disk, options: StoreOptions) -> None:
        self._epoch = 0
        self._meta: dict[str, Any] = {}
        super().__init__()
        self.said: list[str] = []
        self.flush = options.flush
        self.flush_ms = options.flush_ms
        self._disk = disk
        self._delays_ms = options.delays_ms
        self._dirty: set[tuple[str, int]] = set()
        self._key_files: KeyFiles | None = None
        self._disk_queues: dict[tuple[str, int], DiskQueue] = {}
        self._segment_ms: dict[
            int, int
        ] = {}  # by the start of a segment: when its last message was stored
        is_clean = layout.ABORT not in disk.names("")
        meta = read_table(disk, layout.META, self.said)
        segment_bytes, queue_file_bytes = _sizes(disk, meta, options)
        self._log = CommitLog(disk, segment_bytes)
        self._files = QueueFiles(disk, queue_file_bytes, options.index_block)
        try:
            self._recover(meta, options, is_clean=is_clean)
        except BaseException:
            self._log.close()
            if self._key_files is not None:
                self._key_files.close()
            raise

    # ------------------------------------------------------------ the start

    def _recover(
        self, meta: dict[str, Any] | None, options: StoreOptions, *, is_clean: bool
    ) -> None:
        disk, said = self._disk, self.said
        self.topics = tables.topics_from_json(read_table(disk, layout.TOPICS, said))
        self.groups = tables.groups_from_json(read_table(disk, layout.GROUPS, said))
        self.offsets = tables.offsets_from_json(read_table(disk, layout.OFFSETS, said))
        delays = tables.numbers(read_table(disk, layout.DELAYS, said), "offsetTable")
        asked = tables.numbers(read_table(disk, layout.ASKED, said), "asked")
        known = read_checkpoint(disk).synced
        if known is None and not is_clean:
            known = 0
        self.keys = self._key_files = KeyFiles(disk, self._log.start, known or 0, options.key_block)
        derived, is_torn = read_log(
            self._log,
            self._files,
            self.keys,
            known,
            may_cut=options.cut_damage,
            delays_ms=self._delays_ms,
            said=said,
        )
        # Up to here nothing on the disk was changed.
        self._file_abort()
        if is_torn:
            said[-1] += f"; {self._log.leftover()} bytes behind it"
        if is_torn or not is_clean:
            self._log.cut(self._log.end)
        self._log.sync()
        self.end, self.synced, self._last_ms = self._log.end, self._log.end, derived.last_ms
        self._segment_ms = derived.segment_ms
        self._take_queues(derived)
        if not self._key_files.begin(self._log.start, self._log.end):
            self._file_keys()
        self._take_unfinished(derived, meta, delays if is_clean or meta is None else {}, asked)
        self._meta = {
            "format": FORMAT,
            "segmentBytes": self._log.segment_bytes,
            "queueFileBytes": self._files.file_bytes,
            "delayed": {str(level): offset for level, offset in self.delayed_done.items()},
            "dropped": self._drop_again(meta),
        }
        self.epoch = max(0, _number(meta, "epoch", 0))
        write_checkpoint(disk, Checkpoint(self.synced, self._last_ms))
        if not is_clean:
            said.append(
                f"the last broker did not end in good order; {derived.count} messages are there"
            )

    def _file_abort(self) -> None:
        self._disk.create(layout.ABORT).close()
        self._disk.sync_folder("")

    def _take_queues(self, derived: Derived) -> None:
        """Their index, and the files for others: those that say anything else are made again."""
        self._disk_queues = derived.queues
        for topic, queue_id in list(self._files.known()):
            queue = self._disk_queues.get((topic, queue_id))
            if queue is None:
                reached = self._files.reached(topic, queue_id, self._log.start)
                if reached > 0:  # its messages are gone; its next offset is still known
                    gone = self._disk_queues[topic, queue_id] = self._new_queue(
                        topic, queue_id, reached
                    )
                    gone.written = reached
                    continue
                queue = self._new_queue(topic, queue_id)
            upto = self._files.agree(topic, queue_id, queue, tags_too=topic != SCHEDULE_TOPIC)
            if upto is None:
                self.said.append(f"the consume queue {topic}/{queue_id} was rebuilt from the log")
                self._files.rebuild(topic, queue_id, queue)
            else:
                queue.written = upto
                queue.leave_to_files()
        self._queues.update(self._disk_queues)
        self._dirty.update(self._disk_queues)

    def _file_keys(self) -> None:
        """All of them anew, in the order of the log."""
        for place in merge(*(queue.places for queue in self._disk_queues.values())):
            message = self._log.message(place)
            if message is not None:
                self.keys.add(message)

    def _new_queue(self, topic: str, queue_id: int, min_offset: int = 0) -> DiskQueue:
        return DiskQueue(self._log, self._files, topic, queue_id, min_offset)

    def _drop_again(self, meta: Mapping[str, Any] | None) -> dict[str, dict[str, int]]:
        """What a dropped topic had is in the log until retention takes it; what of that is still to be remembered."""
        left: dict[str, dict[str, int]] = {}
        dropped = (meta or {}).get("dropped")
        for topic, ends in dropped.items() if isinstance(dropped, dict) else ():
            for queue_id, end in tables.numbers({topic: ends}, topic).items():
                queue = self._disk_queues.get((topic, queue_id))
                if queue is not None and queue.min_offset < end:
                    queue.drop_first(min(end, queue.max_offset) - queue.min_offset)
                    left.setdefault(topic, {})[str(queue_id)] = end
        return left

    def _take_unfinished(
        self,
        derived: Derived,
        meta: dict[str, Any] | None,
        delays: Mapping[int, int],
        asked: Mapping[int, int],
    ) -> None:
        """Where the delayed messages are, and which half messages are open."""
        base = tables.numbers(meta, "delayed")
        for (topic, queue_id), queue in self._disk_queues.items():
            if topic == SCHEDULE_TOPIC:
                level = queue_id + 1
                said = (source.get(level, 0) for source in (base, delays, derived.delayed_done))
                self.delayed_done[level] = max(queue.min_offset, min(queue.max_offset, max(said)))
        self.open_halves = {offset: asked.get(offset, 0) for offset in sorted(derived.open_halves)}

    # ------------------------------------------------------------ the log

    def append(self, draft: Draft, store_ms: int, store_host: str) -> StoredMessage:
        key = (draft.topic, draft.queue_id)
        queue = self._disk_queues.get(key)
        if queue is None:
            queue = self._new_queue(*key)
        offset, properties = queue.max_offset, without_sum(draft.properties)
        stored: StoredMessage | None = None

        def record_at(place: int) -> bytes:
            nonlocal stored
            stored = StoredMessage(
                draft.topic,
                draft.queue_id,
                offset,
                place,
                draft.body,
                properties,
                draft.flag,
                draft.sys_flag,
                draft.born_ms,
                draft.born_host,
                store_ms,
                store_host,
                draft.reconsume_times,
                draft.prepared_transaction_offset,
            )
            return encode_checked(stored)

        with self._writing():
            _, record = self._log.append(record_at)
        assert stored is not None  # the last one that was made is the one that was written
        self._disk_queues[key] = self._queues[key] = queue
        queue.add(stored, len(record), tag_of(stored, self._delays_ms))
        self.keys.add(stored)
        self._dirty.add(key)
        self.end, self._last_ms = self._log.end, store_ms
        segment = self._log.segment_of(stored.physical_offset)
        self._segment_ms[segment] = max(self._segment_ms.get(segment, 0), store_ms)
        return stored

    def undo(self, end: int) -> None:
        """As far as the disk lets us; where it does not, the store takes nothing more."""
        if end == self.end:
            return
        self._log.undo(end)
        self.keys.undo(end)
        self.end = self._log.end
        with suppress(StoreFull), self._writing():
            self._log.begin_sync()()  # a sync may have come between: what was refused must not be there after a crash
        for key in sorted(self._dirty):
            queue = self._disk_queues[key]
            queue.undo(end)
            if queue.written > queue.max_offset:
                with suppress(StoreFull), self._writing():
                    self._files.cut(*key, queue)
            if queue.max_offset == 0:
                del self._disk_queues[key], self._queues[key]
                self._dirty.discard(key)

    def at(self, physical_offset: int) -> StoredMessage | None:
        return self._log.message(physical_offset)

    def search(self, topic: str, queue_id: int, store_ms: int, *, upper: bool = False) -> int:
        queue = self._disk_queues.get((topic, queue_id))
        if queue is None:
            return 0
        if upper:
            return max(queue.min_offset, queue.first_stored_at(store_ms + 1) - 1)
        return queue.first_stored_at(store_ms)

    def trim(self, topic: str, queue_id: int, min_offset: int) -> None:
        """As retention does, until the next start: the log still has the messages."""
        queue = self._disk_queues.get((topic, queue_id))
        if queue is not None:
            queue.drop_first(max(0, min(min_offset, queue.max_offset) - queue.min_offset))

    # ------------------------------------------------------------ what is too old

    def clean(self, upto_ms: int | None, segments_max: int) -> list[Trimmed]:
        """Only what is safe goes: of a queue that loses everything its file still tells how far it had come.

        Where the disk fails, what was removed until then is gone, and nothing more is stored.
        """
        if self.is_full:
            return []
        start = self._log.start
        for first in self._log.segments()[:-1][:segments_max]:
            is_young = upto_ms is not None and self._segment_ms.get(first, 0) > upto_ms
            if is_young or first + self._log.segment_bytes > self.synced:
                break
            start = first + self._log.segment_bytes
        if start == self._log.start:
            return []
        try:
            start = self._write_down_before(start)
            while self._log.start < start:
                self._segment_ms.pop(self._log.start, None)
                self._log.remove_oldest()
        except DiskFailed as error:
            self.fail(str(error))
        gone = self._drop_below(self._log.start)
        with suppress(DiskFailed):  # they are in nobody's way, and the next turn tries again
            for each in gone:
                self._files.prune(
                    each.topic, each.queue_id, self._disk_queues[each.topic, each.queue_id]
                )
        return gone

    def _write_down_before(self, start: int) -> int:
        """Up to where the log may be removed: no queue's end is forgotten, even if all of its messages go."""
        for key in sorted(self._dirty):
            queue = self._disk_queues[key]
            with suppress(DiskFull):
                self._files.write(*key, queue)
                self._dirty.discard(key)
            if queue.written < queue.max_offset:
                start = min(start, self._log.segment_of(queue.places[-1]))
        for key, queue in sorted(self._disk_queues.items()):
            if queue.places and queue.places[-1] < start:
                self._files.sync(*key)
        return start

    def _drop_below(self, start: int) -> list[Trimmed]:
        gone = []
        for key, queue in sorted(self._disk_queues.items()):
            count = bisect_left(queue.places, start)
            if count:
                queue.drop_first(count)
                gone.append(Trimmed(*key, queue.min_offset))
        return gone

    def disk_use(self) -> float | None:
        try:
            return self._disk.use()
        except DiskFailed as error:
            log.warning("how full the disk is can't be told: %s", error)
            return None

    # ------------------------------------------------------------ the tables

    @property
    def epoch(self) -> int:
        """How many brokers were started on the store; written at once."""
        return self._epoch

    @epoch.setter
    def epoch(self, epoch: int) -> None:
        self._epoch = epoch
        if self._meta:
            self._meta["epoch"] = epoch
            write_table(self._disk, layout.META, self._meta)

    def put_topic(self, topic: TopicConfig) -> None:
        changed = {**self.topics, topic.topic: topic}
        self._write_table(layout.TOPICS, tables.topics_to_json(changed))
        super().put_topic(topic)

    def put_group(self, group: SubscriptionGroup) -> None:
        changed = {**self.groups, group.group: group}
        self._write_table(layout.GROUPS, tables.groups_to_json(changed))
        super().put_group(group)

    def drop_topic(self, name: str) -> list[Trimmed]:
        """What is gone is written down first: the log still has the messages, and the next start reads them."""
        ends = {
            queue_id: queue.max_offset
            for (topic, queue_id), queue in self._disk_queues.items()
            if topic == name
        }
        if ends:
            dropped = {
                **self._meta.get("dropped", {}),
                name: {str(number): end for number, end in ends.items()},
            }
            with self._writing():
                write_table(self._disk, layout.META, {**self._meta, "dropped": dropped})
            self._meta["dropped"] = dropped
        left = {topic: config for topic, config in self.topics.items() if topic != name}
        self._write_table(layout.TOPICS, tables.topics_to_json(left))
        return super().drop_topic(name)

    def drop_group(self, name: str) -> None:
        left = {group: config for group, config in self.groups.items() if group != name}
        self._write_table(layout.GROUPS, tables.groups_to_json(left))
        super().drop_group(name)

    def save_offsets(self, offsets: Mapping[OffsetKey, Mapping[int, int]]) -> None:
        """The log first: what was consumed must not be more than what is there after a crash."""
        with self._writing():
            self._sync()
        self._write_table(layout.OFFSETS, tables.offsets_to_json(offsets), quoted_keys=False)
        super().save_offsets(offsets)

    def save_asked(self) -> None:
        self._write_table(layout.ASKED, {"asked": dict(self.open_halves)})

    def _write_table(self, path: str, value: Any, *, quoted_keys: bool = True) -> None:
        with self._writing():
            write_table(self._disk, path, value, quoted_keys=quoted_keys)

    # ------------------------------------------------------------ safe

    def begin_sync(self) -> Callable[[], int]:
        return self._log.begin_sync()

    def synced_to(self, end: int) -> None:
        self._log.synced = self.synced = max(self.synced, min(end, self.end))

    def _sync(self) -> None:
        if self.end > self.synced or self.end == 0:
            self.synced_to(self._log.begin_sync()())

    def fail(self, why: str) -> None:
        """The disk failed: what it holds is no longer known, so nothing more is written until the next start."""
        log.error("the store takes no more messages: %s", why)
        self.is_full, self.full_because = True, f"the disk failed: {why}"

    def settle(self) -> None:
        """Write what others may want to read and a start can do without. A full disk makes it wait."""
        if self.is_full:
            return
        try:
            for key in sorted(self._dirty):
                self._files.write(*key, self._disk_queues[key])
                self._dirty.discard(key)
            delays = {"offsetTable": dict(self.delayed_done)}
            write_table(self._disk, layout.DELAYS, delays, quoted_keys=False)
            write_checkpoint(self._disk, Checkpoint(self.synced, self._last_ms))
            self.keys.forget_below(self._log.start)
        except DiskFull as error:
            log.warning("the store is full: %s", error)
        except DiskFailed as error:
            self.fail(str(error))

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Turns the disk's errors into the core's one."""
        if self.is_full:
            raise StoreFull(self.full_because)
        try:
            yield
        except DiskFull as error:
            raise StoreFull(f"the disk is full: {error}") from error
        except DiskFailed as error:
            self.fail(str(error))
            raise StoreFull(self.full_because) from error

    # ------------------------------------------------------------ the end

    def close(self) -> None:
        """End in good order: everything is safe, and the next start knows it. A second call does nothing."""
        if self._disk_is_ours():
            try:
                if not self.is_full:
                    self._close()
            except DiskFull as error:
                log.warning("the store could not be closed in good order: %s", error)
            finally:
                self.abandon()

    def _close(self) -> None:
        self._sync()
        self.settle()
        if self.is_full:
            return
        for key in sorted(self._disk_queues):
            if self._disk_queues[key].written > self._disk_queues[key].min_offset:
                self._files.sync(*key)
        if not self._dirty:
            self._disk.remove(layout.ABORT)
            self._disk.sync_folder("")

    def abandon(self) -> None:
        """Let go of the disk as a crash of the process does: nothing more is written."""
        if self._disk_is_ours():
            self._is_open = False
            self._log.close()
            if self._key_files is not None:
                self._key_files.close()
            self._disk.release()

    _is_open = True

    def _disk_is_ours(self) -> bool:
        return self._is_open


def _sizes(disk: Disk, meta: Mapping[str, Any] | None, options: StoreOptions) -> tuple[int, int]:
    """Of a segment and of a consume queue's file: as the store says, else as its files are, else as is asked for.

    Raises StoreDamaged for sizes that can't be.
    """
    if meta is not None and meta.get("format") != FORMAT:
        raise StoreDamaged(
            f"{layout.META} says format {str(meta.get('format'))[:40]!r}; this version reads {FORMAT}."
        )
    if meta is not None:
        segment = _number(meta, "segmentBytes", 0)
        queue_file = _number(meta, "queueFileBytes", 0)
    else:
        segment = _found_size(disk, layout.COMMIT_LOG) or options.segment_bytes
        queue_file = options.queue_file_bytes
        for topic in disk.names(layout.CONSUME_QUEUE)[:1]:
            for queue_id in disk.names(f"{layout.CONSUME_QUEUE}/{topic}")[:1]:
                queue_file = (
                    _found_size(disk, f"{layout.CONSUME_QUEUE}/{topic}/{queue_id}") or queue_file
                )
    if not layout.SEGMENT_BYTES_MIN <= segment <= layout.SEGMENT_BYTES_MAX:
        raise StoreDamaged(f"The segments of the store have {segment} bytes, which can't be.")
    if not 0 < queue_file <= layout.SEGMENT_BYTES_MAX or queue_file % layout.ENTRY_BYTES:
        raise StoreDamaged(
            f"The consume queues of the store have files of {queue_file} bytes, which can't be."
        )
    return segment, queue_file


def _found_size(disk: Disk, folder: str) -> int:
    for start in layout.starts(disk.names(folder)):
        file = disk.open(f"{folder}/{layout.segment_name(start)}")
        try:
            return file.size()
        finally:
            file.close()
    return 0


def _number(table: Mapping[str, Any] | None, name: str, default: int) -> int:
    value = (table or {}).get(name, default)
    return value if type(value) is int and abs(value) < 2**63 else default
