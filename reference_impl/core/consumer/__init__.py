"""The orderly push consumer as a sans-io core."""

from reference_impl.core.consumer.config import ConsumerConfig
from reference_impl.core.consumer.orderly import OrderlyConsumer

__all__ = ["ConsumerConfig", "OrderlyConsumer"]
