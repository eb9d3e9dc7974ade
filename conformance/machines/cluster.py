"""A machine that builds and drives a simulated cluster, and has every run judged by all clauses.

Its rules draw small things: a burst of messages and the fate of one of them, a client that joins, leaves, dies or
stands still, a fault of a link, a broker that restarts, time passing to and just past the limits that matter, a
stranger who locks and unlocks. Everything that happens is written into a plan as it happens; the plan alone
replays the run to the byte. At the end faults are healed, the cluster comes to rest, every queue is read, and the
clauses say what they found.

The machine knows no clause: it is driven by what a cluster can meet, not by what a judge looks for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, ClassVar

from hypothesis import event, target
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from conformance.machines.abstraction import LaneState, lane_states
from reference_impl.mutants import Mutant
from reference_impl.protocol.codes import RequestCode, ResponseCode
from reference_impl.sim.cluster import EXCHANGE_MS, Cluster
from reference_impl.sim.simulate import cluster_of, runinfo_of
from specs.faults import (
    FAULTS,
    HEALINGS,
    broker_crash,
    clock_step,
    crash,
    cut,
    disk_full,
    drop_next,
    hold,
    lose,
    pause,
    request_error,
    upgrade,
)
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.plan.config import Config
from specs.plan.fault import Subject
from specs.plan.plan import (
    STATES,
    Action,
    ClientPlan,
    ListenerRule,
    Plan,
    TopicPlan,
    Topology,
)
from specs.plan.rig import NAME_SERVER
from specs.verdicts.examine import examine
from specs.verdicts.tally import Examination
from specs.verdicts.verdict import Coverage, coverage_of
from specs.vocabulary import Outcome

TOPIC = "orders"
GROUPS = ("billing", "audit")
CONSUMERS = {
    "c1": "billing",
    "c2": "billing",
    "c3": "billing",
    "c4": "billing",
    "d1": "audit",
    "d2": "audit",
}
PRODUCERS = ("p1", "p2")
PROBERS = ("e1", "e2", "e3")
STRANGERS = "strangers"
"""A group without members, in which the probers have the lanes to themselves."""
MOVED = "moved"
"""Another one, whose offsets an operator resets while the probers commit."""
REWINDS_MAX = 2

KEYS = ("k1", "k2", "k3", "k4")
TAGS: Mapping[str, str] = {"k1": "Aa", "k2": "BB", "k3": "red"}
"""Of the messages of a key; the first two have the same hash code in Java."""
BATCH = "batch"
"""Instead of a key: all messages in one request."""
SUBSCRIPTIONS = ("*", "*", "*", "*", "*", "Aa || red")
MESSAGES_MAX = 60
DELIVERIES_MAX = 30
"""So often at most a listener suspends one message: who counts gives it up long before, who does not goes on."""
SETTLE_MS = 200_000
BURIALS_MAX = 2
BURIAL_MS = 30_000
"""How long a run waits, at most, until a member that died without a word is no member any more."""

SHORT: Mapping[str, int] = {
    "broker_lease_ms": 3_000,
    "client_lease_ms": 1_500,
    "lock_interval_ms": 1_000,
    "rebalance_ms": 2_000,
    "persist_ms": 1_000,
    "persist_first_ms": 1_000,
    "heartbeat_ms": 3_000,
    "channel_expiry_ms": 12_000,
    "long_poll_ms": 4_000,
    "shutdown_wait_ms": 500,
    "suspend_ms": 100,
    "continuous_ms": 3_000,
    "transaction_timeout_ms": 300,
    "transaction_check_interval_ms": 1_500,
    "transaction_check_max": 2,
}
"""Every interval of the product, about twenty times shorter and in the same ratios."""

GAPS_MS = (1, 2, 5, 20, 100, 400, 1_100)
SUSPENDS_MS = (-1, 0, 9, 10, 11, 100, 1_000, 2_000, 30_000, 30_001)
TROUBLES: Mapping[str, tuple[str, int]] = {
    "none": ("well", 0),
    "poison": ("poison", 10),
    "poison by default": ("poison", -1),
    "default": ("suspend", -1),
    "throw": ("throw", -1),
    "null": ("null", -1),
    "at once": ("suspend", 0),
    "slow": ("slow", 0),
    "suspended for long": ("suspend", 3_000),
    "rolled back": ("rollback", 10),
    "given up in vain": ("poison", 10),
}
"""What a message of a larger burst can meet: a fate, and the suspend time that the listener asks for."""
OFTEN = (*TROUBLES, "poison", "poison", "rolled back", "given up in vain", "given up in vain")
"""Some need more of their kind: what they lead to takes a limit, a fresh lease, or a message taken before."""
FRAMES = "frames"
MISCHIEF = ("", "", "", "", FRAMES, "clocks")
"""What only some runs meet, since clauses have it as a premise that it does not happen: frames that come twice or
overtake each other, wall clocks that are set."""
CODES = (
    RequestCode.LOCK_BATCH_MQ,
    RequestCode.UNLOCK_BATCH_MQ,
    RequestCode.UPDATE_CONSUMER_OFFSET,
    RequestCode.QUERY_CONSUMER_OFFSET,
    RequestCode.PULL_MESSAGE,
    RequestCode.SEND_MESSAGE_V2,
    RequestCode.HEART_BEAT,
    RequestCode.GET_CONSUMER_LIST_BY_GROUP,
)


AND_UPGRADED_MS = 300
"""A broker that was away for so long is upgraded besides, and back."""
FATES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "request lost": (drop_next.VERB, {"answer": False}),
    "answer lost": (drop_next.VERB, {"answer": True}),
    "busy": (request_error.VERB, {"error": int(ResponseCode.SYSTEM_BUSY)}),
    "failed": (request_error.VERB, {"error": int(ResponseCode.SYSTEM_ERROR)}),
}
"""What can become of one request: the fault, and what is said of it."""


def troubles_of_links(only_in: str = "") -> tuple[str, ...]:
    """The faults of a link that are drawn in all runs, or only in those of that mischief, as often as they say."""
    return tuple(
        verb
        for verb, fault in FAULTS.items()
        if fault.drawn is not None and fault.drawn.only_in == only_in
        for _ in range(fault.drawn.times)
    )


class Refuted(BaseException):
    """A wanted clause was broken: the search ends here. clause_ids: which ones.

    No Exception, or else Hypothesis would make the run twice more in order to report it.
    """

    def __init__(self, clause_ids: tuple[str, ...]) -> None:
        super().__init__(f"refuted: {', '.join(clause_ids)}")
        self.clause_ids = clause_ids


class Enough(BaseException):
    """The search has seen what it was made for, and ends. No Exception, for the same reason."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the machine."""

    info: RunInfo
    plan: Plan
    rows: list[Row]
    examination: Examination
    events: int


