"""The brokers of a run on sockets: its topics made, its queues read to their end, its brokers killed and filled.

What all targets share whose clients work on a cluster that speaks RocketMQ's protocol, whoever these clients are.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any

from conformance.answers import NotTold, Told, ask_again
from conformance.targets.base import CutShort, Run
from conformance.targets.systems import System, has_topic, wait_for_route
from conformance.waiting import wait_until
from conformance.wire.client import DRAIN_GROUP, Shown, WireClient, cut_short
from reference_impl.protocol.bodies import decode_table
from reference_impl.protocol.codes import RequestCode, ResponseCode
from reference_impl.protocol.command import Command
from reference_impl.shell.client import SyncClient
from reference_impl.shell.errors import RequestFailed
from specs.errors import TargetMisbehaved, Unavailable, UsageError
from specs.faults import (
    HEALINGS,
    broker_crash,
    clock_step,
    disk_full,
    name_server_crash,
    pause,
    power_cut,
    slow_cpu,
    slow_disk,
    upgrade,
)
from specs.history.evidence import change_of
from specs.history.journal import Journal
from specs.plan.ability import Ability
from specs.plan.plan import Action
from specs.plan.rig import NAME_SERVER
from specs.vocabulary import Kind, Lane, Level, Outcome, Queue, dead_letter_topic, retry_topic

VERSION_DEADLINE_S = 30.0
_NAME_SERVER_DEAD = (NAME_SERVER, name_server_crash.HEALED_BY)


class Brokers:
    """The system of one run while it is open. All methods wait for what they ask; call them in a thread.

    Everything that it asks a broker for is a row of the journal `wire` (level `wire`), but for what the store says of a
    group: that is a witness's word, and the run's to write down.
    """

    def __init__(
        self, run: Run, system: AbstractContextManager[System], *, lent: bool = False
    ) -> None:
        """Enter the system and make the plan's topics on its first broker, and its groups that nobody joins.

        Where the plan cuts the power, what is there before anybody is at work survives it. lent: the system runs
        already, on a disk of its own where its power is to be cut.

        TargetMisbehaved when a topic is refused, UsageError for a plan of more brokers than there are, and for one
        whose topics or groups are there already: they may be somebody's.
        """
        self._run = run
        self._stack = ExitStack()
        self._groups: dict[Queue, str | None] = {}
        self._readers: dict[str, WireClient] = {}
        self._broken: dict[tuple[str, str], None] = {}
        self._pauses: dict[str, Journal] = {}
        self._one_at_a_time = threading.RLock()
        self._stepped_ms: dict[str, int] = {}
        self._lent = lent
        needs = run.plan.asks_of_brokers()
        cuts = Ability.CUT_POWER in needs
        try:
            if isinstance(system, System):
                system.make_ready(needs)
            elif cuts and not lent:
                raise UsageError(
                    "the system runs already, so nobody can cut the power of its store"
                )
            self.system = self._stack.enter_context(system)
            self.first = min(self.system.brokers)
            self._names = self._named(run.plan.topology.brokers)
            self._journal = run.journal("wire", level=Level.WIRE)
            setup = self.client("setup")
            try:
                self._make(setup)
            finally:
                setup.close()
            if cuts:
                self.system.keep()
        except BaseException:
            self._stack.close()
            raise

    def _named(self, planned: Sequence[str]) -> dict[str, str]:
        """The plan's names for brokers, each with the system's: a plan is written before anybody knows these."""
        there = sorted(self.system.brokers)
        if len(planned) > len(there):
            raise UsageError(
                f"the plan has {len(planned)} brokers, the target has {len(there)}; name fewer in its topology"
            )
        others = [name for name in there if name not in planned]
        return {name: name if name in there else others.pop(0) for name in planned}

    def _make(self, setup: WireClient) -> None:
        topology = self._run.plan.topology
        self._refuse_what_is_there(setup)
        self._make_topics(setup)
        answer = setup.pulled(Queue(topology.topics[0].name, self.first, 0))
        if answer.code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST:
            raise UsageError(
                f"the broker {self.first} knows no group that nobody made, so that ours can't consume: "
                f"set autoCreateSubscriptionGroup=true there, or make {', '.join((DRAIN_GROUP, *topology.groups))}"
            )
        joined = {client.group for client in self._run.plan.clients}
        for group in topology.groups:
            if group not in joined:  # a commit needs its group
                setup.heartbeat(group, topology.topics[0].name)

    def _make_topics(self, setup: WireClient, attributes: str | None = None) -> None:
        for topic in self._run.plan.topology.topics:
            make_topic(setup, topic.name, topic.queues, self.system.namesrv, attributes)

    def _refuse_what_is_there(self, setup: WireClient) -> None:
        topology = self._run.plan.topology
        there = [f"the topic {topic.name}" for topic in topology.topics if self._has(topic.name)]
        for group in topology.groups:
            living = setup.living(group)
            if isinstance(living, NotTold):
                raise Unavailable(f"{living.why}, so nobody knows whether it is somebody's")
            there += [f"the group {group}"] if living else []
        if there:
            raise UsageError(
                f"{there[0]} is on the brokers already, and may be somebody's: nothing was touched; "
                f"give the plan's topics, groups and clients names of their own (a prefix for all of them)"
            )

    def _has(self, topic: str) -> bool:
        return has_topic(self.system.namesrv, topic)

    @property
    def abilities(self) -> frozenset[Ability]:
        """What can be done to the brokers."""
        return self.system.abilities | {Ability.READ, Ability.PROGRESS}

    def client(self, client_id: str) -> WireClient:
        """A raw client of the first broker."""
        return WireClient(client_id, self.system.brokers[self.first], self.first, self._journal)

    @property
    def names(self) -> frozenset[str]:
        """By which brokers are known: the plan's names, and the system's."""
        return frozenset({*self._names, *self.system.brokers})

    def name(self, planned: str) -> str:
        """What the system calls a broker of the plan, or of its own. UsageError for an unknown one."""
        name = self._names.get(planned, planned)
        if name not in self.system.brokers:
            raise UsageError(f"{planned} is no broker of the target")
        return name

    def address(self, planned: str) -> str:
        """Where it listens."""
        return self.system.brokers[self.name(planned)]

    def upstream(self, planned: str) -> str:
        """Where it listens itself, past any proxy."""
        return self.system.upstreams[self.name(planned)]

    # ------------------------------------------------------------ what they hold

    def queues(self) -> Sequence[tuple[Queue, str | None]]:
        """What is read at the end of the run, with the group whose dead letters a queue holds.

        Dead letters come last: a copy names the broker's id of what it was made from; who made that is known once it
        was read.
        """
        queues: list[tuple[Queue, str | None]] = [(queue, None) for queue in self._planned()]
        queues += [
            (Queue(dead_letter_topic(group), self.first, 0), group)
            for group in self._run.plan.topology.groups
        ]
        self._groups = dict(queues)
        return queues

    def read(self, queue: Queue, shown: Shown | None = None) -> Sequence[Mapping[str, Any]]:
        """All messages of a queue in their order, as columns of READ rows; none of a queue that is not there.

        shown: as `WireClient.messages` takes it. CutShort for a queue of which the broker gives less than it says to
        hold, or does not say how much that is.
        """
        reader = self._reader("drain")
        end = ask_again(lambda: reader.max_offset(queue))
        if isinstance(end, NotTold):
            raise CutShort(end.why)
        if end is None:
            return []
        found = list(reader.messages(queue, end, self._groups.get(queue), shown))
        upto = found[-1]["queue_offset"] + 1 if found else 0
        if upto < end:
            raise CutShort(cut_short(queue, end, upto), found)
        return found

    def progress(self, group: str, queue: Queue) -> Told[int]:
        """What the store says that a group has reached in a queue; None where it says that there is nothing."""
        witness = self._reader("witness")
        return ask_again(lambda: witness.stored(Lane(group, *queue)))

    def _planned(self) -> list[Queue]:
        return [
            Queue(topic.name, self.first, number)
            for topic in self._run.plan.topology.topics
            for number in range(topic.queues)
        ]

    def all_is_stored(self) -> bool | NotTold:
        """Is every queue of the groups that have members consumed to its end, and stored so?"""
        asking = self._reader("look")
        clients = self._run.plan.clients
        for group in {each.group for each in clients if each.kind == "consumer"}:
            # There is no retry topic where nothing failed.
            for queue in (*self._planned(), Queue(retry_topic(group), self.first, 0)):
                end = asking.max_offset(queue)
                if isinstance(end, NotTold):
                    return end
                if not end:
                    continue
                _, stored = asking.fetch(Lane(group, *queue))
                if isinstance(stored, NotTold):
                    return stored
                if stored is None or stored < end:
                    return False
        return True

    def _reader(self, client_id: str) -> WireClient:
        if client_id not in self._readers:
            self._readers[client_id] = self.client(client_id)
            self._stack.callback(self._readers[client_id].close)
        return self._readers[client_id]

    # ------------------------------------------------------------ what befalls them

    def act(self, action: Action) -> bool:
        """Do what an action does to a broker. Was it one of these? UsageError for an unknown broker."""
        name = action.args.get("broker") or action.args.get("node", "")
        match action.do:
            case name_server_crash.VERB:
                self.crash_name_server()
            case name_server_crash.HEALED_BY:
                self.restart_name_server()
            case pause.VERB if name in self.names:
                self.pause(name)
            case slow_cpu.VERB if name in self.names:
                self.pause(name, percent=action.args["percent"])
            case pause.HEALED_BY if name in self.names:
                self.resume(name)
            case broker_crash.VERB:
                self.crash(name)
            case broker_crash.HEALED_BY:
                self.start(name)
            case power_cut.VERB:
                self.cut_power(name, synced=action.args.get("synced", False))
            case upgrade.VERB | upgrade.HEALED_BY:
                newer = action.do == upgrade.VERB and not action.args.get("same", False)
                self.exchange(name, newer=newer)
            case clock_step.VERB if name in self.names:
                self.step_clock(name, action.args["ms"])
            case disk_full.VERB | disk_full.HEALED_BY:
                self.fill(name, full=action.do == disk_full.VERB)
            case slow_disk.VERB | slow_disk.HEALED_BY:
                self.slow(name, action.args.get("ms", 0))
            case _:
                return False
        return True

    def crash_name_server(self) -> None:
        """Kill the name server. Nothing, where it is dead."""
        with self._one_at_a_time:
            if _NAME_SERVER_DEAD not in self._broken:
                self._broken[_NAME_SERVER_DEAD] = None
                self.system.crash_name_server()

    def restart_name_server(self) -> None:
        """Start it again. Nothing, where it lives."""
        with self._one_at_a_time:
            if _NAME_SERVER_DEAD in self._broken:
                self.system.restart_name_server()
                del self._broken[_NAME_SERVER_DEAD]

    def pause(self, planned: str, *, percent: int = 0) -> None:
        """Stop a broker between two instructions. Nothing, where it is dead or stands. UsageError for an unknown one.

        The row lasts from the order to stop until it goes on. percent: so much of a core it keeps, going on and
        stopping turn by turn.
        """
        name = self.name(planned)
        with self._one_at_a_time:
            if self._is_dead(name) or name in self._pauses:
                return
            self._broken[name, pause.HEALED_BY] = None
            journal = self._pauses[name] = self._run.journal(name)
            journal.begin(name, Kind.PAUSE, {"broker": name})
            if percent:
                self.system.starve_broker(name, percent)
            else:
                self.system.pause_broker(name)

    def resume(self, planned: str) -> None:
        """It goes on. Nothing, where it does not stand. UsageError for an unknown one."""
        name = self.name(planned)
        with self._one_at_a_time:
            if name not in self._pauses:
                return
            self.system.resume_broker(name)
            with self._pauses.pop(name) as journal:
                journal.end(name, Outcome.OK)
            del self._broken[name, pause.HEALED_BY]

    def crash(self, planned: str) -> None:
        """Kill a broker; its store stays. Nothing, where it is dead. UsageError for an unknown one."""
        name = self.name(planned)
        with self._one_at_a_time:
            if self._is_dead(name):
                return
            self.resume(name)
            self._broken[name, broker_crash.HEALED_BY] = None
            self.system.crash_broker(name)
            columns = {"broker": name, "detail": "killed by the harness"}
            with self._run.journal(name) as journal:
                journal.note(Kind.CRASH, Outcome.OK, columns)

    def cut_power(self, planned: str, *, synced: bool = False) -> None:
        """Kill a broker with its machine. synced: nothing is lost. Nothing, where it is dead.

        Its process stands still while the disk is copied, and syncs nothing then: a row of its own says so.
        UsageError for an unknown one.
        """
        name = self.name(planned)
        with self._one_at_a_time:
            if self._is_dead(name):
                return
            self.resume(name)
            self._broken[name, power_cut.HEALED_BY] = None
            with self._run.journal(name) as journal:
                journal.begin(name, Kind.PAUSE, {"broker": name})
                lost = self.system.cut_power(name, synced=synced)
                journal.end(name, Outcome.OK)
                told = f"{lost} bytes that were written and not synced are gone" if lost else None
                columns = {"broker": name, "detail": "power cut by the harness", "view": told}
                journal.note(Kind.CRASH, Outcome.OK, {k: v for k, v in columns.items() if v})

    def exchange(self, planned: str, *, newer: bool) -> None:
        """End a broker in good order, and start another version on its store, or its own.

        The row lasts from when the one is gone until the other has said its version. Nothing, where it is dead.
        UsageError for an unknown broker.
        """
        name = self.name(planned)
        with self._one_at_a_time:
            if self._is_dead(name):
                return
            self.resume(name)
            before = self.version(name)
            self.system.end_broker(name)
            with self._run.journal(name) as journal:
                columns = {"broker": name, "detail": "ended in good order by the harness"}
                journal.begin(name, Kind.CRASH, columns)
                self.system.begin_broker(name, newer=newer)
                journal.end(name, Outcome.OK, {"view": change_of(before, self.version(name))})

    def _is_dead(self, name: str) -> bool:
        return (name, broker_crash.HEALED_BY) in self._broken

    def version(self, planned: str) -> str:
        """What a broker answers to the question for its version: one that has just begun may have to be asked again.

        TargetMisbehaved where it does not say it within `VERSION_DEADLINE_S`.
        """
        address, command = self.upstream(planned), Command(RequestCode.GET_BROKER_RUNTIME_INFO)
        said = ""

        def says_it() -> bool:
            nonlocal said
            try:
                answer = client.call(address, command)
            except RequestFailed:
                return False
            if answer.code == ResponseCode.SUCCESS:
                said = decode_table(answer.body).get("brokerVersionDesc", "")
            return bool(said)

        with SyncClient() as client:
            if not wait_until(says_it, VERSION_DEADLINE_S):
                raise TargetMisbehaved(f"the broker {planned} does not say its version")
        return said

    def start(self, planned: str) -> None:
        """Start a broker that was killed. Nothing, where it lives. UsageError for an unknown one."""
        name = self.name(planned)
        with self._one_at_a_time:
            if self._is_dead(name):
                self.system.restart_broker(name)
                del self._broken[name, broker_crash.HEALED_BY]

    def fill(self, planned: str, *, full: bool) -> None:
        """A broker's disk has no more room, or has room again. UsageError for an unknown one."""
        name = self.name(planned)
        if full:
            self._broken[name, disk_full.HEALED_BY] = None
        self.system.fill_disk(name, full=full)
        if not full:
            self._broken.pop((name, disk_full.HEALED_BY), None)

    def slow(self, planned: str, ms: int) -> None:
        """Each sync of a broker's disk takes so much longer; 0: as long as ever. UsageError for an unknown one."""
        name = self.name(planned)
        self.system.slow_disk(name, ms)
        if ms:
            self._broken[name, slow_disk.HEALED_BY] = None
        else:
            self._broken.pop((name, slow_disk.HEALED_BY), None)

    def step_clock(self, planned: str, ms: int) -> None:
        """A broker's wall clock is set by so much. UsageError for an unknown one."""
        name = self.name(planned)
        self.system.step_clock(name, ms)
        self._stepped_ms[name] = self._stepped_ms.get(name, 0) + ms

    def heal(self) -> None:
        """Who was killed lives again, who stands still goes on, whose disk was full has room, and no disk is slow."""
        for name, verb in list(self._broken):
            self.act(Action(0, verb, dict.fromkeys(HEALINGS[verb].nodes, name)))

    def close(self) -> None:
        """Leave the system, with the wall clocks of one that stays. May be called again."""
        if self._lent:
            for name, ms in self._stepped_ms.items():
                self.system.step_clock(name, -ms)
        self._stepped_ms.clear()
        self._stack.close()


def make_topic(
    client: WireClient, topic: str, queues: int, namesrv: str, attributes: str | None = None
) -> None:
    """Create a topic on the client's broker, and wait until its route leads there. TargetMisbehaved when refused.

    attributes: of the topic, as `+message.type=FIFO`. UsageError when it is not ours to do.
    """
    answer = client.create_topic(topic, queues, attributes)
    if answer.code == ResponseCode.NO_PERMISSION:
        raise UsageError(
            f"the broker {client.broker_name} lets us create no topic ({answer.remark}): a run works on topics of its "
            f"own, so its access rules must allow UPDATE_AND_CREATE_TOPIC"
        )
    if answer.code != 0:
        raise TargetMisbehaved(
            f"the broker did not create {topic}: code {answer.code} {answer.remark}"
        )
    wait_for_route(namesrv, topic, client.broker_name)
