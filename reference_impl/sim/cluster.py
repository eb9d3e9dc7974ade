"""A simulated cluster: nodes built from a plan, the plan's actions, rest, and the final drain.

    cluster = Cluster(plan, cores)       # name server and brokers run
    cluster.run_until(1_000)
    cluster.perform("start", {"client": "alice"})
    ...
    cluster.settle(plan.settle_ms)       # faults are healed, the dead live again, until nothing happens any more
    cluster.drain()
    rows = cluster.rows()

It is driven by `simulate` from a whole plan, or step by step by a machine that writes the plan as it goes.
An action that does not fit the moment does nothing.

A client's process has an id of its own: `alice`, after a restart `alice.2`, as a RocketMQ client's id names its
process. The history's `process` is the plan's name.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from reference_impl.core import io
from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.config import FIRST, NEXT, BrokerConfig, version_name
from reference_impl.core.broker.log import BrokerStore
from reference_impl.core.consumer import BroadcastConsumer, ConsumerConfig, consumer_class
from reference_impl.core.consumer.broadcast import OffsetFile
from reference_impl.core.consumer.results import SUSPEND_MS_MAX
from reference_impl.core.nameserver import NameServer
from reference_impl.core.producer import Producer, ProducerConfig
from reference_impl.protocol.bodies import SubscriptionGroup, TopicConfig
from reference_impl.protocol.headers import PERM_READ_WRITE
from reference_impl.sim.disks import SYNC_MS, Disks
from reference_impl.sim.drain import drain_broker
from reference_impl.sim.network import LATENCY_MS, Fault, Network, Pair
from reference_impl.sim.node import Node
from reference_impl.sim.prober import Ask, Prober
from reference_impl.sim.time import Timeline
from specs.faults import perform
from specs.history.evidence import change_of
from specs.history.journal import MemoryRecorder
from specs.history.row import Row
from specs.plan.ability import Ability
from specs.plan.listener import Listener
from specs.plan.plan import ClientPlan, ListenerRule, Plan
from specs.plan.rig import NAME_SERVER, TURN_MS, Trouble
from specs.vocabulary import SCHEDULE_TOPIC, Kind, Level, Outcome, Queue, group_of, retry_topic

NAME_SERVER_ADDRESS = "10.0.0.1:9876"
PRODUCER_GROUP = "producers"
LOOK_MS = 500
"""While the cluster settles: how often it is looked at whether anything still happens."""
_PROBES = {"probe_lock": Kind.LOCK, "probe_unlock": Kind.UNLOCK, "probe_offset": Kind.FETCH_OFFSET}
RETRIES_MS = 10_000
"""What the short pauses before requests that are tried again may add up to."""
_ABILITIES = frozenset(Ability) - {Ability.WIRE}
EXCHANGE_MS = 500
"""How long a broker is away that another release is started for."""
CALM_MS = 1_500
"""Nothing is called quiet sooner than this after the last event."""


@dataclass(slots=True)
class _SlowDisk:
    """op: the fault's operation. ms: how much longer a sync takes. syncs: how many have begun meanwhile."""

    op: object
    ms: int
    syncs: int = 0


@dataclass(frozen=True, slots=True)
class Cores:
    """What the nodes run: the reference's own classes, or a mutant's.

    consumer: None for the one that the configuration asks for. prober: made with its client id when the run begins.
    """

    broker: type[Broker] = Broker
    consumer: type[Any] | None = None
    producer: type[Producer] = Producer
    prober: type[Any] = Prober


