"""A driver target whose driver also looks after the queues: it prepares topics, reads them, and says what is stored.

One more process of the driver does that, which is no client of the plan (or the one process that hosts everybody).
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from conformance.answers import NotTold, Told, ask_again
from conformance.drivers.process import DriverProcess, Event
from conformance.drivers.recording import DriverRecorder
from conformance.drivers.target import DriverTarget, columns_of
from conformance.targets.base import CutShort, Run
from specs.errors import DriverBug, UsageError
from specs.vocabulary import Queue

ADMIN = "admin"


class AdminTarget(DriverTarget):
    """A target says how a driver is started (`spawn_driver`); hosts: whether one process is all clients."""

    hosts = False

    def __init__(self) -> None:
        super().__init__()
        self._admin: DriverProcess | None = None
        self._read: dict[str, list[Mapping[str, Any]] | CutShort] = {}
        self._queues: set[Queue] = set()

    @abstractmethod
    def spawn_driver(
        self, name: str, folder: Path, on_event: Callable[[Event], Any]
    ) -> DriverProcess:
        """A driver with its log in the folder, running and not yet greeted."""

    def start_alone(self, name: str, folder: Path) -> DriverProcess:
        """The driver by itself, for whoever tries its manners."""
        return self.spawn_driver(name, folder, ignore)

    def spawn_admin(self, folder: Path, on_event: Callable[[Event], Any]) -> DriverProcess:
        """The one that looks after the queues, likewise."""
        return self.spawn_driver(ADMIN, folder, on_event)

    def spawn(self, name: str, run: Run, on_event: Callable[[Event], Any]) -> DriverProcess:
        return self.spawn_driver(name, run.folder, on_event)

    @property
    def drivers(self) -> Iterator[DriverProcess]:
        if self._admin is not None and not self.hosts:
            yield self._admin
        yield from super().drivers

    @property
    def admin(self) -> DriverProcess:
        if self._admin is None:
            raise UsageError(f"the target {self.name} was not prepared")
        return self._admin

    async def prepare(self, run: Run) -> None:
        await super().prepare(run)
        self._read = {}
        self._queues = {queue for queue, dead in self.queues(run) if dead is None}
        await asyncio.to_thread(self._prepare, run)

    def _prepare(self, run: Run) -> None:
        on_event = self.on_hosted_event if self.hosts else ignore
        self._admin = self.spawn_admin(run.folder, on_event)
        self.hello(self._admin)
        if self.hosts:
            self.hosts_all(self._admin)
        topology = run.plan.topology
        topics = [{"name": topic.name, "queues": topic.queues} for topic in topology.topics]
        self.ask(self._admin, "prepare", topics=topics, groups=list(topology.groups))

    def takes(self, recorder: DriverRecorder, event: Event) -> None:
        """Nobody reads a queue that `prepare` did not name: of what lies there nothing could be judged."""
        for told in event.get("messages", (event,)):
            self._look_at(told, event["event"])
        super().takes(recorder, event)

    def _look_at(self, told: Mapping[str, Any], where: str) -> None:
        """A message, or an event about a queue or without one. A send names its topic in the request alone."""
        if not told.get("broker"):
            return
        topics = [told["topic"]] if "topic" in told else {queue.topic for queue in self._queues}
        place = told["broker"], told["queue_id"]
        if not any(Queue(topic, *place) in self._queues for topic in topics):
            there = sorted({f"{queue.broker}/{queue.queue_id}" for queue in self._queues})
            raise DriverBug(
                f"{where} names the queue {'/'.join(map(str, (*topics, *place)))}, which prepare did not ask for, so "
                f"that nobody would read it and nothing of it be judged; the queues of this run are {', '.join(there)}"
            )

    async def read(self, queue: Queue) -> Sequence[Mapping[str, Any]]:
        """A topic is read once for all its queues, also where that failed: who reads may take away, and what a second
        reading finds then says nothing of what the first one took.
        """
        if queue.topic not in self._read:
            try:
                self._read[queue.topic] = await asyncio.to_thread(self._read_topic, queue.topic)
            except CutShort as cut:
                self._read[queue.topic] = cut
        read = self._read[queue.topic]
        if isinstance(read, CutShort):
            raise CutShort(str(read))
        return [
            columns_of(found)
            for found in sorted(read, key=lambda each: each["queue_offset"])
            if (found["broker"], found["queue_id"]) == (queue.broker, queue.queue_id)
        ]

    def _read_topic(self, topic: str) -> list[Mapping[str, Any]]:
        more = {"group": "inorder-drain", "client": ADMIN, "namesrv": ""}
        answer = self.ask_anything(self.admin, "read", topic=topic, **more)
        if not answer["ok"]:
            raise CutShort(f"{topic} could not be read: {answer['error']}")
        found = list(answer.get("messages", ()))
        for message in found:
            self._look_at(message, "the answer to read")
        return found

    async def progress(self, group: str, queue: Queue) -> Told[int]:
        """What the store says that a group has reached in a queue. The admin is in no group."""
        return await asyncio.to_thread(ask_again, partial(self._reached, group, queue))

    def _reached(self, group: str, queue: Queue) -> Told[int]:
        asked = f"the driver did not say what {group} has reached in {queue}"
        answer = self.ask_anything(self.admin, "progress", group=group, topic=queue.topic)
        if not answer["ok"]:
            return NotTold(f"{asked}: {answer['error']}")
        for found in answer.get("progress", ()):
            if (found["broker"], found["queue_id"]) == (queue.broker, queue.queue_id):
                return None if found["value"] < 0 else int(found["value"])
        return NotTold(f"{asked}: its answer to progress leaves the queue out (-1 is for nothing)")

    async def close(self) -> None:
        admin, self._admin = self._admin, None
        if admin is not None and not self.hosts:
            self._end(admin)
        await super().close()


def ignore(_: Event) -> None:
    """Of a process that is no client of the plan."""
