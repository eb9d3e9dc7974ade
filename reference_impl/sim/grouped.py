"""A simulated world of a group whose members are dealt lanes and commit offsets, and of producers that do not wait.

It is the world of leased messages (`reference_impl.sim.leased`) with another server: a coordinator that expels whom it
does not hear, and logs that take each send once. A member that works for longer than a session, or stands still, goes
on afterwards and commits late; whether that counts is the coordinator's to say. Up to `IN_FLIGHT` sends of a producer
are under way, each is tried until it is answered. Of the plan's configuration `broker_lease_ms` is the session.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from reference_impl.core.coordinator import Coordinator
from reference_impl.core.sequenced_log import SequencedLog
from reference_impl.sim.leased import (
    POLL_MS,
    LeasedWorld,
    Life,
    Steps,
    info_of,
    leased_name,
    outcome_of,
    parties_of,
)
from specs.history.row import Row
from specs.history.runinfo import RunInfo, declared
from specs.plan.config import Config, config_of
from specs.plan.messages import PlannedMessage
from specs.plan.plan import Plan
from specs.vocabulary import Kind, Lane, Outcome, Queue

GROUPED = "grouped"
REFERENCE = "inorder reference, a group with generations"
IN_FLIGHT = 4
AGAIN_MS = 3
RECORDED = declared(
    client={
        Kind.SEND,
        Kind.DELIVER,
        Kind.ADD,
        Kind.DROP,
        Kind.COMMIT,
        Kind.FETCH_OFFSET,
        Kind.JOIN,
        Kind.LEAVE,
        Kind.CRASH,
        Kind.PAUSE,
        Kind.CLOCK_STEP,
        Kind.FAULT,
        Kind.RESET,
    },
    wire={Kind.READ},
    store={Kind.PROGRESS, Kind.TRIM},
)
TOLD = ("batch", "broker_lease_ms", "delay_bound_ms", "schedule_slack_ms")


class Stored:
    """A lane's place in the world of leased messages: all that it has is the offset that was committed."""

    def __init__(self, *_told: int) -> None:
        self.floor = 0
        self.given_up: list[int] = []


