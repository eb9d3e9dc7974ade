"""Who chooses the queue of a message that is not to take the next in turn.

| selector | its queue |
|---|---|
| `by_hash` | the key's Java hash, modulo the number of queues, made positive |
| `by_random` | any, from a stream of choices that is handed in |
| `to_queue` | the same one always |

The remainder comes first and its sign is dropped afterwards: the smallest hash, -2^31, has no positive twin in Java,
and a client that drops the sign first gets a negative queue for it.
Source: `SelectMessageQueueByHash`, `SelectMessageQueueByRandom` of apache/rocketmq.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from reference_impl.core.io import Selector
from reference_impl.protocol.bodies import java_hash
from specs.errors import UsageError
from specs.vocabulary import Queue


def by_hash(key: str | None, queues: Sequence[Queue]) -> Queue:
    """The same key has the same queue, as long as the list of queues stays the same; no key counts as an empty one."""
    return queues[abs(java_hash(key or "")) % len(queues)]


def by_random(choices: Random) -> Selector:
    """Any queue."""
    return lambda key, queues: queues[choices.randrange(len(queues))]


def to_queue(queue_id: int, broker: str | None = None) -> Selector:
    """One queue; of the first broker that has it, unless one is named. UsageError at the send when there is none."""

    def select(key: str | None, queues: Sequence[Queue]) -> Queue:
        for queue in queues:
            if queue.queue_id == queue_id and broker in (None, queue.broker):
                return queue
        where = f" on broker {broker}" if broker else ""
        raise UsageError(
            f"There is no queue {queue_id}{where} that can be written; known are {_listed(queues)}."
        )

    return select


def _listed(queues: Sequence[Queue]) -> str:
    return ", ".join(f"{queue.broker}/{queue.queue_id}" for queue in queues)
