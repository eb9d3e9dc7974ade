"""Beside the matrix: what else a client and a broker do together, each by a small real check, in both directions.

A check is a short plan and what its history must show, the same for our client on Apache's broker and for Apache's
client on ours; what no plan says (reading by pulls, looking up by key, resetting) has a check of its own. A check
says what it saw, or what was missing: it judges no promise, the clauses do that.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from conformance.answers import Told
from conformance.drivers.java import start_java
from conformance.drivers.plans import DRIVEN
from conformance.drivers.process import DriverProcess
from conformance.run import fresh_names, run
from conformance.targets.base import Run
from conformance.targets.driven import JavaTarget, Paired, pair
from conformance.waiting import wait_until
from conformance.wire.brokers import Brokers
from conformance.wire.client import WireClient
from conformance.wire.target import WireTarget
from inorder.evidence.interop.cells import BROKERS, CLIENTS
from reference_impl.client import Admin
from specs.errors import InorderError, TargetMisbehaved, UsageError
from specs.faults import crash
from specs.history.journal import Journal
from specs.history.row import Row
from specs.plan.plan import Action, ClientPlan, ListenerRule, Plan, TopicPlan, Topology
from specs.vocabulary import RETRY_PREFIX, Kind, Lane, Level, Outcome, Queue

FIRST_MS = 1_000
"""The first messages: who started at 0 is up by then."""
UP_MS = 4_000
"""From one change to the next: a Java process is up by then."""
AFTER_MS = 5_000
"""How long the last messages of a plan have."""
CONSUMED_MS = 25_000
"""By then all is consumed and committed, whatever a client needs to start."""
RESET_MS = 32_000
"""How long a consumer stays at work after a reset.

