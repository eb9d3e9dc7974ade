"""A simulated world of messages that are leased one by one: a server, members, a producer and a witness.

    world = LeasedWorld(plan)
    world.run_until(1_000)
    world.perform("start", {"client": "alice"})
    ...
    world.settle(plan.settle_ms)
    rows = world.rows()

Each member asks the server for the next message of every lane, works on it as the plan's listener says, and then
acknowledges it, or puts it back. A call that lasts for longer than half of a lease is renewed in its midst, by some of
the members. Nobody keeps a member from acknowledging late, which a pause makes it do: to refuse that is the server's.
Of the plan's configuration `broker_lease_ms` is the lease, `max_reconsume_times` the limit, `threads` how many messages
of a lane may be under lease at once, and `suspend_ms` the pause of a message that is put back.

Requests and answers take a moment and some get lost, by the dice of the plan's seed: who asked then has waited for
`ANSWER_MS`, and does not know. An action that does not fit the moment does nothing.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from reference_impl.core.leased_queue import HandOut, LeasedQueue
from reference_impl.sim.time import Timeline
from specs.faults import crash, pause
from specs.history.journal import MemoryRecorder
from specs.history.row import Row
from specs.history.runinfo import RunInfo, declared
from specs.plan.config import Config, config_of
from specs.plan.listener import Listener
from specs.plan.messages import Numbering, PlannedMessage
from specs.plan.plan import CONSUMER_DEFAULT, ClientPlan, ListenerRule, Plan
from specs.vocabulary import Kind, Lane, Level, Outcome, Queue

LEASED = "leased"
"""The target's name, and what the configuration says that it is one of."""
REFERENCE = "inorder reference, leased messages"
POLL_MS = 15
ANSWER_MS = 120
LOOK_MS = 40
TRAVEL_MS = (0, 1, 1, 2, 4)
LOST = 40
"""One in so many requests, and one in so many answers."""
QUESTIONS_LOST = 400
"""Likewise of questions for a message, of which there are many more."""
RENEWS = 2
"""Every second member renews the leases of long calls."""
IN_VAIN_MS = 100
"""So often a member tells of a question that brought nothing; of the others nothing is told."""
REST_MS = 500
WITNESS = "witness"
DRAIN = "drain"
RECORDED = declared(
    client={
        Kind.SEND,
        Kind.RECEIVE,
        Kind.DELIVER,
        Kind.ACK,
        Kind.RELEASE,
        Kind.RENEW,
        Kind.JOIN,
        Kind.LEAVE,
        Kind.CRASH,
        Kind.PAUSE,
        Kind.CLOCK_STEP,
        Kind.FAULT,
        Kind.RESET,
    },
    wire={Kind.READ},
    store={Kind.PROGRESS, Kind.DEAD_LETTER, Kind.TRIM},
)
TOLD = (
    "broker_lease_ms",
    "max_reconsume_times",
    "suspend_ms",
    "threads",
    "delay_bound_ms",
    "schedule_slack_ms",
)

Steps = Generator[int | Callable[[], Any], Any, None]
"""What somebody does: yields for how many ms it rests, or what it asks the server to do, and is then given the answer
in a tuple; None where that was lost."""


@dataclass(slots=True)
class Life:
    """A client, from its start on. tasks: that are not over. waiting: what is due since it was stopped."""

    plan: ClientPlan
    number: int
    leaves: bool = False
    paused: bool = False
    dead: bool = False
    tasks: int = 0
    waiting: list[tuple[Steps, Any]] = field(default_factory=list)
    inbox: list[PlannedMessage] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Question:
    """A member asks for the next message."""

    lane: LeasedQueue
    member: str
    world: LeasedWorld

    def __call__(self) -> HandOut | None:
        return self.lane.receive(self.world.now_ms, self.member)


