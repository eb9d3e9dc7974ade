"""The offset table against its model: what is stored, what a fetch answers, and what a crash leaves of it.

Commits of any value by anybody, alone or with a pull; fetches for young, empty, trimmed and unknown queues, with
and without the wish for a plain "not found"; resets by an operator, which hold commits off; groups that are deleted,
with their offsets or without; time passing to the moments at which offsets go to disk.
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from inorder.evidence.machines.broker_bench import FATES, NUMBERS, BrokerBench
from inorder.evidence.machines.programs import ProgramMachine

GROUPS = ("billing", "audit", "strangers")
TOPICS = ("orders", "bills", "nowhere")
"""The last of either does not exist at first."""


class Bench(BrokerBench):
    """Aims at the ends of queues and at the moments of persistence."""

    def near_the_end(
        self, verb: str, who: str, group: str, topic: str, queue_id: int, beyond: int, fate: str
    ) -> None:
        """Commit, or pull from, the queue's end and so much more."""
        value = self.end_of(topic, queue_id) + beyond
        if verb == "commit":
            self.commit(who, group, topic, queue_id, value, fate)
        else:
            self.pull(who, group, topic, queue_id, max(0, value), fate)

    def reach_persistence(self, beyond_ms: int) -> None:
        """Until about when the offsets are written next."""
        age_ms = self.now_ms - self.past.booted_ms
        first_ms, every_ms = self.rules.persist_first_ms, self.rules.persist_ms
        left_ms = (
            first_ms - age_ms if age_ms < first_ms else every_ms - (age_ms - first_ms) % every_ms
        )
        self.wait(max(0, left_ms + beyond_ms))

    def trim_to(self, topic: str, queue_id: int, below_end: int) -> None:
        self.trim(topic, queue_id, self.end_of(topic, queue_id) - below_end)


