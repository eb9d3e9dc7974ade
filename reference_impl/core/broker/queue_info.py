"""GET_MAX_OFFSET, GET_MIN_OFFSET, GET_EARLIEST_MSG_STORETIME, SEARCH_OFFSET_BY_TIMESTAMP and VIEW_MESSAGE_BY_ID.

A queue or topic that does not exist is an empty one here: both offsets are 0.
"""

from __future__ import annotations

from reference_impl.core.broker.parts import Parts
from reference_impl.core.io import ConnId, Effect
from reference_impl.protocol.codes import ResponseCode
from reference_impl.protocol.command import Command
from reference_impl.protocol.headers import (
    GetMaxOffsetHeader,
    GetMinOffsetHeader,
    OffsetResponse,
    SearchOffsetHeader,
    ViewMessageHeader,
)
from reference_impl.protocol.message import encode


class QueueInfo:
    def __init__(self, parts: Parts) -> None:
        self._store = parts.store

    def max_offset(
        self, now_ms: int, conn: ConnId, request: Command, out: list[Effect]
    ) -> Command | None:
        header = GetMaxOffsetHeader.from_ext(request.ext)
        return _offset(request, self._store.queue(header.topic, header.queue_id).max_offset)

    def min_offset(
        self, now_ms: int, conn: ConnId, request: Command, out: list[Effect]
    ) -> Command | None:
        header = GetMinOffsetHeader.from_ext(request.ext)
        return _offset(request, self._store.queue(header.topic, header.queue_id).min_offset)

    def earliest(
        self, now_ms: int, conn: ConnId, request: Command, out: list[Effect]
    ) -> Command | None:
        """When the oldest message that is kept was stored, in ms; -1 where there is none."""
        header = GetMinOffsetHeader.from_ext(request.ext)
        queue = self._store.queue(header.topic, header.queue_id)
        first = queue.get(queue.min_offset)
        return request.reply(
            ResponseCode.SUCCESS, {"timestamp": str(-1 if first is None else first.store_ms)}
        )

    def search(
        self, now_ms: int, conn: ConnId, request: Command, out: list[Effect]
    ) -> Command | None:
        header = SearchOffsetHeader.from_ext(request.ext)
        upper = (header.boundary_type or "").upper() == "UPPER"
        return _offset(
            request,
            self._store.search(header.topic, header.queue_id, header.timestamp, upper=upper),
        )

    def view(
        self, now_ms: int, conn: ConnId, request: Command, out: list[Effect]
    ) -> Command | None:
        place = ViewMessageHeader.from_ext(request.ext).offset
        message = self._store.at(place)
        if message is None:
            return request.reply(
                ResponseCode.SYSTEM_ERROR, remark=f"can not find message by the offset, {place}"
            )
        return request.reply(ResponseCode.SUCCESS, body=encode(message))


def _offset(request: Command, offset: int) -> Command:
    return request.reply(ResponseCode.SUCCESS, OffsetResponse(offset).to_ext())