class LeasedWorld:
    """See the module. queue_class: what the server runs for each lane."""

    def __init__(
        self, plan: Plan, queue_class: Callable[..., Any] = LeasedQueue, run: str = LEASED
    ) -> None:
        self.plan = plan
        self.timeline = Timeline()
        self._recorder = MemoryRecorder(run, self.timeline.now_us)
        self._dice = Random(f"leased {plan.seed}")
        self._ops = itertools.count(1)
        self._listener = Listener(plan.listener)
        self._messages = Numbering()
        self._clients = {client.id: client for client in plan.clients}
        self._lives: dict[str, Life] = {}
        self._started = itertools.count(1)
        self._pauses: dict[str, object] = {}
        self._times: dict[tuple[str, int], int] = {}
        broker = plan.topology.brokers[0]
        self.queues = [
            Queue(topic.name, broker, number)
            for topic in plan.topology.topics
            for number in range(topic.queues)
        ]
        self.stored: dict[Queue, list[PlannedMessage]] = {queue: [] for queue in self.queues}
        config = plan.config
        self.lanes = {
            Lane(group, *queue): queue_class(
                config.broker_lease_ms, config.max_reconsume_times, config.threads
            )
            for group in plan.topology.groups
            for queue in self.queues
        }
        self._letters = dict.fromkeys(self.lanes, 0)
        self._turn = itertools.count()
        for lane in self.lanes:
            self.timeline.after(LOOK_MS, self._look, lane)

    # ------------------------------------------------------------ time and actions

    @property
    def now_ms(self) -> int:
        return self.timeline.now_ms

    def run_until(self, at_ms: int) -> None:
        self.timeline.run_until(at_ms)

    def rows(self) -> list[Row]:
        return self._recorder.rows()

    def perform(self, do: str, args: Mapping[str, Any]) -> None:
        """Do an action of the plan now."""
        name = args.get("client") or args.get("node")
        life = self._lives.get(str(name))
        match do:
            case "start" | "restart" if life is None:
                self._start(self._clients[args["client"]])
            case "send" if life is not None and not life.leaves:
                life.inbox += self._messages.of(args)
            case "stop" if life is not None and not life.leaves:
                life.leaves = True
                self._recorder.begin((name, "leaves"), Kind.LEAVE, self._who(life))
                self._resume(life)
            case crash.VERB if life is not None:
                self._kill(life)
            case pause.VERB if life is not None and not life.paused and not life.leaves:
                life.paused = True
                self._recorder.begin((name, Kind.PAUSE), Kind.PAUSE, self._who(life))
            case pause.HEALED_BY if life is not None:
                self._resume(life)
            case _:
                pass

    def play(self) -> list[Row]:
        """All that the plan says, to the end."""
        for action in self.plan.actions:
            self.run_until(max(action.at_ms, self.now_ms))
            self.perform(action.do, action.args)
        self.run_until(max(self.plan.until_ms, self.now_ms))
        self.settle(self.plan.settle_ms)
        if self.plan.drain:
            self.drain()
        return self.rows()

    def settle(self, most_ms: int) -> bool:
        """Let who stands still go on, start the dead again, and wait until everything is finished."""
        for life in list(self._lives.values()):
            self._resume(life)
        for name, client in self._clients.items():
            if name not in self._lives and client.kind == "consumer":
                self._start(client)
        until_ms = self.now_ms + most_ms
        while self.now_ms < until_ms and not self.is_at_rest():
            self.run_until(min(until_ms, self.now_ms + REST_MS))
        rests = self.is_at_rest()
        if rests:
            self.run_until(self.now_ms + REST_MS)
        for name in list(self._lives):
            self.perform("stop", {"client": name})
        self.run_until(self.now_ms + ANSWER_MS + REST_MS)
        return rests

    def is_at_rest(self) -> bool:
        """Was all sent that is to be, and is all finished?"""
        return not any(life.inbox for life in self._lives.values()) and all(
            queue.floor == len(queue.entries) for queue in self.lanes.values()
        )

    def drain(self) -> None:
        """Read every queue to its end."""
        for queue in self.queues:
            common = {**queue._asdict(), "process": DRAIN, "client_id": DRAIN, "level": Level.WIRE}
            self._recorder.begin(queue, Kind.READ, common)
            for offset, message in enumerate(self.stored[queue]):
                found = {**message.columns(), "queue_offset": offset}
                self._recorder.note(Kind.READ, Outcome.OK, {**found, **common})
            self._recorder.end(queue, Outcome.OK, {"value": len(self.stored[queue])})

    # ------------------------------------------------------------ clients

    def _who(self, life: Life) -> dict[str, Any]:
        name = life.plan.id
        return {
            "process": name,
            "client_id": name,
            "group": life.plan.group or None,
            "level": Level.CLIENT,
        }

    def _start(self, client: ClientPlan) -> None:
        life = self._lives[client.id] = Life(client, next(self._started))
        if client.kind != "consumer":
            self._begin(life, self._produce(life))
            return
        self._recorder.note(Kind.JOIN, Outcome.OK, self._who(life))
        for steps in self.consume(life):
            self._begin(life, steps)

    def consume(self, life: Life) -> Iterable[Steps]:
        """What a member does: for each of its lanes it asks, and works."""
        client = life.plan
        return [
            self._consume(life, lane)
            for lane in self.lanes
            if lane.group == client.group and lane.topic in client.topics
        ]

    def _kill(self, life: Life) -> None:
        self._resume(life)
        life.dead = True
        self._times = {key: n for key, n in self._times.items() if key[0] != life.plan.id}
        del self._lives[life.plan.id]
        self._recorder.note(Kind.CRASH, Outcome.OK, self._who(life))

    def _resume(self, life: Life) -> None:
        if life.paused:
            life.paused = False
            self._recorder.end((life.plan.id, Kind.PAUSE), Outcome.OK)
            due, life.waiting = life.waiting, []
            for steps, value in due:
                self._go(life, steps, value)

    def _begin(self, life: Life, steps: Steps) -> None:
        life.tasks += 1
        self.timeline.after(0, self._go, life, steps, None)

    def _go(self, life: Life, steps: Steps, value: Any = None) -> None:
        if life.dead:
            return
        if life.paused:
            life.waiting.append((steps, value))
            return
        try:
            wanted = steps.send(value)
        except StopIteration:
            life.tasks -= 1
            if not life.tasks:
                self._left(life)
            return
        if callable(wanted):
            self._ask(life, steps, wanted)
        else:
            self.timeline.after(wanted, self._go, life, steps, None)

    def _ask(self, life: Life, steps: Steps, do: Callable[[], Any]) -> None:
        """The request travels to the server and the answer back, if neither is lost."""
        dice, lost = self._dice, QUESTIONS_LOST if isinstance(do, _Question) else LOST
        there_ms, back_ms = dice.choice(TRAVEL_MS), dice.choice(TRAVEL_MS)
        arrives, returns = dice.randrange(lost) > 0, dice.randrange(lost) > 0

        def at_the_server() -> None:
            answer = do()
            self._note_letters()
            if returns:
                self.timeline.after(back_ms, self._go, life, steps, (answer,))

        if arrives:
            self.timeline.after(there_ms, at_the_server)
        if not (arrives and returns):
            self.timeline.after(ANSWER_MS, self._go, life, steps, None)

    def _left(self, life: Life) -> None:
        life.dead = True
        self._lives.pop(life.plan.id, None)
        self._recorder.end((life.plan.id, "leaves"), Outcome.OK)

    def _produce(self, life: Life) -> Steps:
        while not (life.leaves and not life.inbox):
            if not life.inbox:
                yield POLL_MS
                continue
            message = life.inbox.pop(0)
            topic = [queue for queue in self.queues if queue.topic == message.topic]
            key = message.sharding_key
            number = next(self._turn) if key is None else zlib.crc32(key.encode())
            queue = topic[number % len(topic)]
            op = next(self._ops)
            told = {**message.columns(), **queue._asdict(), "attempt": 1}
            self._recorder.begin(op, Kind.SEND, {**self._who(life), **told})
            answer = yield self._storing(queue, message)
            if answer is None:
                self._recorder.end(op, Outcome.UNKNOWN)
            else:
                self._recorder.end(op, Outcome.OK, {"queue_offset": answer[0]})

    def _storing(self, queue: Queue, message: PlannedMessage) -> Callable[[], int]:
        def store() -> int:
            self.stored[queue].append(message)
            for lane, leased in self.lanes.items():
                if lane.queue == queue:
                    leased.append(message.sharding_key)
            return len(self.stored[queue]) - 1

        return store

    def _consume(self, life: Life, lane: Lane) -> Steps:
        leased, me = self.lanes[lane], life.plan.id
        told_ms = self.now_ms
        while not life.leaves:
            op, asked_us = next(self._ops), self.timeline.now_us()
            at = {**self._who(life), **lane._asdict()}
            self._recorder.begin(op, Kind.RECEIVE, at)
            answer = yield _Question(leased, me, self)
            if answer is None:
                self._recorder.end(op, Outcome.UNKNOWN)
                continue
            handed: HandOut | None = answer[0]
            if handed is None and self.now_ms - told_ms >= IN_VAIN_MS:
                told_ms = self.now_ms
                self._recorder.end(op, Outcome.REFUSED)
            elif handed is None:
                self._recorder.withdraw(op)
            if handed is None:
                yield POLL_MS
                continue
            message = self.stored[lane.queue][handed.offset]
            at |= {**message.columns(), "queue_offset": handed.offset, "lease_id": handed.receipt}
            at["reconsume_times"] = handed.times
            until = {"lease_until_us": asked_us + leased.lease_ms * 1000}
            self._recorder.end(op, Outcome.OK, {**at, **until})
            yield from self._work(life, lane, handed, message, at)

    def _work(
        self, life: Life, lane: Lane, handed: HandOut, message: PlannedMessage, at: dict[str, Any]
    ) -> Steps:
        """Call the listener, and say how it ended."""
        leased, rule = self.lanes[lane], self._rule(life, lane, message)
        op = next(self._ops)
        self._recorder.begin(op, Kind.DELIVER, at)
        half_ms = leased.lease_ms // 2
        if rule.duration_ms > half_ms and life.number % RENEWS == 0:
            yield half_ms
            yield from self._renew(lane, handed, at)
            yield rule.duration_ms - half_ms
        else:
            yield rule.duration_ms
        self._recorder.end(op, rule.outcome, {"commit_mode": "auto"})
        receipt = handed.receipt
        told = {name: value for name, value in at.items() if name != "reconsume_times"}
        op = next(self._ops)
        if rule.outcome in (Outcome.SUCCESS, Outcome.COMMIT, Outcome.ROLLBACK):
            self._recorder.begin(op, Kind.ACK, told)
            answer = yield lambda: leased.ack(self.now_ms, receipt)
        else:
            pause_ms = self._pause_ms(rule)
            self._recorder.begin(op, Kind.RELEASE, {**told, "suspend_ms": pause_ms})
            answer = yield lambda: leased.release(self.now_ms, receipt, pause_ms)
        self._recorder.end(op, outcome_of(answer))

    def _renew(self, lane: Lane, handed: HandOut, at: dict[str, Any]) -> Steps:
        leased, op = self.lanes[lane], next(self._ops)
        told = {name: value for name, value in at.items() if name != "reconsume_times"}
        told["lease_until_us"] = self.timeline.now_us() + leased.lease_ms * 1000
        self._recorder.begin(op, Kind.RENEW, told)
        answer = yield lambda: leased.renew(self.now_ms, handed.receipt) is not None
        self._recorder.end(op, outcome_of(answer))

    def _rule(self, life: Life, lane: Lane, message: PlannedMessage) -> ListenerRule:
        times = self._times[life.plan.id, message.number] = (
            self._times.get((life.plan.id, message.number), 0) + 1
        )
        return self._listener.decide(self.now_ms, life.plan.id, lane, [message], [times])

    def _pause_ms(self, rule: ListenerRule) -> int:
        asked = rule.suspend_ms
        return self.plan.config.suspend_ms if asked == CONSUMER_DEFAULT else asked

    # ------------------------------------------------------------ the server's side

    def _note_letters(self) -> None:
        """Write down what the server has given up since."""
        for lane, leased in self.lanes.items():
            for offset in leased.given_up[self._letters[lane] :]:
                message = self.stored[lane.queue][offset]
                told = {**lane._asdict(), "queue_offset": offset, "message_id": message.message_id}
                by = {"process": lane.broker, "level": Level.STORE}
                self._recorder.note(Kind.DEAD_LETTER, Outcome.OK, {**told, **by})
            self._letters[lane] = len(leased.given_up)

    def _look(self, lane: Lane) -> None:
        """The witness asks for the floor, again and again."""
        op = next(self._ops)
        by = {"process": WITNESS, "level": Level.STORE}
        self._recorder.begin(op, Kind.PROGRESS, {**lane._asdict(), **by})
        there_ms, back_ms = self._dice.choice(TRAVEL_MS), self._dice.choice(TRAVEL_MS)
        self.timeline.after(there_ms, self._asked, lane, op, back_ms)
        self.timeline.after(LOOK_MS, self._look, lane)

    def _asked(self, lane: Lane, op: int, back_ms: int) -> None:
        self.timeline.after(back_ms, self._answered, op, self.lanes[lane].floor)

    def _answered(self, op: int, floor: int) -> None:
        self._recorder.end(op, Outcome.OK, {"value": floor})


