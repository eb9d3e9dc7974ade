"""The lock table against its model: who is granted which lane, to the millisecond.

Clients ask for and give back batches of lanes of two groups, two topics and two broker names; time passes to a
lease's limit, one short of it and one beyond; requests and answers are lost; owners disconnect, unregister and
come back; strangers pull and commit; the broker crashes. A send to a group's retry topic looks at the table too.
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from inorder.evidence.machines.broker_bench import BROKER, FATES, NUMBERS, BrokerBench
from inorder.evidence.machines.programs import ProgramMachine
from specs.vocabulary import retry_topic

CLIENTS = ("alice", "bob", "carol")
GROUPS = ("billing", "audit")
LIMIT_MS = NUMBERS["lease_ms"]
QUEUES = tuple(
    [topic, broker, number]
    for topic in ("orders", "bills")
    for broker in (BROKER, "b1")
    for number in (0, 1)
)

batches = st.lists(st.sampled_from(QUEUES), min_size=1, max_size=4, unique_by=tuple)


class Bench(BrokerBench):
    """Has the limits of the leases to aim at."""

    def reach_the_limit(self, which: int, beyond_ms: int) -> None:
        """Until a lease is as old as the limit, and so much more. which: of the leases, oldest first."""
        ages = sorted(since.ended for _, since in self.past.locks.values())
        if ages:
            at_ms = ages[which % len(ages)] + self.rules.lease_ms + beyond_ms
            self.wait(max(0, at_ms - self.now_ms))

    def come_and_go(self, who: str, group: str, how: str) -> None:
        """Membership has nothing to do with leases."""
        self.beat(who, who, group, ["orders"], "answered")
        match how:
            case "close":
                self.close(who)
            case "unregister":
                self.unregister(who, who, group, "answered")
            case _:
                pass


class LockTableMachine(ProgramMachine):
    """See the module."""

    NAME = "lock_table"
    bench_class = Bench

    @initialize(version=st.sampled_from(("5.x", "4.9")))
    def begin(self, version: str) -> None:
        self.do("begin", version=version)
        self.do("create_topic", topic="orders", queues=2)

    @rule(
        who=st.sampled_from(CLIENTS),
        group=st.sampled_from(GROUPS),
        queues=batches,
        unlock=st.sampled_from((False, False, False, True)),
        fate=st.sampled_from(FATES),
    )
    def ask(
        self, who: str, group: str, queues: list[list[object]], unlock: bool, fate: str
    ) -> None:
        self.do("unlock" if unlock else "lock", who=who, group=group, queues=queues, fate=fate)

    @rule(
        group=st.sampled_from(GROUPS),
        queue=st.sampled_from(QUEUES),
        steps=st.lists(
            st.tuples(
                st.sampled_from(CLIENTS),
                st.sampled_from(("lock", "lock", "lock", "unlock")),
                st.sampled_from(
                    (
                        1,
                        1,
                        LIMIT_MS // 2,
                        LIMIT_MS - 1,
                        LIMIT_MS,
                        LIMIT_MS,
                        LIMIT_MS + 1,
                        LIMIT_MS + 1,
                    )
                ),
            ),
            min_size=2,
            max_size=6,
        ),
    )
    def contend(self, group: str, queue: list[object], steps: list[tuple[str, str, int]]) -> None:
        """Several clients after one lane, at times that matter to the limit."""
        for who, verb, gap_ms in steps:
            self.do(verb, who=who, group=group, queues=[queue], fate="answered")
            self.do("wait", ms=gap_ms)

    @rule(which=st.integers(0, 7), beyond_ms=st.sampled_from((-1, 0, 0, 1, 1, 500)))
    def reach_the_limit(self, which: int, beyond_ms: int) -> None:
        self.do("reach_the_limit", which=which, beyond_ms=beyond_ms)

    @rule(ms=st.sampled_from((1, 20, 999, 1_500)))
    def wait(self, ms: int) -> None:
        self.do("wait", ms=ms)

    @rule(
        who=st.sampled_from(CLIENTS),
        group=st.sampled_from(GROUPS),
        how=st.sampled_from(("stay", "close", "close", "unregister")),
    )
    def come_and_go(self, who: str, group: str, how: str) -> None:
        self.do("come_and_go", who=who, group=group, how=how)

    @rule(
        group=st.sampled_from(GROUPS),
        times=st.integers(0, 3),
        limit=st.integers(0, 2),
        level=st.integers(0, 2),
    )
    def send_to_retry(self, group: str, times: int, limit: int, level: int) -> None:
        """Where it lands depends on the group's leases (5.x)."""
        self.do(
            "send",
            topic=retry_topic(group),
            queue_id=0,
            times=times,
            limit=limit,
            level=level,
            origin="m0",
        )

    @rule(who=st.sampled_from(CLIENTS), group=st.sampled_from(GROUPS), value=st.integers(-1, 3))
    def work_without_a_lease(self, who: str, group: str, value: int) -> None:
        """The lease is advice: a commit is taken from anybody."""
        self.do(
            "commit", who=who, group=group, topic="orders", queue_id=0, value=value, fate="answered"
        )
        self.do(
            "fetch", who=who, group=group, topic="orders", queue_id=0, zero=None, fate="answered"
        )

    @rule(down_ms=st.sampled_from((1, 500)))
    def crash(self, down_ms: int) -> None:
        """The table is empty after it."""
        self.do("crash")
        self.do("wait", ms=down_ms)
        self.do("restart")
