"""A pull beyond the end of a queue is sent back to its first message instead of to its end.

No well-behaved client asks beyond the end, so no history of a cluster at work shows it; one pull does.
"""

from dataclasses import replace

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.log import Read, ReadResult
from reference_impl.core.broker.pull import Pulling, Wanted
from reference_impl.protocol.headers import PullHeader

NAME = "offset-overflow-to-min"
BUG = (
    "B-55: an offset beyond the end is corrected to the beginning, and everything is consumed again"
)
SOURCE = "apache/rocketmq issue 4215, mended by b87686d974; measured on 4.9.3 against 4.9.4"
KILLED_BY = "WIR-9"
ORACLE = "model"


class ReplayingPulling(Pulling):
    def read(self, header: PullHeader, wanted: Wanted | None) -> ReadResult:
        result = super().read(header, wanted)
        if result.status is Read.BEYOND_END:
            return replace(result, next_offset=result.min_offset)
        return result


class Mutated(Broker):
    pulling_class = ReplayingPulling


broker = Mutated
