"""The orderly consumer: one call of a lane at a time, in order, under a lease of the broker's.

consumer = OrderlyConsumer(ConsumerConfig("c1", "billing", {"orders": "*"}, ("ns:9876",)))
for effect in consumer.handle(now_ms, Start()): ...
"""

from __future__ import annotations

from typing import ClassVar

from reference_impl.core.consumer.config import ConsumerConfig
from reference_impl.core.consumer.consumer import Consumer
from reference_impl.core.consumer.dead_letters import DeadLetters
from reference_impl.core.consumer.lane_life import LIFE, Life
from reference_impl.core.consumer.lane_release import LaneRelease
from reference_impl.core.consumer.leases import Leases
from reference_impl.core.consumer.orderly_loop import OrderlyLoop
from reference_impl.core.consumer.pulling import LeasedPulling


class OrderlyConsumer(Consumer):
    """One client of one group, delivering each lane in order. See `Consumer.handle` for the contract.

    What it promises: calls of one lane never overlap, deliveries within an incarnation ascend except for the
    batch just put back, no call starts without a living grant, no offset passes an unfinished message. What it
    does not promise: that a message is delivered once.
    """

    life: ClassVar[Life] = LIFE
    leases_class: ClassVar[type[Leases]] = Leases
    release_class: ClassVar[type[LaneRelease]] = LaneRelease
    loop_class: ClassVar[type[OrderlyLoop]] = OrderlyLoop
    pulling_class: ClassVar[type[LeasedPulling]] = LeasedPulling
    dead_letters_class: ClassVar[type[DeadLetters]] = DeadLetters

    leases: Leases
    release: LaneRelease
    loop: OrderlyLoop

    def __init__(self, config: ConsumerConfig) -> None:
        super().__init__(config)
        self.dead_letters = self.dead_letters_class(self)
