"""Our own clients on sockets as a plan describes them: their configuration, and a listener that keeps to its rules.

Nothing here needs more than the standard library, so that it runs in a bare container too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from reference_impl.core.consumer import BroadcastConsumer, ConsumerConfig, consumer_class
from reference_impl.core.consumer.broadcast import OffsetFile
from reference_impl.core.producer import Producer, ProducerConfig
from reference_impl.protocol.message import StoredMessage
from reference_impl.shell.clock import monotonic_s
from reference_impl.shell.node import ClientNode, ListenerContext
from reference_impl.shell.recording import Recorder
from reference_impl.sim.prober import Prober
from specs.errors import UsageError
from specs.plan.listener import Listener
from specs.plan.plan import ClientPlan, Plan
from specs.vocabulary import Outcome

PRODUCER_GROUP = "inorder-producers"


class PlannedListener:
    """Ends each call as the plan says, after as long as the plan says. began_s: when the run began, monotonic."""

    def __init__(self, plan: Plan, client: str, began_s: float) -> None:
        self._rules = Listener(plan.listener)
        self._client = client
        self._began_s = began_s

    async def __call__(
        self, messages: Sequence[StoredMessage], context: ListenerContext
    ) -> Outcome | None:
        at_ms = round((monotonic_s() - self._began_s) * 1000)
        rule = self._rules.decide(at_ms, self._client, context.lane, messages, context.delivery)
        await asyncio.sleep(rule.duration_ms / 1000)  # how long the work takes is the plan's
        context.auto_commit = not rule.manual
        context.suspend_ms = rule.suspend_ms
        context.delay_level = rule.delay_level
        if rule.outcome is Outcome.THREW:
            raise RuntimeError("the plan says that this delivery throws")
        return None if rule.outcome is Outcome.NULL else rule.outcome


def client_node(
    plan: Plan,
    client_id: str,
    namesrv: str,
    recorder: Recorder,
    began_s: float,
    file: OffsetFile | None = None,
    *,
    held_longer_ms: int = 0,
    consumer: type[Any] | None = None,
    producer: type[Any] | None = None,
    via: Mapping[str, str] | None = None,
) -> ClientNode:
    """A client of the plan, ready to start. Raises UsageError for a name that the plan does not know.

    file: a broadcast consumer's own offsets, as an earlier process of it left them; it writes there.
    held_longer_ms: how much longer than it was asked to the broker may keep a pull that finds nothing. A consumer that
    gives up before never hears the answer, and with it a reset that the answer brings: that is told once. consumer,
    producer: the cores' classes, where they are not the correct ones (a mutant's, say). via: by address that of a
    proxy before it.
    """
    client = find_client(plan, client_id)
    if client.kind == "prober":
        return ClientNode(Prober(client.id), recorder=recorder)
    if client.kind == "consumer":
        config = ConsumerConfig.from_plan(
            plan.config,
            client_id=client.id,
            group=client.group,
            topics=dict.fromkeys(client.topics, plan.config.subscription),
            name_servers=(namesrv,),
        )
        patience_ms = max(config.pull_timeout_ms, plan.config.long_poll_ms + held_longer_ms)
        config = replace(config, pull_timeout_ms=patience_ms)
        listener = PlannedListener(plan, client.id, began_s)
        made = consumer or consumer_class(config)
        core = made(config, file) if issubclass(made, BroadcastConsumer) else made(config)
        return ClientNode(core, listener, threads=plan.config.threads, recorder=recorder, via=via)
    sending = ProducerConfig.from_plan(
        plan.config,
        client_id=client.id,
        group=client.group or PRODUCER_GROUP,
        topics=tuple(topic.name for topic in plan.topology.topics),
        name_servers=(namesrv,),
    )
    return ClientNode((producer or Producer)(sending), recorder=recorder, via=via)


def find_client(plan: Plan, client_id: str) -> ClientPlan:
    for client in plan.clients:
        if client.id == client_id:
            return client
    raise UsageError(f"the plan has no client {client_id!r}")