A pull may be parked for 15 s before it hears of a reset that the broker keeps, and Java's client before 5.2 waits
another 10 s before it drops the queue; told of one, every client waits 10 s. A rebalance follows.
"""

_FILED_S = 20.0
"""Until when a stored message must be found by its key."""


class Missing(Exception):
    """What a check had to see and did not; it never leaves this module."""


def need(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Missing(otherwise)


@dataclass(frozen=True, slots=True)
class Seen:
    """A plan's history."""

    plan: Plan
    rows: Sequence[Row]

    def calls(self, client: str | None = None) -> list[Row]:
        """Messages in listener calls that ended well, in order."""
        return [
            row
            for row in self.rows
            if row.kind is Kind.DELIVER
            and row.outcome is Outcome.SUCCESS
            and client in (None, row.client_id)
        ]

    def sent(self) -> list[Row]:
        return [row for row in self.rows if row.kind is Kind.SEND and row.outcome is Outcome.OK]

    def ids(self, rows: Iterable[Row]) -> set[str]:
        return {row.source_id or "" for row in rows}

    def all_consumed(self) -> int:
        """Everything sent was consumed; how many messages that were."""
        sent = self.ids(self.sent())
        lost = sent - self.ids(self.calls())
        need(bool(sent), "nothing was sent")
        need(not lost, f"{len(lost)} of {len(sent)} messages were not consumed")
        return len(sent)


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature that a plan shows. plan: takes a prefix for its names. check: says what it saw, or raises Missing."""

    name: str
    plan: Callable[[str], Plan]
    check: Callable[[Seen], str]


@dataclass(frozen=True, slots=True)
class Checked:
    """One feature in one direction. works: what a user is told: yes, or no. seen: what showed it. date: ISO."""

    feature: str
    direction: str
    works: bool
    seen: str
    date: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def _plan(
    prefix: str,
    sends: Sequence[tuple[int, Mapping[str, Any]]],
    *,
    comes: Sequence[tuple[int, str, str]] = ((0, "start", "c1"),),
    until_ms: int = 0,
    listener: Sequence[ListenerRule] = (),
    queues: int = 4,
    **config: Any,
) -> Plan:
    """sends: (at, arguments of the action). comes: (at, verb, consumer)."""
    topic, group, shop = f"{prefix}orders", f"{prefix}billing", f"{prefix}shop"
    consumers = sorted({name for _, _, name in comes})
    actions = [Action(0, "start", {"client": shop})]
    actions += [Action(at_ms, verb, {"client": f"{prefix}{name}"}) for at_ms, verb, name in comes]
    actions += [
        Action(at_ms, "send", {"client": shop, "topic": topic, "count": 1, **args})
        for at_ms, args in sends
    ]
    actions.sort(key=lambda action: action.at_ms)
    return Plan(
        topology=Topology(topics=(TopicPlan(topic, queues),), groups=(group,)),
        config=replace(DRIVEN, delay_levels=" ".join(["1s"] * 18), **config),
        clients=(
            ClientPlan(shop, "producer"),
            *(ClientPlan(f"{prefix}{name}", "consumer", group, (topic,)) for name in consumers),
        ),
        actions=tuple(actions),
        listener=tuple(listener),
        until_ms=max(until_ms, actions[-1].at_ms + AFTER_MS),
    )


# ---------------------------------------------------------------- what plans show


def _concurrent_plan(prefix: str) -> Plan:
    fails = ListenerRule(Outcome.SUSPEND, number=3, delivery_max=1, delay_level=1)
    return _plan(
        prefix,
        [(FIRST_MS, {"count": 12})],
        listener=(fails,),
        mode="concurrent",
        max_reconsume_times=3,
    )


def _concurrent(seen: Seen) -> str:
    count = seen.all_consumed()
    again = [row for row in seen.calls() if (row.topic or "").startswith(RETRY_PREFIX)]
    need(
        len(again) == 1,
        f"{len(again)} messages came back by the retry topic, not the one that was sent back",
    )
    need(again[0].reconsume_times == 1, f"it came back with the counter {again[0].reconsume_times}")
    return f"{count} messages; the one that was sent back came again, counted once"


def _broadcast_plan(prefix: str) -> Plan:
    comes = ((0, "start", "c1"), (0, "start", "c2"))
    return _plan(
        prefix,
        [(FIRST_MS, {"count": 8})],
        comes=comes,
        mode="concurrent",
        message_model="broadcasting",
    )


def _broadcast(seen: Seen) -> str:
    sent = seen.ids(seen.sent())
    need(len(sent) == 8, f"{len(sent)} messages were sent")
    for client in ("c1", "c2"):
        name = next(each.id for each in seen.plan.clients if each.id.endswith(client))
        missing = sent - seen.ids(seen.calls(name))
        need(not missing, f"{client} was not given {len(missing)} of {len(sent)} messages")
    return f"each of two consumers was given all {len(sent)} messages"


def _tags_plan(prefix: str) -> Plan:
    sends = [(FIRST_MS, {"count": 4, "tags": tags}) for tags in ("red", "green", "blue")]
    return _plan(prefix, sends, subscription="red || blue")


def _tags(seen: Seen) -> str:
    given = {row.tags for row in seen.calls()}
    need(given == {"red", "blue"}, f"tags {sorted(map(str, given))} were given")
    wanted = seen.ids(row for row in seen.sent() if row.tags in ("red", "blue"))
    need(wanted == seen.ids(seen.calls()), "not every wanted message was given")
    return f"{len(wanted)} of {len(seen.sent())} messages, those of the two tags asked for"


def _batch_plan(prefix: str) -> Plan:
    return _plan(prefix, [(FIRST_MS, {"count": 5, "batch": True})])


def _batch(seen: Seen) -> str:
    count = seen.all_consumed()
    places = sorted({(row.queue_id, row.queue_offset) for row in seen.calls()})
    queues, offsets = {queue for queue, _ in places}, [offset or 0 for _, offset in places]
    need(len(queues) == 1, f"the batch lies in {len(queues)} queues")
    need(
        offsets == list(range(offsets[0], offsets[0] + count)),
        f"the batch lies at the offsets {offsets}",
    )
    return f"{count} messages in one request, at neighbouring offsets"


def _keyed(moments: Iterable[int], keys: int = 8) -> list[tuple[int, Mapping[str, Any]]]:
    return [(at_ms, {"key": f"k{key}"}) for at_ms in moments for key in range(keys)]


def _three_plan(prefix: str) -> Plan:
    comes = (
        (0, "start", "c1"), (UP_MS, "start", "c2"), (2 * UP_MS, "start", "c3"), (4 * UP_MS, "stop", "c2"),
        (5 * UP_MS, "stop", "c3"),
    )  # fmt: skip
    return _plan(prefix, _keyed(range(FIRST_MS, 6 * UP_MS, 500)), comes=comes, queues=6)


def _three(seen: Seen) -> str:
    count = seen.all_consumed()
    worked = {row.client_id for row in seen.calls()}
    need(len(worked) == 3, f"{len(worked)} of three consumers were given messages")
    _in_order(seen)
    return f"three came and two left: {count} messages, each key in its order"


def _in_order(seen: Seen) -> None:
    """First deliveries follow the key's numbers."""
    highest: dict[str, int] = {}
    known: set[str] = set()
    for row in seen.rows:
        if (
            row.kind is Kind.DELIVER
            and row.sharding_key is not None
            and row.message_id not in known
        ):
            known.add(row.message_id or "")
            need(
                (row.key_seq or 0) > highest.get(row.sharding_key, 0),
                f"key {row.sharding_key} went back",
            )
            highest[row.sharding_key] = row.key_seq or 0


