"""Our own clients on sockets, driven by a plan: what a plan says about them, done in real time.

A listener decides by the plan's rules, as the simulated world's does. Every client has a journal of its own in
the run's folder, so that one that is killed leaves what it began.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Hashable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from conformance.targets.systems import System
from conformance.waiting import now_s
from conformance.wire.stalls import Stalls
from reference_impl.core.consumer.broadcast import OffsetFile
from reference_impl.core.io import SendMessage, Transaction
from reference_impl.shell.node import ClientNode
from reference_impl.shell.planned import client_node, find_client
from reference_impl.sim.prober import Ask
from specs.errors import UsageError
from specs.faults import perform
from specs.history.journal import Journal
from specs.plan.ability import Ability
from specs.plan.plan import Action, Plan
from specs.plan.rig import PartialRig
from specs.vocabulary import Kind, Outcome, Queue

_SHUTDOWN_S = 30.0
_HELD_LONGER_MS = 8_000
"""Apache's broker looks every 5 s for pulls whose time is up (PullRequestHoldService); the rest is for a busy host."""
_PROBES = {
    "probe_lock": Kind.LOCK,
    "probe_unlock": Kind.UNLOCK,
    "probe_offset": Kind.FETCH_OFFSET,
    "probe_commit": Kind.COMMIT,
    "reset": Kind.RESET,
}
"""What a raw client of the plan is asked to do. It is there from its first question on."""


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


