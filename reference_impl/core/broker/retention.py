"""How long messages are kept: the oldest go when they are too old, or when the disk fills up.

| share of the disk in use | what goes | a client's message is |
|---|---|---|
| up to `disk_max` | what is too old, in the hours that are set for it | taken |
| above `disk_max` | what is too old, at any hour | taken |
| above `disk_force` | the oldest segments, whatever their age | taken |
| above `disk_refuse` | the oldest segments, whatever their age | refused, until it is `disk_force` or less |

Whole segments of the log go, the oldest first, and never the last one; with them goes what lay there from every queue,
so a queue's minimum moves. Each queue that lost something is noted for the recorder in the same step, before anybody
can see it; and so is, at a start, each queue that does not begin at 0, for a crash may have come in between.
Source: docs/sources.md#retention (DefaultMessageStore.CleanCommitLogService).
"""

from __future__ import annotations

from collections.abc import Iterable

from reference_impl.core.broker.log import Trimmed
from reference_impl.core.broker.parts import Parts
from reference_impl.core.io import ConnId, Effect, Note, SetTimer
from reference_impl.protocol.codes import ResponseCode
from reference_impl.protocol.command import Command
from specs.vocabulary import SCHEDULE_TOPIC, Kind, Level, Outcome, group_of

CLEAN_TIMER = "clean"
_HOUR_MS = 3_600_000


class Retention:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def start(self, out: list[Effect]) -> None:
        queues = self._parts.store.queues()
        self.note(
            (
                Trimmed(*key, queue.min_offset)
                for key, queue in sorted(queues.items())
                if queue.min_offset
            ),
            out,
        )
        if self._parts.config.keep_ms is not None:
            out.append(SetTimer(CLEAN_TIMER, self._parts.config.clean_ms))

    def in_turn(self, now_ms: int, out: list[Effect]) -> None:
        """The interval is over: look at the clock and at the disk."""
        config, store = self._parts.config, self._parts.store
        if config.keep_ms is None:
            return
        use = store.disk_use() or 0.0
        if use > config.disk_refuse:
            store.short_of_room = (
                "service not available now. It may be caused by one of the following reasons: "
                f"the broker's disk is full [{use:.2f}]"
            )
        elif use <= config.disk_force:
            store.short_of_room = None
        if use > config.disk_force:
            self.remove(None, out)
        elif use > config.disk_max or self.is_time(now_ms):
            self.remove(now_ms - config.keep_ms, out)
        out.append(SetTimer(CLEAN_TIMER, config.clean_ms))

    def is_time(self, now_ms: int) -> bool:
        """Is it one of the hours in which what is too old goes?"""
        hours = self._parts.config.delete_hours
        return not hours or now_ms // _HOUR_MS % 24 in hours

    def on_demand(
        self, now_ms: int, conn: ConnId, request: Command, out: list[Effect]
    ) -> Command | None:
        """DELETE_EXPIRED_COMMITLOG: an operator wants what is too old to go now, at whatever hour."""
        if self._parts.config.keep_ms is not None:
            self.remove(now_ms - self._parts.config.keep_ms, out)
        return request.reply(ResponseCode.SUCCESS)

    def clean_queues(
        self, now_ms: int, conn: ConnId, request: Command, out: list[Effect]
    ) -> Command | None:
        """CLEAN_EXPIRED_CONSUMEQUEUE: nothing is left to do, queues lose what the log loses in the same step."""
        return request.reply(ResponseCode.SUCCESS)

    def remove(self, upto_ms: int | None, out: list[Effect]) -> None:
        """Remove what was stored at that time or before; None: the oldest, whenever it was stored."""
        store = self._parts.store
        gone = store.clean(upto_ms, self._parts.config.clean_segments)
        for each in gone:
            if each.topic == SCHEDULE_TOPIC:  # those that were not delivered yet are gone as well
                level = each.queue_id + 1
                store.delayed_done[level] = max(store.delayed_done.get(level, 0), each.min_offset)
        self.note(gone, out)

    def note(self, gone: Iterable[Trimmed], out: list[Effect]) -> None:
        config, store = self._parts.config, self._parts.store
        out.extend(
            Note(
                Kind.TRIM,
                Outcome.OK,
                {
                    "level": Level.STORE,
                    "group": group_of(each.topic),
                    "topic": each.topic,
                    "broker": config.name,
                    "broker_epoch": store.epoch,
                    "queue_id": each.queue_id,
                    "value": each.min_offset,
                },
            )
            for each in gone
        )