class OffsetTableMachine(ProgramMachine):
    """See the module."""

    NAME = "offset_table"
    bench_class = Bench

    @initialize(version=st.sampled_from(("5.x", "4.9")), known=st.booleans())
    def begin(self, version: str, known: bool) -> None:
        self.do("begin", version=version)
        for topic in TOPICS[:2]:
            self.do("create_topic", topic=topic, queues=2)
        if known:
            for group in GROUPS[:2]:
                self.do(
                    "beat",
                    who="alice",
                    conn="alice",
                    group=group,
                    topics=["orders"],
                    fate="answered",
                )

    @rule(
        group=st.sampled_from(GROUPS),
        topic=st.sampled_from(TOPICS),
        queue_id=st.integers(0, 2),
        value=st.sampled_from((-1, 0, 1, 2, 7, 2**40)),
        fate=st.sampled_from(FATES),
    )
    def commit(self, group: str, topic: str, queue_id: int, value: int, fate: str) -> None:
        self.do(
            "commit",
            who="alice",
            group=group,
            topic=topic,
            queue_id=queue_id,
            value=value,
            fate=fate,
        )

    @rule(
        group=st.sampled_from(GROUPS),
        topic=st.sampled_from(TOPICS),
        queue_id=st.integers(0, 2),
        zero=st.sampled_from((None, None, True, False)),
        fate=st.sampled_from(FATES),
    )
    def fetch(self, group: str, topic: str, queue_id: int, zero: bool | None, fate: str) -> None:
        self.do(
            "fetch", who="bob", group=group, topic=topic, queue_id=queue_id, zero=zero, fate=fate
        )

    @rule(
        group=st.sampled_from(GROUPS),
        topic=st.sampled_from(TOPICS[:2]),
        queue_id=st.integers(0, 1),
        values=st.lists(st.integers(0, 9), min_size=1, max_size=4),
    )
    def commit_in_turn(self, group: str, topic: str, queue_id: int, values: list[int]) -> None:
        """Each value is what is fetched, be it higher or lower than the last; the other queue keeps its own."""
        for value in values:
            self.do(
                "commit",
                who="alice",
                group=group,
                topic=topic,
                queue_id=queue_id,
                value=value,
                fate="answered",
            )
            self.do(
                "fetch",
                who="bob",
                group=group,
                topic=topic,
                queue_id=queue_id,
                zero=None,
                fate="answered",
            )
            self.do(
                "fetch",
                who="bob",
                group=group,
                topic=topic,
                queue_id=1 - queue_id,
                zero=None,
                fate="answered",
            )
            self.do("wait", ms=100)

    @rule(
        verb=st.sampled_from(("commit", "pull", "pull")),
        group=st.sampled_from(GROUPS),
        topic=st.sampled_from(TOPICS[:2]),
        queue_id=st.integers(0, 1),
        beyond=st.sampled_from((-1, 0, 0, 1, 5)),
        stored=st.sampled_from((None, 1, 3)),
        fate=st.sampled_from(FATES),
    )
    def near_the_end(
        self,
        verb: str,
        group: str,
        topic: str,
        queue_id: int,
        beyond: int,
        stored: int | None,
        fate: str,
    ) -> None:
        """A pull that finds something, or does not, leaves what is stored alone."""
        if stored is not None:
            self.do(
                "commit",
                who="bob",
                group=group,
                topic=topic,
                queue_id=queue_id,
                value=stored,
                fate="answered",
            )
        self.do(
            "near_the_end",
            verb=verb,
            who="alice",
            group=group,
            topic=topic,
            queue_id=queue_id,
            beyond=beyond,
            fate=fate,
        )
        self.do(
            "fetch",
            who="bob",
            group=group,
            topic=topic,
            queue_id=queue_id,
            zero=None,
            fate="answered",
        )

    @rule(
        group=st.sampled_from(GROUPS),
        topic=st.sampled_from(TOPICS),
        queue_id=st.integers(0, 2),
        offset=st.integers(0, 4),
        commit=st.integers(0, 5),
        wait_ms=st.sampled_from((0, 0, 700)),
        fate=st.sampled_from(FATES),
    )
    def pull(
        self,
        group: str,
        topic: str,
        queue_id: int,
        offset: int,
        commit: int,
        wait_ms: int,
        fate: str,
    ) -> None:
        """A commit travels with it."""
        self.do(
            "pull",
            who="alice",
            group=group,
            topic=topic,
            queue_id=queue_id,
            offset=offset,
            commit=commit,
            wait_ms=wait_ms,
            fate=fate,
        )

    @rule(
        group=st.sampled_from(GROUPS),
        topic=st.sampled_from(TOPICS),
        queue_id=st.integers(0, 2),
        offset=st.sampled_from((None, -1, 0, 1, 2, 5)),
        ago_ms=st.sampled_from((None, 0, 100, 700)),
        commit=st.sampled_from((None, 3, 7)),
        fate=st.sampled_from(FATES),
    )
    def reset(
        self,
        group: str,
        topic: str,
        queue_id: int,
        offset: int | None,
        ago_ms: int | None,
        commit: int | None,
        fate: str,
    ) -> None:
        """And a commit that comes too late."""
        lane = {"group": group, "topic": topic, "queue_id": queue_id}
        self.do("reset", **lane, offset=offset, ago_ms=ago_ms, fate=fate)
        if commit is not None:
            self.do("commit", who="alice", **lane, value=commit, fate="answered")
            self.do("fetch", who="bob", **lane, zero=None, fate="answered")

    @rule(
        group=st.sampled_from(GROUPS[:2]),
        topic=st.sampled_from(TOPICS[:2]),
        queue_id=st.integers(0, 1),
        with_offsets=st.booleans(),
        reset=st.sampled_from((True, True, False)),
        fate=st.sampled_from(FATES),
    )
    def delete_group(
        self, group: str, topic: str, queue_id: int, with_offsets: bool, reset: bool, fate: str
    ) -> None:
        """Of one that had stored something, beside another one in the same queue; it comes again after that."""
        lanes = [{"group": each, "topic": topic, "queue_id": queue_id} for each in GROUPS[:2]]
        for lane in lanes:
            self.do("commit", who="alice", **lane, value=1, fate="answered")
        if reset:
            mine = {"group": group, "topic": topic, "queue_id": queue_id}
            self.do("reset", **mine, offset=0, ago_ms=None, fate="answered")
        self.do("delete_group", group=group, with_offsets=with_offsets, fate=fate)
        for lane in lanes:
            self.do("fetch", who="bob", **lane, zero=None, fate="answered")
            self.do(
                "beat",
                who="alice",
                conn="alice",
                group=lane["group"],
                topics=["orders"],
                fate="answered",
            )
            self.do("pull", who="alice", **lane, offset=0, commit=0, wait_ms=0, fate="answered")
            self.do("commit", who="alice", **lane, value=2, fate="answered")
            self.do("fetch", who="bob", **lane, zero=None, fate="answered")

    @rule(topic=st.sampled_from(TOPICS), queue_id=st.integers(0, 2), count=st.integers(1, 3))
    def send(self, topic: str, queue_id: int, count: int) -> None:
        for _ in range(count):
            self.do("send", topic=topic, queue_id=queue_id)

    @rule(topic=st.sampled_from(TOPICS), queue_id=st.integers(0, 2), below_end=st.integers(0, 2))
    def trim(self, topic: str, queue_id: int, below_end: int) -> None:
        self.do("trim_to", topic=topic, queue_id=queue_id, below_end=below_end)
        self.do("bounds", topic=topic, queue_id=queue_id)

    @rule(beyond_ms=st.sampled_from((-1, 0, 1)))
    def reach_persistence(self, beyond_ms: int) -> None:
        self.do("reach_persistence", beyond_ms=beyond_ms)

    @rule(ms=st.sampled_from((1, 100, NUMBERS["persist_ms"], 2_100)))
    def wait(self, ms: int) -> None:
        self.do("wait", ms=ms)

    @rule(down_ms=st.sampled_from((1, 700)))
    def crash(self, down_ms: int) -> None:
        self.do("crash")
        self.do("wait", ms=down_ms)
        self.do("restart")