class GroupWorld(LeasedWorld):
    """coordinator_class, log_class: what the server runs for each group, and for each queue."""

    def __init__(
        self,
        plan: Plan,
        coordinator_class: type[Coordinator] = Coordinator,
        log_class: type[SequencedLog] = SequencedLog,
        run: str = GROUPED,
    ) -> None:
        super().__init__(plan, Stored, run)
        session_ms = plan.config.broker_lease_ms
        self.coordinators = {
            group: coordinator_class(
                session_ms, [each for each in self.lanes if each.group == group]
            )
            for group in plan.topology.groups
        }
        self.logs = {queue: log_class() for queue in self.queues}
        self.stored = {queue: log.entries for queue, log in self.logs.items()}
        self._numbers: dict[tuple[str, Queue], itertools.count[int]] = {}
        self._under_way = 0

    def is_at_rest(self) -> bool:
        ends = {queue: len(log.entries) for queue, log in self.logs.items()}
        return not (self._under_way or any(life.inbox for life in self._lives.values())) and all(
            stored.floor >= ends[lane.queue] for lane, stored in self.lanes.items()
        )

    def consume(self, life: Life) -> Iterable[Steps]:
        """One for all its lanes."""
        return (self._member(life),)

    # ------------------------------------------------------------ members

    def _member(self, life: Life) -> Steps:
        me, group = life.plan.id, self.coordinators[life.plan.group]
        epoch: int | None = None
        owned: dict[Lane, tuple[str, int]] = {}
        while not life.leaves:
            answer = yield partial(self._beat, group, me, epoch, frozenset(owned))
            if answer is None:
                continue
            told = answer[0]
            epoch, mine = (None, ()) if told is None else told
            for lane in [lane for lane in owned if lane not in mine]:
                self._dropped(life, lane, owned.pop(lane)[0])
            for lane in mine:
                if lane not in owned:
                    owned[lane] = self._added(life, lane)
            for lane in list(owned):
                yield from self._work_on(life, lane, owned, epoch)
            yield POLL_MS
        for lane in list(owned):
            self._dropped(life, lane, owned.pop(lane)[0])
        yield lambda: group.leave(me)

    def _beat(
        self, group: Coordinator, member: str, epoch: int | None, owned: frozenset[Lane]
    ) -> tuple[int, tuple[Lane, ...]] | None:
        return group.heartbeat(self.now_ms, member, epoch, owned)

    def _added(self, life: Life, lane: Lane) -> tuple[str, int]:
        """The incarnation's name, and where it begins."""
        name = f"{life.plan.id}.{life.number}#{next(self._ops)}"
        begins = self.coordinators[lane.group].offsets.get(lane, 0)
        told = {**self._who(life), **lane._asdict(), "incarnation": name, "value": begins}
        self._recorder.note(Kind.ADD, Outcome.OK, told)
        return name, begins

    def _dropped(self, life: Life, lane: Lane, name: str) -> None:
        told = {**self._who(life), **lane._asdict(), "incarnation": name}
        self._recorder.note(Kind.DROP, Outcome.OK, told)

    def _work_on(
        self, life: Life, lane: Lane, owned: dict[Lane, tuple[str, int]], epoch: int | None
    ) -> Steps:
        """The next message of the lane, and the commit behind it."""
        name, offset = owned[lane]
        if epoch is None or offset >= len(self.stored[lane.queue]):
            return
        message = self.stored[lane.queue][offset]
        rule = self._rule(life, lane, message)
        at = {**self._who(life), **lane._asdict(), "incarnation": name}
        op = next(self._ops)
        told = {**message.columns(), "queue_offset": offset}
        self._recorder.begin(op, Kind.DELIVER, {**at, **told})
        yield rule.duration_ms
        self._recorder.end(op, Outcome.SUCCESS, {"commit_mode": "auto"})
        owned[lane] = name, offset + 1
        op = next(self._ops)
        self._recorder.begin(op, Kind.COMMIT, {**at, "value": offset + 1})
        answer = yield self._committing(life.plan.id, epoch, lane, offset + 1)
        self._recorder.end(op, outcome_of(answer))

    def _committing(self, member: str, epoch: int, lane: Lane, offset: int) -> Callable[[], bool]:
        def commit() -> bool:
            taken = self.coordinators[lane.group].commit(self.now_ms, member, epoch, lane, offset)
            if taken:
                self.lanes[lane].floor = offset
            return taken

        return commit

    # ------------------------------------------------------------ producers

    def _produce(self, life: Life) -> Steps:
        while not (life.leaves and not life.inbox):
            if not life.inbox or self._under_way >= IN_FLIGHT:
                yield POLL_MS
                continue
            message = life.inbox.pop(0)
            topic = [queue for queue in self.queues if queue.topic == message.topic]
            key = message.sharding_key
            turn = next(self._turn) if key is None else zlib.crc32(key.encode())
            self._under_way += 1
            self._begin(life, self._send(life, topic[turn % len(topic)], message))

    def _send(self, life: Life, queue: Queue, message: PlannedMessage) -> Steps:
        """Until it is answered."""
        producer = f"{life.plan.id}.{life.number}"
        numbers = self._numbers.setdefault((producer, queue), itertools.count())
        number, log, op = next(numbers), self.logs[queue], next(self._ops)
        told = {**message.columns(), **queue._asdict(), "attempt": 1}
        self._recorder.begin(op, Kind.SEND, {**self._who(life), **told})
        place = None
        while place is None:
            answer = yield lambda: log.take(producer, number, message)
            place = None if answer is None else answer[0]
            if answer is not None and place is None:
                yield AGAIN_MS
        self._under_way -= 1
        self._recorder.end(op, Outcome.OK, {"queue_offset": place})


def settings(config: Config) -> Config:
    """What the server and the members were told."""
    ours = config.to_json()
    told: dict[str, Any] = {name: ours[name] for name in TOLD}
    return config_of({"system": GROUPED, **told, "in_flight": IN_FLIGHT, "generations": True})


def grouped_parties(bug: str = "") -> Mapping[str, str]:
    """Who implements broker, client and producer."""
    return parties_of(REFERENCE, bug)


def grouped_info(plan: Plan, bug: str = "") -> RunInfo:
    """What a judge must know about a run of the plan."""
    return replace(
        info_of(plan, leased_name(bug or GROUPED), settings(plan.config)),
        run=f"{GROUPED}-{bug or 'reference'}-{plan.seed}",
        parties=grouped_parties(bug),
        records=RECORDED,
    )


def simulate_grouped(
    plan: Plan,
    coordinator_class: type[Coordinator] = Coordinator,
    log_class: type[SequencedLog] = SequencedLog,
    bug: str = "",
) -> list[Row]:
    """Run the plan; the same plan gives the same rows. bug: what the classes are named by."""
    run = grouped_info(plan, bug).run
    return GroupWorld(plan, coordinator_class, log_class, run).play()
