"""When the offset query before a lane's first pull fails, the lane starts at the queue's end.

Shows when that query (the second of a new owner) is refused, or its answer lost, while the lane has unfinished
messages; needs consumers that start at the end where nothing is stored.
"""

from functools import partial

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.core.consumer.pulling import LeasedPulling
from reference_impl.core.consumer.start_offset import FAILED
from reference_impl.protocol.codes import RequestCode, ResponseCode
from reference_impl.protocol.command import Command
from reference_impl.protocol.headers import GetMaxOffsetHeader, OffsetResponse

NAME = "error-taken-for-not-found"
BUG = "B-54: an error in the offset query is treated like a missing offset"
SOURCE = (
    "RocketMQ issue 2708; at the first pull of an orderly consumer up to 4.9.8, from 5.0.0 guarded"
)
KILLED_BY = "ORD-4"
CONFIG = {"consume_from": "last"}


class MutatedPulling(LeasedPulling):
    def anchor(self, pq: ProcessQueue, now_ms: int, stored: int) -> None:
        if stored != FAILED:
            super().anchor(pq, now_ms, stored)
            return
        queue = pq.queue
        command = Command(
            RequestCode.GET_MAX_OFFSET, GetMaxOffsetHeader(queue.topic, queue.queue_id).to_ext()
        )
        address = self.consumer.addresses.get(queue.broker)
        self.consumer.request(
            now_ms, address, command, self.config.request_timeout_ms, partial(self._end_known, pq)
        )

    def _end_known(
        self, pq: ProcessQueue, now_ms: int, answer: Command | None, reason: str
    ) -> None:
        if answer is not None and answer.code == ResponseCode.SUCCESS:
            super().anchor(pq, now_ms, OffsetResponse.from_ext(answer.ext).offset)
        else:
            super().anchor(pq, now_ms, FAILED)


class Mutated(OrderlyConsumer):
    pulling_class = MutatedPulling


consumer = Mutated
