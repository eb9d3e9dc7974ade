"""Every client of a group has one and the same id.

Shows as soon as two clients of a group run: each is alone in its group, and the lock knows them both as its owner.
"""

from dataclasses import replace

from reference_impl.core.consumer import ConsumerConfig, OrderlyConsumer

NAME = "same-client-id"
BUG = "B-23: containers with the same address and process number have the same client id"
SOURCE = "RocketMQ issues 667, 1547, 2760, 3480 and 1589"
KILLED_BY = "LSE-2"


class Mutated(OrderlyConsumer):
    def __init__(self, config: ConsumerConfig) -> None:
        super().__init__(replace(config, client_id=f"{config.group}@1"))


consumer = Mutated
