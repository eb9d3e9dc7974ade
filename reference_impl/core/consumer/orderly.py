"""The orderly consumer: all parts together, and its start.

consumer = OrderlyConsumer(ConsumerConfig("c1", "billing", {"orders": "*"}, ("ns:9876",)))
for effect in consumer.handle(now_ms, Start()): ...
"""

from __future__ import annotations

from reference_impl.core.consumer.leases import LOCK
from reference_impl.core.consumer.offsets import PERSIST
from reference_impl.core.consumer.rebalance import REBALANCE
from reference_impl.core.consumer.routes import HEARTBEAT
from reference_impl.core.consumer.shutdown import ShuttingDown
from reference_impl.core.io import Start
from specs.vocabulary import Kind


class OrderlyConsumer(ShuttingDown):
    """One client of one group, delivering each lane in order. See `Core.handle` for the contract.

    What it promises: calls of one lane never overlap, deliveries within an incarnation ascend except for the
    batch just put back, no call starts without a living grant, no offset passes an unfinished message. What it
    does not promise: that a message is delivered once.
    """

    def on_start(self, now_ms: int, input: Start) -> None:
        self.note(Kind.JOIN, self._who)
        self.subscribe(now_ms)
        config = self.config
        self.set_timer(HEARTBEAT, config.heartbeat_ms)
        self.set_timer(REBALANCE, config.rebalance_interval_ms)
        self.set_timer(LOCK, config.lock_first_ms)
        self.set_timer(PERSIST, config.persist_first_ms)
        self._routes_tick(now_ms)
