"""A broker that was upgraded does not read the offsets that the former release has written, and begins with none.

Shows when somebody asks for an offset after an upgrade; a restart of the same release reads them.
"""

from random import Random

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.config import FIRST, BrokerConfig
from reference_impl.core.broker.log import BrokerStore

NAME = "offsets-left-behind"
BUG = "after an upgrade offsets are looked for in another file, and the old one is not read"
SOURCE = "RocketMQ issue 7087 (4.8 to 4.9.3 with enableLmq: lmqConsumerOffset.json in place of consumerOffset.json)"
KILLED_BY = "CMT-7"


class Mutated(Broker):
    def __init__(
        self, config: BrokerConfig, store: BrokerStore, choices: Random | None = None
    ) -> None:
        if config.release != FIRST:
            store.save_offsets({})
        super().__init__(config, store, choices)


broker = Mutated
