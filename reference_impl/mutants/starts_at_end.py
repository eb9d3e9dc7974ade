"""The first pull of a lane starts at the queue's end, whatever was fixed or stored before.

Shows at every handover with messages waiting.
"""

from functools import partial

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.core.consumer.pulling import LeasedPulling
from reference_impl.core.consumer.start_offset import FAILED
from reference_impl.protocol.codes import RequestCode, ResponseCode
from reference_impl.protocol.command import Command
from reference_impl.protocol.headers import GetMaxOffsetHeader, OffsetResponse

NAME = "starts-at-end"
BUG = "B-61: the start is computed again at the first pull, and what came in between is skipped"
SOURCE = "RocketMQ issue 10955 (2026), there only where nothing was stored"
KILLED_BY = "ORD-4"


class MutatedPulling(LeasedPulling):
    def anchor(self, pq: ProcessQueue, now_ms: int, stored: int) -> None:
        queue = pq.queue
        header = GetMaxOffsetHeader(queue.topic, queue.queue_id)
        command = Command(RequestCode.GET_MAX_OFFSET, header.to_ext())
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
