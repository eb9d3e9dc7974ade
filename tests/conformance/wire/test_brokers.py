"""The brokers of a run on sockets: topics, queues read to their end, a broker killed and started again."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.targets.base import Run
from conformance.targets.systems import ReferenceOnSockets
from conformance.wire.brokers import Brokers
from conformance.wire.runner import SHORT_LEASES
from specs.errors import UsageError
from specs.faults import broker_crash
from specs.history.journal import assemble, read_journal
from specs.plan.plan import Action, Plan, TopicPlan, Topology
from specs.vocabulary import Kind, Queue, dead_letter_topic

PLAN = Plan(topology=Topology(topics=(TopicPlan("orders", 2),), groups=("billing",)))


def test_a_queue_is_read_to_its_end_also_after_the_broker_died(tmp_path: Path) -> None:
    run = Run(PLAN, tmp_path)
    brokers = Brokers(run, ReferenceOnSockets(SHORT_LEASES))
    try:
        queue = Queue("orders", "b0", 1)
        producer = brokers.client("shop")
        for number in range(3):
            producer.send(queue, f"m{number}", None)
        producer.close()
        assert brokers.act(Action(0, broker_crash.VERB, {"broker": "b0"}))
        assert brokers.act(Action(0, broker_crash.HEALED_BY, {"broker": "b0"}))
        assert brokers.queues()[-1] == (Queue(dead_letter_topic("billing"), "b0", 0), "billing")
        found = [brokers.read(queue) for queue, _group in brokers.queues()]
        with pytest.raises(UsageError, match="b1 is no broker"):
            brokers.start("b1")
    finally:
        brokers.close()
        run.close()
    assert [[row["message_id"] for row in rows] for rows in found] == [[], ["m0", "m1", "m2"], []]
    journals = map(read_journal, sorted((tmp_path / "journal").glob("*.jsonl")))
    rows = assemble("a run", journals)
    assert [row.broker for row in rows if row.kind is Kind.CRASH] == ["b0"]
