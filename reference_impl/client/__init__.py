"""The client library: producers and consumers on asyncio, for the reference cluster and for Apache RocketMQ alike.

    from reference_impl.client import OrderlyConsumer, Producer

Everything public is named here; docs/python-api.md shows it at work.
"""

from reference_impl.client import allocation
from reference_impl.client.admin import Admin
from reference_impl.client.blocking import BlockingProducer
from reference_impl.client.consumer import (
    BatchListener,
    BroadcastConsumer,
    ConcurrentConsumer,
    KeyOrderedConsumer,
    Listener,
    OrderlyConsumer,
    PushConsumer,
    Tuning,
)
from reference_impl.client.errors import (
    BodyFailed,
    InorderError,
    NotReachable,
    Refused,
    SendFailed,
    SendRefused,
    SendUnknown,
    Unanswered,
    UsageError,
)
from reference_impl.client.history import recorded
from reference_impl.client.idempotence import Once, OnceInMemory, OnceOnDisk
from reference_impl.client.message import Batch, Message
from reference_impl.client.producer import Outgoing, Producer, SendResult
from reference_impl.client.pull import PullConsumer
from reference_impl.client.results import DEAD_LETTER_NOW, Result, Suspend
from reference_impl.core.io import Selector
from reference_impl.core.selectors import by_hash, by_random, to_queue
from specs.vocabulary import Queue

__all__ = [
    "DEAD_LETTER_NOW",
    "Admin",
    "Batch",
    "BatchListener",
    "BlockingProducer",
    "BodyFailed",
    "BroadcastConsumer",
    "ConcurrentConsumer",
    "InorderError",
    "KeyOrderedConsumer",
    "Listener",
    "Message",
    "NotReachable",
    "Once",
    "OnceInMemory",
    "OnceOnDisk",
    "OrderlyConsumer",
    "Outgoing",
    "Producer",
    "PullConsumer",
    "PushConsumer",
    "Queue",
    "Refused",
    "Result",
    "Selector",
    "SendFailed",
    "SendRefused",
    "SendResult",
    "SendUnknown",
    "Suspend",
    "Tuning",
    "Unanswered",
    "UsageError",
    "allocation",
    "by_hash",
    "by_random",
    "recorded",
    "to_queue",
]