@dataclass(slots=True)
class Collector:
    """What all runs of a search found together.

    wanted: which refuted clauses end the search. mutant: whose cores run. on_run: told of each run. judge: what
    is said of it. config: what every plan's configuration has to say. enough: asked after each run, whether it was the
    last one.
    """

    wanted: Callable[[tuple[str, ...]], tuple[str, ...]]
    mutant: Mutant | None = None
    on_run: Callable[[Run], None] = lambda run: None
    judge: Callable[[list[Row], RunInfo], Examination] = examine
    config: Mapping[str, Any] = field(default_factory=dict)
    enough: Callable[[], bool] = lambda: False
    is_over: Callable[[], bool] = lambda: False
    total: Examination = field(default_factory=Examination)
    runs: int = 0
    events: int = 0
    states: set[LaneState] = field(default_factory=set)  # abstract ones that some run reached
    reached: list[frozenset[LaneState]] = field(default_factory=list)
    broken: Run | None = None
    other: Run | None = None  # the first run with a violation of a clause that was not wanted
    widest: Run | None = None  # the run in which most clauses were at stake

    @property
    def asked(self) -> Mapping[str, Any]:
        """Of every plan's configuration: what the profile says, and that without which a bug has no occasion."""
        return {**self.config, **(self.mutant.config if self.mutant is not None else {})}

    @property
    def coverage(self) -> Coverage:
        """What was reached by all runs."""
        return coverage_of(self.reached)

    def take(self, run: Run) -> tuple[str, ...]:
        """Add a run; the wanted clauses that it refutes."""
        self.runs += 1
        self.events += run.events
        refuted = run.examination.refuted()
        found = self.wanted(refuted)
        if found and self.broken is None:
            self.broken = run
        if refuted and self.other is None:
            self.other = run
        if self.widest is None or _width(run) > _width(self.widest):
            self.widest = run
        self.on_run(run)
        self.total.merge(run.examination)
        return found


def _width(run: Run) -> tuple[bool, int]:
    """Which run is worth keeping: one whose faults all had their effect, then by the clauses at stake in it."""
    effective = all(effect for _, effect in run.examination.facts.faults)
    return effective, sum(1 for tally in run.examination.tallies.values() if tally.opportunities)


