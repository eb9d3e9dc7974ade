"""A pull that finds nothing sets the group's offset to 0.

A well-behaved consumer repeats its commits, and one that starts too early only repeats messages; a fetch right
after the pull shows it.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.log import Read
from reference_impl.core.broker.pull import Pulling
from reference_impl.core.io import ConnId, Effect
from reference_impl.protocol.command import Command
from reference_impl.protocol.headers import PullHeader

NAME = "empty-read-commits-zero"
BUG = "B-56: a read without a result sets the offset to 0"
SOURCE = "RocketMQ issue 3503 (eb69751315, 2022), there for POP"
KILLED_BY = "WIR-13"
ORACLE = "model"


class ResettingPulling(Pulling):
    def pull(
        self, now_ms: int, conn: ConnId, request: Command, out: list[Effect]
    ) -> Command | None:
        answer = super().pull(now_ms, conn, request, out)
        header = PullHeader.from_ext(request.ext)
        if self.read(header, None).status is Read.AT_END:
            self._parts.offsets.commit(
                now_ms, header.consumer_group, header.topic, header.queue_id, 0
            )
        return answer


class Mutated(Broker):
    pulling_class = ResettingPulling


broker = Mutated
