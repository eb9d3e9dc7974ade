"""LOCK_BATCH_MQ and UNLOCK_BATCH_MQ: the lock table's two questions, on the wire.

The answer is always SUCCESS; a lock's body holds exactly the queues granted, which may be none.
"""

from __future__ import annotations

from reference_impl.core.broker.parts import Parts
from reference_impl.core.io import ConnId, Effect
from reference_impl.protocol.bodies import LockBatch, encode_lock_answer
from reference_impl.protocol.codes import ResponseCode
from reference_impl.protocol.command import Command


class Leases:
    def __init__(self, parts: Parts) -> None:
        self._locks = parts.locks

    def lock(
        self, now_ms: int, conn: ConnId, request: Command, out: list[Effect]
    ) -> Command | None:
        asked = LockBatch.decode(request.body)
        granted = self._locks.lock_batch(
            now_ms, asked.consumer_group, asked.client_id, asked.queues
        )
        return request.reply(ResponseCode.SUCCESS, body=encode_lock_answer(granted))

    def unlock(
        self, now_ms: int, conn: ConnId, request: Command, out: list[Effect]
    ) -> Command | None:
        asked = LockBatch.decode(request.body)
        self._locks.unlock_batch(now_ms, asked.consumer_group, asked.client_id, asked.queues)
        return request.reply(ResponseCode.SUCCESS)
