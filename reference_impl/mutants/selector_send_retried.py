"""A send with a sharding key is tried again like any other.

Shows when such a send fails in a way that allows another try: refused, or its connection is gone.
"""

from reference_impl.core.io import SendMessage
from reference_impl.core.producer import Producer

NAME = "selector-send-retried"
BUG = "hand-made from DefaultMQProducerImpl.sendSelectImpl: the retries of a plain send for a send through a selector"
SOURCE = "DefaultMQProducerImpl.sendSelectImpl, which calls sendKernelImpl once"
KILLED_BY = "SND-4"


class Mutated(Producer):
    def tries(self, message: SendMessage) -> int:
        return 1 + self.config.retries


producer = Mutated
