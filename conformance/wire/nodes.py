"""Our own clients on sockets, driven by a plan: what a plan says about them, done in real time.

A listener decides by the plan's rules, as the simulated world's does. Every client has a journal of its own in
the run's folder, so that one that is killed leaves what it began.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from conformance.targets.systems import System
from conformance.waiting import now_s
from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.config import ConsumerConfig
from reference_impl.core.io import SendMessage
from reference_impl.core.producer import Producer, ProducerConfig
from reference_impl.protocol.message import StoredMessage
from reference_impl.shell.node import ClientNode, ListenerContext
from specs.errors import UsageError
from specs.history.journal import Journal
from specs.plan.plan import Action, ClientPlan, ListenerRule, Plan
from specs.vocabulary import Outcome

_SHUTDOWN_S = 30.0


def matching_rule(
    rules: Sequence[ListenerRule],
    message: StoredMessage,
    context: ListenerContext,
    client: str,
    delivery: int,
    at_ms: int,
) -> ListenerRule | None:
    """The last rule that matches the delivery; message `n` of a plan has the id `...m<n>`."""
    number = message_number(message.message_id)
    found = None
    for rule in rules:
        if (
            rule.from_ms <= at_ms
            and rule.group in (None, context.lane.group)
            and rule.client in (None, client)
            and rule.topic in (None, message.topic)
            and rule.key in (None, message.sharding_key)
            and rule.number in (None, number)
            and rule.delivery_min <= delivery
            and (rule.delivery_max is None or delivery <= rule.delivery_max)
        ):
            found = rule
    return found


def message_number(message_id: str | None) -> int | None:
    """`run-m17` → 17."""
    digits = (message_id or "").rpartition("m")[2]
    return int(digits) if digits.isdigit() else None


class PlannedListener:
    """A listener that ends its calls as the plan says."""

    def __init__(self, plan: Plan, client: str, began_s: float) -> None:
        self._rules = plan.listener
        self._client = client
        self._began_s = began_s

    async def __call__(self, messages: Sequence[StoredMessage], context: ListenerContext) -> Outcome | None:
        at_ms = round((now_s() - self._began_s) * 1000)
        rule = None
        for message, delivery in zip(messages, context.delivery, strict=True):
            rule = matching_rule(self._rules, message, context, self._client, delivery, at_ms)
            if rule is not None:
                break
        rule = rule or ListenerRule()
        await asyncio.sleep(rule.duration_ms / 1000)  # how long the work takes is the plan's
        context.auto_commit = not rule.manual
        context.suspend_ms = rule.suspend_ms
        if rule.outcome is Outcome.THREW:
            raise RuntimeError("the plan says that this delivery throws")
        return None if rule.outcome is Outcome.NULL else rule.outcome


def consumer_node(plan: Plan, client: ClientPlan, namesrv: str, journal: Journal, began_s: float) -> ClientNode:
    """An orderly consumer of the plan, ready to start."""
    config = ConsumerConfig.from_plan(
        plan.config,
        client_id=client.id,
        group=client.group,
        topics=dict.fromkeys(client.topics, "*"),
        name_servers=(namesrv,),
    )
    core = OrderlyConsumer(config)
    return ClientNode(core, PlannedListener(plan, client.id, began_s), threads=plan.config.threads, recorder=journal)


class PlanRunner:
    """Does a plan's actions on a system, at their times. prefix: makes message ids unique among runs."""

    def __init__(self, plan: Plan, system: System, folder: Path, prefix: str) -> None:
        self._plan = plan
        self._system = system
        self._folder = folder
        self._prefix = prefix
        self._clients = {client.id: client for client in plan.clients}
        self._nodes: dict[str, ClientNode] = {}
        self._journals: dict[str, Journal] = {}
        self._sends: list[asyncio.Task[None]] = []
        self._messages = 0
        self._key_seq: dict[str, int] = {}
        self._began_s = 0.0

    async def run(self) -> None:
        """Do everything, then stop every client in good order."""
        self._began_s = now_s()
        try:
            for action in self._plan.actions:
                await self._until(action.at_ms)
                await self.act(action)
            await self._until(self._plan.until_ms)
            await asyncio.gather(*self._sends)
        finally:
            for name in list(self._nodes):
                await self._stop(name)

    async def act(self, action: Action) -> None:
        """One action. UsageError for one that needs an ability which real sockets don't give."""
        args = action.args
        match action.do:
            case "start" | "restart":
                self._start(args["client"])
            case "stop":
                await self._stop(args["client"])
            case "crash":
                await self._crash(args["client"])
            case "send":
                self._sends.append(asyncio.create_task(self._send(args)))
            case "broker_crash":
                await asyncio.to_thread(self._system.crash_broker, args["broker"])
            case "broker_restart":
                await asyncio.to_thread(self._system.restart_broker, args["broker"])
            case other:
                raise UsageError(f"the action {other!r} needs a simulated target or a chaos backend")

    async def _until(self, at_ms: int) -> None:
        await asyncio.sleep(max(0.0, self._began_s + at_ms / 1000 - now_s()))

    def _start(self, name: str) -> None:
        if name in self._nodes:
            return
        client = self._clients[name]
        journal = self._journals[name] = Journal(self._folder, name)
        if client.kind == "consumer":
            node = consumer_node(self._plan, client, self._system.namesrv, journal, self._began_s)
        else:
            config = ProducerConfig.from_plan(
                self._plan.config,
                client_id=name,
                group=client.group or "inorder-producers",
                topics=tuple(topic.name for topic in self._plan.topology.topics),
                name_servers=(self._system.namesrv,),
            )
            node = ClientNode(Producer(config), recorder=journal)
        self._nodes[name] = node
        node.start()

    async def _stop(self, name: str) -> None:
        node = self._nodes.pop(name, None)
        if node is not None:
            await node.shutdown(_SHUTDOWN_S)
            self._journals.pop(name).close()

    async def _crash(self, name: str) -> None:
        node = self._nodes.pop(name, None)
        if node is not None:
            await node.kill()
            self._journals.pop(name).close()

    async def _send(self, args: object) -> None:
        assert isinstance(args, dict)
        node = self._nodes.get(args["client"])
        if node is None:
            return
        for _ in range(args["count"]):
            self._messages += 1
            key = args.get("key")
            seq = None
            if key is not None:
                seq = self._key_seq[key] = self._key_seq.get(key, 0) + 1
            message_id = f"{self._prefix}m{self._messages}"
            body = message_id.encode()
            await node.send(SendMessage(message_id, args["topic"], body, key, seq, None, message_id))


