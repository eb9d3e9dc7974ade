"""What a scripted broker answers to a consumer that stands alone before it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from reference_impl.protocol.bodies import (
    BrokerData,
    LockBatch,
    QueueData,
    TopicRoute,
    encode_lock_answer,
)
from reference_impl.protocol.codes import ResponseCode
from reference_impl.protocol.command import Command
from reference_impl.protocol.headers import OffsetResponse, PullResponse
from reference_impl.protocol.message import StoredMessage, encode
from specs.vocabulary import Queue


def route_of(topic: str, queues: Mapping[str, int], broker: str) -> Command:
    """Where the topic's queues are. queues: of each topic so many, all on that one broker."""
    if topic not in queues:
        return Command(ResponseCode.TOPIC_NOT_EXIST, flag=1)
    count = queues[topic]
    route = TopicRoute(
        (QueueData(broker, count, count),), (BrokerData("c", broker, {0: f"{broker}:1"}),)
    )
    return Command(0, body=route.encode(), flag=1)


def grants_of(request: Command, refused: Collection[Queue]) -> Command:
    """Which of the lanes asked for are granted: all but those that are refused."""
    asked = LockBatch.decode(request.body).queues
    return Command(
        0, body=encode_lock_answer(queue for queue in asked if queue not in refused), flag=1
    )


def stored_offset(stored: int | None) -> Command:
    """The stored offset; None for none."""
    if stored is None:
        return Command(ResponseCode.QUERY_NOT_FOUND, flag=1)
    return Command(0, OffsetResponse(stored).to_ext(), flag=1)


def messages_from(asked: int, log: Sequence[StoredMessage], low: int, at_most: int) -> Command:
    """The messages from an offset on. log: what the queue holds, from the offset `low` on."""
    end = low + len(log)
    if not low <= asked <= end:
        ext = PullResponse(0, low if asked < low else end, low, end).to_ext()
        return Command(ResponseCode.PULL_OFFSET_MOVED, ext, flag=1)
    found = log[asked - low : asked - low + at_most]
    ext = PullResponse(0, asked + len(found), low, end).to_ext()
    code = ResponseCode.SUCCESS if found else ResponseCode.PULL_NOT_FOUND
    return Command(code, ext, b"".join(encode(message) for message in found), flag=1)
