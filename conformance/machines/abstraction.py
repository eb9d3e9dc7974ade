"""Where a simulated cluster stands, with the numbers taken out: the abstract states that a search should see many of.

A state is that of one lane at one client: lease phase × calls in flight × attempts × rebalance × commit gap × fault.
A fresh lease, nothing in flight and no fault is one state, however long the run; a suspended batch on its third
try under an expired lease while the link loses frames is another.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from reference_impl.core.broker import Broker
from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.lane_life import ON_THE_WAY_IN, Phase
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.sim.cluster import Cluster
from specs.vocabulary import Queue

MOVING = (*ON_THE_WAY_IN, Phase.LEAVING)
ATTEMPTS_MAX = 3
GAP_FEW = 3


class LaneState(NamedTuple):
    """lease: `none`, `fresh`, `ageing` (older than the interval of renewal), `expired` (for the client).

    flight: `idle`, `waiting` (messages, but no call), `running`, `leaving` (dropped, the call still runs).
    attempts: of the message tried most often, 3 for more. rebalance: a lane of the client is on its way in or out.
    gap: finished, but not yet stored at the broker: `even`, `few`, `many`, `behind` (the broker knows more).
    fault: what is wrong with the client, its broker, or the link between them.
    """

    lease: str
    flight: str
    attempts: int
    rebalance: bool
    gap: str
    fault: str


def lane_states(cluster: Cluster) -> Iterator[LaneState]:
    """The state of each lane of each orderly consumer that runs."""
    for client in cluster.plan.clients:
        core = cluster.node(client.id).core
        if client.kind == "consumer" and isinstance(core, OrderlyConsumer):
            moving = any(lane.phase in MOVING for lane in core.tracked.values())
            now_ms = cluster.node(client.id).wall_ms
            for queue, pq in core.tracked.items():
                if not isinstance(pq, ProcessQueue):
                    continue
                yield LaneState(
                    _lease(now_ms, core, pq),
                    _flight(pq),
                    min(max(pq.extra_times.values(), default=0), ATTEMPTS_MAX),
                    moving,
                    _gap(cluster, client.group, queue, pq),
                    fault_at(cluster, client.id, queue.broker),
                )


def fault_at(cluster: Cluster, client: str, broker: str) -> str:
    """The faults that hold now, in words; empty for none."""
    found = []
    if not cluster.is_running(broker):
        found.append("broker down")
    found += [
        f"{who} paused"
        for who, name in (("broker", broker), ("client", client))
        if cluster.is_paused(name)
    ]
    if cluster.node(client).skew_ms or cluster.node(broker).skew_ms:
        found.append("clock")
    found += cluster.faults_between(client, broker)
    return " + ".join(found[:2])


def _lease(now_ms: int, core: OrderlyConsumer, pq: ProcessQueue) -> str:
    if not pq.locked:
        return "none"
    age_ms = now_ms - pq.last_lock_ms
    if age_ms > core.config.client_lease_ms:
        return "expired"
    return "ageing" if age_ms > core.config.lock_interval_ms else "fresh"


def _flight(pq: ProcessQueue) -> str:
    if pq.dropped:
        return "leaving"
    return "running" if pq.phase is Phase.CALLING else "waiting" if pq.pending else "idle"


def _gap(cluster: Cluster, group: str, queue: Queue, pq: ProcessQueue) -> str:
    broker = cluster.node(queue.broker).core
    if not isinstance(broker, Broker):
        return "even"
    stored = broker.parts.offsets.fetch(0, group, queue.topic, queue.queue_id) or 0
    gap = max(pq.offset, 0) - stored
    return "behind" if gap < 0 else "even" if gap == 0 else "few" if gap <= GAP_FEW else "many"
