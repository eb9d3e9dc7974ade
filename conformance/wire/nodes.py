"""Our own clients on sockets, as a run's plan describes them: started, killed, stopped and asked for sends.

A listener decides by the plan's rules, as the simulated world's does. Each process of a client has a journal of its own
in the run's folder, so that one that is killed leaves what it began.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from conformance.targets.base import Run
from conformance.waiting import now_s
from reference_impl.core.consumer.broadcast import OffsetFile
from reference_impl.core.io import SendMessage, Transaction
from reference_impl.shell.errors import BodyFailed
from reference_impl.shell.node import ClientNode
from reference_impl.shell.planned import client_node
from reference_impl.sim.cluster import Cores
from reference_impl.sim.prober import Ask
from specs.history.journal import Journal
from specs.plan.messages import PlannedMessage
from specs.vocabulary import Kind, Outcome, Queue

_SHUTDOWN_S = 30.0
_SENDS_S = 60.0
_HELD_LONGER_MS = 8_000
"""Apache's broker looks every 5 s for pulls whose time is up (PullRequestHoldService); the rest is for a busy host."""
PROBES = {
    "probe_lock": Kind.LOCK,
    "probe_unlock": Kind.UNLOCK,
    "probe_offset": Kind.FETCH_OFFSET,
    "probe_commit": Kind.COMMIT,
    "reset": Kind.RESET,
}
"""What a raw client of the plan is asked to do. It is there from its first question on."""
SENDS = ("send", "send_half")
CORRECT = Cores()


class OneLife:
    """The journal of one of a client's processes. life: its number.

    A client that comes again under its id is another process, which knows nothing of what the last one did: its work
    on a lane is another incarnation, and not named as one of the last process's.
    """

    def __init__(self, journal: Journal, client_id: str, life: int) -> None:
        self.journal = journal
        self._old = f"{client_id}#"
        self._new = self._old if life == 1 else f"{client_id}.{life}#"

    def begin(
        self, op: Hashable, kind: Kind, fields: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]
    ) -> None:
        self.journal.begin(
            op, kind, self._of_this_life(fields), [self._of_this_life(row) for row in rows]
        )

    def end(
        self,
        op: Hashable,
        outcome: Outcome,
        fields: Mapping[str, Any],
        rows: Sequence[Mapping[str, Any]],
    ) -> None:
        self.journal.end(
            op, outcome, self._of_this_life(fields), [self._of_this_life(row) for row in rows]
        )

    def note(self, kind: Kind, outcome: Outcome, fields: Mapping[str, Any]) -> None:
        self.journal.note(kind, outcome, self._of_this_life(fields))

    def _of_this_life(self, columns: Mapping[str, Any]) -> Mapping[str, Any]:
        named = columns.get("incarnation")
        if named is None or self._new == self._old:
            return columns
        return {**columns, "incarnation": self._new + named.removeprefix(self._old)}


class ClientNodes:
    """The clients of one run. To be used in one event loop, which they live in.

    namesrv: where they ask for routes. cores: their classes, where they are not the correct ones.
    """

    def __init__(self, run: Run, namesrv: str, cores: Cores = CORRECT) -> None:
        self._run = run
        self._namesrv = namesrv
        self._consumer = cores.consumer
        self._producer = cores.producer
        self._nodes: dict[str, ClientNode] = {}
        self._journals: dict[str, Journal] = {}
        self._lives: dict[str, int] = {}
        self._sends: dict[str, set[asyncio.Task[None]]] = {}
        self._offset_files: dict[str, OffsetFile] = {}
        """Of broadcast consumers; they outlive a process."""

    def __iter__(self) -> Any:
        """The names of those that are at work."""
        return iter(tuple(self._nodes))

    def start(self, name: str) -> None:
        """A client of the plan. Nothing for one that is at work; UsageError for an unknown one."""
        if name in self._nodes:
            return
        run = self._run
        run.client(name)
        life = self._lives[name] = self._lives.get(name, 0) + 1
        journal = self._journals[name] = run.journal(name)
        node = self._nodes[name] = client_node(
            run.plan,
            name,
            self._namesrv,
            OneLife(journal, name, life),
            now_s() - run.now_ms / 1000,
            self._offset_files.setdefault(name, {}),
            held_longer_ms=_HELD_LONGER_MS,
            consumer=self._consumer,
            producer=self._producer,
        )
        node.start()

    async def stop(self, name: str) -> None:
        """In good order: what it was asked to send is sent before. Raises BodyFailed for one that broke down."""
        if name not in self._nodes:
            return
        if (sending := self._sends.get(name)) is not None and sending:
            await asyncio.wait(set(sending), timeout=_SENDS_S)
        node = self._nodes.pop(name)
        if self._run.client(name).kind == "prober":  # it knows no good order
            await node.kill()
        else:
            await node.shutdown(_SHUTDOWN_S)
        self._journals.pop(name).close()

    async def kill(self, name: str) -> None:
        """It vanishes without a word."""
        node = self._nodes.pop(name, None)
        if node is not None:
            await node.kill()
            self._journals.pop(name).close()

    async def vanish(self) -> None:
        """All of them do, so that nothing comes any more."""
        for name in self:
            await self.kill(name)

    def check(self) -> None:
        """Raise BodyFailed if one that is at work broke down."""
        for node in self._nodes.values():
            node.check()

    def send(self, args: Mapping[str, Any]) -> None:
        """Begin the sends of an action: one after the other, each acknowledged or given up before the next."""
        name = args["client"]
        node = self._nodes.get(name)
        if node is None:
            return
        made = [_message(each, args) for each in self._run.messages.of(args)]
        if args.get("batch"):
            made = [replace(made[0], more=tuple(made[1:]))]
        task = asyncio.create_task(self._send(name, node, made))
        mine = self._sends.setdefault(name, set())
        mine.add(task)
        task.add_done_callback(mine.discard)

    async def sent(self) -> None:
        """Wait until everything is sent that was asked for."""
        await asyncio.gather(*(task for mine in self._sends.values() for task in mine))

    def probe(self, do: str, args: Mapping[str, Any], broker: str, address: str) -> None:
        """Let a raw client ask a broker, by its name and address in the system."""
        self.start(args["client"])
        numbers = args.get("queues", [args.get("queue", 0)])
        queues = tuple(Queue(args["topic"], broker, number) for number in numbers)
        ask: Any = Ask(PROBES[do], args["group"], address, queues, args.get("offset", 0))
        self._nodes[args["client"]].post(ask)

    async def _send(self, name: str, node: ClientNode, messages: Sequence[SendMessage]) -> None:
        for message in messages:
            try:
                await node.send(message)
            except BodyFailed:
                if self._nodes.get(name) is node:
                    raise
                return  # killed meanwhile: how the send ended, nobody knows


def _message(planned: PlannedMessage, args: Mapping[str, Any]) -> SendMessage:
    return SendMessage(
        planned.message_id,
        planned.topic,
        planned.body,
        planned.sharding_key,
        planned.key_seq,
        planned.tags,
        planned.message_id,
        planned.delay_level,
        transaction=Transaction(args["ends"], args["checked"]) if "ends" in args else None,
        properties=planned.properties,
    )
