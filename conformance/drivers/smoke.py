"""`inorder smoke`: does a driver speak the protocol, and does it tell what happens? Its author runs this first.

The expectations are of the driver, held against what was sent: a failure means that the driver is wrong, not the
broker. Whether the client keeps its promises is for the clauses.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from conformance.drivers.java import start_java
from conformance.drivers.process import DriverProcess
from conformance.drivers.protocol import LINE_BYTES_MAX, REQUIRED_EVENTS, VERSION
from conformance.drivers.targets import find_driven
from conformance.drivers.work import GIVEN_UP, MESSAGES, SUSPENDED_ONCE, Worked, work
from conformance.run import fresh_names
from conformance.run import run as run_plan
from conformance.targets import executed
from conformance.wire.runner import run_nonce
from specs.errors import TargetMisbehaved
from specs.history.row import Row
from specs.plan.config import Config
from specs.plan.plan import Action, ClientPlan, ListenerRule, Plan, TopicPlan, Topology
from specs.vocabulary import Kind, Outcome

SMOKE = Config(
    max_reconsume_times=1, suspend_ms=100, rebalance_ms=1_000, heartbeat_ms=1_000, persist_ms=500
)


@dataclass(frozen=True, slots=True)
class Check:
    """One expectation. why: what was seen instead; empty when it holds."""

    name: str
    why: str = ""

    @property
    def ok(self) -> bool:
        return not self.why


Start = Callable[[str, Path], DriverProcess]
"""Starts a driver of that name, with its log in the folder."""


def smoke(target: str, say: Callable[[str], Any]) -> list[Check]:
    """Try the driver of a target. UsageError where a part is missing, TargetMisbehaved where it dies."""
    name, _, command = target.partition(":")
    with tempfile.TemporaryDirectory(prefix="inorder-smoke-") as scratch:
        if name == "exec":
            return _executed(command, Path(scratch), say)
        return _java(target, Path(scratch), say)


def _java(target: str, folder: Path, say: Callable[[str], Any]) -> list[Check]:
    run, version = find_driven(target)
    config = replace(SMOKE, dialect=run.config.dialect, delay_levels=run.config.delay_levels)

    def start(name: str, place: Path) -> DriverProcess:
        return start_java(version, name, config, place, lambda _: None)

    say("the driver alone")
    checks = list(_manners(start, folder))
    say(f"starting {target}")
    with run.open_system(config, False) as system:
        seen = work(system, version, config, folder, f"smoke{run_nonce(system)}-", say)
    return [*checks, *_told(seen, version, config)]


def _executed(command: str, folder: Path, say: Callable[[str], Any]) -> list[Check]:
    found = executed.target(command)
    say("the driver alone")
    checks = list(_manners(found.start_alone, folder))
    say("a producer and a consumer")
    names = fresh_names(0, 0)
    plan, wrote = _plan(names), folder / "run"
    try:
        history = run_plan(plan, found, wrote, prefix=names, say=say)
    except TargetMisbehaved as error:
        return [*checks, Check("it does a small plan", str(error))]
    return [*checks, *_recorded(list(history.rows()), plan)]


def _plan(names: str) -> Plan:
    """One key's messages in one queue: one of them fails once."""
    topic, group, shop, worker = (f"{names}{word}" for word in ("orders", "billing", "shop", "c1"))
    send = {"client": shop, "topic": topic, "key": "k", "count": MESSAGES}
    return Plan(
        topology=Topology(topics=(TopicPlan(topic, 1),), groups=(group,)),
        config=replace(executed.ExecutedTarget.config, suspend_ms=SMOKE.suspend_ms),
        clients=(ClientPlan(shop, "producer"), ClientPlan(worker, "consumer", group, (topic,))),
        actions=(
            Action(0, "start", {"client": shop}),
            Action(0, "start", {"client": worker}),
            Action(1, "send", send),
        ),
        listener=(ListenerRule(Outcome.SUSPEND, number=SUSPENDED_ONCE, delivery_max=1),),
        until_ms=1_000,
        settle_ms=20_000,
    )


def _recorded(rows: Sequence[Row], plan: Plan) -> Iterator[Check]:
    """What the history of the small plan must hold, whatever the queues are."""
    sent = [row for row in rows if row.kind is Kind.SEND]
    outcomes = [row.outcome.value for row in sent]
    yield _same("every send is told, and acknowledged", outcomes, ["ok"] * MESSAGES)
    offsets = [row.queue_offset for row in sent]
    yield _same("a send tells where it lies", offsets, list(range(MESSAGES)))
    calls = [row for row in rows if row.kind is Kind.DELIVER]
    ids = [(row.message_id or "").rpartition("-")[2] for row in calls]
    tries = [n for n in range(1, MESSAGES + 1) for _ in range(1 + (n == SUSPENDED_ONCE))]
    yield _same("every call of the listener is told, in order", ids, [f"m{n}" for n in tries])
    lies = {row.message_id: row.queue_offset for row in sent}
    moved = [row.message_id for row in calls if row.queue_offset != lies.get(row.message_id)]
    yield _same("a delivery tells where its message lies", moved, [])
    yield _same("every call is finished", [row.ended_us is None for row in calls].count(True), 0)
    ended = [row.outcome.value for row in calls]
    fails = tries.index(SUSPENDED_ONCE)
    again = [Outcome.SUSPEND if n == fails else Outcome.SUCCESS for n in range(len(tries))]
    yield _same("the listener ends as the plan says", ended, [each.value for each in again])
    places = {(row.broker, row.queue_id) for row in (*sent, *calls)}
    yield _same("queues have the plan's names", places, {(plan.topology.brokers[0], 0)})
    keys = {(row.sharding_key, row.key_seq) for row in calls}
    yield _same("a delivery tells key and number", keys, {("k", n + 1) for n in range(MESSAGES)})
    read = [row.message_id for row in rows if row.kind is Kind.READ and row.message_id]
    yield _same("read finds every message, in order", read, [row.message_id for row in sent])


