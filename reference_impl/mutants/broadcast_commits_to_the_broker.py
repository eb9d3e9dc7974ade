"""A broadcast consumer tells the broker how far it is, where every member overwrites the others.

Shows at the first persisting.
"""

from reference_impl.core.consumer import BroadcastConsumer
from reference_impl.core.consumer.offsets import BrokerOffsets

NAME = "broadcast-commits-to-the-broker"
BUG = "a broadcast consumer's offsets go to the broker instead of its own file"
SOURCE = (
    "hand-made: DefaultMQPushConsumerImpl.start with the RemoteBrokerOffsetStore for both models"
)
KILLED_BY = "CMT-12"
CONFIG = {"mode": "concurrent", "message_model": "broadcasting"}


class Mutated(BroadcastConsumer):
    offsets_class = BrokerOffsets


consumer = Mutated
