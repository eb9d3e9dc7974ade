"""Our own clients on sockets, driven by a plan: what a plan says about them, done in real time.

A listener decides by the plan's rules, as the simulated world's does. Every client has a journal of its own in
the run's folder, so that one that is killed leaves what it began.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from conformance.targets.systems import System
from conformance.waiting import now_s
from reference_impl.core.io import SendMessage
from reference_impl.shell.node import ClientNode
from reference_impl.shell.planned import client_node, find_client
from specs.errors import UsageError
from specs.history.journal import Journal
from specs.plan.plan import Action, Plan
from specs.vocabulary import Kind, Outcome

_SHUTDOWN_S = 30.0


class PlanRunner:
    """Does a plan's actions on a system, at their times. prefix: makes message ids unique among runs."""

    def __init__(self, plan: Plan, system: System, folder: Path, prefix: str) -> None:
        self._plan = plan
        self._system = system
        self._folder = folder
        self._prefix = prefix
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
                with Journal(self._folder, args["broker"]) as journal:
                    journal.note(Kind.CRASH, Outcome.OK, {"broker": args["broker"], "detail": "killed by the harness"})
            case "broker_restart":
                await asyncio.to_thread(self._system.restart_broker, args["broker"])
            case other:
                raise UsageError(f"the action {other!r} needs a simulated target or a chaos backend")

    async def _until(self, at_ms: int) -> None:
        await asyncio.sleep(max(0.0, self._began_s + at_ms / 1000 - now_s()))

    def _start(self, name: str) -> None:
        if name in self._nodes:
            return
        journal = self._journals[name] = Journal(self._folder, name)
        node = self._nodes[name] = client_node(self._plan, name, self._system.namesrv, journal, self._began_s)
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
            journal = self._journals.pop(name)
            group = find_client(self._plan, name).group or None
            journal.note(Kind.CRASH, Outcome.OK, {"client_id": name, "group": group})
            journal.close()

    async def _send(self, args: Mapping[str, Any]) -> None:
        node = self._nodes.get(args["client"])
        if node is None:
            return
        batch = bool(args.get("batch"))
        messages = [self._message(args, None if batch else args.get("key")) for _ in range(args["count"])]
        if batch:
            messages = [replace(messages[0], more=tuple(messages[1:]))]
        for message in messages:
            await node.send(message)

    def _message(self, args: Mapping[str, Any], key: str | None) -> SendMessage:
        """The next message of an action."""
        self._messages += 1
        seq = None
        level = args.get("delay_level")
        if key is not None and not level:
            seq = self._key_seq[key] = self._key_seq.get(key, 0) + 1
        message_id = f"{self._prefix}m{self._messages}"
        body = message_id.encode()
        return SendMessage(message_id, args["topic"], body, key, seq, args.get("tags"), message_id, level)
