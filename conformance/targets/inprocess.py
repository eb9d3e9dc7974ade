"""A target whose clients are coroutines of this process: for a queue that is a Python library, and for toys.

A target says how a message is sent, and how a client consumes a lane; that it starts, leaves and is killed is here.
"""

from __future__ import annotations

import asyncio
import itertools
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from conformance.targets.base import Run, Target, operation
from specs.errors import UsageError
from specs.faults import crash, pause
from specs.history.journal import Journal
from specs.plan.ability import Ability
from specs.plan.messages import PlannedMessage
from specs.plan.plan import Action
from specs.vocabulary import Kind, Lane, Outcome


class InProcess(Target):
    """`prepare` of a subclass calls this one's first. log: where everything is written down.

    A client that comes again under its name counts a message's tries anew, like a process that was started again.
    A subclass that names PAUSE_CLIENT has its clients stand still in their calls; that others get their lanes meanwhile
    is its own affair, and that who wakes up looks whether a lane is still its own.
    """

    abilities = frozenset({Ability.READ, Ability.CRASH_CLIENT, Ability.OWN_SYSTEM})
    run: Run
    log: Journal

    async def prepare(self, run: Run) -> None:
        self.run, self.log = run, run.journal(self.name.partition(":")[0])
        self._tasks: dict[str, list[asyncio.Task[None]]] = {}
        self._leaving: set[str] = set()
        self._awake: dict[str, asyncio.Event] = {}
        self._times: Counter[tuple[str, int]] = Counter()
        self._incarnations = itertools.count(1)

    @abstractmethod
    async def send(self, me: str, message: PlannedMessage) -> dict[str, Any]:
        """Send one message; the columns that are known once it is stored (`queue_id`, `queue_offset`, `broker`)."""

    @abstractmethod
    async def consume(self, me: str, lane: Lane) -> None:
        """Consume a lane while `is_wanted(me)`. Cancelled where the client is killed."""

    def is_wanted(self, me: str) -> bool:
        """Is the client to go on, or to finish what it does and leave?"""
        return me not in self._leaving

    @contextmanager
    def working(self, me: str, lane: Lane) -> Iterator[dict[str, Any]]:
        """The client works on the lane meanwhile; the columns that its work has. Who is killed tells no end."""
        columns = {"client_id": me, **lane._asdict()}
        columns["incarnation"] = f"{me}#{next(self._incarnations)}"
        self.log.note(Kind.ADD, Outcome.OK, columns)
        yield columns
        self.log.note(Kind.DROP, Outcome.OK, columns)

    async def call(
        self, at_work: dict[str, Any], lane: Lane, message: PlannedMessage, offset: int
    ) -> Outcome:
        """Call the listener with a message, as the plan's rules say, and write that down; how it ended."""
        me = at_work["client_id"]
        await self._awake[me].wait()
        self._times[me, message.number] += 1
        tries = [self._times[me, message.number]]
        rule = self.run.listener.decide(self.run.now_ms, me, lane, [message], tries)
        columns = {**message.columns(), **at_work, "queue_offset": offset}
        columns["reconsume_times"] = self._times[me, message.number] - 1
        with operation(self.log, Kind.DELIVER, columns) as told:
            await asyncio.sleep(rule.duration_ms / 1000)
            await self._awake[me].wait()
            told |= {"outcome": rule.outcome, "commit_mode": "auto"}
        return rule.outcome

    async def start(self, party: str) -> None:
        client = self.run.client(party)
        self._leaving.discard(party)
        self._awake[party] = asyncio.Event()
        self._awake[party].set()
        self._times = Counter({key: n for key, n in self._times.items() if key[0] != party})
        lanes = [
            Lane(client.group, *queue)
            for queue, group in self.queues(self.run)
            if group is None and queue.topic in client.topics
        ]
        self._tasks[party] = [asyncio.create_task(self.consume(party, lane)) for lane in lanes]

    async def stop(self, party: str) -> None:
        self._leaving.add(party)
        await asyncio.gather(*self._tasks.pop(party, ()))

    async def act(self, action: Action) -> None:
        if action.do == crash.VERB:
            await self._kill(action.args["client"])
        elif action.do == pause.VERB and Ability.PAUSE_CLIENT in self.abilities:
            self._awake[action.args["node"]].clear()
        elif action.do == pause.HEALED_BY and Ability.PAUSE_CLIENT in self.abilities:
            self._awake[action.args["node"]].set()
        elif action.do == "send" and not action.args.get("batch"):
            for message in self.run.messages.of(action.args):
                row = {**message.columns(), "client_id": action.args["client"], "attempt": 1}
                with operation(self.log, Kind.SEND, row) as told:
                    told |= await self.send(action.args["client"], message)
        else:
            raise UsageError(f"the target {self.name} can't do {action.do!r}")

    async def close(self) -> None:
        for party in list(self._tasks):
            await self._kill(party)

    async def _kill(self, party: str) -> None:
        tasks = self._tasks.pop(party, [])
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
