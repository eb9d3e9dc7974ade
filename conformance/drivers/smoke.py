"""`inorder smoke`: does a driver speak the protocol, and does it tell what happens? Its author runs this first.

The expectations are of the driver, held against what was sent: a failure means that the driver is wrong, not the
broker. Whether the client keeps its promises is for the clauses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from conformance.drivers.plans import NO_LIMIT
from conformance.drivers.process import DriverProcess
from conformance.drivers.protocol import LINE_BYTES_MAX, REQUIRED_EVENTS, VERSION
from conformance.drivers.recording import TOLD_BY
from conformance.drivers.target import DriverTarget
from conformance.drivers.targets import find_driver
from conformance.run import fresh_names, run
from specs.errors import EXIT_USAGE, DriverBug, DriverFailed, TargetMisbehaved
from specs.history.row import Row
from specs.plan.ability import Ability
from specs.plan.plan import Action, ClientPlan, ListenerRule, Plan, TopicPlan, Topology
from specs.scratch import Scratch
from specs.vocabulary import Kind, Level, Outcome

SUSPEND_MS = 100
MESSAGES = 6
SUSPENDED_ONCE = 2
GIVEN_UP = 4
LIMIT = 1
"""Where a message can be given up: how often it is tried again before."""


@dataclass(frozen=True, slots=True)
class Check:
    """One expectation. why: what was seen instead; empty when it holds. exit_code: what it then means."""

    name: str
    why: str = ""
    exit_code: int = EXIT_USAGE

    @property
    def ok(self) -> bool:
        return not self.why


EVERY_LINE = "every line is one of the protocol, and can be"
HAPPENS = frozenset({"acked", "added", "committed", "dropped", "locked", "received", "unlocked"})
"""What can't but happen when a consumer works off a few messages and is stopped, where it happens at all."""
ASKED = frozenset({Kind.ACK, Kind.COMMIT, Kind.FETCH_OFFSET, Kind.LOCK})
"""What is told twice, and answered before who asked is stopped in good order."""
Start = Callable[[str, Path], DriverProcess]
"""Starts a driver of that name, with its log in the folder."""


def smoke(target: str, say: Callable[[str], Any]) -> list[Check]:
    """Try the driver of a target. UsageError where a part is missing."""
    found = find_driver(target)
    with Scratch("smoke") as scratch:
        folder = Path(scratch)
        say("the driver alone")
        checks = list[Check]()
        try:
            checks.extend(_manners(found.start_alone, folder, found.parties["client"]))
        except TargetMisbehaved as error:
            return [*checks, _ended(error, "it lives, and answers in time")]
        say("a producer and a consumer")
        names = fresh_names(0, 0)
        plan, wrote = _plan(found, names), folder / "run"
        found.reads_at_work = False  # so that a stop in good order is tried too
        try:
            history = run(plan, found, wrote, prefix=names, say=say)
        except TargetMisbehaved as error:
            return [*checks, _ended(error, "it does a small plan")]
        finally:
            found.release()
        rows = list(history.rows())
        checks += _told(rows, plan, found.beyond_the_limit)
        silent = sorted(
            event
            for event in HAPPENS & found.events
            if not any(row.kind is TOLD_BY[event] for row in rows)
        )
        checks.append(_same("what its hello names and what happened is told", silent, []))
        return [*checks, _same("it stops in good order", sum(map(abs, found.exit_codes)), 0)]


def _ended(error: TargetMisbehaved, expected: str) -> Check:
    """What ended the trial."""
    return Check(
        EVERY_LINE if isinstance(error, DriverBug) else expected, str(error), error.exit_code
    )


def _plan(target: DriverTarget, names: str) -> Plan:
    """One key's messages in one queue: one of them fails once, and one always where it can be given up."""
    topic, group, shop, worker = (f"{names}{word}" for word in ("orders", "billing", "shop", "c1"))
    send = {"client": shop, "topic": topic, "key": "k", "count": MESSAGES}
    gives_up = Ability.GIVE_UP in target.abilities
    rules = [ListenerRule(Outcome.SUSPEND, number=SUSPENDED_ONCE, delivery_max=1)]
    if gives_up:
        rules.append(ListenerRule(Outcome.SUSPEND, number=GIVEN_UP))
    config = replace(target.config, suspend_ms=SUSPEND_MS, batch=1)
    return Plan(
        topology=Topology(topics=(TopicPlan(topic, 1),), groups=(group,)),
        config=replace(config, max_reconsume_times=LIMIT if gives_up else NO_LIMIT),
        clients=(ClientPlan(shop, "producer"), ClientPlan(worker, "consumer", group, (topic,))),
        actions=(
            Action(0, "start", {"client": shop}),
            Action(0, "start", {"client": worker}),
            Action(1, "send", send),
        ),
        listener=tuple(rules),
        until_ms=1_000,
        settle_ms=20_000,
    )


