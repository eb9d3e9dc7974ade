"""The push consumers as sans-io cores: one for each way in which a group consumes.

A consumer is made of parts (`consumer.Consumer`); a way of consuming is a choice of them:

| part | rule | orderly | key-ordered | concurrent | broadcast |
|---|---|---|---|---|---|
| `routes` | where topics live, heartbeats | `Routes` | `Routes` | `Routes` | `Routes` |
| `offsets` | how far we are | `BrokerOffsets` | `BrokerOffsets` | `BrokerOffsets` | `LocalOffsets` |
| `leases` | who may work on a lane | `Leases` | `NoLeases` | `NoLeases` | `NoLeases` |
| `release` | how a lane is left | `LaneRelease` | `LaneDrop` | `LaneDrop` | `LaneDrop` |
| `calls` | listener calls and threads | `Calls` | `Calls` | `Calls` | `Calls` |
| `loop` | the next call, and its result | `OrderlyLoop` | `KeyOrderedLoop` | `ConcurrentLoop` | `BroadcastLoop` |
| `pulling` | when the next pull is due | `LeasedPulling` | `BoundedPulling` | `BoundedPulling` | `BoundedPulling` |
| `rebalance` | which lanes are ours | `Rebalance` | `Rebalance` | `Rebalance` | `WholeShare` |
| `resets` | an operator's reset | `Resets` | `Resets` | `Resets` | `Resets` |
| `shutdown` | the end | `ShutdownSequence` | `ShutdownSequence` | `ShutdownSequence` | `ShutdownSequence` |
| `dead_letters` | a message that is given up | `DeadLetters` | `DeadLetters` | – | – |
| `send_backs` | a message that is sent back | – | – | `SendBacks` | – |

A part has its consumer's own methods (requests, timers, rows, the lanes and their phases), and asks these other parts:

| part | asks |
|---|---|
| `Routes` | `rebalance` |
| `LaneDrop` | `offsets`, `shutdown` |
| `LaneRelease` | `leases` |
| `OrderlyLoop` | `calls`, `dead_letters`, `leases`, `offsets`, `release` |
| `SideBySideLoop` | `calls`, `offsets`, `release` |
| `KeyOrderedLoop` | `dead_letters` |
| `ConcurrentLoop` | `send_backs` |
| `DeadLetters` | `routes` |
| `Pulling` | `loop`, `offsets`, `rebalance`, `release` |
| `LeasedPulling` | `offsets` |
| `Rebalance` | `calls`, `leases`, `loop`, `offsets`, `pulling`, `release`, `routes` |
| `Resets` | `offsets`, `rebalance`, `release` |
| `ShutdownSequence` | `calls`, `leases`, `loop`, `offsets`, `release` |

What a variant of a consumer (a mutant) may replace, and tests hold it to that:

* it is a consumer of one mode whose `PART_class` is another class, and overrides nothing else of the consumer;
  a bug of the configuration alone may wrap `__init__`;
* where its bug is a step that a lane's life does not have (`lane_life.LIFE`), the consumer's `life` is that table
  with the step added (`with_steps`); a bug that is nothing but a wrong entry of the table replaces no part;
* that class is a part of the table, or derives from the part of its mode and overrides its public methods, its
  tables (as `Rebalance.strategies`), or `__init__`, to add state and timers of its own;
* names that begin with an underscore are the part's own, and may change from one day to the next.

Where a lane stands is asked of its phase (`pq.phase`, `candidate.phase`, `consumer.phase_of(queue)`), and changed by
`consumer.move(lane, event)` alone, which raises `UnknownStep` for what is no entry of `life`. `consumer.tracked` holds
all lanes that the client has to do with, `consumer.lanes` those of them that are added and not dropped.
"""

from collections.abc import Mapping

from reference_impl.core.consumer.broadcast import BroadcastConsumer
from reference_impl.core.consumer.concurrent import ConcurrentConsumer
from reference_impl.core.consumer.config import ConsumerConfig
from reference_impl.core.consumer.consumer import Consumer
from reference_impl.core.consumer.key_ordered import KeyOrderedConsumer
from reference_impl.core.consumer.orderly import OrderlyConsumer
from reference_impl.protocol.bodies import BROADCASTING

BY_MODE: Mapping[str, type[Consumer]] = {
    "orderly": OrderlyConsumer,
    "concurrent": ConcurrentConsumer,
    "key_ordered": KeyOrderedConsumer,
}


def consumer_class(config: ConsumerConfig) -> type[Consumer]:
    """The consumer that works as the configuration says."""
    return BroadcastConsumer if config.message_model == BROADCASTING else BY_MODE[config.mode]


__all__ = [
    "BroadcastConsumer",
    "ConcurrentConsumer",
    "Consumer",
    "ConsumerConfig",
    "KeyOrderedConsumer",
    "OrderlyConsumer",
    "consumer_class",
]
