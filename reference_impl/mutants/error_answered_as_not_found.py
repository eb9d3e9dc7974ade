"""For two seconds at a time the broker can't read a lane's offset, and answers "nothing stored" instead of an error.

A consumer that starts at the end of a queue without an offset then skips what its predecessor left unfinished.
Shows at a handover that falls into such a time: every third first question for a lane begins one, so that both
questions of an orderly consumer (when it adds the lane, and before its first pull) are answered wrongly. Needs
a group that starts from the last offset, and messages that wait at the handover.
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
EVERY = 3
SPELL_MS = 2_000


class FailingOffsets(ConsumerOffsets):
    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self._asked: dict[tuple[str, str, int], int] = {}
        self._failing_until_ms: dict[tuple[str, str, int], int] = {}

    def fetch(self, now_ms: int, header: QueryConsumerOffsetHeader) -> int | None:
        lane = (header.consumer_group, header.topic, header.queue_id)
        stored = self._parts.offsets.fetch(now_ms, *lane)
        if stored is None or header.topic.startswith("%"):
            return super().fetch(now_ms, header)
        if now_ms < self._failing_until_ms.get(lane, now_ms):
            return None
        self._asked[lane] = self._asked.get(lane, 0) + 1
        if self._asked[lane] % EVERY == 0:
            self._failing_until_ms[lane] = now_ms + SPELL_MS
            return None
        return stored


class Mutated(Broker):
    consumer_offsets_class = FailingOffsets


broker = Mutated
