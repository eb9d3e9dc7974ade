"""The broker's core, free of clocks, sockets and dice."""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.config import BrokerConfig
from reference_impl.core.broker.log import BrokerStore

__all__ = ["Broker", "BrokerConfig", "BrokerStore"]