def _calls_of(plan: Plan, beyond: int) -> list[tuple[int, int]]:
    """Which call of the listener is whose: (a message's number, how often it was delivered before).

    beyond: how many deliveries more than the limit allows.
    """
    again = {SUSPENDED_ONCE: 1}
    if len(plan.listener) > 1:
        again[GIVEN_UP] = LIMIT + beyond
    return [
        (number, before)
        for number in range(1, MESSAGES + 1)
        for before in range(1 + again.get(number, 0))
    ]


def _told(rows: Sequence[Row], plan: Plan, beyond: int = 0) -> Iterator[Check]:
    """What the history of the small plan must hold, whatever the queues are. beyond: as of `_calls_of`."""
    sent = [row for row in rows if row.kind is Kind.SEND]
    outcomes = [row.outcome.value for row in sent]
    yield _same("every send is told, and acknowledged", outcomes, ["ok"] * MESSAGES)
    # Some systems' queues have gaps: what else lies in the log has a number too.
    offsets = [-1 if row.queue_offset is None else row.queue_offset for row in sent]
    ascend = sorted(set(offsets) - {-1})
    yield _same("a send tells where it lies", offsets, ascend)
    calls, expected = [row for row in rows if row.kind is Kind.DELIVER], _calls_of(plan, beyond)
    ids = [(row.message_id or "").rpartition("-")[2] for row in calls]
    numbers = [f"m{number}" for number, _ in expected]
    yield _same("every call of the listener is told, in order", ids, numbers)
    lies = {row.message_id: row.queue_offset for row in sent}
    moved = [row.message_id for row in calls if row.queue_offset != lies.get(row.message_id)]
    yield _same("a delivery tells where its message lies", moved, [])
    yield _same("every call is finished", [row.ended_us is None for row in calls].count(True), 0)
    own = [row for row in rows if row.level is Level.CLIENT]
    open_ = sorted({row.kind.value for row in own if row.kind in ASKED and row.ended_us is None})
    yield _same("every request that is told is answered", open_, [])
    works = [row.incarnation for row in own if row.kind is Kind.ADD]
    again = sorted({str(work) for work in works if works.count(work) > 1})
    over = {str(row.incarnation) for row in own if row.kind is Kind.DROP and works}
    strange = sorted(over - {str(work) for work in works})
    yield _same("each work on a lane is added once, and then dropped", [*again, *strange], [])
    ended = [row.outcome.value for row in calls]
    yield _same("the listener ends as the plan says", ended, list(_ends(expected, plan)))
    keys = {(row.sharding_key, row.key_seq) for row in calls}
    yield _same("a delivery tells key and number", keys, {("k", n + 1) for n in range(MESSAGES)})
    if len(plan.listener) > 1:
        counted = [row.reconsume_times for row in calls]
        counts = [before for _, before in expected]
        yield _same("a delivery tells the retry counter", counted, counts)
    times = [row.started_us for row in calls]
    backwards = [
        row.message_id for row in calls if (row.ended_us or row.started_us) < row.started_us
    ]
    yield _same("its clock goes forward", (times, backwards), (sorted(times), []))
    topic = plan.topology.topics[0].name
    read = [row for row in rows if row.kind is Kind.READ and row.topic == topic]
    places = {(row.broker, row.queue_id) for row in (*sent, *calls)}
    there = {(row.broker, row.queue_id) for row in read}
    yield _same("queues have the names by which they are read", places, there)
    found = [row.message_id for row in read if row.message_id]
    yield _same("every message can be read, in order", found, [row.message_id for row in sent])


def _ends(calls: Sequence[tuple[int, int]], plan: Plan) -> Iterator[str]:
    """How each call has to end."""
    for number, before in calls:
        fails = [rule for rule in plan.listener if rule.number == number]
        again = any(rule.delivery_max is None or before < rule.delivery_max for rule in fails)
        yield (Outcome.SUSPEND if again else Outcome.SUCCESS).value


def _same(name: str, seen: object, expected: object) -> Check:
    return Check(name, "" if seen == expected else f"{seen}, not {expected}")


def _manners(start: Start, folder: Path, client: str) -> Iterator[Check]:
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
        version = str(hello.get("client", ""))
        known = bool(version) and version in client
        yield Check("hello names the client's version", "" if known else f"it says {version!r}")
        unknown = driver.ask_anything({"verb": "dance", "id": 4})
        right = not unknown["ok"] and unknown["reply"] == 4
        yield Check(
            "an unknown verb is an error, by its id", "" if right else f"it answered {unknown}"
        )
        beyond = "a line beyond the limit is refused"
        try:
            long = driver.ask_anything({"verb": "x" * LINE_BYTES_MAX, "id": 5})
        except DriverFailed as error:
            yield Check(beyond, str(error), error.exit_code)
            return
        yield Check(beyond, "" if not long["ok"] else f"it answered {long}")
        code = driver.stop()
        yield Check("stop ends it with exit code 0", "" if code == 0 else f"exit code {code}")
        yield Check(EVERY_LINE)