class PlanRunner:
    """Does a plan's actions on a system, at their times. prefix: makes message ids unique among runs."""

    def __init__(self, plan: Plan, system: System, folder: Path, prefix: str) -> None:
        self._plan = plan
        self._system = system
        self._folder = folder
        self._prefix = prefix
        self._nodes: dict[str, ClientNode] = {}
        self._journals: dict[str, Journal] = {}
        self._lives: dict[str, int] = {}
        self._sends: list[asyncio.Task[None]] = []
        self._offset_files: dict[
            str, OffsetFile
        ] = {}  # of broadcast consumers; they outlive a process
        self._messages = 0
        self._key_seq: dict[str, int] = {}
        self._began_s = now_s()

    def at_work(self) -> Collection[str]:
        """The clients that are in this process at the moment."""
        return self._nodes

    async def all_sent(self) -> None:
        """Until every send that was asked for is over."""
        await asyncio.gather(*self._sends)

    async def end(self) -> None:
        """Stop whoever is still at work."""
        for name in list(self._nodes):
            await self._stop(name)

    async def run(self, at_the_end: Callable[[], object] | None = None) -> None:
        """Do everything, then stop every client in good order.

        at_the_end: is called, in a thread, when all is done and everybody is still at work; then they all vanish
        without a further word, so that nothing comes after what it found.
        """
        self._began_s = now_s()
        stalls = asyncio.create_task(Stalls(self._folder, self.at_work).watch())
        try:
            for action in self._plan.actions:
                await self._until(action.at_ms)
                await self.act(action)
            await self._until(self._plan.until_ms)
            await self.all_sent()
            if at_the_end is not None:
                await asyncio.to_thread(at_the_end)
                await self._vanish()
        finally:
            await self.end()
            stalls.cancel()
            await asyncio.wait([stalls])

    async def _vanish(self) -> None:
        for name in list(self._nodes):
            self._journals.pop(name).close()
            await self._nodes.pop(name).kill()

    async def act(self, action: Action) -> None:
        """One action. UsageError for a fault that needs an ability which the system doesn't give.

        A fault is done in a thread: it may take a broker's time to start, and our clients go on meanwhile.
        """
        args = action.args
        match action.do:
            case "start":
                self._start(args["client"])
            case "stop":
                await self._stop(args["client"])
            case "send" | "send_half":
                self._sends.append(asyncio.create_task(self._send(args)))
            case do if do in _PROBES:
                self._probe(_PROBES[do], args)
            case do:
                rig = _Rig(self, asyncio.get_running_loop())
                if not await asyncio.to_thread(perform, rig, do, args):
                    raise UsageError(f"the action {do!r} is none that clients on sockets can do")

    async def _until(self, at_ms: int) -> None:
        await asyncio.sleep(max(0.0, self._began_s + at_ms / 1000 - now_s()))

    def _start(self, name: str) -> None:
        if name in self._nodes:
            return
        journal = self._journals[name] = Journal(self._folder, name)
        life = self._lives[name] = self._lives.get(name, 0) + 1
        recorder = OneLife(journal, name, life)
        file = self._offset_files.setdefault(name, {})
        node = self._nodes[name] = client_node(
            self._plan,
            name,
            self._system.namesrv,
            recorder,
            self._began_s,
            file,
            held_longer_ms=_HELD_LONGER_MS,
        )
        node.start()

    async def _stop(self, name: str) -> None:
        node = self._nodes.pop(name, None)
        if node is not None:
            if find_client(self._plan, name).kind == "prober":  # it knows no good order
                await node.kill()
            else:
                await node.shutdown(_SHUTDOWN_S)
            self._journals.pop(name).close()

    async def _restart(self, name: str) -> None:
        self._start(name)

    async def _crash(self, name: str) -> None:
        node = self._nodes.pop(name, None)
        if node is not None:
            await node.kill()
            journal = self._journals.pop(name)
            group = find_client(self._plan, name).group or None
            journal.note(Kind.CRASH, Outcome.OK, {"client_id": name, "group": group})
            journal.close()

    def _probe(self, kind: Kind, args: Mapping[str, Any]) -> None:
        broker = args["broker"]
        address = self._system.brokers.get(broker)
        if address is None:
            raise UsageError(f"there is no broker {broker!r} to be asked")
        self._start(args["client"])
        numbers = args.get("queues", [args.get("queue", 0)])
        queues = tuple(Queue(args["topic"], broker, number) for number in numbers)
        ask: Any = Ask(kind, args["group"], address, queues, args.get("offset", 0))
        self._nodes[args["client"]].post(ask)

    async def _send(self, args: Mapping[str, Any]) -> None:
        node = self._nodes.get(args["client"])
        if node is None:
            return
        batch = bool(args.get("batch"))
        messages = [
            self._message(args, None if batch else args.get("key")) for _ in range(args["count"])
        ]
        if batch:
            messages = [replace(messages[0], more=tuple(messages[1:]))]
        for message in messages:
            await node.send(message)

    def _message(self, args: Mapping[str, Any], key: str | None) -> SendMessage:
        """The next message of an action."""
        self._messages += 1
        seq = None
        level = args.get("delay_level")
        transaction = Transaction(args["ends"], args["checked"]) if "ends" in args else None
        if key is not None and not level and transaction is None:
            seq = self._key_seq[key] = self._key_seq.get(key, 0) + 1
        message_id = f"{self._prefix}m{self._messages}"
        body = message_id.encode()
        return SendMessage(
            message_id,
            args["topic"],
            body,
            key,
            seq,
            args.get("tags"),
            message_id,
            level,
            transaction=transaction,
        )


class _Rig(PartialRig):
    """What can be done to our own clients, which live in the runner's loop, and to the system's brokers."""

    def __init__(self, runner: PlanRunner, loop: asyncio.AbstractEventLoop) -> None:
        self._runner = runner
        self._system = runner._system
        self._loop = loop
        self.abilities = {Ability.CRASH_CLIENT, *self._system.abilities}
        self.brokers = self._system.brokers

    def kill(self, node: str, *, silent: bool = False) -> None:
        if silent:
            raise UsageError(
                "a client on sockets can't die without its connections being seen to close"
            )
        if node not in self.brokers:
            self._in_the_loop(self._runner._crash(node))
            return
        self._system.crash_broker(node)
        with Journal(self._runner._folder, node) as journal:
            journal.note(
                Kind.CRASH, Outcome.OK, {"broker": node, "detail": "killed by the harness"}
            )

    def revive(self, node: str) -> None:
        if node in self.brokers:
            self._system.restart_broker(node)
        else:
            self._in_the_loop(self._runner._restart(node))

    def fill_disk(self, broker: str) -> None:
        self._system.fill_disk(broker, full=True)

    def make_room(self, broker: str) -> None:
        self._system.fill_disk(broker, full=False)

    def _in_the_loop(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result()