def _ends_plan(prefix: str) -> Plan:
    comes = (
        (0, "start", "c1"), (0, "start", "c2"), (0, "start", "c3"), (2 * UP_MS, "stop", "c2"),
        (3 * UP_MS, crash.VERB, "c3"),
    )  # fmt: skip
    return _plan(
        prefix, _keyed(range(FIRST_MS, 4 * UP_MS, 500)), comes=comes, until_ms=4 * UP_MS + AFTER_MS
    )


def _ends(seen: Seen) -> str:
    count = seen.all_consumed()
    _in_order(seen)
    worked = {row.client_id for row in seen.calls()}
    need(
        len(worked) == 3,
        f"{len(worked)} of three consumers were given messages before two were gone",
    )
    left = next(row for row in seen.rows if row.kind is Kind.LEAVE)
    need(left.ended_us is not None, "the shutdown did not end")
    again = len(seen.calls()) - len(seen.ids(seen.calls()))
    return f"one left, one was killed: {count} messages, none lost, {again} given twice, each key in its order"


PLANNED: tuple[Feature, ...] = (
    Feature("concurrent", _concurrent_plan, _concurrent),
    Feature("broadcast", _broadcast_plan, _broadcast),
    Feature("tags", _tags_plan, _tags),
    Feature("batch", _batch_plan, _batch),
    Feature("three consumers", _three_plan, _three),
    Feature("shutdown and kill", _ends_plan, _ends),
)
PULL, QUERY, RESET = "pull", "query by key", "reset"
NAMES = (*(feature.name for feature in PLANNED), PULL, QUERY, RESET)


def directions() -> tuple[Paired, ...]:
    """Apache's clients on our broker, and our client on Apache's brokers."""
    theirs = tuple(pair(None, client) for client in CLIENTS if client is not None)
    return (*theirs, *(pair(broker, None) for broker in BROKERS if broker is not None))


def direction_of(target: Paired) -> str:
    """For people: whose client, whose broker."""
    if isinstance(target, JavaTarget):
        return f"Java client {target.version} → our broker"
    return f"our client → {target.parties['broker']}"


def check_direction(
    target: Paired,
    folder: Path,
    date: str,
    say: Callable[[str], Any] = lambda _: None,
    names: Sequence[str] = NAMES,
) -> Iterator[Checked]:
    """Every feature of a direction. Raises UsageError where a part is missing."""
    direction = direction_of(target)
    with ExitStack() as stack:
        stack.callback(target.release)
        if isinstance(target, WireTarget):  # on one system for all of them
            config = _plan("", (), dialect=target.config.dialect).config
            target = target.on(stack.enter_context(target.open_system(config)))
        yield from _on(Stage(target, folder, fresh_names(0, 0)), direction, date, say, names)


