"""A message is finished although its send-back failed: it is neither retried nor given up.

Shows when a send-back is refused or stays unanswered.
"""

from collections.abc import Callable

from reference_impl.core.consumer import ConcurrentConsumer
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.core.consumer.send_backs import SendBacks
from reference_impl.protocol.message import StoredMessage

NAME = "send-back-failure-ignored"
BUG = "B-49: a message is erased although it could not be sent back"
SOURCE = "rocketmq-clients 04553f8d (2021), its concurrent form"
KILLED_BY = "CMT-10"
CONFIG = {"mode": "concurrent"}


class MutatedSendBacks(SendBacks):
    def return_message(
        self,
        now_ms: int,
        pq: ProcessQueue,
        message: StoredMessage,
        wished: int,
        then: Callable[[int, bool], None],
    ) -> None:
        super().return_message(
            now_ms, pq, message, wished, lambda now_ms, acknowledged: then(now_ms, True)
        )


class Mutated(ConcurrentConsumer):
    send_backs_class = MutatedSendBacks


consumer = Mutated