def outcome_of(answer: tuple[bool] | None) -> Outcome:
    if answer is None:
        return Outcome.UNKNOWN
    return Outcome.OK if answer[0] else Outcome.REFUSED


def settings(config: Config) -> Config:
    """What the server and the members were told."""
    ours = config.to_json()
    return config_of({"system": LEASED, **{name: ours[name] for name in TOLD}})


def leased_name(bug: str = "") -> str:
    """Of the target: the reference, or it with the bug of that name."""
    return f"{LEASED}:{bug}" if bug else LEASED


def leased_parties(bug: str = "") -> Mapping[str, str]:
    """Who implements broker, client and producer."""
    return parties_of(REFERENCE, bug)


def parties_of(reference: str, bug: str) -> Mapping[str, str]:
    """Who implements broker, client and producer, where only the broker can have a bug."""
    broker = f"inorder mutant {bug}" if bug else reference
    return {"broker": broker, "client": reference, "producer": reference}


def leased_info(plan: Plan, bug: str = "") -> RunInfo:
    """What a judge must know about a run of the plan."""
    return replace(
        info_of(plan, leased_name(bug), settings(plan.config)),
        parties=leased_parties(bug),
        records=RECORDED,
    )


def info_of(plan: Plan, target: str, config: Config) -> RunInfo:
    """What holds for each simulated server of this kind: everything is seen, by one clock, until it rests."""
    return RunInfo(
        run=f"{target.replace(':', '-')}-{plan.seed}",
        seed=plan.seed,
        target=target,
        levels=("client", "wire", "store"),
        clock_bounds_us={"virtual": 0},
        closed_world=True,
        settles=True,
        config=config,
        plan=plan.to_json(),
    )


def simulate_leased(
    plan: Plan, queue_class: type[LeasedQueue] = LeasedQueue, bug: str = ""
) -> list[Row]:
    """Run the plan; the same plan gives the same rows. bug: what the queue's class is named by."""
    return LeasedWorld(plan, queue_class, leased_info(plan, bug).run).play()