def _on(
    stage: Stage, direction: str, date: str, say: Callable[[str], Any], names: Sequence[str]
) -> Iterator[Checked]:
    checks: dict[str, Callable[[], str]] = {
        **{feature.name: partial(stage.plan, feature) for feature in PLANNED},
        PULL: stage.pull,
        QUERY: stage.query,
        RESET: stage.reset,
    }
    for name, check in checks.items():
        if name in names:
            say(f"{direction}: {name}")
            yield _checked(name, direction, date, check)


def _checked(name: str, direction: str, date: str, check: Callable[[], str]) -> Checked:
    try:
        return Checked(name, direction, True, check(), date)
    except Missing as error:
        return Checked(name, direction, False, str(error), date)
    except TargetMisbehaved as error:
        return Checked(name, direction, False, str(error).splitlines()[0][:200], date)


@dataclass(slots=True)
class Stage:
    """What the features of a direction are tried on. prefix: what no earlier try named anything by."""

    target: Paired
    folder: Path
    prefix: str
    tried: int = field(default=0)

    def _fresh(self) -> tuple[str, Path]:
        """Names and a folder that no other check uses."""
        self.tried += 1
        prefix = f"{self.prefix}n{self.tried}-"
        folder = self.folder / prefix
        folder.mkdir(parents=True)
        return prefix, folder

    def _suited(self, plan: Plan) -> Plan:
        return replace(plan, config=replace(plan.config, dialect=self.target.config.dialect))

    def plan(self, feature: Feature) -> str:
        prefix, folder = self._fresh()
        plan = self._suited(feature.plan(prefix))
        return feature.check(Seen(plan, list(run(plan, self.target, folder, prefix=prefix).rows())))

    # ------------------------------------------------------------ what no plan says

    @contextmanager
    def _filled(self, count: int) -> Iterator[tuple[str, str, Brokers, Path]]:
        """A topic of 4 queues with messages m1, m2 and so on, sent by a raw client."""
        prefix, folder = self._fresh()
        this = Run(self._suited(_plan(prefix, ())), folder, prefix)
        brokers = Brokers(this, self.target.open_system(this.plan.config))
        topic = this.plan.topology.topics[0].name
        try:
            client = brokers.client(f"{prefix}raw")
            ends = [Queue(topic, brokers.first, each) for each in range(4)]
            for number in range(count):
                name, key = f"{prefix}m{number}", f"k{number % 3}"
                sent = client.send(ends[number % 4], name, key, keys=f"{prefix}key{number}")
                need(sent.outcome is Outcome.OK, "a send failed")
            wait_until(lambda: _sum(client.max_offset(queue) for queue in ends) == count)
            client.close()
            yield prefix, topic, brokers, folder
        finally:
            brokers.close()
            this.close()

    @contextmanager
    def _driver(
        self, target: JavaTarget, brokers: Brokers, prefix: str, folder: Path
    ) -> Iterator[DriverProcess]:
        start = start_java(target.version, "tool", target.config, folder, lambda _: None)
        with start as driver:
            driver.hello()
            driver.ask(
                "start",
                role="producer",
                client=f"{prefix}tool",
                group=f"{prefix}tools",
                namesrv=brokers.system.namesrv,
            )
            yield driver
            driver.stop()

    def pull(self) -> str:
        """All messages of a topic, by a client that only pulls."""
        with self._filled(12) as (prefix, topic, brokers, folder):
            if isinstance(self.target, JavaTarget):
                with self._driver(self.target, brokers, prefix, folder) as driver:
                    more = {
                        "client": f"{prefix}reader",
                        "group": f"{prefix}readers",
                        "namesrv": brokers.system.namesrv,
                    }
                    found = len(driver.ask("read", topic=topic, **more)["messages"])
            else:
                queues = [Queue(topic, brokers.first, number) for number in range(4)]
                found = sum(len(brokers.read(queue)) for queue in queues)
            need(found == 12, f"{found} of 12 messages were read")
            return "12 of 12 messages, queue by queue"

    def query(self) -> str:
        """The messages of a key."""
        with self._filled(12) as (prefix, topic, brokers, folder):
            if not isinstance(self.target, JavaTarget):
                look = self._look_up(brokers, topic, f"{prefix}key3", f"{prefix}m3")
                return asyncio.run(look)
            with self._driver(self.target, brokers, prefix, folder) as driver:
                answer = driver.ask_anything(
                    {"verb": "query", "id": 900, "topic": topic, "key": f"{prefix}key3"}
                )
                need(answer["ok"], "the broker does not answer the look-up by key")
                ids = [message["message_id"] for message in answer["messages"]]
                need(ids == [f"{prefix}m3"], f"the look-up found {ids}")
                return "found by its key"

    async def _look_up(self, brokers: Brokers, topic: str, key: str, message_id: str) -> str:
        """By our own client, and by both ids as well. A broker files messages a moment after it has stored them."""
        async with Admin(brokers.system.namesrv) as admin:
            async with asyncio.timeout(_FILED_S):
                while not (found := await admin.by_key(topic, key)):
                    await asyncio.sleep(0.1)
            ids = [message.id for message in found]
            need(ids == [message_id], f"the look-up found {ids}")
            for name in (message_id, found[0].offset_id):
                again = await admin.by_id(topic, name)
                need(
                    again is not None and again.id == message_id,
                    f"the look-up by the id {name} found {again}",
                )
        return "found by its key, and by both of its ids"

    def reset(self) -> str:
        """A group's offsets are set back to the start while its consumer is at work."""
        prefix, folder = self._fresh()
        plan = self._suited(
            _plan(prefix, [(FIRST_MS, {"count": 8})], until_ms=CONSUMED_MS + RESET_MS)
        )
        failures: list[InorderError] = []

        async def operate(namesrv: str) -> None:
            topic, group = plan.topology.topics[0].name, plan.topology.groups[0]
            with Journal(folder, "operator") as journal:
                async with Admin(namesrv, recorder=journal) as admin:
                    await admin.reset(group, topic, to="first")

        def operator() -> None:
            try:
                wait_until(self._is_prepared, CONSUMED_MS / 1000)
                brokers = self.target.brokers
                self._wait_for_commits(brokers, plan, folder, 8)
                asyncio.run(operate(brokers.system.namesrv))
            except InorderError as error:
                failures.append(error)

        at_work = threading.Thread(target=operator, name="operator", daemon=True)
        at_work.start()
        history = run(plan, self.target, folder, prefix=prefix)
        at_work.join()
        need(not failures, "; ".join(map(str, failures)))
        seen = Seen(plan, list(history.rows()))
        seen.all_consumed()
        count = len(
            seen.ids(seen.calls())
        )  # a send without an answer in time is stored all the same
        again = len(seen.calls()) - count
        need(
            again == count, f"the broker took the reset, and {again} of {count} messages came again"
        )
        return f"all {count} messages came again"

    def _is_prepared(self) -> bool:
        try:
            return bool(self.target.brokers)
        except UsageError:
            return False

    def _wait_for_commits(self, brokers: Brokers, plan: Plan, folder: Path, count: int) -> None:
        """So many messages of the first topic are committed by the first group."""
        name, topic = brokers.first, plan.topology.topics[0]
        lanes = [
            Lane(plan.topology.groups[0], topic.name, name, each) for each in range(topic.queues)
        ]
        with Journal(folder, "watch", common={"level": Level.WIRE}) as journal:
            client = WireClient("watch", brokers.system.brokers[name], name, journal)
            try:
                if not wait_until(
                    lambda: _sum(client.fetch(lane)[1] for lane in lanes) == count,
                    CONSUMED_MS / 1000,
                    0.2,
                ):
                    raise TargetMisbehaved(
                        f"{count} messages were not committed in {CONSUMED_MS / 1000:g} s"
                    )
            finally:
                client.close()


def _sum(offsets: Iterable[Told[int]]) -> int:
    """Of those that were told."""
    return sum(offset for offset in offsets if isinstance(offset, int))
