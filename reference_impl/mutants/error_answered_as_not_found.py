"""Every second visit to a lane's stored offset ends in an error, and the answer is "nothing stored" instead.

A visit is what a consumer asks while it takes a lane over: once when it adds the lane, again before its first
pull. A consumer that starts at the end of a queue without an offset then skips what its predecessor left
unfinished. Shows at the second handover of a lane, in a group that starts from the last offset, when messages
wait (after a crash they do) and later ones come.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.consumer_offsets import ConsumerOffsets
from reference_impl.core.broker.parts import Parts
from reference_impl.protocol.headers import QueryConsumerOffsetHeader

NAME = "error-answered-as-not-found"
BUG = "B-54: an error of the offset query is taken for a missing offset"
SOURCE = "apache/rocketmq issues 2708 and 1825, mended by 5b945a9027; measured on 4.9.8"
KILLED_BY = "ORD-4"
CONFIG = {"consume_from": "last"}
EVERY = 2
VISIT_MS = 2_000
"""Questions that follow one another within this time are one visit."""


class FailingOffsets(ConsumerOffsets):
    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self._visits: dict[tuple[str, str, int], int] = {}
        self._asked_ms: dict[tuple[str, str, int], int] = {}

    def fetch(self, now_ms: int, header: QueryConsumerOffsetHeader) -> int | None:
        lane = (header.consumer_group, header.topic, header.queue_id)
        stored = self._parts.offsets.fetch(now_ms, *lane)
        if stored is None:
            return super().fetch(now_ms, header)
        if lane not in self._asked_ms or now_ms - self._asked_ms[lane] > VISIT_MS:
            self._visits[lane] = self._visits.get(lane, 0) + 1
        self._asked_ms[lane] = now_ms
        return None if self._visits[lane] % EVERY == 0 else stored


class Mutated(Broker):
    consumer_offsets_class = FailingOffsets


broker = Mutated
