"""The brokers of a run on sockets: its topics made, its queues read to their end, its brokers killed and filled.

What all targets share whose clients work on a cluster that speaks RocketMQ's protocol, whoever these clients are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any

from conformance.targets.base import Run
from conformance.targets.systems import System, wait_for_route
from conformance.wire.client import WireClient
from specs.errors import TargetMisbehaved, UsageError
from specs.faults import broker_crash, disk_full
from specs.plan.ability import Ability
from specs.plan.plan import Action
from specs.vocabulary import Kind, Level, Outcome, Queue, dead_letter_topic


class Brokers:
    """The system of one run while it is open. All methods wait for what they ask; call them in a thread.

    Everything that it asks a broker for is a row of the journal `wire` (level `wire`).
    """

    def __init__(self, run: Run, system: AbstractContextManager[System]) -> None:
        """Enter the system and make the plan's topics on its first broker. TargetMisbehaved when one is refused."""
        self._run = run
        self._stack = ExitStack()
        self._groups: dict[Queue, str | None] = {}
        self._drain: WireClient | None = None
        try:
            self.system = self._stack.enter_context(system)
            self.first = min(self.system.brokers)
            self._journal = run.journal("wire", level=Level.WIRE)
            setup = self.client("setup")
            try:
                for topic in run.plan.topology.topics:
                    make_topic(setup, topic.name, topic.queues, self.system.namesrv)
            finally:
                setup.close()
        except BaseException:
            self._stack.close()
            raise

    @property
    def abilities(self) -> frozenset[Ability]:
        """What can be done to the brokers."""
        return self.system.abilities | {Ability.READ}

    def client(self, client_id: str) -> WireClient:
        """A raw client of the first broker."""
        return WireClient(client_id, self.system.brokers[self.first], self.first, self._journal)

    def queues(self) -> Sequence[tuple[Queue, str | None]]:
        """What is read at the end of the run, with the group whose dead letters a queue holds.

        Dead letters come last: a copy names the broker's id of what it was made from; who made that is known once it
        was read.
        """
        topology = self._run.plan.topology
        queues: list[tuple[Queue, str | None]] = [
            (Queue(topic.name, self.first, number), None)
            for topic in topology.topics
            for number in range(topic.queues)
        ]
        queues += [
            (Queue(dead_letter_topic(group), self.first, 0), group) for group in topology.groups
        ]
        self._groups = dict(queues)
        return queues

    def read(self, queue: Queue) -> Sequence[Mapping[str, Any]]:
        """All messages of a queue in their order, as columns of READ rows; none of a queue that is not there."""
        if self._drain is None:
            self._drain = self.client("drain")
            self._stack.callback(self._drain.close)
        end = self._drain.max_offset(queue)
        return list(self._drain.messages(queue, end or 0, self._groups.get(queue)))

    def act(self, action: Action) -> bool:
        """Do what an action does to a broker. Was it one of these? UsageError for an unknown broker."""
        name = action.args.get("broker", "")
        match action.do:
            case broker_crash.VERB:
                self._check(name)
                self.system.crash_broker(name)
                columns = {"broker": name, "detail": "killed by the harness"}
                with self._run.journal(name) as journal:
                    journal.note(Kind.CRASH, Outcome.OK, columns)
            case broker_crash.HEALED_BY:
                self.start(name)
            case disk_full.VERB | disk_full.HEALED_BY:
                self._check(name)
                self.system.fill_disk(name, full=action.do == disk_full.VERB)
            case _:
                return False
        return True

    def start(self, name: str) -> None:
        """Start a broker that was killed. UsageError for an unknown one."""
        self._check(name)
        self.system.restart_broker(name)

    def _check(self, name: str) -> None:
        if name not in self.system.brokers:
            raise UsageError(f"{name} is no broker of the target")

    def close(self) -> None:
        """Leave the system. May be called again."""
        self._stack.close()


def make_topic(client: WireClient, topic: str, queues: int, namesrv: str) -> None:
    """Create a topic on the client's broker, and wait until its route leads there. TargetMisbehaved when refused."""
    answer = client.create_topic(topic, queues)
    if answer.code != 0:
        raise TargetMisbehaved(
            f"the broker did not create {topic}: code {answer.code} {answer.remark}"
        )
    wait_for_route(namesrv, topic, client.broker_name)