def _same(name: str, seen: object, expected: object) -> Check:
    return Check(name, "" if seen == expected else f"{seen}, not {expected}")


def _manners(start: Start, folder: Path) -> Iterator[Check]:
    """Requests that a driver has to refuse, and that must not end it."""
    with start("manners", folder) as driver:
        early = driver.ask_anything({"verb": "start", "id": 1})
        yield Check(
            "a request before hello is refused", "" if not early["ok"] else f"it answered {early}"
        )
        future = driver.ask_anything({"verb": "hello", "id": 2, "version": VERSION + 1})
        yield Check(
            "another version is refused", "" if not future["ok"] else f"it answered {future}"
        )
        hello = driver.hello()
        missing = sorted(set(REQUIRED_EVENTS) - set(hello.get("events", ())))
        yield Check(
            "hello names every required event", f"missing: {', '.join(missing)}" if missing else ""
        )
        unknown = driver.ask_anything({"verb": "dance", "id": 4})
        right = not unknown["ok"] and unknown["reply"] == 4
        yield Check(
            "an unknown verb is an error, by its id", "" if right else f"it answered {unknown}"
        )
        known_faults = len(driver.faults)
        beyond = "a line beyond the limit is refused"
        try:
            long = driver.ask_anything({"verb": "x" * LINE_BYTES_MAX, "id": 5})
        except TargetMisbehaved as error:
            yield Check(beyond, str(error))
            return
        yield Check(beyond, "" if not long["ok"] else f"it answered {long}")
        del driver.faults[known_faults:]  # it may say that without an id
        code = driver.stop()
        yield Check("stop ends it with exit code 0", "" if code == 0 else f"exit code {code}")
        yield Check("every line is one of the protocol", "; ".join(driver.faults))


def _told(seen: Worked, version: str, config: Config) -> Iterator[Check]:
    client = seen.hello.get("client")
    yield Check(
        "hello names the client's version", "" if client == version else f"it says {client}"
    )
    outcomes = [event["outcome"] for event in seen.producer.sent.values()]
    yield Check(
        "every send is told, and acknowledged",
        "" if outcomes == ["ok"] * MESSAGES else f"{outcomes}",
    )
    offsets = [event.get("queue_offset") for event in seen.producer.sent.values()]
    yield Check(
        "a send tells where it lies",
        "" if offsets == list(range(MESSAGES)) else f"offsets {offsets}",
    )
    deliveries = seen.consumer.deliveries
    told = [message for event in deliveries for message in event["messages"]]
    numbers = [int(message["body"].rpartition("-m")[2]) for message in told]
    again = {SUSPENDED_ONCE: 1, GIVEN_UP: config.max_reconsume_times}
    expected = [
        number for number in range(1, MESSAGES + 1) for _ in range(1 + again.get(number, 0))
    ]
    yield Check(
        "every call of the listener is told",
        "" if numbers == expected else f"{numbers}, not {expected}",
    )
    ids = all(message["message_id"] == message["body"] for message in told)
    yield Check(
        "a delivery tells the producer's id of the message", "" if ids else "the ids are others"
    )
    pairs = [(message.get("key"), message.get("key_seq")) for message in told]
    keys = pairs == [("k", str(number)) for number in numbers]
    yield Check("a delivery tells key and number", "" if keys else "they are others")
    counters = [
        message["reconsume_times"]
        for message, number in zip(told, numbers, strict=True)
        if number == GIVEN_UP
    ]
    right = counters == list(range(config.max_reconsume_times + 1))
    yield Check("a delivery tells the retry counter", "" if right else f"{counters}")
    results = seen.consumer.results
    calls = [event["call"] for event in deliveries]
    right = sorted(results) == sorted(calls) and seen.finished
    yield Check(
        "every call is finished", "" if right else f"delivered {calls}, finished {sorted(results)}"
    )
    wrong = []
    for event, number in zip(deliveries, numbers, strict=False):
        result = results.get(event["call"])
        suspends = number == GIVEN_UP or _first(number, event, deliveries)
        if result is not None and (result["outcome"] == "suspend") != suspends:
            wrong.append(event["call"])
    yield Check(
        "the listener ends as the plan says", f"not so in the calls {wrong}" if wrong else ""
    )
    times = [event["at_us"] for event in deliveries]
    right = times == sorted(times) and all(
        event["at_us"] <= results[event["call"]]["at_us"]
        for event in deliveries
        if event["call"] in results
    )
    yield Check("its clock goes forward", "" if right else f"{times}")
    yield Check(
        "it stops in good order",
        "" if seen.exit_codes == (0, 0) else f"exit codes {seen.exit_codes}",
    )
    yield Check("every line of the work is one of the protocol", "; ".join(seen.faults))


def _first(number: int, event: Any, deliveries: list[Any]) -> bool:
    """Is this the first delivery of the message that is suspended once?"""
    if number != SUSPENDED_ONCE:
        return False
    offset = event["messages"][0]["queue_offset"]
    return event is next(
        each for each in deliveries if each["messages"][0]["queue_offset"] == offset
    )
