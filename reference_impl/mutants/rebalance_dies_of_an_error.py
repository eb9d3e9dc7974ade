"""Once nobody answers who is in the group, the topic is never rebalanced again.

Shows when such an answer is lost, and a member goes later: its lanes stay without an owner.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.rebalance import Rebalance
from reference_impl.protocol.codes import ResponseCode
from reference_impl.protocol.command import Command

NAME = "rebalance-dies-of-an-error"
BUG = "B-66: an error in a rebalance ends rebalancing for ever"
SOURCE = "RocketMQ before commit 0e2d057457 (issue 172 of its first repository)"
KILLED_BY = "LIV-2"


class MutatedRebalance(Rebalance):
    def members_answered(
        self,
        topic: str,
        brokers: list[str],
        tried: int,
        now_ms: int,
        answer: Command | None,
        reason: str,
    ) -> None:
        super().members_answered(topic, brokers, tried, now_ms, answer, reason)
        if answer is None or answer.code != ResponseCode.SUCCESS:
            self.asking.add(topic)


class Mutated(OrderlyConsumer):
    rebalance_class = MutatedRebalance


consumer = Mutated