class ClusterMachine(RuleBasedStateMachine):
    """See the module. Subclassed with a collector by `side_by_side.machine_for`."""

    collector: ClassVar[Collector]
    short: ClassVar[Mapping[str, Any]] = SHORT
    knows_manual: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self.plan = Plan()
        self.cluster: Cluster | None = None
        self.actions: list[Action] = []
        self.decisions: list[ListenerRule] = []
        self.sent = 0
        self.is_manual = False
        self.mischief = ""
        self.states: set[LaneState] = set()
        self.burials = 0
        self.rewinds = 0
        self.is_moved = False

    # ------------------------------------------------------------ the plan, as it is written

    @property
    def world(self) -> Cluster:
        assert self.cluster is not None, "the machine begins with `begin`"
        return self.cluster

    @property
    def config(self) -> Config:
        return self.plan.config

    def do(self, verb: str, **args: Any) -> None:
        self.actions.append(Action(self.world.now_ms, verb, args))
        with self.breaking():
            self.world.perform(verb, args)

    def listen(self, listener_rule: ListenerRule) -> None:
        self.decisions.append(listener_rule)
        self.world.add_rule(listener_rule)

    def wait(self, ms: int) -> None:
        """Time passes: at least a millisecond, so that what was just done comes before what follows."""
        with self.breaking():
            self.world.run_until(self.world.now_ms + max(1, ms))
            self.states.update(lane_states(self.world))

    @contextmanager
    def breaking(self) -> Iterator[None]:
        """After an error there is nothing left to judge: the teardown must not hide it behind another."""
        try:
            yield
        except BaseException:
            self.cluster = None
            raise

    def trouble(self, verb: str, who: str, server: str, size: int) -> None:
        """A link suffers from now on. size: its number, if it has one, and if that is not too large for it."""
        fault = FAULTS[verb]
        most = size if fault.drawn is None or fault.drawn.most is None else fault.drawn.most
        number = {} if fault.number is None else {fault.number: min(size, most)}
        self.do(verb, a=who, b=server, **number)

    def mend(self, who: str, server: str) -> None:
        self.do(cut.HEALED_BY, a=who, b=server)

    def pick(self, names: tuple[str, ...] | list[str], number: int) -> str:
        return names[number % len(names)]

    # ------------------------------------------------------------ begin

    @initialize(
        seed=st.integers(0, 9_999),
        short=st.sampled_from((True, True, True, False)),
        limit=st.sampled_from((1, 2, 0, 1, -1)),
        batch=st.sampled_from((1, 1, 1, 1, 2)),
        threads=st.sampled_from((20, 1)),
        brokers=st.sampled_from((1, 1, 2)),
        queues=st.sampled_from((2, 1, 3, 4)),
        manual=st.sampled_from((False, False, False, True)),
        consume_from=st.sampled_from(("first", "first", "last", "timestamp")),
        pace_ms=st.sampled_from((1, 5, 40)),
        members=st.integers(1, 3),
        strategy=st.sampled_from(("AVG", "AVG", "CIRCLE", "CONSISTENT_HASH")),
        subscription=st.sampled_from(SUBSCRIPTIONS),
        audit=st.booleans(),
        keys=st.integers(0, 4),
        effort=st.sampled_from(("light", "light", "steady", "heavy")),
        trouble=st.sampled_from(OFTEN),
        mischief=st.sampled_from(MISCHIEF),
    )
    def begin(
        self,
        seed: int,
        short: bool,
        limit: int,
        batch: int,
        threads: int,
        brokers: int,
        queues: int,
        manual: bool,
        consume_from: str,
        pace_ms: int,
        members: int,
        strategy: str,
        subscription: str,
        audit: bool,
        keys: int,
        effort: str,
        trouble: str,
        mischief: str,
    ) -> None:
        self.mischief = mischief
        manual = manual and self.knows_manual
        numbers: dict[str, Any] = {**self.short} if short else {}
        numbers |= {
            "max_reconsume_times": limit,
            "batch": batch,
            "threads": threads,
            "consume_from": consume_from,
        }
        numbers |= {"strategy": strategy, "subscription": subscription}
        mutant = self.collector.mutant
        numbers |= self.collector.asked
        config = replace(Config(), **numbers)
        clients = [
            ClientPlan(name, "consumer", group, (TOPIC,)) for name, group in CONSUMERS.items()
        ]
        clients += [ClientPlan(name, "producer", topics=(TOPIC,)) for name in PRODUCERS]
        clients += [ClientPlan(name, "prober") for name in PROBERS]
        self.plan = Plan(
            seed=seed,
            topology=Topology(
                tuple(f"b{n}" for n in range(brokers)),
                (TopicPlan(TOPIC, queues),),
                (*GROUPS, MOVED),
            ),
            config=config,
            clients=tuple(clients),
            settle_ms=SETTLE_MS,
        )
        self.cluster = cluster_of(self.plan, mutant)
        self.listen(ListenerRule(duration_ms=pace_ms, manual=manual))
        self.is_manual = manual
        self.do("start", client="p1")
        self.do("start", client="p2")
        for number in range(members):
            self.do("start", client=f"c{number + 1}")
        if audit:
            self.do("start", client="d1")
        self.wait(50)
        self.load(keys, 3, effort, trouble)

    # ------------------------------------------------------------ messages

    @precondition(lambda self: self.sent < MESSAGES_MAX)
    @rule(
        producer=st.sampled_from(PRODUCERS),
        key=st.sampled_from((*KEYS, None, BATCH)),
        count=st.integers(1, 6),
        which=st.integers(0, 5),
        fate=st.sampled_from(
            ("well", "suspend", "poison", "poison", "throw", "null", "slow", "commit", "rollback")
        ),
        suspend_ms=st.sampled_from(SUSPENDS_MS),
        times=st.integers(1, 3),
        gap_ms=st.sampled_from(GAPS_MS),
    )
    def send(
        self,
        producer: str,
        key: str | None,
        count: int,
        which: int,
        fate: str,
        suspend_ms: int,
        times: int,
        gap_ms: int,
    ) -> None:
        self.sent += count
        self.decide(self.world.message_number + 1 + which % count, fate, suspend_ms, times)
        if key == BATCH:  # and messages of the other producer at the same time
            other = PRODUCERS[1 - PRODUCERS.index(producer)]
            tag = sorted(TAGS.values())[which % 3]
            self.do("send", client=producer, topic=TOPIC, count=count, batch=True, tags=tag)
            self.do("send", client=other, topic=TOPIC, count=2)
            self.sent += 2
        else:
            args = {} if key is None else {"key": key}
            self.do("send", client=producer, topic=TOPIC, count=count, **args)
        self.wait(gap_ms)

    @precondition(lambda self: self.sent < MESSAGES_MAX)
    @rule(
        producer=st.sampled_from(PRODUCERS),
        key=st.sampled_from((*KEYS, None)),
        count=st.integers(1, 2),
        ends=st.sampled_from(("rollback", "commit", "unknown")),
        checked=st.sampled_from(STATES),
        gap_ms=st.sampled_from(GAPS_MS),
    )
    def send_half(
        self, producer: str, key: str | None, count: int, ends: str, checked: str, gap_ms: int
    ) -> None:
        """Messages that nobody may see before their commit."""
        self.sent += count
        args = {} if key is None else {"key": key}
        self.do(
            "send_half",
            client=producer,
            topic=TOPIC,
            count=count,
            ends=ends,
            checked=checked,
            **args,
        )
        self.wait(gap_ms)

    @precondition(lambda self: self.sent < MESSAGES_MAX)
    @rule(
        key=st.sampled_from((*KEYS, None)),
        count=st.integers(1, 2),
        level=st.sampled_from((1, 1, 2)),
        restarts=st.sampled_from((False, False, False, True)),
        gap_ms=st.sampled_from(GAPS_MS),
    )
    def send_delayed(
        self, key: str | None, count: int, level: int, restarts: bool, gap_ms: int
    ) -> None:
        """Messages that nobody may see before the time of their delay level, one second or five, whatever happens."""
        self.sent += count
        args = {} if key is None else {"key": key}
        self.do("send", client=PRODUCERS[0], topic=TOPIC, count=count, delay_level=level, **args)
        if restarts:
            self.wait(20)
            for verb in (broker_crash.VERB, broker_crash.HEALED_BY):
                for broker in self.plan.topology.brokers:
                    self.do(verb, broker=broker)
        self.wait(gap_ms)

    @precondition(lambda self: self.sent < MESSAGES_MAX)
    @rule(
        keys=st.integers(1, 4),
        count=st.integers(2, 6),
        effort=st.sampled_from(("light", "steady", "heavy", "heavy")),
        trouble=st.sampled_from(OFTEN),
        gap_ms=st.sampled_from(GAPS_MS),
    )
    def send_work(self, keys: int, count: int, effort: str, trouble: str, gap_ms: int) -> None:
        """Enough messages to keep the lanes busy for a while, and a batch in one request."""
        self.load(keys, count, effort, trouble)
        self.sent += 3
        self.do("send", client=PRODUCERS[1], topic=TOPIC, count=3, batch=True)
        self.wait(gap_ms)

    @precondition(lambda self: self.sent < MESSAGES_MAX and self.config.threads > 1)
    @rule(
        number=st.integers(0, 3),
        rest_ms=st.sampled_from((3_000, 2_000, 30_000)),
        rounds=st.integers(1, 2),
        gap_ms=st.sampled_from((100, 400, 20)),
    )
    def let_one_rest(self, number: int, rest_ms: int, rounds: int, gap_ms: int) -> None:
        """A message of one key is suspended for long, and meanwhile there are some of the other keys."""
        key = self.pick(KEYS, number)
        self.sent += 1
        self.decide(self.world.message_number + 1, "suspend", rest_ms, 1)
        self.do("send", client=PRODUCERS[0], topic=TOPIC, key=key, count=1)
        for _ in range(rounds):
            self.wait(gap_ms)
            for other in KEYS:
                if other != key:
                    self.sent += 1
                    self.do("send", client=PRODUCERS[1], topic=TOPIC, key=other, count=1)
        self.wait(gap_ms)

    def load(self, keys: int, count: int, effort: str, trouble: str = "none") -> None:
        """A burst for each of the first keys. effort: how long the listener takes for each message.

        trouble: what the second message of each burst meets.
        """
        config = self.config
        duration_ms = {
            "light": 2,
            "steady": config.lock_interval_ms // 3,
            "heavy": config.client_lease_ms // 2,
        }[effort]
        for key in KEYS[:keys]:
            first = self.world.message_number + 1
            self.sent += count
            for number in range(first, first + count):
                self.listen(
                    ListenerRule(duration_ms=duration_ms, manual=self.is_manual, number=number)
                )
            self.decide(first + 1, *TROUBLES[trouble], times=1 if trouble == "rolled back" else 2)
            if config.batch > 1 and config.max_reconsume_times >= 0:
                self.decide(
                    first + count - 1, "poison", 10, 1
                )  # given up while others of its batch may have tries
            tags = {"tags": TAGS[key]} if key in TAGS else {}
            self.do("send", client=PRODUCERS[0], topic=TOPIC, key=key, count=count, **tags)
        if trouble == "given up in vain":
            code = int(RequestCode.SEND_MESSAGE_V2)  # of a consumer: a dead letter
            running = [name for name in CONSUMERS if self.world.is_running(name)]
            for who, broker in product(running, self.plan.topology.brokers):
                for answer in (True, False, bool(keys % 2)):
                    self.do(drop_next.VERB, a=who, b=broker, code=code, answer=answer)

    def decide(self, number: int, fate: str, suspend_ms: int, times: int) -> None:
        """How the deliveries of a message end. Without a limit of retries nothing is suspended for ever."""
        manual = self.is_manual
        ends = (
            self.config.max_reconsume_times >= 0 or 0 <= suspend_ms <= 10
        )  # where many tries take no time
        bound: int | None = DELIVERIES_MAX if fate == "poison" and ends else times
        match fate:
            case "suspend" | "poison":
                outcome, duration_ms = Outcome.SUSPEND, 2
            case "throw":
                outcome, duration_ms = Outcome.THREW, 1
            case "null":
                outcome, duration_ms = Outcome.NULL, 1
            case "commit":
                outcome, duration_ms, bound = Outcome.COMMIT, 3, None
            case "rollback":
                outcome, duration_ms, manual = Outcome.ROLLBACK, 2, manual or times == 1
            case "slow":
                limits = (
                    self.config.lock_interval_ms,
                    self.config.client_lease_ms,
                    self.config.broker_lease_ms,
                )
                outcome, duration_ms, bound = Outcome.SUCCESS, limits[times - 1] + 300, None
            case _:
                return
        self.listen(
            ListenerRule(
                outcome=outcome,
                suspend_ms=suspend_ms,
                duration_ms=duration_ms,
                manual=manual,
                number=number,
                delivery_max=bound,
            )
        )

    # ------------------------------------------------------------ clients

    @rule(
        who=st.sampled_from(tuple(CONSUMERS)),
        how=st.sampled_from(("stop", "stop", crash.VERB, crash.VERB, "vanish")),
        gap_ms=st.sampled_from(GAPS_MS),
    )
    def join_or_leave(self, who: str, how: str, gap_ms: int) -> None:
        """Who runs goes, who does not run comes."""
        world = self.world
        if not world.has_started(who):
            self.do("start", client=who)
        elif not world.is_running(who):
            self.do(crash.HEALED_BY, client=who)
        elif how == "stop":
            self.do("stop", client=who)
        else:
            self.do(crash.VERB, client=who, silent=how == "vanish")
        self.wait(gap_ms)

    @rule(
        number=st.integers(0, 9),
        how=st.sampled_from(("stop", crash.VERB)),
        gap_ms=st.sampled_from(GAPS_MS),
    )
    def hand_over(self, number: int, how: str, gap_ms: int) -> None:
        """A member that works goes, while another one is there to take over."""
        running = [
            name
            for name, group in CONSUMERS.items()
            if self.world.is_running(name) and group == GROUPS[0]
        ]
        fresh = [
            name for name, group in CONSUMERS.items() if name not in running and group == GROUPS[0]
        ]
        if fresh and len(running) < 2:
            name = self.pick(fresh, number)
            self.do(crash.HEALED_BY if self.world.has_started(name) else "start", client=name)
            self.wait(self.config.rebalance_ms + 100)
        if running:
            self.do(how, client=self.pick(running, number))
        self.wait(gap_ms)

    @precondition(lambda self: self.sent < MESSAGES_MAX)
    @rule(number=st.integers(0, 5), intervals=st.integers(1, 3), gap_ms=st.sampled_from(GAPS_MS))
    def join_during_long_calls(self, number: int, intervals: int, gap_ms: int) -> None:
        """A member comes while the others are in calls that take longer than a renewal."""
        members = [name for name, group in CONSUMERS.items() if group == GROUPS[0]]
        fresh = [name for name in members if not self.world.is_running(name)]
        if not fresh or len(fresh) == len(members):
            return
        duration_ms = intervals * self.config.lock_interval_ms + 400
        for key in KEYS:
            self.sent += 1
            message = self.world.message_number + 1
            self.listen(
                ListenerRule(duration_ms=duration_ms, manual=self.is_manual, number=message)
            )
            self.do("send", client=PRODUCERS[0], topic=TOPIC, key=key, count=1)
        self.wait(50)
        name = self.pick(fresh, number)
        self.do(crash.HEALED_BY if self.world.has_started(name) else "start", client=name)
        self.wait(duration_ms + gap_ms)

    @precondition(lambda self: self.burials < BURIALS_MAX)
    @rule(number=st.integers(0, 5), silent=st.booleans(), vigil=st.booleans())
    def bury(self, number: int, silent: bool, vigil: bool) -> None:
        """One of two members dies, and nothing else happens until its lanes should have found another owner."""
        config = self.config
        members = [name for name, group in CONSUMERS.items() if group == GROUPS[0]]
        running = [
            name
            for name in members
            if self.world.is_running(name) and not self.world.is_paused(name)
        ]
        fresh = [name for name in members if name not in running]
        if len(running) < 2 and fresh:
            name = self.pick(fresh, number)
            self.do(crash.HEALED_BY if self.world.has_started(name) else "start", client=name)
            self.wait(config.rebalance_ms + 100)
            running.append(name)
        if len(running) < 2:
            return
        self.burials += 1
        self.do(crash.VERB, client=self.pick(running, number), silent=silent)
        removed_ms = config.channel_expiry_ms + 10_000 if silent else 0
        if vigil and removed_ms <= BURIAL_MS:
            self.wait(removed_ms + config.broker_lease_ms + 2 * config.rebalance_ms)
            self.wait(config.delay_bound_ms + config.schedule_slack_ms + config.lock_interval_ms)
        else:
            self.wait(20)

    @rule(
        who=st.sampled_from((*CONSUMERS, "p1", "b0")),
        limit=st.sampled_from(("moment", "lock", "client", "broker")),
        beyond_ms=st.sampled_from((-1, 0, 1, 400)),
    )
    def stand_still(self, who: str, limit: str, beyond_ms: int) -> None:
        """A process is stopped for about as long as one of the limits, and goes on."""
        if not self.world.is_running(who) or self.world.is_paused(who):
            return
        long_ms = self.limit(limit) if who != "b0" else min(self.limit(limit), 1_500)
        self.do(pause.VERB, node=who)
        self.wait(long_ms + beyond_ms)
        self.do(pause.HEALED_BY, node=who)
        self.wait(20)

    def limit(self, name: str) -> int:
        config = self.config
        return {
            "moment": 300,
            "lock": config.lock_interval_ms,
            "client": config.client_lease_ms,
            "broker": config.broker_lease_ms,
            "rebalance": config.rebalance_ms,
        }[name]

    # ------------------------------------------------------------ brokers and links

    @rule(number=st.integers(0, 1), down_ms=st.sampled_from((10, AND_UPGRADED_MS, 2_500)))
    def restart_broker(self, number: int, down_ms: int) -> None:
        broker = self.pick(self.plan.topology.brokers, number)
        self.do(broker_crash.VERB, broker=broker)
        self.wait(down_ms)
        self.do(broker_crash.HEALED_BY, broker=broker)
        self.wait(20)
        self.ask_where_to_go_on()
        if down_ms == AND_UPGRADED_MS:
            for verb in (upgrade.VERB, upgrade.HEALED_BY):
                self.do(verb, broker=broker)
                self.wait(EXCHANGE_MS + 20)
                self.ask_where_to_go_on()

    def ask_where_to_go_on(self) -> None:
        """Before anybody has reported anew."""
        self.probe("probe_offset", PROBERS[0], GROUPS[0], 0, wide=True)
        if self.is_moved:
            self.probe("probe_offset", PROBERS[0], MOVED, 0, wide=True)

    @precondition(lambda self: self.sent < MESSAGES_MAX)
    @rule(
        number=st.integers(0, 1),
        producer=st.sampled_from(PRODUCERS),
        key=st.sampled_from((*KEYS, None, None)),
        count=st.integers(1, 4),
        full_ms=st.sampled_from((5, 100, 1_200)),
    )
    def fill_disk(
        self, number: int, producer: str, key: str | None, count: int, full_ms: int
    ) -> None:
        """A broker refuses what is sent to it while its disk is full."""
        broker = self.pick(self.plan.topology.brokers, number)
        self.sent += count
        self.do(disk_full.VERB, broker=broker)
        self.do(
            "send",
            client=producer,
            topic=TOPIC,
            count=count,
            **({} if key is None else {"key": key}),
        )
        self.wait(full_ms)
        self.do(disk_full.HEALED_BY, broker=broker)
        self.wait(5)

    @rule(
        who=st.sampled_from((*CONSUMERS, "p1")),
        server=st.sampled_from(("b0", "b0", "b1", NAME_SERVER)),
        kind=st.sampled_from(troubles_of_links()),
        size=st.sampled_from((20, 60, 300, 1_500)),
        for_ms=st.sampled_from((10, 300, 1_200, 1_900, 4_000)),
        heal=st.booleans(),
    )
    def break_link(
        self, who: str, server: str, kind: str, size: int, for_ms: int, heal: bool
    ) -> None:
        server = server if server in self.plan.topology.brokers else "b0"
        self.trouble(kind, who, server, size)
        self.wait(for_ms)
        if heal:
            self.mend(who, server)
            self.wait(5)

    @rule(
        number=st.integers(0, 5),
        kind=st.sampled_from((cut.VERB, hold.VERB, lose.VERB)),
        limit=st.sampled_from(("lock", "client", "broker")),
        beyond_ms=st.sampled_from((1, 400, 1_200)),
        count=st.integers(2, 6),
        effort=st.sampled_from(("steady", "heavy", "heavy")),
        other=st.booleans(),
    )
    def cut_off_at_work(
        self,
        number: int,
        kind: str,
        limit: str,
        beyond_ms: int,
        count: int,
        effort: str,
        other: bool,
    ) -> None:
        """A member loses sight of the brokers while it works through what it holds; others may be there."""
        running = [
            name
            for name, group in CONSUMERS.items()
            if self.world.is_running(name) and group == GROUPS[0]
        ]
        if not running or self.sent >= MESSAGES_MAX:
            return
        self.load(len(KEYS), count, effort)
        self.wait(100)
        who = self.pick(running, number)
        for broker in self.plan.topology.brokers:
            self.trouble(kind, who, broker, 50)
        fresh = [
            name
            for name, group in CONSUMERS.items()
            if group == GROUPS[0] and not self.world.has_started(name)
        ]
        if other and fresh:
            self.do("start", client=fresh[0])
        self.wait(self.limit(limit) + beyond_ms)
        for broker in self.plan.topology.brokers:
            self.mend(who, broker)
        self.wait(20)

    @rule(
        number=st.integers(0, 5),
        joins=st.booleans(),
        code=st.sampled_from(CODES[:6]),
        error=st.sampled_from(("busy", "failed")),
        times=st.integers(1, 6),
        limit=st.sampled_from(("moment", "client", "broker")),
        effort=st.sampled_from(("steady", "heavy")),
    )
    def errors_at_work(
        self,
        number: int,
        joins: bool,
        code: RequestCode,
        error: str,
        times: int,
        limit: str,
        effort: str,
    ) -> None:
        """The brokers answer some requests of a member with errors, while it works or while it takes lanes over."""
        members = [name for name, group in CONSUMERS.items() if group == GROUPS[0]]
        running = [name for name in members if self.world.is_running(name)]
        fresh = [name for name in members if name not in running]
        chosen = fresh if joins else running
        if not chosen or self.sent >= MESSAGES_MAX:
            return
        who = self.pick(chosen, number)
        self.load(len(KEYS), 3, effort)
        verb, more = FATES[error]
        for broker in self.plan.topology.brokers:
            for _ in range(times):
                self.do(verb, a=who, b=broker, code=int(code), **more)
        if joins:
            self.wait(self.config.persist_first_ms)
            self.do(crash.HEALED_BY if self.world.has_started(who) else "start", client=who)
        self.wait(self.limit(limit) + 50)
        for broker in self.plan.topology.brokers:
            self.mend(who, broker)
        self.wait(20)

    @rule(
        number=st.integers(0, 5),
        leaves=st.sampled_from((crash.VERB, "stop", "stays")),
        percent=st.sampled_from((10, 20, 20, 40)),
        count=st.integers(2, 5),
    )
    def join_on_a_bad_line(self, number: int, leaves: str, percent: int, count: int) -> None:
        """A member goes in the middle of its work, and the one who comes loses frames while it takes over."""
        members = [name for name, group in CONSUMERS.items() if group == GROUPS[0]]
        running = [name for name in members if self.world.is_running(name)]
        fresh = [name for name in members if name not in running]
        if not fresh or self.sent >= 2 * MESSAGES_MAX:
            return
        self.load(len(KEYS), count, "steady")
        self.wait(self.config.persist_first_ms)
        for broker in self.plan.topology.brokers:
            self.trouble(lose.VERB, fresh[0], broker, percent)
        self.do(crash.HEALED_BY if self.world.has_started(fresh[0]) else "start", client=fresh[0])
        if running and leaves != "stays":
            self.do(leaves, client=self.pick(running, number))
        self.wait(self.config.broker_lease_ms + self.config.rebalance_ms)
        for broker in self.plan.topology.brokers:
            self.mend(fresh[0], broker)
        self.load(len(KEYS), 1, "light")
        self.wait(20)

    @rule(who=st.sampled_from(tuple(CONSUMERS)), server=st.sampled_from(("b0", "b1")))
    def mend_link(self, who: str, server: str) -> None:
        if server in self.plan.topology.brokers:
            self.mend(who, server)
            self.wait(1)

    @rule(
        who=st.sampled_from((*CONSUMERS, "p1")),
        server=st.sampled_from(("b0", "b1")),
        code=st.sampled_from(CODES),
        fate=st.sampled_from(tuple(FATES)),
        gap_ms=st.sampled_from(GAPS_MS),
    )
    def one_request_fails(
        self, who: str, server: str, code: RequestCode, fate: str, gap_ms: int
    ) -> None:
        """The next request of that code is lost, or its answer, or it is answered with an error."""
        if server not in self.plan.topology.brokers:
            return
        verb, more = FATES[fate]
        self.do(verb, a=who, b=server, code=int(code), **more)
        self.wait(gap_ms)

    # ------------------------------------------------------------ time

    @rule(
        limit=st.sampled_from(("moment", "lock", "client", "broker", "rebalance")),
        beyond_ms=st.sampled_from((-1, 0, 1, 2, 50)),
    )
    def pass_time(self, limit: str, beyond_ms: int) -> None:
        self.wait(self.limit(limit) + beyond_ms)

    @precondition(lambda self: self.mischief == "clocks")
    @rule(
        who=st.sampled_from((*CONSUMERS, "p1", "b0", "b0")),
        limit=st.sampled_from(("moment", "client", "broker")),
        beyond_ms=st.sampled_from((-1, 0, 1, 400)),
        back=st.booleans(),
        gap_ms=st.sampled_from(GAPS_MS),
    )
    def step_clock(self, who: str, limit: str, beyond_ms: int, back: bool, gap_ms: int) -> None:
        """Somebody sets a wall clock by about as much as one of the limits."""
        ms = self.limit(limit) + beyond_ms
        self.do(clock_step.VERB, node=who, ms=-ms if back else ms)
        self.wait(gap_ms)

    @precondition(lambda self: self.mischief == FRAMES)
    @rule(
        who=st.sampled_from((*CONSUMERS, "p1")),
        server=st.sampled_from(("b0", "b0", "b1", NAME_SERVER)),
        kind=st.sampled_from(troubles_of_links(FRAMES)),
        size=st.sampled_from((5, 30, 100, 1_500)),
        gap_ms=st.sampled_from(GAPS_MS),
    )
    def confuse_frames(self, who: str, server: str, kind: str, size: int, gap_ms: int) -> None:
        """Frames come twice, or overtake each other, until the link is mended."""
        if server in (*self.plan.topology.brokers, NAME_SERVER):
            self.trouble(kind, who, server, size)
            self.wait(gap_ms)

    # ------------------------------------------------------------ strangers

    def probe(self, verb: str, who: str, group: str, queue: int, *, wide: bool = False) -> None:
        broker = self.plan.topology.brokers[0]
        queues = self.plan.topology.topics[0].queues
        chosen = list(range(queues)) if wide else [queue % queues]
        self.do(verb, client=who, group=group, topic=TOPIC, broker=broker, queues=chosen)

    @rule(
        who=st.sampled_from(PROBERS),
        group=st.sampled_from((STRANGERS, *GROUPS)),
        verb=st.sampled_from(("probe_lock", "probe_unlock")),
        queue=st.integers(0, 3),
        wide=st.booleans(),
        gap_ms=st.sampled_from(GAPS_MS),
    )
    def meddle(self, who: str, group: str, verb: str, queue: int, wide: bool, gap_ms: int) -> None:
        """A stranger asks for a lane, or gives back what may not be its own."""
        self.probe(verb, who, group, queue, wide=wide)
        self.wait(gap_ms)

    @rule(group=st.sampled_from(GROUPS), gap_ms=st.sampled_from(GAPS_MS))
    def look_up(self, group: str, gap_ms: int) -> None:
        """A stranger asks how far the group is."""
        self.probe("probe_offset", PROBERS[0], group, 0, wide=True)
        self.wait(gap_ms)

    @rule(
        group=st.sampled_from((STRANGERS, STRANGERS, GROUPS[0])),
        queue=st.integers(0, 3),
        steps=st.lists(
            st.tuples(
                st.sampled_from(PROBERS),
                st.sampled_from(("probe_lock", "probe_lock", "probe_unlock")),
                st.sampled_from((1, 5, 50, -1)),
                st.sampled_from((-1, 0, 1, 5)),
            ),
            min_size=1,
            max_size=6,
        ),
        stranger=st.booleans(),
    )
    def contend(
        self, group: str, queue: int, steps: list[tuple[str, str, int, int]], stranger: bool
    ) -> None:
        """Several strangers contend for one lane, at times that matter to the broker's limit."""
        if stranger:  # one holds it, the second gives back what is not its own, the third tries
            steps = [
                ("e1", "probe_lock", 5, 0),
                ("e2", "probe_unlock", 5, 0),
                ("e3", "probe_lock", 5, 0),
                *steps,
            ]
        for who, verb, gap_ms, beyond_ms in steps:
            self.probe(verb, who, group, queue)
            self.wait(gap_ms if gap_ms > 0 else self.config.broker_lease_ms + beyond_ms)

    @rule(
        queue=st.integers(0, 3),
        beyond_ms=st.lists(st.sampled_from((0, 0, 1, -1, 2)), min_size=1, max_size=4),
        refused=st.booleans(),
    )
    def ask_at_the_limit(self, queue: int, beyond_ms: list[int], refused: bool) -> None:
        """A stranger holds a lane, and another one asks for it when the lease is about to run out."""
        for beyond in beyond_ms:
            left_ms = self.config.broker_lease_ms + beyond
            self.probe("probe_lock", "e1", STRANGERS, queue)
            if refused:
                self.wait(left_ms // 2)
                self.probe("probe_lock", "e2", STRANGERS, queue)
                left_ms -= left_ms // 2
            self.wait(left_ms)
            self.probe("probe_lock", "e3", STRANGERS, queue)
            self.wait(5)
            self.probe("probe_unlock", "e3", STRANGERS, queue)
            self.probe("probe_unlock", "e1", STRANGERS, queue)
            self.wait(5)
            self.probe("probe_lock", "e2", STRANGERS, queue)
            self.wait(5)
            self.probe("probe_unlock", "e2", STRANGERS, queue)
            self.wait(5)

    # ------------------------------------------------------------ an operator

    def move(self, verb: str, who: str, group: str, queue: int, offset: int) -> None:
        """A raw commit, or a reset, of one queue of the first broker."""
        broker, queues = self.plan.topology.brokers[0], self.plan.topology.topics[0].queues
        self.do(
            verb,
            client=who,
            group=group,
            topic=TOPIC,
            broker=broker,
            queue=queue % queues,
            offset=offset,
        )

    @rule(
        offset=st.sampled_from((0, 0, 1, 3)),
        before=st.sampled_from((7, 7, None)),
        after=st.sampled_from((8, 8, 0, None)),
        gap_ms=st.sampled_from((1, 1, 5, 400)),
    )
    def reset_in_flight(
        self, offset: int, before: int | None, after: int | None, gap_ms: int
    ) -> None:
        """Commits are under way when an operator moves the offsets of a group, and somebody asks where they are."""
        self.is_moved = True
        queues = range(self.plan.topology.topics[0].queues)
        for queue in queues:
            if before is not None:
                self.move("probe_commit", "e1", MOVED, queue, before)
            self.move("reset", "e2", MOVED, queue, offset)
        self.wait(gap_ms)
        self.probe("probe_offset", "e3", MOVED, 0, wide=True)
        if after is not None:
            for queue in queues:
                self.move("probe_commit", "e1", MOVED, queue, after)
            self.wait(gap_ms)
            self.probe("probe_offset", "e3", MOVED, 0, wide=True)
        self.wait(5)

    @precondition(lambda self: self.rewinds < REWINDS_MAX)
    @rule(
        queue=st.integers(0, 3),
        offset=st.sampled_from((0, 0, 0, 1, 2)),
        gap_ms=st.sampled_from(GAPS_MS),
        dies=st.sampled_from((False, False, True)),
    )
    def rewind(self, queue: int, offset: int, gap_ms: int, dies: bool) -> None:
        """An operator moves the offset of the smaller group while its members work, or one of them dies."""
        members = [
            name
            for name, group in CONSUMERS.items()
            if group == GROUPS[1] and self.world.is_running(name)
        ]
        if not members:
            return
        self.rewinds += 1
        self.move("reset", "e2", GROUPS[1], queue, offset)
        self.wait(gap_ms)
        if dies:
            self.do(crash.VERB, client=members[0])
            self.wait(5)
        self.probe("probe_offset", "e3", GROUPS[1], queue)
        self.wait(5)

    # ------------------------------------------------------------ end

    def send_last(self) -> None:
        """Messages that wait for a level or a commit, once nothing is in the way: in a run they seldom meet that."""
        brokers = self.plan.topology.brokers
        healings = (
            sorted(  # first who stands still is let go on: he does nothing of what comes next
                (
                    (verb, fault)
                    for verb, fault in HEALINGS.items()
                    if fault.subject is not Subject.LINK
                    and fault.fits(is_broker=True)
                    and verb != upgrade.HEALED_BY  # it would end a broker that is as it began
                ),
                key=lambda healing: healing[1].subject is not Subject.PROCESS,
            )
        )
        for broker in brokers:
            for verb, fault in healings:
                self.do(verb, **{name: broker for name in fault.nodes})
            for who in (*CONSUMERS, *PRODUCERS):
                self.mend(who, broker)
        for _ in range(3):
            self.do("send", client=PRODUCERS[1], topic=TOPIC, key=KEYS[0], count=1, delay_level=1)
            self.wait(20)
        self.do(
            "send_half", client=PRODUCERS[1], topic=TOPIC, count=3, ends="commit", checked="commit"
        )
        self.wait(20)

    def teardown(self) -> None:
        """Heal, rest, drain, judge. Raises Refuted when a wanted clause is broken, Enough when it was the last run."""
        if self.cluster is None:
            return
        self.send_last()
        world, self.cluster = self.cluster, None
        plan = replace(
            self.plan,
            actions=tuple(self.actions),
            listener=tuple(self.decisions),
            until_ms=world.now_ms,
        )
        fresh = self.states - self.collector.states
        self.collector.states |= fresh
        self.collector.reached.append(frozenset(fresh))
        target(float(len(fresh)), label="new abstract states")
        for lease, flight in sorted({(state.lease, state.flight) for state in fresh}):
            event(f"new: lease {lease}, {flight}")
        world.settle(plan.settle_ms)
        world.drain()
        rows = world.rows()
        info = runinfo_of(plan, self.collector.mutant)
        found = self.collector.take(
            Run(info, plan, rows, self.collector.judge(rows, info), world.events)
        )
        if found:
            raise Refuted(found)
        if self.collector.enough() or self.collector.is_over():
            raise Enough
