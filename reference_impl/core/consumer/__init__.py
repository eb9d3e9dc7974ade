"""The push consumers as sans-io cores: one for each way in which a group consumes."""

from collections.abc import Mapping

from reference_impl.core.consumer.broadcast import BroadcastConsumer
from reference_impl.core.consumer.concurrent import ConcurrentConsumer
from reference_impl.core.consumer.config import ConsumerConfig
from reference_impl.core.consumer.consumer import Consumer
from reference_impl.core.consumer.key_ordered import KeyOrderedConsumer
from reference_impl.core.consumer.orderly import OrderlyConsumer
from reference_impl.protocol.bodies import BROADCASTING

BY_MODE: Mapping[str, type[Consumer]] = {
    "orderly": OrderlyConsumer,
    "concurrent": ConcurrentConsumer,
    "key_ordered": KeyOrderedConsumer,
}


def consumer_class(config: ConsumerConfig) -> type[Consumer]:
    """The consumer that works as the configuration says."""
    return BroadcastConsumer if config.message_model == BROADCASTING else BY_MODE[config.mode]


__all__ = [
    "BroadcastConsumer",
    "ConcurrentConsumer",
    "Consumer",
    "ConsumerConfig",
    "KeyOrderedConsumer",
    "OrderlyConsumer",
    "consumer_class",
]