class Cluster:
    """See the module. message_number: of the last message that was given out to a producer.

    It is the faults' rig (`specs.plan.rig`). verb: of the fault that is being done.

    latency_ms: see `Network`.
    """

    def __init__(
        self,
        plan: Plan,
        cores: Cores | None = None,
        run: str = "simulated",
        latency_ms: int = LATENCY_MS,
    ) -> None:
        self.plan = plan
        self.message_number = 0
        self.verb = ""
        self._cores = cores or Cores()
        self._dice = Random(f"world {plan.seed}")
        self._world(run, latency_ms)
        self._listener = Listener(plan.listener)
        self._disks = Disks(plan.config, plan.seed)
        self._stores: dict[str, BrokerStore] = {
            name: self._disks.first(name) for name in plan.topology.brokers
        }
        self._offset_files: dict[
            str, OffsetFile
        ] = {}  # of broadcast consumers; they outlive a process
        self._addresses: dict[str, str] = {}
        self._clients = {client.id: client for client in plan.clients}
        self._nodes: dict[str, Node] = {}
        self._key_seqs: dict[tuple[str, str], int] = {}
        self._to_send: dict[tuple[str, str, str | None], deque[io.SendMessage]] = {}
        self._chain_of: dict[int, tuple[str, str, str | None]] = {}
        self._calls = 0  # listener calls that run
        self._running: dict[str, int] = {}  # of each client
        self._dead: set[str] = set()  # clients that crashed and were not started again
        self._last_event_ms = (
            0  # when something last happened to a message or a lane, or a suspended one is due
        )
        self._faults = 0
        self._kept_uncommitted = any(
            rule.manual for rule in plan.listener
        )  # a listener may leave messages open
        self._settled = False
        self._set_back_ms = 0
        self._releases: dict[str, int] = {}  # brokers that were exchanged
        self._full: dict[str, object] = {}  # brokers with a full disk, by the fault's operation
        self._slow: dict[str, _SlowDisk] = {}
        self._pauses: dict[str, tuple[object, object]] = {}
        self._held_up: set[str] = set()  # of the starved ones, those for whom something has waited
        self._build()

    # ------------------------------------------------------------ nodes

    def _world(self, run: str, latency_ms: int) -> None:
        """What the nodes live in: time, who writes down what they do, and the network between them."""
        self._timeline = Timeline()
        self._recorder = MemoryRecorder(run, self._timeline.now_us)
        self._network = Network(
            self._timeline, self._dice, self._fault_begins, self._fault_ends, latency_ms
        )

    def _address(self, number: int) -> str:
        """Of the name server (0), and of the brokers from 1 on."""
        return f"10.0.1.{number}:10911" if number else NAME_SERVER_ADDRESS

    def _make_node(self, name: str, address: str, hooks: Mapping[type[Any], Any]) -> Node:
        return Node(name, address, self._timeline, self._network, self._recorder, hooks)

    def _build(self) -> None:
        server = self._node(NAME_SERVER, self._address(0), {})
        self._network.listen(self._address(0), server)
        for number, name in enumerate(self.plan.topology.brokers):
            address = self._addresses[name] = self._address(number + 1)
            broker_hooks = {io.Note: self._broker_noted, io.Flush: self._broker_flushes}
            self._network.listen(address, self._node(name, address, broker_hooks))
        hooks = {
            "consumer": {
                io.CallListener: self._listener_called,
                io.Note: self._consumer_noted,
                io.Stopped: self._stopped,
            },
            "producer": {io.SendDone: self._send_done, io.Stopped: self._stopped},
            "prober": {},
        }
        for number, client in enumerate(self.plan.clients):
            self._node(client.id, f"10.0.2.{number + 1}:50000", hooks[client.kind])
        server.boot(NameServer())
        for name in self.plan.topology.brokers:
            self._boot_broker(name)
        for client in self.plan.clients:
            if client.kind == "prober":
                self._nodes[client.id].boot(self._cores.prober(client.id))

    def _node(self, name: str, address: str, hooks: Mapping[type[Any], Any]) -> Node:
        node = self._make_node(name, address, hooks)
        self._nodes[name] = node
        return node

    def _boot_broker(self, name: str) -> None:
        config = BrokerConfig.from_plan(
            self.plan.config,
            name=name,
            address=self._addresses[name],
            name_servers=(self._address(0),),
            release=self._releases.get(name, FIRST),
        )
        store = self._stores[name]
        joined = {client.group for client in self.plan.clients}
        choices = Random(f"broker {self.plan.seed} {name} {store.epoch}")
        with self._disks.starting(name):
            for topic in self.plan.topology.topics:
                if topic.name not in store.topics:
                    store.put_topic(
                        TopicConfig(topic.name, topic.queues, topic.queues, PERM_READ_WRITE)
                    )
            for group in self.plan.topology.groups:
                if (
                    group not in joined and group not in store.groups
                ):  # nobody comes who would make it
                    store.put_group(SubscriptionGroup(group))
            core = self._cores.broker(config, store, choices)
        self._nodes[name].boot(core)

    def _boot_client(self, client: ClientPlan) -> None:
        node = self._nodes[client.id]
        client_id = self.client_id(client.id, node.life + 1)
        core: Any
        if client.kind == "consumer":
            core = self._consumer(client, client_id)
        else:
            core = self._cores.producer(
                ProducerConfig.from_plan(
                    self.plan.config,
                    client_id=client_id,
                    group=client.group or PRODUCER_GROUP,
                    topics=client.topics,
                    name_servers=(self._address(0),),
                )
            )
        node.boot(core)

    def _consumer(self, client: ClientPlan, client_id: str) -> Any:
        config = ConsumerConfig.from_plan(
            self.plan.config,
            client_id=client_id,
            group=client.group,
            topics=dict.fromkeys(client.topics, self.plan.config.subscription),
            name_servers=(self._address(0),),
        )
        made = self._cores.consumer or consumer_class(config)
        if issubclass(made, BroadcastConsumer):
            return made(config, self._offset_files.setdefault(client.id, {}))
        return made(config)

    def client_id(self, name: str, life: int | None = None) -> str:
        """The id of a client's process: of its present (or last) one, when no number is given."""
        number = self._nodes[name].life if life is None else life
        return name if number <= 1 else f"{name}.{number}"

    # ------------------------------------------------------------ time

    @property
    def now_ms(self) -> int:
        """ms since the run began."""
        return self._timeline.now_ms

    @property
    def events(self) -> int:
        """How much has happened: deliveries of frames, timers, ends of listener calls."""
        return self._timeline.events

    def run_until(self, at_ms: int) -> None:
        """Let everything happen that is due up to and at that time."""
        self._timeline.run_until(at_ms)

    def settle(self, limit_ms: int) -> bool:
        """Heal, start again what died, and let time pass until all is quiet; False when that took too long."""
        self._network.heal_all()
        for name in self._nodes:
            self.resume(name)
        for name in self.plan.topology.brokers:
            self.revive(name)
            self.make_room(name)
            self.quicken_disk(name)
        for client in self.plan.clients:
            node = self._nodes[client.id]
            if client.id in self._dead and not node.alive:
                self.revive(client.id)
        self._last_event_ms = max(
            self._last_event_ms, self.now_ms
        )  # what was long quiet was so for a reason
        end_ms = self.now_ms + limit_ms
        while self.now_ms < end_ms:
            self.run_until(min(self.now_ms + LOOK_MS, end_ms))
            if self.is_quiet:
                self._settled = self._all_is_consumed() or self._is_long_quiet()
                return True
        return False

    @property
    def is_quiet(self) -> bool:
        """Nothing is under way, and all is consumed, or nothing happened for longer than a lane could wait.

        A dead owner's lane waits for the lease, a rebalance and a pull.
        """
        if self._calls or self._chain_of or self.now_ms - self._last_event_ms <= CALM_MS:
            return False
        if any(self._waits_for_its_time(store) for store in self._stores.values()):
            return False
        config = self.plan.config
        if config.message_model == "broadcasting":
            return (
                self._everybody_has_everything()
                or self.now_ms - self._last_event_ms > config.rebalance_ms
            )
        if self._all_is_consumed():
            return True
        if (
            not self._kept_uncommitted
        ):  # then something is stuck, or waits for what died without a word
            return self._is_long_quiet()
        patience_ms = config.broker_lease_ms + config.rebalance_ms + config.long_poll_ms + 2_000
        return self.now_ms - self._last_event_ms > patience_ms

    def _is_long_quiet(self) -> bool:
        """Has nothing happened for longer than all waits of a healthy system, one after the other?

        Until a dead member is forgotten, until the living are members again, a rebalance, a lease that nobody
        renews, a pull that is never answered, and the retries in between. Who waits by a wall clock that was set back
        waits longer by as much.
        """
        config = self.plan.config
        forgotten_ms = config.channel_expiry_ms + min(10_000, config.channel_expiry_ms // 4)
        asked_ms = config.heartbeat_ms + config.rebalance_ms + config.broker_lease_ms
        pulled_ms = max(2 * config.long_poll_ms, 3_000)
        waits_ms = forgotten_ms + asked_ms + pulled_ms + RETRIES_MS
        return self.now_ms - self._last_event_ms > waits_ms + self._set_back_ms

    def _all_is_consumed(self) -> bool:
        """Every queue that a running consumer's group has subscribed to is consumed to its end, and stored so."""
        wanted = {
            (client.group, topic)
            for client in self.plan.clients
            if client.kind == "consumer" and self._nodes[client.id].alive
            for topic in (*client.topics, retry_topic(client.group))
        }
        for name, store in self._stores.items():
            broker = self._nodes[name].core
            if not isinstance(broker, Broker):
                return False
            for (topic, queue_id), queue in store.queues().items():
                for group, subscribed in wanted:
                    if subscribed == topic and queue.max_offset > (
                        broker.parts.offsets.fetch(
                            self._nodes[name].wall_ms, group, topic, queue_id
                        )
                        or 0
                    ):
                        return False
        return True

    def _everybody_has_everything(self) -> bool:
        """As far as its own notes say, each running broadcast consumer has consumed every queue to its end."""
        return all(
            self._offset_files.get(client.id, {}).get(Queue(topic, name, queue_id), 0)
            >= queue.max_offset
            for client in self.plan.clients
            if client.kind == "consumer" and self._nodes[client.id].alive
            for name, store in self._stores.items()
            for (topic, queue_id), queue in store.queues().items()
            if topic in client.topics
        )

    def _waits_for_its_time(self, store: BrokerStore) -> bool:
        levels = range(1, len(self.plan.config.delay_levels.split()) + 1)
        if any(asked == 0 for asked in store.open_halves.values()):
            return True
        return any(
            store.queue(SCHEDULE_TOPIC, n - 1).max_offset > store.delayed_done.get(n, 0)
            for n in levels
        )

    def drain(self) -> None:
        """Read every queue of every broker to its end, dead letters included, while time stands still."""
        for name in self.plan.topology.brokers:
            node = self._nodes[name]
            if isinstance(node.core, Broker):
                drain_broker(node.core, node.wall_ms, self._recorder, settled=self._settled)

    def close(self) -> None:
        """Leave nothing behind; a simulated cluster never does."""

    def rows(self) -> list[Row]:
        """The history so far."""
        return self._recorder.rows()

    # ------------------------------------------------------------ the plan's actions

    def add_rule(self, rule: ListenerRule) -> None:
        """One more rule for the listeners, as if it stood last in the plan."""
        self._kept_uncommitted |= rule.manual
        self._listener.add(rule)

    def perform(self, do: str, args: Mapping[str, Any]) -> None:
        """Do one of `specs.plan.plan.VERBS`, now."""
        if perform(self, do, args):
            return
        match do:
            case "probe_lock" | "probe_unlock" | "probe_offset":
                self._probe(_PROBES[do], args)
            case "probe_commit":
                self._probe(Kind.COMMIT, {**args, "queues": [args["queue"]]})
            case "reset":
                self._probe(Kind.RESET, {**args, "queues": [args["queue"]]})
            case _:
                getattr(self, f"_do_{do}")(**args)

    def node(self, name: str) -> Node:
        """The node of a client, of a broker or of the name server."""
        return self._nodes[name]

    def is_running(self, name: str) -> bool:
        return self._nodes[name].alive

    def is_paused(self, name: str) -> bool:
        return self._nodes[name].paused

    def faults_between(self, a: str, b: str) -> list[Trouble]:
        """The kinds of the faults that the link between two nodes has now."""
        return self._network.faults_between(a, b)

    def has_started(self, name: str) -> bool:
        return self._nodes[name].life > 0

    def _do_start(self, client: str) -> None:
        node = self._nodes[client]
        if not node.life and client in self._clients:
            self._boot_client(self._clients[client])

    def _do_stop(self, client: str) -> None:
        node = self._nodes[client]
        if node.alive and client in self._clients and self._clients[client].kind != "prober":
            node.post(io.Shutdown())

    # ------------------------------------------------------------ what faults are made of (specs.plan.rig)

    @property
    def abilities(self) -> Collection[Ability]:
        return _ABILITIES

    @property
    def brokers(self) -> Collection[str]:
        return self._stores

    def revive(self, node: str) -> None:
        found = self._nodes[node]
        if found.alive:
            return
        if node == NAME_SERVER:
            found.boot(NameServer())
            self._recorder.end(NAME_SERVER, Outcome.OK)
        elif node in self._stores:
            self._boot_broker(node)
        elif node in self._clients and found.life:
            self._dead.discard(node)
            self._boot_client(self._clients[node])

    def kill(self, node: str, *, silent: bool = False) -> None:
        if node == NAME_SERVER:
            self._kill_name_server()
        elif node in self._stores:
            self._kill_broker(node)
        else:
            self._kill_client(node, silent)

    def _kill_client(self, client: str, silent: bool) -> None:
        node = self._nodes[client]
        if not node.alive or client not in self._clients or self._clients[client].kind == "prober":
            return
        self.resume(client)
        self._dead.add(client)
        fields = {"process": client, "client_id": self.client_id(client), "level": Level.CLIENT}
        self._recorder.note(Kind.CRASH, Outcome.OK, {**fields, "wall_us": node.wall_ms * 1000})
        self._fault_note(client)
        self._forget_work(client)
        node.halt(silent=silent)

    def _kill_name_server(self) -> None:
        """The fault's row lasts until it is back."""
        node = self._nodes[NAME_SERVER]
        if node.alive:
            fields = {"level": Level.CLIENT, "process": "harness", "detail": self.verb}
            self._recorder.begin(NAME_SERVER, Kind.FAULT, fields)
            node.halt()

    def cut_power(self, broker: str, *, synced: bool = False) -> None:
        told = None if synced else "its machine lost its power"
        self._kill_broker(broker, synced=synced, view=told)

    def _kill_broker(self, broker: str, *, synced: bool = False, view: str | None = None) -> None:
        node = self._nodes[broker]
        if not node.alive:
            return
        self.resume(broker)
        fields = {"process": broker, "broker": broker, "broker_epoch": self._stores[broker].epoch}
        wall_us = node.wall_ms * 1000
        told = {"view": view} if view is not None else {}
        self._recorder.note(
            Kind.CRASH, Outcome.OK, {**fields, **told, "level": Level.CLIENT, "wall_us": wall_us}
        )
        self._fault_note(broker, Outcome.REFUSED if synced else Outcome.OK)
        node.halt()
        store = self._stores[broker]
        self._stores[broker] = self._disks.after_crash(broker, store, synced=synced)

    def exchange(self, broker: str, *, newer: bool) -> None:
        """It writes down what it knows and leaves; the next one comes once a process would have."""
        node = self._nodes[broker]
        if not node.alive:
            return
        self.resume(broker)
        before, after = self._releases.get(broker, FIRST), NEXT if newer else FIRST
        store = self._stores[broker]
        said = (version_name(self.plan.config.dialect, release) for release in (before, after))
        node.post(io.Shutdown())
        fields = {**self._party(broker), "view": change_of(*said)}
        self._recorder.note(Kind.CRASH, Outcome.OK, fields)
        self._fault_note(broker, Outcome.REFUSED if before == after else Outcome.OK)
        node.halt()
        self._releases[broker] = after
        self._stores[broker] = self._disks.after_crash(broker, store, synced=True)
        self._timeline.after(EXCHANGE_MS, self.revive, broker)

    def fill_disk(self, broker: str) -> None:
        store = self._stores.get(broker)
        if store is None or broker in self._full:
            return
        self._disks.fill(broker, store, full=True)
        store.turned_away = 0
        op = self._full[broker] = ("fault", self._next_fault())
        self._recorder.begin(
            op, Kind.FAULT, {**self._party(broker), "detail": f"{self.verb} {broker}"}
        )

    def make_room(self, broker: str) -> None:
        op = self._full.pop(broker, None)
        if op is not None:
            store = self._stores[broker]
            self._disks.fill(broker, store, full=False)
            self._recorder.end(op, Outcome.OK if store.turned_away else Outcome.REFUSED)

    def slow_disk(self, broker: str, ms: int) -> None:
        """One that is slow already goes on by the new number."""
        if broker not in self._stores:
            return
        self.quicken_disk(broker)
        slow = self._slow[broker] = _SlowDisk(("fault", self._next_fault()), ms)
        fields = {**self._party(broker), "detail": f"{self.verb} {broker} {ms}"}
        self._recorder.begin(slow.op, Kind.FAULT, fields)

    def quicken_disk(self, broker: str) -> None:
        slow = self._slow.pop(broker, None)
        if slow is not None:
            self._recorder.end(slow.op, Outcome.OK if slow.ms and slow.syncs else Outcome.REFUSED)

    def forget_below(self, queue: Queue, offset: int) -> None:
        """The broker's oldest messages go, and it says so, as its retention does; those of one queue only."""
        store = self._stores[queue.broker]
        store.trim(queue.topic, queue.queue_id, offset)
        fields = {
            "process": queue.broker,
            "level": Level.STORE,
            "group": group_of(queue.topic),
            **queue._asdict(),
        }
        kept = store.queue(queue.topic, queue.queue_id).min_offset
        self._recorder.note(
            Kind.TRIM, Outcome.OK, {**fields, "broker_epoch": store.epoch, "value": kept}
        )

    def pause(self, node: str) -> None:
        if self._stands(node):
            self._nodes[node].pause()

    def starve(self, node: str, percent: int) -> None:
        if self._stands(node):
            self._turn(node, percent, self._pauses[node])

    def _turn(self, node: str, percent: int, ops: tuple[object, object]) -> None:
        """A starved process stands still for the rest of its turn; then it goes on for its share of the next."""
        if self._pauses.get(node) is ops and percent < 100:
            self._nodes[node].pause()
            self._timeline.after(TURN_MS * (100 - percent) // 100, self._goes, node, percent, ops)

    def _goes(self, node: str, percent: int, ops: tuple[object, object]) -> None:
        if self._pauses.get(node) is ops:
            if self._nodes[node].waiting:
                self._held_up.add(node)
            self._nodes[node].resume()
            self._timeline.after(TURN_MS * percent // 100, self._turn, node, percent, ops)

    def _stands(self, node: str) -> bool:
        """Write down that it stands still, now and then or all the time, until `resume`. Was it at work as ever?"""
        found = self._nodes[node]
        if not found.alive or node in self._pauses:
            return False
        pause, fault = (Kind.PAUSE, node, self._next_fault()), ("fault", self._next_fault())
        fields = self._party(node)
        self._recorder.begin(pause, Kind.PAUSE, fields)
        self._recorder.begin(fault, Kind.FAULT, {**fields, "detail": f"{self.verb} {node}"})
        self._pauses[node] = (pause, fault)
        return True

    def resume(self, node: str) -> None:
        ops = self._pauses.pop(node, None)
        if ops is None:
            return
        self._recorder.end(ops[0], Outcome.OK)
        waited = self._nodes[node].waiting or node in self._held_up
        self._held_up.discard(node)
        self._recorder.end(ops[1], Outcome.OK if waited else Outcome.REFUSED)
        self._nodes[node].resume()

    def step_clock(self, node: str, ms: int) -> None:
        found = self._nodes[node]
        self._set_back_ms += max(0, -ms)
        self._recorder.note(Kind.CLOCK_STEP, Outcome.OK, {**self._party(node), "value": ms})
        self._fault_note(node, Outcome.OK if ms else Outcome.REFUSED)
        found.skew_ms += ms

    def trouble(
        self,
        kind: Trouble,
        a: str,
        b: str,
        number: int = 0,
        *,
        answer: bool = False,
        error: int = 0,
    ) -> None:
        self._network.inject(kind, a, b, number, answer=answer, error=error)

    def mend(self, a: str, b: str) -> None:
        self._network.heal(a, b)

    # ------------------------------------------------------------ messages and questions

    def _do_send_half(
        self, client: str, topic: str, count: int, ends: str, checked: str, key: str | None = None
    ) -> None:
        self._do_send(client, topic, count, key, transaction=io.Transaction(ends, checked))

    def _do_send(
        self,
        client: str,
        topic: str,
        count: int,
        key: str | None = None,
        *,
        batch: bool = False,
        tags: str | None = None,
        delay_level: int | None = None,
        transaction: io.Transaction | None = None,
    ) -> None:
        """The messages get their numbers in any case, so that they do not depend on who runs.

        A delayed message, or a half one, has no number among those of its key: its place in the queue is decided
        when it is released.
        """
        messages = []
        key = None if batch else key
        for _ in range(count):
            self.message_number += 1
            number = self.message_number
            key_seq = None
            if key is not None and not delay_level and transaction is None:
                key_seq = self._key_seqs[topic, key] = self._key_seqs.get((topic, key), 0) + 1
            body = f"message {number} of the plan".encode()
            message_id = f"m{number}"
            messages.append(
                io.SendMessage(
                    number,
                    topic,
                    body,
                    key,
                    key_seq,
                    tags,
                    message_id=message_id,
                    delay_level=delay_level,
                    transaction=transaction,
                    properties={"number": str(number)},
                )
            )
        if batch and len(messages) > 1:
            messages = [replace(messages[0], more=tuple(messages[1:]))]
        node = self._nodes[client]
        if (
            not node.alive
            or client not in self._clients
            or self._clients[client].kind != "producer"
        ):
            return
        chain = (client, topic, key)
        waiting = self._to_send.setdefault(chain, deque())
        is_idle = not waiting and chain not in self._chain_of.values()
        waiting.extend(messages)
        if is_idle:
            self._send_next(chain)

    def _send_next(self, chain: tuple[str, str, str | None]) -> None:
        waiting = self._to_send[chain]
        if waiting:
            message = waiting.popleft()
            self._chain_of[int(str(message.token))] = chain
            self._nodes[chain[0]].post(message)

    def _probe(self, kind: Kind, args: Mapping[str, Any]) -> None:
        client = self._clients.get(args["client"])
        address = self._addresses.get(args["broker"])
        if client is None or client.kind != "prober" or address is None or not args["queues"]:
            return
        queues = tuple(Queue(args["topic"], args["broker"], number) for number in args["queues"])
        self._nodes[client.id].post(
            Ask(kind, args["group"], address, queues, args.get("offset", 0))
        )

    # ------------------------------------------------------------ what nodes do

    def _listener_called(self, node: Node, call: io.CallListener) -> None:
        self._calls += 1
        self._running[node.name] = self._running.get(node.name, 0) + 1
        rule = self._listener.decide(
            self.now_ms, node.name, call.lane, call.messages, call.delivery
        )
        due_ms = self.now_ms + rule.duration_ms
        if rule.outcome not in (Outcome.SUCCESS, Outcome.COMMIT):
            due_ms += (
                self.plan.config.suspend_ms
                if rule.suspend_ms < 0
                else min(rule.suspend_ms, SUSPEND_MS_MAX)
            )
        self._happens(due_ms)
        returned = io.ListenerReturned(
            call.call_id, rule.outcome, rule.manual, rule.suspend_ms, rule.delay_level
        )
        self._timeline.after(rule.duration_ms, self._listener_returns, node, node.life, returned)

    def _listener_returns(self, node: Node, life: int, returned: io.ListenerReturned) -> None:
        if node.alive and node.life == life:
            self._calls -= 1
            self._running[node.name] -= 1
            node.post(returned)

    def _happens(self, at_ms: int) -> None:
        """Something happens to a message then."""
        self._last_event_ms = max(self._last_event_ms, at_ms)

    def _send_done(self, node: Node, done: io.SendDone) -> None:
        self._happens(self.now_ms)
        chain = self._chain_of.pop(int(str(done.token)), None)
        if chain is not None:
            # As an input of its own: the core is still busy with the one that ended this send.
            self._timeline.after(0, self._send_next_in_life, node, node.life, chain)

    def _send_next_in_life(self, node: Node, life: int, chain: tuple[str, str, str | None]) -> None:
        if node.alive and node.life == life and chain not in self._chain_of.values():
            self._send_next(chain)

    def _stopped(self, node: Node, stopped: io.Stopped) -> None:
        self._timeline.after(0, self._stop_node, node, node.life)

    def _stop_node(self, node: Node, life: int) -> None:
        if node.life == life and node.alive:
            self._forget_work(node.name)
            node.halt()

    def _forget_work(self, name: str) -> None:
        """The process ends: its listener calls end with it, and nobody sends its messages."""
        self._calls -= self._running.pop(name, 0)
        self._chain_of = {
            token: chain for token, chain in self._chain_of.items() if chain[0] != name
        }
        for chain in [chain for chain in self._to_send if chain[0] == name]:
            del self._to_send[chain]

    def _broker_flushes(self, node: Node, flush: io.Flush) -> None:
        self._timeline.after(0, self._sync_begins, node, node.life, flush)

    def _sync_begins(self, node: Node, life: int, flush: io.Flush) -> None:
        """When everything that came in together was handled: one sync is for all of it."""
        if node.alive and node.life == life:
            slow = self._slow.get(node.name)
            if slow is not None:
                slow.syncs += 1
            took_ms = SYNC_MS + (slow.ms if slow is not None else 0)
            self._timeline.after(took_ms, self._sync_ends, node, life, flush.begin())

    def _sync_ends(self, node: Node, life: int, work: Callable[[], int]) -> None:
        if node.alive and node.life == life:
            node.post(io.Flushed(work()))

    def _broker_noted(self, node: Node, note: io.Note) -> None:
        if note.kind is Kind.APPEND:
            self._happens(self.now_ms)

    def _consumer_noted(self, node: Node, note: io.Note) -> None:
        """A lane that comes or goes is not at rest: who lets go of it now takes it up again by a later rebalance."""
        if note.kind in (Kind.ADD, Kind.DROP):
            self._happens(self.now_ms)

    # ------------------------------------------------------------ faults, recorded

    def _party(self, name: str) -> dict[str, Any]:
        wall_us = self._nodes[name].wall_ms * 1000
        fields: dict[str, Any] = {"process": name, "level": Level.CLIENT, "wall_us": wall_us}
        if name in self._clients:
            fields["client_id"] = self.client_id(name)
        elif name in self._stores:
            fields["broker"] = name
            fields["broker_epoch"] = self._stores[name].epoch
        return fields

    def _next_fault(self) -> int:
        self._faults += 1
        return self._faults

    def _fault_begins(self, link: Pair, number: int) -> object:
        op = ("fault", self._next_fault())
        words = f"{self.verb} {link[0]} {link[1]}" + (f" {number}" if number else "")
        self._recorder.begin(
            op, Kind.FAULT, {"level": Level.CLIENT, "process": "harness", "detail": words}
        )
        return op

    def _fault_ends(self, fault: Fault) -> None:
        self._recorder.end(fault.op, Outcome.OK if fault.seen else Outcome.REFUSED)

    def _fault_note(self, name: str, outcome: Outcome = Outcome.OK) -> None:
        fields = {"level": Level.CLIENT, "process": "harness", "detail": f"{self.verb} {name}"}
        self._recorder.note(Kind.FAULT, outcome, fields)
